"""Arrays on their way to the browser: a small JSON header and raw bytes, one or two a weight."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

FULL, MASKED = 254, 255
"""Bytes 0..FULL are weights 0..1; MASKED is no weight."""
FINE_FULL, FINE_MASKED = 65534, 65535
"""The same in two bytes, for numbers that are read and not only seen."""


def pack(header: Mapping[str, Any], body: bytes) -> bytes:
    """[header's length, uint32 little-endian][header, UTF-8 JSON][body]; shared/packed.js reads it."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return struct.pack("<I", len(text)) + text + body


def quantise(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Weights (..., Q, K) in 0..1 and a mask (Q, K), True = may attend -> uint8 of the weights' shape."""
    levels = np.rint(np.clip(weights, 0, 1) * FULL).astype(np.uint8)
    return np.where(mask, levels, np.uint8(MASKED))


def fine(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Weights (Q, K) in 0..1 and a mask (Q, K), True = may attend -> uint16 (Q, K), off by at most 1 / 131,068."""
    levels = np.rint(np.clip(np.where(mask, weights, 0), 0, 1) * FINE_FULL).astype(np.uint16)
    return np.where(mask, levels, np.uint16(FINE_MASKED))
