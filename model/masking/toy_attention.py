"""A small attention run with a mask exactly as a program would hand it over: what takes effect, what depends on what.

Random queries, keys and values of a fixed seed stand in for a model's. The mask is read as the interface reads it,
right or wrong: booleans keep in one and block in another, floats are added, and one asks whether the mask equals 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Reader = Literal["sdpa", "mha", "masked_fill"]
READERS: tuple[Reader, ...] = get_args(Reader)
READER_NAMES: dict[Reader, str] = {
    "sdpa": "F.scaled_dot_product_attention",
    "mha": "nn.MultiheadAttention",
    "masked_fill": "masked_fill(mask == 0, -1e9)",
}
Writing = Literal["keep", "block", "-inf", "-1e9", "0/1"]
WRITINGS: tuple[Writing, ...] = get_args(Writing)
WRITING_NAMES: dict[Writing, str] = {
    "keep": "bool, True = may attend",
    "block": "bool, True = blocked",
    "-inf": "float, 0 and -inf",
    "-1e9": "float, 0 and -1e9",
    "0/1": "float, 1 and 0",
}
Format = Literal["float32", "float16"]
FORMATS: tuple[Format, ...] = get_args(Format)
WIDTH = 8
"""Of a head of the small attention."""


class MaskRunError(ValueError):
    """What torch refuses to do with this mask; the message says why."""


@dataclass(frozen=True, eq=False)
class Run:
    """One attention call, step by step. All (B, H, Q, K)."""

    scores: np.ndarray
    """Scaled, before the mask."""
    masked: np.ndarray
    weights: np.ndarray


def write(allowed: np.ndarray, how: Writing) -> np.ndarray:
    """Booleans, True = may attend, as a program would write them."""
    if how in ("keep", "block"):
        return allowed if how == "keep" else ~allowed
    if how == "0/1":
        return allowed.astype(np.float32)
    return np.where(allowed, np.float32(0), np.float32(how))


def believed(mask: np.ndarray, reader: Reader) -> np.ndarray:
    """What the interface is told, under the names of a diagnosis: True = may attend, or float and added."""
    if reader == "masked_fill":
        return mask != 0
    return ~mask if mask.dtype == bool and reader == "mha" else mask


def random_scores(samples: int, heads: int, queries: int, keys: int, seed: int = 0) -> np.ndarray:
    """Scaled scores (B, H, Q, K) float32 of random queries and keys."""
    q, k, _ = _projected(samples, heads, queries, keys, seed)
    return (q @ k.transpose(-2, -1) / math.sqrt(WIDTH)).numpy()


def run(scores: np.ndarray, mask: np.ndarray, reader: Reader = "sdpa", form: Format = "float32") -> Run:
    """Apply ``mask`` (broadcasts to the scores) as ``reader`` does, in the number format ``form``.

    Raises:
        MaskRunError: when torch itself refuses, as it does for -1e9 in float16.
    """
    given = torch.tensor(scores).to(getattr(torch, form))
    with np.errstate(over="ignore"):
        masked = _masked(given, torch.tensor(mask), reader)
    weights = masked.softmax(-1)
    return Run(given.numpy(), masked.numpy(), weights.numpy())


def _masked(scores: Tensor, mask: Tensor, reader: Reader) -> Tensor:
    told = torch.tensor(believed(mask.numpy(), reader))
    if told.dtype != torch.bool:
        return scores + told.to(scores.dtype)
    fill = -1e9 if reader == "masked_fill" else -torch.inf
    try:
        return scores.masked_fill(~told, fill)
    except RuntimeError as error:
        raise MaskRunError(
            f"torch refuses: {fill:.0e} does not fit {str(scores.dtype).removeprefix('torch.')}, whose largest number "
            "is 65504. Fill with torch.finfo(scores.dtype).min or -inf."
        ) from error


def dropout(weights: np.ndarray, rate: float, seed: int = 0) -> np.ndarray:
    """The weights as dropout in training leaves them: some zero, the others larger by 1 / (1 - rate)."""
    if not 0 <= rate < 1:
        raise ValueError(f"A dropout rate lies between 0 and 1; got {rate}.")
    kept = np.random.default_rng(seed).random(weights.shape) >= rate
    return np.where(kept, weights / (1 - rate), 0).astype(weights.dtype)


def depends(mask: np.ndarray, sizes: tuple[int, int, int, int], reader: Reader = "sdpa", layers: int = 1) -> np.ndarray:
    """|d output i / d input j| (B, H, Q, K) of attention run with ``mask``, by automatic differentiation.

    The fused kernel is used where the interface uses it, since it may answer otherwise than the steps written out.
    With more layers each adds to a residual stream, so that a window of 2 reaches 4 tokens after three; this needs as
    many queries as keys. ``sizes`` are B, H, Q, K.
    """
    samples, heads, queries, keys = sizes
    if layers > 1 and queries != keys:
        raise MaskRunError("Several layers need self-attention: as many queries as keys.")
    told = torch.tensor(np.broadcast_to(mask, sizes))
    q, k, values = _projected(samples, heads, queries, keys, 1)
    stream = values.clone().requires_grad_()
    with torch.enable_grad():
        read = stream
        for _ in range(layers - 1):
            read = read + _attend(q, k, read, told, reader)
        # Row by row: in one call a NaN row would reach all gradients, since 0 x NaN is NaN.
        rows = [_attend(q[:, :, i : i + 1], k, read, told[:, :, i : i + 1], reader) for i in range(queries)]
        if layers > 1:
            rows = [row + read[:, :, i : i + 1] for i, row in enumerate(rows)]
        return _gradients(rows, stream)


def depends_through(weights: np.ndarray) -> np.ndarray:
    """The same for weights that are given, (B, H, Q, K): the output is weights @ values."""
    fixed = torch.tensor(weights).float()
    samples, heads, queries, keys = fixed.shape
    stream = _projected(samples, heads, queries, keys, 1)[2].clone().requires_grad_()
    with torch.enable_grad():
        return _gradients([fixed[:, :, i : i + 1] @ stream for i in range(queries)], stream)


def _gradients(rows: list[Tensor], stream: Tensor) -> np.ndarray:
    """Q outputs (B, H, 1, d) -> (B, H, Q, K), the size of each one's gradient by each input."""
    found = [torch.autograd.grad(row.sum(), stream, retain_graph=True)[0] for row in rows]
    return torch.stack(found, 2).abs().sum(-1).numpy()


def _attend(q: Tensor, k: Tensor, values: Tensor, mask: Tensor, reader: Reader) -> Tensor:
    if reader == "masked_fill":
        return _masked(q @ k.transpose(-2, -1) / math.sqrt(WIDTH), mask, reader).softmax(-1) @ values
    told = torch.tensor(believed(mask.numpy(), reader))
    told = told if told.dtype == torch.bool else told.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, values, attn_mask=told)


def _projected(samples: int, heads: int, queries: int, keys: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(samples, heads, queries, WIDTH, generator=generator)
    k = torch.randn(samples, heads, keys, WIDTH, generator=generator)
    return q, k, torch.randn(samples, heads, keys, WIDTH, generator=generator)
