"""Padding that a recording shows without being told: tokens named as padding, and keys that the encoder blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

PAD_NAMES = frozenset({"<pad>", "[pad]", "<|pad|>", "<blank>", "<padding>", "<|padding|>", "pad"})
"""Names of padding tokens, in lower case; ``pad`` only in capitals or with the marks of a special token."""

_NO_TOKEN = re.compile(r"sink|bias|zero|summary \d+")
"""Names that a capture gives to keys that are no tokens."""


def extra_keys(queries: int, keys: Sequence[str]) -> int:
    """Return how many of the last keys are no tokens, by their names: in self-attention, or beside numbered keys.

    In cross-attention a word of the sentence may have such a name.
    """
    count = next((at for at, name in enumerate(reversed(keys)) if not _NO_TOKEN.fullmatch(name)), len(keys))
    numbered = all(name.isdecimal() for name in keys[: len(keys) - count])
    return count if count < len(keys) and (len(keys) - count == queries or numbered) else 0


def real_tokens(tokens: Sequence[str]) -> np.ndarray | None:
    """Return (K,) bool, True = a real token; None where no end of the sentence is named as padding, or all of it is."""
    real = np.array([not _is_pad(token) for token in tokens], bool)
    if real.all() or not real.any():
        return None
    first, last = np.flatnonzero(real)[[0, -1]]
    if first == 0 and last == len(real) - 1:
        return None
    inside = np.arange(len(real))
    return (inside >= first) & (inside <= last)


def _is_pad(token: str) -> bool:
    return token.lower() in PAD_NAMES and token != "pad"


def source_keys(encoder_mask: np.ndarray, keys: int) -> np.ndarray | None:
    """Return (K,) bool: keys of cross-attention that some query of the encoder may attend to.

    ``encoder_mask`` is (S, S) bool, True = may attend. None where it blocks no key, or all, or is of another length.
    """
    attended = np.asarray(encoder_mask.any(0))
    if len(attended) != keys or attended.all() or not attended.any():
        return None
    return attended


def known_keys(tokens: Sequence[str], encoder_mask: np.ndarray | None = None) -> np.ndarray | None:
    """Return (K,) bool, True = a real token, by the names of the keys or else the mask of the encoder, or None."""
    named = real_tokens(tokens)
    if named is not None or encoder_mask is None:
        return named
    return source_keys(encoder_mask, len(tokens))
