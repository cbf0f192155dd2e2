"""What each mask that can be tried is, and what came of it, in plain words. No Streamlit here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...figures.labels import quoted

if TYPE_CHECKING:
    from model.behaviour.outcomes import Outcome
    from model.experiments.input_perturbation import Perturbation
    from model.experiments.mask_trial import MaskName, TrialResult
    from model.trace import Kind

EXPLAINED: dict[MaskName, str] = {
    "no mask": "Every cell is open.",
    "no padding mask": "Padding may be attended to. It changes nothing when there is none: add some.",
    "no causal mask": "Positions see what comes after them, which the model never could in training.",
    "inverted": "What may be seen is blocked and the rest is open.",
    "causal": "A position sees only what stands before it or at it.",
    "own place blocked": "triu with offset 0: nobody sees their own position, and the first row is empty.",
    "window": "Only near positions are seen.",
    "one word hidden": "One key is blocked for every query.",
    "added, not filled": "The mask as zeros and ones, added: a tint in place of a wall.",
    "rule": "A mask by a rule of the part Build: causal, padding, window 3, prefix 2, joined by and, or, not.",
}
AT_ONCE = (
    "A decoder that writes token by token has no future to see; the missing mask shows once several positions run at "
    "once, as here and in training."
)


def effect(tried: TrialResult, written: str) -> str:
    """What became of the translation or continuation, as `written` calls it."""
    same = tried.own.ids == tried.trial.ids
    change = tried.trial.log_prob_of_target - tried.own.log_prob_of_target
    what = f"The {written} stays the same." if same else f"The {written} changes."
    if change == 0:
        return f"{what} Not a single probability moved."
    less = "less" if change < 0 else "more"
    return f"{what} The right one is {times(abs(change))} {less} likely under this mask."


def times(nats: float) -> str:
    """How many times likelier, from a difference of log-probabilities, to two digits."""
    factor = float(np.exp(min(nats, 50)))
    if factor > 1e6:
        return "more than a million times"
    return f"{float(f'{factor:.2g}'):,g} times" if factor >= 1.1 else f"{factor:.3f} times"


def moved(outputs: Sequence[str], poked: Perturbation, at: int, name: str) -> str:
    """Which outputs move with one input, and which of them should not."""
    change, may = poked.change[:, at], poked.allowed[:, at]
    leaks = [quoted(outputs[int(t)]) for t in np.flatnonzero((change > 0) & ~may)]
    count = int((change > 0).sum())
    if not count:
        return f"{name}: no output moves, not even in the last bit."
    listed = ", ".join(leaks[:8]) + (f" and {len(leaks) - 8} more" if len(leaks) > 8 else "")
    wrong = f"; {len(leaks)} of them should not: {listed}." if leaks else ", all of which may."
    return f"{name}: {count} of {len(outputs)} outputs move{wrong}"


def checks_table(own: Sequence[Outcome], tried: Sequence[Outcome]) -> str:
    """The eight tests as an HTML table: with the model's own mask and with the one tried."""
    rows = "".join(
        f"<tr><td>{one.check}</td><td>{html.escape(one.check.title)}</td>{_cell(one)}{_cell(other)}</tr>"
        for one, other in zip(own, tried, strict=True)
    )
    head = "<tr><th></th><th>What is tested</th><th>The model as it is</th><th>With this mask</th></tr>"
    return f'<table class="checks"><thead>{head}</thead><tbody>{rows}</tbody></table>'


def checks_lines(own: Sequence[Outcome], tried: Sequence[Outcome]) -> list[str]:
    """The same in plain lines."""
    pairs = zip(own, tried, strict=True)
    return [f"{a.check}: {a.check.title}: {_line(a)}; with this mask {_line(b)}." for a, b in pairs]


def _line(one: Outcome) -> str:
    return "pass" if one.status == "pass" else f"{one.status} ({one.reason.rstrip('.')})"


def checks_numbers(own: Sequence[Outcome], tried: Sequence[Outcome]) -> pd.DataFrame:
    """One test a row: what it said of the model as it is and with this mask."""
    rows = [
        {
            "test": a.code,
            "number": a.check.number,
            "what": a.check.title,
            "own mask": a.status,
            "this mask": b.status,
            "reason": b.reason,
        }
        for a, b in zip(own, tried, strict=True)
    ]
    return pd.DataFrame(rows).set_index("test")


def _cell(one: Outcome) -> str:
    reason = html.escape(one.reason)
    if one.status == "pass":
        return f"<td>✓ pass{_by(one)}</td>"
    if one.status == "fault":
        return f'<td><span class="fault">● fault</span> {reason}</td>'
    return f'<td class="not">not applicable: {reason}</td>'


def _by(one: Outcome) -> str:
    return f" (up to {one.difference:.1e})" if one.difference else ""


def of_tests(kind: Kind) -> str:
    """What the tests look at, and what they cannot see."""
    part = {
        "encoder": "the encoder, from embeddings to its last states",
        "decoder": "the decoder, from embeddings to logits",
        "cross": "the way from the source to the logits",
    }[kind]
    blind = " Too much blocking here shows in the attention, not in these tests." if kind == "cross" else ""
    return (
        f"Run on {part}, with the sentence and its first half, padded. Padding is left out of every comparison.{blind}"
    )
