"""Softmax over the keys, the threshold of blocked scores, padding from lengths or token names, and documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

# The one threshold for a number that blocks, in a mask that is added to the scores or in scores after the mask.


BLOCKING_THRESHOLD = -1e3
"""The largest value that blocks. Fills lie below it (-1e4, -1e9, the lowest number of a format, -inf), position biases
and scores above."""

ArrayOrTensor = TypeVar("ArrayOrTensor", np.ndarray, "Tensor")


def is_blocked(values: ArrayOrTensor) -> ArrayOrTensor:
    """Return True where a value blocks, for an array of numpy or a tensor of torch of any shape.

    NaN does not block: it is a fault of the scores, not the work of a mask.
    """
    return values <= BLOCKING_THRESHOLD


# Padding from the lengths of sentences.


PaddingSide = Literal["right", "left", "both"]


def lengths_to_keep_mask(lengths: Sequence[int] | np.ndarray, size: int, side: PaddingSide = "right") -> np.ndarray:
    """Return (B, size) bool, True = a real token, from (B,) lengths; ``side`` is where the padding stands."""
    length = np.asarray(lengths)[:, None]
    start = {"right": length * 0, "left": size - length, "both": (size - length) // 2}[side]
    position = np.arange(size)
    return (position >= start) & (position < start + length)


def find_position_restarts(positions: np.ndarray) -> np.ndarray:
    """Return (..., K) bool: tokens at which positions (..., K) begin anew at the first position of the sample.

    Padding repeats the first position, and begins nothing.
    """
    first = positions[..., :1]
    begins = np.zeros(positions.shape, bool)
    begins[..., 1:] = (positions[..., 1:] == first) & (positions[..., :-1] > first)
    return begins


# Softmax over the keys, also of rows in which every key is blocked. No torch.


def softmax(scores: np.ndarray, nan_rows: bool = False) -> np.ndarray:
    """Return the softmax of scores (..., K) over the last axis.

    A row of nothing but -inf gives zeros, or with ``nan_rows`` NaN as torch does.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        largest = scores.max(-1, keepdims=True)
        exponentials = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
        total = exponentials.sum(-1, keepdims=True)
        empty = np.nan if nan_rows else np.where(total == 0, 0, np.nan)
        return np.where(total > 0, exponentials / np.where(total > 0, total, 1), empty)


# Padding that a recording itself shows: tokens named as padding, and keys that the encoder blocks.


PAD_NAMES = frozenset({"<pad>", "[pad]", "<|pad|>", "<blank>", "<padding>", "<|padding|>", "pad"})
"""Names of padding tokens, in lower case; ``pad`` only in capitals or with the marks of a special token."""

_NON_TOKEN_PATTERN = re.compile(r"sink|bias|zero|summary \d+")
"""Names that a capture gives to keys that are no tokens."""


def count_extra_keys(queries: int, keys: Sequence[str]) -> int:
    """Return how many of the last keys are no tokens, by their names: in self-attention, or beside numbered keys.

    In cross-attention a word of the sentence may have such a name.
    """
    count = next((at for at, name in enumerate(reversed(keys)) if not _NON_TOKEN_PATTERN.fullmatch(name)), len(keys))
    numbered = all(name.isdecimal() for name in keys[: len(keys) - count])
    return count if count < len(keys) and (len(keys) - count == queries or numbered) else 0


def detect_real_tokens(tokens: Sequence[str]) -> np.ndarray | None:
    """Return (K,) bool, True = a real token; None where no end of the sentence is named as padding, or all of it is."""
    real = np.array([not _is_padding_token(token) for token in tokens], bool)
    if real.all() or not real.any():
        return None
    first, last = np.flatnonzero(real)[[0, -1]]
    if first == 0 and last == len(real) - 1:
        return None
    inside = np.arange(len(real))
    return (inside >= first) & (inside <= last)


def _is_padding_token(token: str) -> bool:
    return token.lower() in PAD_NAMES and (token.lower() != "pad" or token == "PAD")


def find_real_source_keys(encoder_mask: np.ndarray, keys: int) -> np.ndarray | None:
    """Return (K,) bool: keys of cross-attention that some query of the encoder may attend to.

    ``encoder_mask`` is (S, S) bool, True = may attend. None where it blocks no key, or all, or is of another length.
    """
    attended = np.asarray(encoder_mask.any(0))
    if len(attended) != keys or attended.all() or not attended.any():
        return None
    return attended


def detect_real_keys(tokens: Sequence[str], encoder_mask: np.ndarray | None = None) -> np.ndarray | None:
    """Return (K,) bool, True = a real token, by the names of the keys or else the mask of the encoder, or None."""
    named = detect_real_tokens(tokens)
    if named is not None or encoder_mask is None:
        return named
    return find_real_source_keys(encoder_mask, len(tokens))
