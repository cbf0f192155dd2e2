"""A small attention, run with a mask exactly as a program passes it: its weights, and what its outputs depend on.

Queries, keys and values are random, from a fixed seed. The mask is read as the interface reads it, right or wrong:
booleans keep in one interface and block in another, floats are added, and one fills where the mask equals 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..language import say, to_say

MaskReader = Literal["sdpa", "mha", "masked_fill"]
MASK_READERS: tuple[MaskReader, ...] = get_args(MaskReader)
MASK_READER_NAMES: dict[MaskReader, str] = {
    "sdpa": "F.scaled_dot_product_attention",
    "mha": "nn.MultiheadAttention",
    "masked_fill": "masked_fill(mask == 0, -1e9)",
}
ToyWriting = Literal["keep", "block", "-inf", "-1e9", "0/1"]
TOY_WRITINGS: tuple[ToyWriting, ...] = get_args(ToyWriting)
TOY_WRITING_NAMES: dict[ToyWriting, str] = {
    "keep": to_say("bool, True = may attend"),
    "block": to_say("bool, True = blocked"),
    "-inf": to_say("float, 0 and -inf"),
    "-1e9": to_say("float, 0 and -1e9"),
    "0/1": to_say("float, 1 and 0"),
}
NumberFormat = Literal["float32", "float16"]
NUMBER_FORMATS: tuple[NumberFormat, ...] = get_args(NumberFormat)
HEAD_WIDTH = 8
"""Width d of a head."""


class MaskRunError(ValueError):
    """A mask that torch refuses; the message says why."""


@dataclass(frozen=True, eq=False)
class AttentionRun:
    """One attention call, step by step. All (B, H, Q, K)."""

    scores: np.ndarray
    """Scaled, before the mask."""
    masked_scores: np.ndarray
    weights: np.ndarray


def convert_mask_to_convention(allowed: np.ndarray, writing: ToyWriting) -> np.ndarray:
    """Return booleans, True = may attend, of any shape as a program would write them."""
    if writing in ("keep", "block"):
        return allowed if writing == "keep" else ~allowed
    if writing == "0/1":
        return allowed.astype(np.float32)
    return np.where(allowed, np.float32(0), np.float32(writing))


def interpret_mask(mask: np.ndarray, reader: MaskReader) -> np.ndarray:
    """Return the mask as the interface reads it: booleans, True = may attend, or floats that are added."""
    if reader == "masked_fill":
        return mask != 0
    return ~mask if mask.dtype == bool and reader == "mha" else mask


def draw_random_scores(samples: int, heads: int, queries: int, keys: int, seed: int = 0) -> np.ndarray:
    """Return scaled scores (B, H, Q, K) float32 of random queries and keys."""
    q, k, _ = _draw_random_qkv(samples, heads, queries, keys, seed)
    return (q @ k.transpose(-2, -1) / math.sqrt(HEAD_WIDTH)).numpy()


def run_attention(
    scores: np.ndarray, mask: np.ndarray, reader: MaskReader = "sdpa", number_format: NumberFormat = "float32"
) -> AttentionRun:
    """Apply ``mask`` (broadcasts to the scores) as ``reader`` does, in ``number_format``.

    Raises:
        MaskRunError: when torch itself refuses, as it does for -1e9 in float16.
    """
    given = torch.tensor(scores).to(getattr(torch, number_format))
    with np.errstate(over="ignore"):
        masked = _apply_mask(given, torch.tensor(mask), reader)
    weights = masked.softmax(-1)
    return AttentionRun(given.numpy(), masked.numpy(), weights.numpy())


def _apply_mask(scores: Tensor, mask: Tensor, reader: MaskReader) -> Tensor:
    mask = torch.tensor(interpret_mask(mask.numpy(), reader))
    if mask.dtype != torch.bool:
        return scores + mask.to(scores.dtype)
    fill = -1e9 if reader == "masked_fill" else -torch.inf
    try:
        return scores.masked_fill(~mask, fill)
    except RuntimeError as error:
        raise MaskRunError(
            say(
                "torch refuses: {fill} does not fit {format}, whose largest number is 65504. "
                "Fill with torch.finfo(scores.dtype).min or -inf.",
                fill=f"{fill:.0e}",
                format=str(scores.dtype).removeprefix("torch."),
            )
        ) from error


def apply_dropout(weights: np.ndarray, rate: float, seed: int = 0) -> np.ndarray:
    """Return the weights as dropout in training leaves them: some zero, the others larger by 1 / (1 - rate)."""
    if not 0 <= rate < 1:
        raise ValueError(f"A dropout rate lies between 0 and 1; got {rate}.")
    keep = np.random.default_rng(seed).random(weights.shape) >= rate
    return np.where(keep, weights / (1 - rate), 0).astype(weights.dtype)


def compute_gradients_under_mask(
    mask: np.ndarray, sizes: tuple[int, int, int, int], reader: MaskReader = "sdpa", layers: int = 1
) -> np.ndarray:
    """Return |d output i / d input j| (B, H, Q, K) of attention run with ``mask``, by automatic differentiation.

    The fused kernel is used where the interface uses it, since it may answer otherwise than the steps written out.
    With more layers each adds to a residual stream, so that a window of 2 reaches 4 tokens after three; this needs as
    many queries as keys. ``sizes`` are B, H, Q, K.
    """
    samples, heads, queries, keys = sizes
    if layers > 1 and queries != keys:
        raise MaskRunError(say("Several layers need self-attention: as many queries as keys."))
    whole = torch.tensor(np.broadcast_to(mask, sizes))
    q, k, values = _draw_random_qkv(samples, heads, queries, keys, 1)
    stream = values.clone().requires_grad_()
    with torch.enable_grad():
        states = stream
        for _ in range(layers - 1):
            states = states + _compute_attention(q, k, states, whole, reader)
        # Row by row: in one call a NaN row would reach all gradients, since 0 x NaN is NaN.
        rows = [
            _compute_attention(q[:, :, i : i + 1], k, states, whole[:, :, i : i + 1], reader) for i in range(queries)
        ]
        if layers > 1:
            rows = [row + states[:, :, i : i + 1] for i, row in enumerate(rows)]
        return _measure_gradients(rows, stream)


def compute_gradients_from_weights(weights: np.ndarray) -> np.ndarray:
    """Return |d output i / d input j| (B, H, Q, K) where the output is ``weights`` (B, H, Q, K) @ values."""
    fixed = torch.tensor(weights).float()
    samples, heads, queries, keys = fixed.shape
    stream = _draw_random_qkv(samples, heads, queries, keys, 1)[2].clone().requires_grad_()
    with torch.enable_grad():
        return _measure_gradients([fixed[:, :, i : i + 1] @ stream for i in range(queries)], stream)


def _measure_gradients(rows: list[Tensor], stream: Tensor) -> np.ndarray:
    """Return (B, H, Q, K), the size of the gradient of each of Q outputs (B, H, 1, d) by each input."""
    gradients = [torch.autograd.grad(row.sum(), stream, retain_graph=True)[0] for row in rows]
    return torch.stack(gradients, 2).abs().sum(-1).numpy()


def _compute_attention(q: Tensor, k: Tensor, values: Tensor, mask: Tensor, reader: MaskReader) -> Tensor:
    if reader == "masked_fill":
        return _apply_mask(q @ k.transpose(-2, -1) / math.sqrt(HEAD_WIDTH), mask, reader).softmax(-1) @ values
    mask = torch.tensor(interpret_mask(mask.numpy(), reader))
    mask = mask if mask.dtype == torch.bool else mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, values, attn_mask=mask)


def _draw_random_qkv(samples: int, heads: int, queries: int, keys: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(samples, heads, queries, HEAD_WIDTH, generator=generator)
    k = torch.randn(samples, heads, keys, HEAD_WIDTH, generator=generator)
    return q, k, torch.randn(samples, heads, keys, HEAD_WIDTH, generator=generator)
