"""The sentences of the part Try: what each mask is, and what it changed; no Streamlit."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from attenscope.language import join_items, join_sentences, say, say_many, to_say
from attenscope.trace import Kind
from attenscope.viz.figures.look import quote_token

if TYPE_CHECKING:
    from attenscope.experiments.mask_trial import MaskName, Perturbation, TrialResult
    from attenscope.mask_tests.outcomes import Outcome
    from attenscope.viz.ui.style import TableCell

MASK_EXPLANATIONS: dict[MaskName, str] = {
    "no mask": to_say("Every cell is open."),
    "no padding mask": to_say("Padding may be attended to. It changes nothing when there is none: add some."),
    "no causal mask": to_say("Positions see what comes after them, which the model never could in training."),
    "inverted": to_say("What may be seen is blocked and the rest is open."),
    "causal": to_say("A position sees only what stands before it or at it."),
    "own place blocked": to_say("triu with offset 0: nobody sees their own position, and the first row is empty."),
    "window": to_say("Only near positions are seen."),
    "one word hidden": to_say("One key is blocked for every query."),
    "added, not filled": to_say("The mask as zeros and ones, added: a tint in place of a wall."),
    "rule": to_say("A mask by a rule of the part Build: causal, padding, window 3, prefix 2, joined by and, or, not."),
}
NO_CAUSAL_MASK_NOTE = to_say(
    "A decoder that writes token by token has no future to see; the missing mask shows once several positions run at "
    "once, as here and in training."
)
TEST_EXPLANATIONS: dict[Kind, str] = {
    "encoder": to_say(
        "Run on the encoder, from embeddings to its last states, with the sentence and its first half, padded. "
        "Padding is left out of every comparison."
    ),
    "decoder": to_say(
        "Run on the decoder, from embeddings to logits, with the sentence and its first half, padded. Padding is left "
        "out of every comparison."
    ),
    "cross": to_say(
        "Run on the way from the source to the logits, with the sentence and its first half, padded. Padding is left "
        "out of every comparison. Too much blocking here shows in the attention, not in these tests."
    ),
}


def describe_mask(name: MaskName) -> str:
    """What a mask is."""
    return join_sentences(say(MASK_EXPLANATIONS[name]), say(NO_CAUSAL_MASK_NOTE) if name == "no causal mask" else "")


def describe_effect(tried: TrialResult, *, translates: bool) -> str:
    """What became of the translation, or of the continuation of a model that does not translate."""
    change = tried.trial.log_prob_of_target - tried.own.log_prob_of_target
    if change == 0:
        likely = say("Not a single probability moved.")
    elif change < 0:
        likely = say("The right one is {times} less likely under this mask.", times=format_likelihood_ratio(-change))
    else:
        likely = say("The right one is {times} more likely under this mask.", times=format_likelihood_ratio(change))
    return join_sentences(_describe_output_change(tried.own.ids == tried.trial.ids, translates), likely)


def _describe_output_change(same: bool, translates: bool) -> str:
    if translates:
        return say("The translation stays the same.") if same else say("The translation changes.")
    return say("The continuation stays the same.") if same else say("The continuation changes.")


def format_likelihood_ratio(nats: float) -> str:
    """How many times likelier, from a difference of log-probabilities, to two digits."""
    factor = float(np.exp(min(nats, 50)))
    if factor > 1e6:
        return say("more than a million times")
    if factor >= 1.1:
        return say("{factor:,g} times", factor=float(f"{factor:.2g}"))
    return say("{factor:.3f} times", factor=factor)


def describe_moved_outputs(outputs: Sequence[str], poked: Perturbation, at: int, name: str) -> str:
    """Which outputs move with one input, and which of them should not."""
    change, may = poked.change[:, at], poked.allowed[:, at]
    leaks = [quote_token(outputs[int(t)]) for t in np.flatnonzero((change > 0) & ~may)]
    count = int((change > 0).sum())
    if not count:
        return say("{name}: no output moves, not even in the last bit.", name=name)
    if not leaks:
        return say_many(
            "{name}: {count} of {outputs} outputs moves, and may.",
            "{name}: {count} of {outputs} outputs move, all of which may.",
            count,
            name=name,
            outputs=len(outputs),
        )
    return say_many(
        "{name}: {count} of {outputs} outputs moves; {leaks} of them should not: {tokens}.",
        "{name}: {count} of {outputs} outputs move; {leaks} of them should not: {tokens}.",
        count,
        name=name,
        outputs=len(outputs),
        leaks=len(leaks),
        tokens=_list_first_tokens(leaks),
    )


def _list_first_tokens(tokens: Sequence[str]) -> str:
    """The first eight, and how many are left."""
    if len(tokens) <= 8:
        return join_items(tokens)
    return say("{tokens} and {count} more", tokens=join_items(tokens[:8]), count=len(tokens) - 8)


def list_test_headings() -> list[str]:
    """What stands over the columns of the tests."""
    return ["", say("What is tested"), say("The model as it is"), say("With this mask")]


def build_test_rows(own: Sequence[Outcome], tried: Sequence[Outcome]) -> list[list[TableCell]]:
    """The eight tests, a row each: with the model's own mask and with the one tried."""
    return [
        [str(one.check), say(one.check.title), _build_outcome_cell(one), _build_outcome_cell(other)]
        for one, other in zip(own, tried, strict=True)
    ]


def render_test_table(rows: Sequence[Sequence[TableCell]]) -> str:
    """The same as an HTML table."""

    def cell(one: TableCell) -> str:
        text, look = (one, "") if isinstance(one, str) else one
        return f'<td class="{look}">{html.escape(text)}</td>'

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    head = "".join(f"<th>{html.escape(one)}</th>" for one in list_test_headings())
    return f'<table class="checks"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def tabulate_test_outcomes(own: Sequence[Outcome], tried: Sequence[Outcome]) -> pd.DataFrame:
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


def _build_outcome_cell(one: Outcome) -> TableCell:
    if one.status == "pass":
        words = say("pass (up to {difference:.1e})", difference=one.difference) if one.difference else say("pass")
        return f"✓ {words}"
    if one.status == "fault":
        return f"● {say('fault: {reason}', reason=one.reason)}", "fault"
    return say("not applicable: {reason}", reason=one.reason), "not"


def describe_tests(kind: Kind) -> str:
    """What the tests look at, and what they cannot see."""
    return say(TEST_EXPLANATIONS[kind])
