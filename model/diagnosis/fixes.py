"""Fixes applied to the arrays themselves, so that they can be judged again.

A fix changes the mask or how it is applied, and the softmax is taken again over the scores. Where only weights are
known, their logarithms stand in for the scores, which is exact for every cell that had weight: leaving cells out of a
softmax and dividing by the new sum are the same. A cell without weight has no score, and gets the mean of its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..language.say import say, to_say
from ..masking.softmax import softmax
from ..masking.structure import CAUSAL
from .inputs.arrays import NAMES, Arrays, as_columns
from .rules.biases import has_bias
from .rules.findings import Diagnosis

_REPLACED_BY_MEANT = (
    "diagonal-blocked",
    "causal-on-cross",
    "padding-swapped",
    "wrong-axis",
    "head-order",
    "top-left-causal",
    "window-off-by-one",
    "window-missing",
    "wrong-layer-pattern",
    "mask-shifted",
    "sample-order",
    "stale-cache",
    "document-leak",
    "mask-ignored",
    "hole-inside",
    "leak",
    "over-blocked",
)
"""Codes whose fix puts the meant mask in the place of the one in force."""
_SOFTMAX_AGAIN = to_say("the softmax was taken again, over the keys")


@dataclass(frozen=True, eq=False)
class FixResult:
    """The arrays after a fix, by name, and what was done, without the end of the sentence."""

    arrays: dict[str, np.ndarray]
    description: str
    invented_scores: int = 0
    """Number of cells whose score had to be made up."""


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


def can_fix(code: str, arrays: Arrays, diagnosis: Diagnosis) -> bool:
    """Whether the fix of ``code`` can be applied to these arrays; else a person has to make it in the model."""
    if code in ("softmax-axis", "dropout-on"):
        return arrays.scores is not None
    if code == "transposed":
        return not arrays.transposed
    if code == "hole-inside" and arrays.key_keep is not None:
        return False  # Which tokens are real is for their ids to say.
    if code == "bias-wrong":
        return arrays.scores is not None and has_bias(arrays)
    return code in _MASK_FIXES and diagnosis.meant is not None


def apply_fix(code: str, arrays: Arrays, diagnosis: Diagnosis) -> FixResult:
    """Return the arrays with the fix of ``code`` applied. Raises ValueError where :func:`can_fix` says no."""
    if not can_fix(code, arrays, diagnosis):
        raise ValueError(say("The fix of {code} cannot be carried out on these arrays.", code=code))
    if code == "transposed":
        weights = np.swapaxes(arrays.weights, -1, -2)
        return FixResult(_by_name(arrays, weights=weights), say("queries and keys were exchanged"))
    if code == "bias-wrong":
        return _add_bias(arrays)
    shape = arrays.weights.shape
    if diagnosis.meant is None:
        mask = np.broadcast_to(np.ones((), bool) if arrays.mask is None else arrays.mask, shape)
        return _mask_again(arrays, mask, say(_SOFTMAX_AGAIN))
    nonzero = np.nan_to_num(arrays.weights) > 0
    mask = np.broadcast_to(nonzero if arrays.mask is None else arrays.mask, shape)
    keep = np.ones((shape[0], shape[4]), bool) if arrays.key_keep is None else arrays.key_keep
    meant = np.broadcast_to(diagnosis.meant, shape)
    change, description = _MASK_FIXES.get(code, (_keep_mask, _SOFTMAX_AGAIN))
    if code == "leak" and not diagnosis.stated and arrays.key_keep is not None:
        change, description = _MASK_FIXES["padding-visible"]  # The guess says nothing about the other cells.
    return _mask_again(arrays, change(_State(arrays, mask, meant, as_columns(keep))), say(description))


def _add_bias(arrays: Arrays) -> FixResult:
    """Add the bias given, with what it blocks, to the scores, and take the softmax."""
    assert arrays.scores is not None
    assert arrays.bias is not None
    masked = arrays.scores.astype(np.float32) + arrays.bias.astype(np.float32)
    named = _by_name(arrays, weights=softmax(masked), mask=arrays.bias)
    return FixResult(
        {name: array for name, array in named.items() if name != "masked_scores"}, say("the bias was added")
    )


def _mask_again(arrays: Arrays, mask: np.ndarray, description: str) -> FixResult:
    """Fill with -inf where ``mask`` is False, take the softmax over the keys, zeros where no key is left."""
    scores, invented = _scores(arrays, mask)
    masked = np.where(mask, scores, -np.inf)
    weights = softmax(masked)
    more = {"masked_scores": masked} if arrays.masked_scores is not None or arrays.scores is not None else {}
    return FixResult(_by_name(arrays, weights=weights, mask=mask, **more), description, invented)


def _scores(arrays: Arrays, mask: np.ndarray) -> tuple[np.ndarray, int]:
    """Return (B, L, H, Q, K) scores before the mask, and how many cells of ``mask`` had none."""
    if arrays.scores is not None:
        return arrays.scores.astype(np.float32), 0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(arrays.weights.astype(np.float32))
    known = np.isfinite(logs)
    count = np.maximum(known.sum(-1, keepdims=True), 1)
    mean = np.where(known, logs, 0).sum(-1, keepdims=True) / count
    return np.where(known, logs, mean).astype(np.float32), int((mask & ~known).sum())


def _by_name(arrays: Arrays, **changed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays that were given, by name, with the changed ones in their place."""
    given = {name: getattr(arrays, name) for name in NAMES if name in arrays.given and name != "weights"}
    return {name: array for name, array in (given | changed).items() if array is not None}


def _keep_mask(state: _State) -> np.ndarray:
    return state.mask


def _invert(state: _State) -> np.ndarray:
    return ~state.mask


def _use_meant(state: _State) -> np.ndarray:
    return state.meant


def _block_future(state: _State) -> np.ndarray:
    return state.mask & CAUSAL.allowed(*state.mask.shape[-2:])


def _block_padding(state: _State) -> np.ndarray:
    columns = state.meant.any((1, 2, 3), keepdims=True)
    return state.mask & state.keep & columns


def _use_given_or_meant(state: _State) -> np.ndarray:
    """Return the mask given, which blocks by a fill; without one the cells that were meant to be blocked."""
    return state.meant if state.arrays.mask is None else state.mask


_MASK_FIXES: dict[str, tuple[Callable[[_State], np.ndarray], str]] = {
    **dict.fromkeys(_REPLACED_BY_MEANT, (_use_meant, to_say("the mask was replaced by what was meant"))),
    "inverted": (_invert, to_say("True and False of the mask were exchanged")),
    "future-visible": (_block_future, to_say("the future was blocked")),
    "padding-visible": (_block_padding, to_say("the padding keys were blocked")),
    "soft-mask": (_use_meant, to_say("blocked cells were filled with -inf, in place of adding the mask")),
    "weak-fill": (_use_meant, to_say("blocked cells were filled with -inf")),
    "fill-overflow": (
        _use_given_or_meant,
        to_say("blocked cells were filled with -inf, and rows without a key set to zero"),
    ),
    "double-fill": (_use_meant, to_say("the masks were joined and filled once, with -inf")),
    "applied-late": (_keep_mask, to_say("the mask was applied before the softmax")),
    "empty-row": (_use_given_or_meant, to_say("rows without an allowed key were set to zero")),
}
"""What a fix makes of the mask in force, and in words."""
