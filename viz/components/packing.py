"""Arrays on their way to the browser: a small JSON header and raw bytes, one or two a weight."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

FULL, MASKED = 254, 255
"""Bytes 0..FULL are weights 0..1 and print as these do with two decimals; MASKED is no weight."""
FINE_FULL, FINE_MASKED = 65534, 65535
"""The same in two bytes, for three decimals."""
Cells = Callable[[np.ndarray], np.ndarray]
"""Values -> the number of each one's cell, which grows with the value; what shares a cell is printed alike."""


def pack(header: Mapping[str, Any], body: bytes) -> bytes:
    """[header's length, uint32 little-endian][header, UTF-8 JSON][body]; shared/packed.js reads it."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return struct.pack("<I", len(text)) + text + body


def header_text(packed: bytes) -> str:
    """The header of what was packed, as it stands there."""
    (length,) = struct.unpack_from("<I", packed)
    return packed[4 : 4 + length].decode()


def quantise(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return weights (..., Q, K) in 0..1 as uint8 of their shape, given a mask that broadcasts, True = may attend.

    A byte and its weight have the same two decimals, or whole percent, and lie on the same side of every threshold of
    whole percents.
    """
    parts = np.multiply(np.where(mask, weights, 0), PARTS, dtype=np.float64).clip(0, PARTS).astype(np.int32)
    return np.where(mask, BYTES[parts], np.uint8(MASKED))


def fine(weights: np.ndarray, mask: np.ndarray, top: float = 1.0) -> np.ndarray:
    """Return weights (Q, K) in 0..top as uint16; each has the same three decimals as its weight, and the same two."""
    numbers = levels(np.where(mask, weights, 0), 0.0, top, FINE_FULL, halves(3))
    return np.where(mask, numbers, FINE_MASKED).astype(np.uint16)


def levels(values: np.ndarray, low: float, high: float, full: int, cell: Cells) -> np.ndarray:
    """Return values in low..high as whole numbers 0..full, evenly; what lies outside is held at the ends.

    A level stands for low + (high - low) * level / full. Of the two levels beside a value, the nearer one is taken that
    lies in the value's own `cell`; every cell must be wide enough to hold a level.
    """
    values = values.astype(np.float64).clip(low, high)
    nearest = np.rint((values - low) / (high - low) * full)
    decoded = low + (high - low) * nearest / full  # In the browser's order, so that it is the browser's number.
    return nearest + np.sign(cell(values) - cell(decoded))


def halves(decimals: int) -> Cells:
    """Return cells of half a step of the last decimal: all in one are rounded alike, to these decimals and to fewer."""
    return lambda values: np.floor(values * 2 * 10**decimals)


PARTS = 25_400
"""Equal parts of 0..1: half percents end where a part does, and so do the weights nearest to a byte."""
BYTES = levels((np.arange(PARTS + 1) + 0.5) / PARTS, 0.0, 1.0, FULL, halves(2)).astype(np.uint8)
"""(PARTS + 1,) the byte of the weights of each part: to look it up takes a tenth of the time of working it out."""
