"""Arrays on their way to the browser: a small JSON header and raw bytes, one byte a weight."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

FULL, MASKED = 254, 255
"""Bytes 0..FULL are weights 0..1; MASKED is no weight."""


def pack(header: Mapping[str, Any], body: bytes) -> bytes:
    """[header's length, uint32 little-endian][header, UTF-8 JSON][body]; shared/packed.js reads it."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return struct.pack("<I", len(text)) + text + body


def quantise(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Weights (..., Q, K) in 0..1 and a mask (Q, K), True = may attend -> uint8 of the weights' shape."""
    levels = np.rint(np.clip(weights, 0, 1) * FULL).astype(np.uint8)
    return np.where(mask, levels, np.uint8(MASKED))
