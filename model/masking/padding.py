"""Padding from the lengths of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

PaddingSide = Literal["right", "left", "both"]


def lengths_to_keep(lengths: Sequence[int] | np.ndarray, size: int, side: PaddingSide = "right") -> np.ndarray:
    """Return (B, size) bool, True = a real token, from (B,) lengths; ``side`` is where the padding stands."""
    length = np.asarray(lengths)[:, None]
    start = {"right": length * 0, "left": size - length, "both": (size - length) // 2}[side]
    position = np.arange(size)
    return (position >= start) & (position < start + length)
