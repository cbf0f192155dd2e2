"""The converter in words: what a convention means, its values in full, and what a conversion loses."""

from __future__ import annotations

import numpy as np

from model.masking.convention_table import CONVENTIONS, Convention

EMPTY = {
    "added -inf": "a row without any key becomes NaN",
    "added finite": "a row without any key becomes uniform over all keys",
    "flash": "a row without any key gives zeros",
    "sdpa": "a row without any key gives zeros in some kernels and NaN in others",
    "other": "what a row without any key gives depends on the fill the library uses",
}


def meaning(convention: Convention) -> str:
    """What blocks, in words."""
    if convention.layout == "lengths":
        return "No mask: cumulative lengths"
    return {
        "true keeps": "True: may attend",
        "true blocks": "True: may not attend",
        "one keeps": "1: may attend, 0: may not",
        "one blocks": "1: may not attend, 0: may",
        "added": f"Added to the scores: 0 where a query may attend, {convention.fill:.3g} where not",
    }[convention.values]


def printed(array: np.ndarray) -> str:
    """Shape, type and every value."""
    values = array.astype(np.int8) if array.dtype == bool else array
    shown = np.array2string(values, separator=" ", threshold=4000, max_line_width=100, precision=3)
    if array.dtype == bool:
        shown = shown.replace("0", "·").replace("1", "T")
    signs = " (T = True, · = False)" if array.dtype == bool else ""
    return f"shape {tuple(array.shape)}, {array.dtype}{signs}\n{shown}"


def notes(allowed: np.ndarray, source: str, target: str) -> list[str]:
    """What is lost or treated otherwise on the way, a sentence each."""
    lost = []
    before, after = CONVENTIONS[source], CONVENTIONS[target]
    if after.layout in ("keys", "lengths"):
        lost.append("Lost: which queries are padding. Only keys are masked, so rows of padding queries carry weights.")
    if target == "hf_2d":
        lost.append("Lost: any causal part. The model adds its own where its class is causal.")
    if after.layout == "lengths":
        lost.append("Lost: padding beyond the longest sentence, which is cut off.")
    if after.values == "added" and before.values != "added":
        lost.append("The result is in float32: in half precision use the lowest number of that format as the fill.")
    if not allowed.any(-1).all():
        lost.append(f"Some query here has no key at all: in the target {EMPTY[_empty(after, target)]}.")
    return lost


def _empty(convention: Convention, name: str) -> str:
    if convention.layout == "lengths":
        return "flash"
    if convention.values == "added":
        return "added -inf" if np.isneginf(convention.fill) else "added finite"
    return name if name in EMPTY else "other"
