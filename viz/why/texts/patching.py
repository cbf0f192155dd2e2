"""What the view Two sentences says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from model.language.say import listed, say, sentences, to_say
from viz.figures.labels import quoted, signed
from viz.figures.places import numbered_name, place_name
from viz.figures.why.patching import share

if TYPE_CHECKING:
    from model.experiments.activation_patching import Contrast, PatchMap

SECOND_HINT = to_say("as many pieces as the sentence above")
NO_SECOND = to_say(
    "Type a second sentence that has as many pieces as the one above and another translation: a word "
    "in another number or tense, another pronoun."
)
NO_CONTROL = to_say(
    "No control: type a third sentence whose translation has the same word at this place. What a patch from the first "
    "sentence into it changes has nothing to do with the difference."
)
EXPLAINED = to_say(
    "Rows are layers, columns positions or heads; the last column patches a whole row at once. 0% is the run of the "
    "second sentence as it is, 100% brings the whole difference back; orange moves it further away."
)


def pair(found: Contrast) -> str:
    """Where the translations part, and the difference that there is to bring back."""
    target = found.target
    facts = {
        "x": quoted(target.tokens[0]),
        "y": quoted(target.against or ""),
        "first": signed(found.first_value),
        "second": signed(found.second_value),
    }
    if target.position == 0:
        return say(
            "The translations part at the first piece: {x} for the first sentence, {y} for the second. logit {x} − "
            "logit {y} is {first} with the first and {second} with the second sentence.",
            **facts,
        )
    return say(
        "The translations part after {prefix}: {x} for the first sentence, {y} for the second. logit {x} − logit {y} "
        "is {first} with the first and {second} with the second sentence.",
        prefix=quoted("".join(target.prefix_tokens[1:])),
        **facts,
    )


def largest(found: PatchMap, columns: Sequence[str]) -> str:
    """The single patch that brings most back, and the rows that together bring back nine tenths."""
    row, column = (int(at) for at in np.unravel_index(int(found.fraction.argmax()), found.fraction.shape))
    most = share(float(found.fraction[row, column]))
    line = say(
        "One patch brings back most at {place}, {column}: {share}.",
        place=place_name(found.rows[row]),
        column=quoted(numbered_name(columns[column])),
        share=most,
    )
    whole = [at for at, part in enumerate(found.whole_fraction) if part >= 0.9]
    if not whole:
        best = int(found.whole_fraction.argmax())
        all_at_once = say(
            "A whole row brings back {share} at most, at {place}.",
            share=share(float(found.whole_fraction[best])),
            place=place_name(found.rows[best]),
        )
    else:
        rows = listed(place_name(found.rows[at]) for at in whole)
        all_at_once = say("A whole row brings back nine tenths or more at: {rows}.", rows=rows)
    return sentences(line, all_at_once)


def control(found: PatchMap) -> str:
    """How much a patch moves that should bring nothing back."""
    row, column = np.unravel_index(int(np.abs(found.fraction).argmax()), found.fraction.shape)
    moved = share(float(found.fraction[row, column]))
    return say("In the control one patch moves {share} of that difference at most.", share=moved)
