"""What the experiments on positions do, and what came of one, in words. No Streamlit here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from model.language.say import say, sentences, to_say

if TYPE_CHECKING:
    from model.positions.experiments import ExperimentResult, PositionExperiment

    from ..ui.translation_changes import Mark

EXPERIMENTS = {
    "shift": to_say(
        "Every piece is given a position further on. A model that only looked at distances would not notice."
    ),
    "reverse": to_say("The words stay, their positions run backwards."),
    "shuffle": to_say("The words stay, their positions are dealt out anew."),
    "stretch": to_say("Positions are multiplied: distances grow or shrink."),
    "swap": to_say("Two pieces change positions, the words stay where they are."),
}
_REMOVED = {
    "source": to_say("No position is added to the sentence: the encoder sees a bag of words."),
    "target": to_say(
        "No position is added to the translation. The decoder still sees an order: its causal mask lets each row see "
        "only what was written before it."
    ),
}
_SENTENCE_KEEPS = to_say("The sentence keeps its positions: the order of its words still counts.")
_REMOVED_ALONE = to_say(
    "No position is added. The decoder still sees an order: its causal mask lets each row see only what was written "
    "before it."
)
SAME = {
    "translation": to_say("The translation is the same."),
    "continuation": to_say("The continuation is the same."),
}
BELIEVED = {
    "translation": to_say(
        "Fed its old translation, the model gave each piece {before:.0%} before and {after:.0%} now (geometric mean)."
    ),
    "continuation": to_say(
        "Fed its old continuation, the model gave each piece {before:.0%} before and {after:.0%} now (geometric mean)."
    ),
}
FED = {
    "translation": to_say(
        "All three while the old translation is fed, so that rows stay comparable. Difference: indigo where attention "
        "was gained, orange where it was lost."
    ),
    "continuation": to_say(
        "All three while the old continuation is fed, so that rows stay comparable. Difference: indigo where attention "
        "was gained, orange where it was lost."
    ),
}
BELIEF = {
    "translation": to_say("How much of its old translation the model still believes, by size of the experiment"),
    "continuation": to_say("How much of its old continuation the model still believes, by size of the experiment"),
}
"""Of a text as the model calls what it writes."""


def experiment(chosen: PositionExperiment, length: int, table_length: int, *, alone: bool = False) -> str:
    """What an experiment does to a sentence of `length` pieces, in a model with a table of `table_length` positions.

    `alone`: in a decoder that has no other side, whose sentence is a prompt and what follows.
    """
    if chosen.move == "remove" and alone:
        return say(_REMOVED_ALONE)
    if chosen.move == "remove":
        said = [say(one) for side, one in _REMOVED.items() if chosen.sides in (side, "both")]
        return sentences(*said, say(_SENTENCE_KEEPS) if chosen.sides == "target" else "")
    if chosen.move != "beyond":
        return say(EXPERIMENTS[chosen.move])
    at = {"position": chosen.amount, "positions": table_length}
    if chosen.amount >= table_length:
        return say(
            "The sentence begins at position {position:g}, past the {positions:,} positions of the model's table.", **at
        )
    if chosen.amount + length > table_length:
        return say(
            "The sentence begins at position {position:g} and runs past the {positions:,} positions of the table.", **at
        )
    return say("The sentence begins at position {position:g}: all its positions are inside the table.", **at)


def effect(result: ExperimentResult, written: str) -> str:
    """How much of its own translation or continuation, as `written` calls it, the model still believes."""
    before = float(np.exp(np.mean([step.log_prob for step in result.before.steps])))
    after = float(np.exp(result.log_probs.mean()))
    same = say(SAME[written]) if result.after.text == result.before.text else ""
    return sentences(same, say(BELIEVED[written], before=before, after=after))


def before_and_after(before: str, words: Sequence[tuple[str, Mark]]) -> str:
    """HTML of `before` in small type and the new translation in large, its new words marked; every word is escaped."""
    shown = [
        f'<span class="{mark}">{html.escape(word)}</span>' if mark == "new" else html.escape(word)
        for word, mark in words
        if mark != "gone"
    ]
    after = "".join(shown) or html.escape(say("(nothing)"))
    return (
        f'<div class="versions"><p class="before" dir="auto">{html.escape(before)}</p>'
        f'<p class="after" dir="auto">{after}</p></div>'
    )
