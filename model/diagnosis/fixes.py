"""Fixes carried out on the arrays themselves, so that they can be judged again.

A fix changes the mask or how it is applied, and the softmax is taken again over the scores. Where only weights are
known, their logarithms stand in for the scores, which is exact for every cell that had weight: leaving cells out of a
softmax and dividing by the new sum are the same. A cell without weight has no score, and gets the mean of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .findings import Diagnosis
from .inputs import Arrays, arrange, softmax

MEANT = frozenset(
    {
        "diagonal-blocked",
        "causal-on-cross",
        "padding-swapped",
        "wrong-axis",
        "head-order",
        "top-left-causal",
        "window-off-by-one",
        "document-leak",
        "mask-ignored",
        "hole-inside",
        "leak",
        "over-blocked",
    }
)
"""Codes whose fix puts the meant mask in the place of the given one."""


@dataclass(frozen=True, eq=False)
class Mended:
    """The arrays after a fix, by name, and what was done."""

    arrays: dict[str, np.ndarray]
    done: str
    invented: int = 0
    """Cells whose score had to be made up."""


@dataclass(frozen=True, eq=False)
class _State:
    """What a fix works on."""

    arrays: Arrays
    mask: np.ndarray
    """(B, L, H, Q, K) bool: the mask in force, as given, or read off the weights."""
    meant: np.ndarray
    """(B, L, H, Q, K) bool."""
    keep: np.ndarray
    """(B, 1, 1, 1, K) bool: real keys."""


def can_mend(code: str, arrays: Arrays, diagnosis: Diagnosis) -> bool:
    """Whether the fix of ``code`` can be carried out here; else a person has to do it in the model."""
    if code in ("softmax-axis", "dropout-on"):
        return arrays.scores is not None
    if code == "transposed":
        return not arrays.transposed
    if code == "hole-inside" and arrays.key_keep is not None:
        return False  # Which tokens are real is for their ids to say.
    return code in _MASKS and diagnosis.meant is not None


def mend(code: str, arrays: Arrays, diagnosis: Diagnosis) -> Mended:
    """Carry out the fix of ``code``. Raises ValueError where :func:`can_mend` says no."""
    if not can_mend(code, arrays, diagnosis):
        raise ValueError(f"The fix of {code} cannot be carried out on these arrays.")
    if code == "transposed":
        return Mended(_named(arrays, weights=np.swapaxes(arrays.weights, -1, -2)), "queries and keys were exchanged")
    shape = arrays.weights.shape
    if diagnosis.meant is None:
        mask = np.broadcast_to(np.ones((), bool) if arrays.mask is None else arrays.mask, shape)
        return _again(arrays, mask, "the softmax was taken again, over the keys")
    lit = np.nan_to_num(arrays.weights) > 0
    mask = np.broadcast_to(lit if arrays.mask is None else arrays.mask, shape)
    keep = np.ones((shape[0], shape[4]), bool) if arrays.key_keep is None else arrays.key_keep
    meant = np.broadcast_to(diagnosis.meant, shape)
    change, done = _MASKS.get(code, (_same, "the softmax was taken again, over the keys"))
    return _again(arrays, change(_State(arrays, mask, meant, keep[:, None, None, None, :])), done)


def _again(arrays: Arrays, mask: np.ndarray, done: str) -> Mended:
    """Fill with -inf where ``mask`` is False, softmax over the keys, zeros where no key is left."""
    scores, invented = _scores(arrays, mask)
    masked = np.where(mask, scores, -np.inf)
    weights = softmax(masked)
    more = {"masked_scores": masked} if arrays.masked_scores is not None or arrays.scores is not None else {}
    return Mended(_named(arrays, weights=weights, mask=mask, **more), done, invented)


def _scores(arrays: Arrays, mask: np.ndarray) -> tuple[np.ndarray, int]:
    """(B, L, H, Q, K) scores before the mask, and how many cells of ``mask`` had none."""
    if arrays.scores is not None:
        return arrays.scores.astype(np.float32), 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(arrays.weights.astype(np.float32))
    known = np.isfinite(logs)
    count = np.maximum(known.sum(-1, keepdims=True), 1)
    mean = np.where(known, logs, 0).sum(-1, keepdims=True) / count
    return np.where(known, logs, mean).astype(np.float32), int((mask & ~known).sum())


def _named(arrays: Arrays, **changed: np.ndarray) -> dict[str, np.ndarray]:
    names = ("scores", "masked_scores", "mask", "key_keep", "query_keep", "meant")
    old = {name: getattr(arrays, name) for name in names if name in arrays.given}
    return {name: array for name, array in (old | changed).items() if array is not None}


def rearranged(mended: Mended, map_name: str) -> Arrays:
    """The mended arrays, ready to be judged."""
    return arrange(mended.arrays, map_name)


def _same(state: _State) -> np.ndarray:
    return state.mask


def _turned(state: _State) -> np.ndarray:
    return ~state.mask


def _meant(state: _State) -> np.ndarray:
    return state.meant


def _causal(state: _State) -> np.ndarray:
    queries, keys = state.mask.shape[-2:]
    return state.mask & np.tril(np.ones((queries, keys), bool), keys - queries)


def _unpadded(state: _State) -> np.ndarray:
    columns = state.meant.any((1, 2, 3), keepdims=True)
    return state.mask & state.keep & columns


def _within(state: _State) -> np.ndarray:
    """The mask in force where it blocks by a fill: cells that were meant to be blocked."""
    return state.meant if state.arrays.mask is None else state.mask


_MASKS: dict[str, tuple[Callable[[_State], np.ndarray], str]] = {
    **dict.fromkeys(MEANT, (_meant, "the mask was replaced by what was meant")),
    "inverted": (_turned, "True and False of the mask were exchanged"),
    "future-visible": (_causal, "the future was blocked"),
    "padding-visible": (_unpadded, "the padding keys were blocked"),
    "soft-mask": (_meant, "blocked cells were filled with -inf, in place of adding the mask"),
    "weak-fill": (_meant, "blocked cells were filled with -inf"),
    "fill-overflow": (_within, "blocked cells were filled with -inf, and rows without a key set to zero"),
    "double-fill": (_meant, "the masks were joined and filled once, with -inf"),
    "empty-row": (_within, "rows without an allowed key were set to zero"),
}
"""What a fix makes of the mask in force, and in words."""

FIXABLE: Mapping[str, str] = {code: done for code, (_, done) in _MASKS.items()}
"""Codes with a mechanical fix of the mask, and what is done."""
