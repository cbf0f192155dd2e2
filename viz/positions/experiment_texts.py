"""What the experiments on positions do, and what came of one, in words. No Streamlit here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from model.positions.experiments import ExperimentResult, PositionExperiment

    from ..ui.translation_changes import Mark

EXPERIMENTS = {
    "shift": "Every piece is given a position further on. A model that only looked at distances would not notice.",
    "reverse": "The words stay, their positions run backwards.",
    "shuffle": "The words stay, their positions are dealt out anew.",
    "stretch": "Positions are multiplied: distances grow or shrink.",
    "swap": "Two pieces change positions, the words stay where they are.",
}
_REMOVED = {
    "source": "No position is added to the sentence: the encoder sees a bag of words.",
    "target": "No position is added to the translation. The decoder still sees an order: its causal mask lets each row "
    "see only what was written before it.",
}
_REMOVED_ALONE = (
    "No position is added. The decoder still sees an order: its causal mask lets each row see only what was written "
    "before it."
)


def experiment(chosen: PositionExperiment, length: int, table_length: int, *, alone: bool = False) -> str:
    """What an experiment does to a sentence of `length` pieces, in a model with a table of `table_length` positions.

    `alone`: in a decoder that has no other side, whose sentence is a prompt and what follows.
    """
    if chosen.move == "remove" and alone:
        return _REMOVED_ALONE
    if chosen.move == "remove":
        return " ".join(said for side, said in _REMOVED.items() if chosen.sides in (side, "both"))
    if chosen.move != "beyond":
        return EXPERIMENTS[chosen.move]
    begin = f"{chosen.amount:g}"
    if chosen.amount >= table_length:
        return f"The sentence begins at position {begin}, past the {table_length:,} positions of the model's table."
    if chosen.amount + length > table_length:
        return f"The sentence begins at position {begin} and runs past the {table_length:,} positions of the table."
    return f"The sentence begins at position {begin}: all its positions are inside the table."


def effect(result: ExperimentResult, written: str) -> str:
    """How much of its own translation or continuation, as `written` calls it, the model still believes."""
    before = np.exp(np.mean([step.log_prob for step in result.before.steps]))
    after = np.exp(result.log_probs.mean())
    same = f"The {written} is the same." if result.after.text == result.before.text else ""
    return (
        f"{same} Fed its old {written}, the model gave each piece {before:.0%} before and {after:.0%} now "
        "(geometric mean)."
    ).strip()


def before_and_after(before: str, words: Sequence[tuple[str, Mark]]) -> str:
    """HTML of `before` in small type and the new translation in large, its new words marked; every word is escaped."""
    shown = [
        f'<span class="{mark}">{html.escape(word)}</span>' if mark == "new" else html.escape(word)
        for word, mark in words
        if mark != "gone"
    ]
    after = "".join(shown) or "(nothing)"
    return (
        f'<div class="versions"><p class="before" dir="auto">{html.escape(before)}</p>'
        f'<p class="after" dir="auto">{after}</p></div>'
    )
