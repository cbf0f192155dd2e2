"""Eight tests of a running model's masks: change an input, and see which outputs move.

Correct models give a difference of zero but for rounding, and real leaks can be as small as 1e-4 beside effects of 0.2,
so all but the comparisons of two different computations (padding-amount, observer, cache, position-free) compare with
the noise of the model itself: what rounding, or another batch size, changes in its outputs.
The probes are finite: with NaN or infinity a correct mask looks leaky, since 0 x NaN is NaN. Outputs at padding
positions are left out everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce

import torch
from torch import Tensor

from ..language.say import say, to_say
from . import probes
from .dependencies import dependencies, reachable
from .noise import granted_noise, granted_rounding, is_more_than_rounding, largest_change, tolerated, worse
from .outcomes import (
    BATCH_NEIGHBOUR,
    CACHE,
    CHECKS,
    FUTURE_TOKEN,
    GRADIENT_REACH,
    OBSERVER,
    PADDING_AMOUNT,
    PADDING_CONTENT,
    POSITION_FREE,
    Check,
    Outcome,
    checks_named,
    not_applicable,
    verdict,
)
from .subject import Side, Subject, padded_sides


def examine(subject: Subject, tolerance: float = 1e-4, codes: Collection[str] | None = None) -> tuple[Outcome, ...]:
    """Return the outcomes of all eight tests, or of those named, in order.

    Args:
        subject: the model and what it is meant to do.
        tolerance: where two computations are compared, the largest difference relative to the largest output.
        codes: the tests by code or by number, ``future-token`` or ``B1``. Raises ValueError for another name.
    """
    return tuple(TESTS[check](subject, tolerance) for check in (CHECKS if codes is None else checks_named(codes)))


def examine_future(subject: Subject) -> tuple[Outcome, ...]:
    """Return the outcomes of future-token, and of gradient-reach as far as it is about later tokens.

    A window may leave earlier tokens unused, and padding has tests of its own.
    """
    changed = _future_token(subject, 0.0)
    depends = None if changed.status == "not applicable" else dependencies(subject)
    if depends is None:
        return (changed,)
    later = torch.ones_like(depends, dtype=torch.bool).triu(1)
    leaks = subject.keep[:, :, None] & later & is_more_than_rounding(depends)
    return changed, _leak(depends, leaks) or verdict(GRADIENT_REACH, 0.0)


@torch.no_grad()
def _future_token(subject: Subject, tolerance: float) -> Outcome:
    if not subject.causal:
        return not_applicable(FUTURE_TOKEN, say("the model is meant to see the future"))
    if subject.output_keep is not None:
        return _of_another_sequence(FUTURE_TOKEN)
    before = subject.run(subject.embeddings, subject.keep)
    worst = reduce(worse, (pair.change(subject, before) for pair in probes.later_tokens(subject)), 0.0)
    outcome = verdict(FUTURE_TOKEN, worst, granted_noise(subject, before))
    return outcome if outcome.status == "fault" else _read_from_ids(subject) or outcome


def _read_from_ids(subject: Subject) -> Outcome | None:
    """Return the fault of a model whose earlier outputs change with the id of a later token; None without one."""
    if subject.ids is None or subject.run_ids is None:
        return None
    before = subject.run_ids(subject.ids, subject.keep)
    worst = reduce(worse, (pair.change(subject, before) for pair in probes.later_ids(subject)), 0.0)
    outcome = verdict(FUTURE_TOKEN, worst, granted_rounding(before, subject.keep), say("read from the token ids"))
    return outcome if outcome.status == "fault" else None


def _of_another_sequence(check: Check) -> Outcome:
    return not_applicable(check, say("the outputs are of another sequence"))


@torch.no_grad()
def _padding_content(subject: Subject, tolerance: float) -> Outcome:
    if bool(subject.keep.all()):
        return not_applicable(PADDING_CONTENT, say("no sample has padding"))
    before = subject.run(subject.embeddings, subject.keep)
    (change,) = (pair.change(subject, before) for pair in probes.padding(subject))
    return verdict(PADDING_CONTENT, change, granted_noise(subject, before), _padded_at(padded_sides(subject.keep)))


def _padded_at(sides: Sequence[Side]) -> str:
    """Where the padding was; nowhere at an end where it stands between real tokens."""
    if len(sides) > 1:
        return say("padded at the left and the right")
    if not sides:
        return ""
    return say("padded at the left") if sides[0] == "left" else say("padded at the right")


@torch.no_grad()
def _padding_amount(subject: Subject, tolerance: float) -> Outcome:
    if subject.output_keep is not None:
        return _of_another_sequence(PADDING_AMOUNT)
    pairs = dict(probes.more_padding(subject))
    first = next(iter(pairs.values())).before
    alone = first.run(subject)
    changes = {side: pair.change(subject, alone) for side, pair in pairs.items()}
    limit = tolerated(alone, first.keep, tolerance)
    bad = [side for side, change in changes.items() if not change <= limit]  # NaN is bad
    return verdict(PADDING_AMOUNT, reduce(worse, changes.values()), limit, _padded_at(bad or subject.sides))


@torch.no_grad()
def _batch_neighbour(subject: Subject, tolerance: float) -> Outcome:
    if subject.embeddings.shape[0] < 2:
        return not_applicable(BATCH_NEIGHBOUR, say("one sample has no neighbour"))
    before = subject.run(subject.embeddings, subject.keep)
    worst = reduce(worse, (pair.change(subject, before) for pair in probes.other_samples(subject)), 0.0)
    outcome = verdict(BATCH_NEIGHBOUR, worst, granted_noise(subject, before))
    return outcome if outcome.status == "fault" else _alone(subject, before, tolerance) or outcome


def _alone(subject: Subject, before: Tensor, tolerance: float) -> Outcome | None:
    """Return the fault of a first sentence whose outputs (1, T, ...) are others when it is run alone; else None."""
    for pair in probes.alone(subject):
        change, limit = pair.change(subject, before), tolerated(before, subject.keep, tolerance)
        found = verdict(BATCH_NEIGHBOUR, change, limit, say("between the first sentence alone and in the batch"))
        if found.status == "fault":
            return found
    return None


def _gradient_reach(subject: Subject, tolerance: float) -> Outcome:
    if subject.output_keep is not None:
        return _of_another_sequence(GRADIENT_REACH)
    may, depends = reachable(subject), dependencies(subject)
    if depends is None:
        return not_applicable(GRADIENT_REACH, say("no gradient can be taken through the model"))
    real = subject.keep[:, :, None] & subject.keep[:, None, :]
    rows = subject.keep[:, :, None].expand_as(depends)
    leak = _leak(depends, rows & ~may & is_more_than_rounding(depends))
    return leak or _gap(depends, real & may & ~(depends > 0)) or verdict(GRADIENT_REACH, 0.0)


def _leak(depends: Tensor, bad: Tensor) -> Outcome | None:
    """A fault naming the first of the cells (B, T, T) on which an output must not depend, None if there is none."""
    return _cell(
        depends,
        bad,
        to_say("output {output} of sample {sample} depends on input {input}"),
        to_say("output {output} of sample {sample} depends on input {input}, and {more} more"),
    )


def _gap(depends: Tensor, bad: Tensor) -> Outcome | None:
    """A fault naming the first of the cells on which an output should depend."""
    return _cell(
        depends,
        bad,
        to_say("output {output} of sample {sample} does not depend on input {input}"),
        to_say("output {output} of sample {sample} does not depend on input {input}, and {more} more"),
    )


def _cell(depends: Tensor, bad: Tensor, one: str, several: str) -> Outcome | None:
    cells = bad.nonzero().tolist()
    if not cells:
        return None
    b, i, j = cells[0]
    place = {"output": i + 1, "sample": b + 1, "input": j + 1}
    reason = say(several, more=len(cells) - 1, **place) if len(cells) > 1 else say(one, **place)
    return Outcome(GRADIENT_REACH, "fault", reason, float(depends[b, i, j]))


@torch.no_grad()
def _observer(subject: Subject, tolerance: float) -> Outcome:
    if not subject.others:
        return not_applicable(OBSERVER, say("there is only one way through this model"))
    before, worst, name = subject.run(subject.embeddings, subject.keep), 0.0, ""
    for way, run in subject.others.items():
        change = largest_change(run(subject.embeddings, subject.keep) - before, subject.outputs_real)
        worst, name = (change, way) if worse(worst, change) is change else (worst, name)
    limit = tolerated(before, subject.outputs_real, tolerance)
    return verdict(OBSERVER, worst, limit, "" if worst <= limit else say(name))


@torch.no_grad()
def _cache(subject: Subject, tolerance: float) -> Outcome:
    if subject.cached is None:
        return not_applicable(CACHE, say("the model has no cache"))
    before = subject.run(subject.embeddings, subject.keep)
    change = largest_change(subject.cached(subject.embeddings, subject.keep) - before, subject.outputs_real)
    return verdict(CACHE, change, tolerated(before, subject.outputs_real, tolerance))


@torch.no_grad()
def _position_free(subject: Subject, tolerance: float) -> Outcome:
    if subject.unpositioned is None:
        return not_applicable(POSITION_FREE, say("the position encoding cannot be taken out"))
    if subject.causal or subject.allowed is not None or subject.output_keep is not None:
        return not_applicable(POSITION_FREE, say("the mask is built inside and cannot be permuted with the tokens"))
    order = torch.arange(subject.keep.shape[1] - 1, -1, -1, device=subject.keep.device)
    before = subject.unpositioned(subject.embeddings, subject.keep)
    after = subject.unpositioned(subject.embeddings[:, order], subject.keep[:, order])
    change = largest_change(after - before[:, order], subject.keep[:, order])
    return verdict(POSITION_FREE, change, tolerated(before, subject.keep, tolerance))


TESTS: dict[Check, Callable[[Subject, float], Outcome]] = {
    FUTURE_TOKEN: _future_token,
    PADDING_CONTENT: _padding_content,
    PADDING_AMOUNT: _padding_amount,
    BATCH_NEIGHBOUR: _batch_neighbour,
    GRADIENT_REACH: _gradient_reach,
    OBSERVER: _observer,
    CACHE: _cache,
    POSITION_FREE: _position_free,
}
