"""Position biases that did not take effect as they were given: missing, of the wrong sign, of another head."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...language.say import say, to_say
from ..inputs.arrays import Arrays
from ..inputs.evidence import Evidence
from .score_checks import offsets, tolerance

_FEWEST = 4
"""Keys of a row from which a slope is told from chance."""
_SURE = 8
"""A bias is told from none where it moves scores by so many times what rounding may."""

Effect = tuple[np.ndarray, str]
"""(B, L, H) units and what became of their bias, in words."""


def has_bias(arrays: Arrays) -> bool:
    """Whether an additive mask holds more than two values: a bias beside what it blocks."""
    return arrays.bias is not None and arrays.mask is not None and np.unique(arrays.bias[arrays.mask]).size > 1


def given_bias_effects(arrays: Arrays, evidence: Evidence) -> tuple[np.ndarray, list[Effect]]:
    """Return (B, L, H) units whose weights are as the bias given makes them, and what became of it in others."""
    if not has_bias(arrays) or arrays.scores is None or arrays.bias is None or arrays.mask is None:
        return np.zeros(arrays.sizes[:3], bool), []
    added = offsets(arrays.scores.astype(np.float64), arrays, evidence)
    allowed = np.broadcast_to(arrays.mask, arrays.sizes)
    judged = ~(evidence.nonzero & ~allowed & allowed.any(-1, keepdims=True)).any((-1, -2))
    cells = allowed & np.isfinite(added)
    bias = np.broadcast_to(np.where(arrays.mask, arrays.bias, 0.0).astype(np.float64), arrays.sizes)
    near = 2 * tolerance(arrays, evidence)
    judged = judged & (_spread(bias, cells) > _SURE * near)
    fits = _spread(added - bias, cells) <= near
    found: list[Effect] = []
    left = judged & ~fits
    for words, other in _changed(bias):
        wrong = left & (_spread(added - other, cells) <= near)
        if wrong.any():
            found.append((wrong, say(words)))
        left = left & ~wrong
    return judged & fits, found


def _changed(bias: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what may have been added in the place of a bias (B, L, H, Q, K), the message of it first."""
    never = to_say("the bias given never arrived: the weights are the softmax of the scores without it")
    yield never, np.zeros_like(bias)
    yield to_say("the bias given has taken effect with the opposite sign"), -bias
    for step in range(1, bias.shape[2]):
        yield to_say("the bias given is that of another head"), np.roll(bias, step, 2)


def reversed_slope(arrays: Arrays, evidence: Evidence) -> np.ndarray | None:
    """Return (B, L, H): heads whose scores were raised in proportion to the distance of the key; None for none.

    ALiBi lowers them (Press et al. 2022); nobody wants tokens to be looked for the more the farther away they are.
    """
    queries, keys = arrays.sizes[3:]
    if arrays.scores is None or has_bias(arrays) or min(queries, keys) < _FEWEST:
        return None
    added = offsets(arrays.scores.astype(np.float64), arrays, evidence)
    distance = np.abs(np.arange(keys) - np.arange(queries)[:, None] - (keys - queries)).astype(np.float64)
    cells = np.isfinite(added)
    far = np.broadcast_to(distance, added.shape)
    slope = _slope(added, far, cells)
    near = 2 * tolerance(arrays, evidence)
    straight = _spread(added - slope[..., None, None] * far, cells) <= near
    long = (cells.sum(-1) >= _FEWEST).any(-1)
    found = straight & long & (slope * (_FEWEST - 1) > _SURE * near)
    return found if found.any() else None


def _slope(added: np.ndarray, distance: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return (B, L, H): the slope of what was added over the distance, rows apart, by least squares."""
    count = np.maximum(cells.sum(-1, keepdims=True), 1)

    def centred(values: np.ndarray) -> np.ndarray:
        kept = np.where(cells, values, 0.0)
        return np.where(cells, kept - kept.sum(-1, keepdims=True) / count, 0.0)

    x, y = centred(distance), centred(added)
    return (x * y).sum((-1, -2)) / np.maximum((x * x).sum((-1, -2)), 1e-12)


def _spread(values: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return (B, L, H): the largest difference of two values in the same row, among the cells that count."""
    high = np.where(cells, values, -np.inf).max(-1)
    low = np.where(cells, values, np.inf).min(-1)
    return np.where(cells.any(-1), high - low, 0.0).max(-1)
