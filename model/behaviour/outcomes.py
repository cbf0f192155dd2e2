"""The eight behaviour tests by their names, and their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ..language.say import listed, say, to_say

Status = Literal["pass", "fault", "not applicable"]
STATUS_NAMES: dict[Status, str] = {
    "pass": to_say("pass"),
    "fault": to_say("fault"),
    "not applicable": to_say("not applicable"),
}


@dataclass(frozen=True)
class Check:
    """One of the tests."""

    number: str
    """B1 to B8."""
    code: str
    """Readable, as the codes of the diagnosis are."""
    title: str
    """The statement that holds where it passes; :func:`~..language.say.say` says it."""

    def __str__(self) -> str:
        return f"{self.code} ({self.number})"


FUTURE_TOKEN = Check("B1", "future-token", to_say("earlier outputs stay when a later token changes"))
PADDING_CONTENT = Check("B2", "padding-content", to_say("real outputs stay when padding changes"))
PADDING_AMOUNT = Check("B3", "padding-amount", to_say("a sentence alone equals the same sentence padded"))
BATCH_NEIGHBOUR = Check("B4", "batch-neighbour", to_say("a sentence stays when its neighbour in the batch changes"))
GRADIENT_REACH = Check(
    "B5", "gradient-reach", to_say("outputs depend on what the mask lets them reach, and on nothing else")
)
OBSERVER = Check("B6", "observer", to_say("observing does not change the output, nor does the kernel"))
CACHE = Check("B7", "cache", to_say("cached decoding equals one full forward"))
POSITION_FREE = Check("B8", "position-free", to_say("without positions, permuted tokens give permuted outputs"))
CHECKS = (
    *(FUTURE_TOKEN, PADDING_CONTENT, PADDING_AMOUNT, BATCH_NEIGHBOUR),
    *(GRADIENT_REACH, OBSERVER, CACHE, POSITION_FREE),
)
"""In the order in which they run."""


@dataclass(frozen=True)
class Outcome:
    """The result of one test."""

    check: Check
    status: Status
    reason: str
    """Why, in the language in which the test ran."""
    difference: float = 0.0
    """The largest change of an output that should not have changed."""

    @property
    def code(self) -> str:
        return self.check.code


def checks_named(names: Iterable[str]) -> tuple[Check, ...]:
    """Return the tests that are named by number or by code, in their order. Raises ValueError for another name."""
    chosen = set(names)
    if unknown := chosen - {name for check in CHECKS for name in (check.number, check.code)}:
        raise ValueError(
            say(
                "There is no behaviour test {unknown}; there are {known}.",
                unknown=listed(sorted(unknown)),
                known=listed(map(str, CHECKS)),
            )
        )
    return tuple(check for check in CHECKS if chosen & {check.number, check.code})


def verdict(check: Check, difference: float, limit: float = 0.0, where: str = "") -> Outcome:
    """Return the outcome of a test that is passed up to a limit; NaN is a fault.

    `where` or how the change was made ends the reason: a clause in the current language.
    """
    title = say(check.title)
    if difference <= limit:
        return Outcome(check, "pass", say("{title}, {where}", title=title, where=where) if where else title, difference)
    said = {"title": title, "change": difference}
    reason = (
        say("not so: {title}; the largest change is {change:.2g}, {where}", where=where, **said)
        if where
        else say("not so: {title}; the largest change is {change:.2g}", **said)
    )
    return Outcome(check, "fault", reason, difference)


def not_applicable(check: Check, reason: str) -> Outcome:
    """Return the outcome of a test that a subject does not allow, for a reason in the current language."""
    return Outcome(check, "not applicable", reason)
