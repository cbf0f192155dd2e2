"""What the view Two sentences says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from viz.figures.labels import quoted, signed
from viz.figures.why.patching import share

if TYPE_CHECKING:
    from model.experiments.activation_patching import Contrast, PatchMap

SECOND_HINT = "as many pieces as the sentence above"
NO_SECOND = (
    "Type a second sentence that has as many pieces as the one above and another translation: a word "
    "in another number or tense, another pronoun."
)
NO_CONTROL = (
    "No control: type a third sentence whose translation has the same word at this place. What a patch from the first "
    "sentence into it changes has nothing to do with the difference."
)
EXPLAINED = (
    "Rows are layers, columns positions or heads; the last column patches a whole row at once. 0% is the run of the "
    "second sentence as it is, 100% brings the whole difference back; orange moves it further away."
)


def pair(found: Contrast) -> str:
    """Where the translations part, and the difference that there is to bring back."""
    target = found.target
    place = "at the first piece" if target.position == 0 else f"after {quoted(''.join(target.prefix_tokens[1:]))}"
    x, y = quoted(target.tokens[0]), quoted(target.against or "")
    return (
        f"The translations part {place}: {x} for the first sentence, {y} for the second. logit {x} − logit {y} is "
        f"{signed(found.first_value)} with the first and {signed(found.second_value)} with the second sentence."
    )


def largest(found: PatchMap, columns: Sequence[str]) -> str:
    """The single patch that brings most back, and the rows that together bring back nine tenths."""
    row, column = (int(at) for at in np.unravel_index(int(found.fraction.argmax()), found.fraction.shape))
    most = share(float(found.fraction[row, column]))
    line = f"One patch brings back most at {found.rows[row]}, {quoted(columns[column])}: {most}."
    whole = [at for at, part in enumerate(found.whole_fraction) if part >= 0.9]
    if not whole:
        best = int(found.whole_fraction.argmax())
        return (
            f"{line} A whole row brings back {share(float(found.whole_fraction[best]))} at most, at {found.rows[best]}."
        )
    rows = ", ".join(found.rows[at] for at in whole)
    return f"{line} A whole row brings back nine tenths or more at: {rows}."


def control(found: PatchMap) -> str:
    """How much a patch moves that should bring nothing back."""
    row, column = np.unravel_index(int(np.abs(found.fraction).argmax()), found.fraction.shape)
    return f"In the control one patch moves {share(float(found.fraction[row, column]))} of that difference at most."
