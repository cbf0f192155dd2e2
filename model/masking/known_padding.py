"""Padding that a recording shows without being told: tokens named as padding, and keys that the encoder blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

PAD_NAMES = frozenset({"<pad>", "[pad]", "<|pad|>", "<blank>", "<padding>", "<|padding|>", "pad"})
"""Names of padding tokens, in lower case; ``pad`` only in capitals or with the marks of a special token."""


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
