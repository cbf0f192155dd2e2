"""The converter in words: what a convention means, its values in full, and what a conversion loses."""

from __future__ import annotations

import numpy as np

from model.language.say import say, to_say
from model.masking.convention_table import CONVENTIONS, Convention, Values

EMPTY = {
    "added -inf": to_say("a row without any key becomes NaN"),
    "added finite": to_say("a row without any key becomes uniform over all keys"),
    "flash": to_say("a row without any key gives zeros"),
    "sdpa": to_say("a row without any key gives zeros in some kernels and NaN in others"),
    "other": to_say("what a row without any key gives depends on the fill the library uses"),
}
MEANINGS: dict[Values, str] = {
    "true keeps": to_say("True: may attend"),
    "true blocks": to_say("True: may not attend"),
    "one keeps": to_say("1: may attend, 0: may not"),
    "one blocks": to_say("1: may not attend, 0: may"),
}


def meaning(convention: Convention) -> str:
    """What blocks, in words."""
    if convention.layout == "lengths":
        return say("No mask: cumulative lengths")
    if convention.values == "added":
        return say("Added to the scores: 0 where a query may attend, {fill:.3g} where not", fill=convention.fill)
    return say(MEANINGS[convention.values])


def printed(array: np.ndarray) -> str:
    """Shape, type and every value."""
    values = array.astype(np.int8) if array.dtype == bool else array
    shown = np.array2string(values, separator=" ", threshold=4000, max_line_width=100, precision=3)
    if array.dtype == bool:
        shown = shown.replace("0", "·").replace("1", "T")
    return f"{described(array)}\n{shown}"


def described(array: np.ndarray) -> str:
    """Shape and type."""
    said = {"shape": tuple(array.shape), "type": array.dtype}
    if array.dtype == bool:
        return say("shape {shape}, {type} (T = True, · = False)", **said)
    return say("shape {shape}, {type}", **said)


def notes(allowed: np.ndarray, source: str, target: str) -> list[str]:
    """What is lost or treated otherwise on the way, a sentence each."""
    lost = []
    before, after = CONVENTIONS[source], CONVENTIONS[target]
    if after.layout in ("keys", "lengths"):
        lost.append(
            say("Lost: which queries are padding. Only keys are masked, so rows of padding queries carry weights.")
        )
    if target == "hf_2d":
        lost.append(say("Lost: any causal part. The model adds its own where its class is causal."))
    if after.layout == "lengths":
        lost.append(say("Lost: padding beyond the longest sentence, which is cut off."))
    if after.values == "added" and before.values != "added":
        lost.append(
            say("The result is in float32: in half precision use the lowest number of that format as the fill.")
        )
    if not allowed.any(-1).all():
        becomes = say(EMPTY[_empty(after, target)])
        lost.append(say("Some query here has no key at all: in the target {becomes}.", becomes=becomes))
    return lost


def _empty(convention: Convention, name: str) -> str:
    if convention.layout == "lengths":
        return "flash"
    if convention.values == "added":
        return "added -inf" if np.isneginf(convention.fill) else "added finite"
    return name if name in EMPTY else "other"
