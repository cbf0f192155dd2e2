"""Correct attention of every kind, computed by torch's own kernels, as a person would bring it."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

KINDS = ("encoder", "decoder", "cross", "packed", "window", "prefix", "cache", "one token", "layers")
FORMATS = ("float16", "bfloat16", "float32", "float64")


def sound(kind: str, seed: int) -> dict[str, np.ndarray]:
    """The arrays of one correct attention call; what is not needed is given or left out at random."""
    random = np.random.default_rng(seed)
    b, h = int(random.integers(1, 5)), int(random.integers(1, 5))
    queries = 1 if kind == "one token" else int(random.integers(2, 13))
    keys = queries + (int(random.integers(1, 8)) if kind == "cache" else 0)
    keys = int(random.integers(1, 13)) if kind == "cross" else keys
    key_keep = _keep(random, b, keys, kind not in ("packed", "cache", "one token"))
    query_keep = key_keep if queries == keys and kind != "cross" else _keep(random, b, queries, kind == "cross")
    structure = _structure(random, kind, queries, keys)
    allowed = torch.from_numpy(structure & key_keep[:, None, None, :])
    layers = int(random.integers(2, 4)) if kind == "layers" else 1
    generator = torch.Generator().manual_seed(seed)
    sharpness = float(random.choice([0.0, 0.5, 1.0, 2.0, 6.0, 20.0]))
    per_layer = [_attend(generator, allowed, (b, h, queries, keys), sharpness) for _ in range(layers)]
    weights, scores = (torch.stack(list(part), 1) for part in zip(*per_layer, strict=True))
    if kind != "layers":
        weights, scores = weights[:, 0], scores[:, 0]
    form = str(random.choice(FORMATS))
    arrays: dict[str, np.ndarray] = {"weights": _stored(weights, form)}
    extra = {
        "scores": scores.numpy(),
        "mask": _mask(random, allowed.numpy(), form),
        "key_keep": key_keep,
        "query_keep": query_keep,
        "meant": allowed.numpy() if random.random() < 0.5 else np.asarray(structure),
    }
    needed = {"packed": "meant", "window": "meant", "prefix": "meant", "cross": "key_keep"}.get(kind)
    arrays |= {name: array for name, array in extra.items() if random.random() < 0.5 or name == needed}
    if "meant" in arrays and arrays["meant"].ndim == 2:
        arrays["key_keep"] = key_keep
    return arrays


def _keep(random: np.random.Generator, samples: int, size: int, padded: bool) -> np.ndarray:
    lengths = random.integers(1, size + 1, samples) if padded and random.random() < 0.7 else np.full(samples, size)
    side = random.choice(["left", "right", "both"])
    start = {"left": size - lengths, "right": lengths * 0, "both": (size - lengths) // 2}[str(side)]
    place = np.arange(size)
    return (place >= start[:, None]) & (place < (start + lengths)[:, None])


def _structure(random: np.random.Generator, kind: str, queries: int, keys: int) -> np.ndarray:
    i, j = np.arange(queries)[:, None] + keys - queries, np.arange(keys)
    causal = j <= i
    if kind in ("encoder", "cross", "one token"):
        return np.ones((queries, keys), bool)
    if kind == "window":
        width = int(random.integers(1, 5))
        return (abs(i - j) <= width) if random.random() < 0.5 else causal & (i - j < width)
    if kind == "prefix":
        return causal | (j < int(random.integers(1, keys + 1)))
    if kind == "packed":
        document = np.sort(random.integers(0, 3, queries))
        same = document[:, None] == document
        return same & causal if random.random() < 0.5 else same
    return causal if kind != "layers" or random.random() < 0.5 else np.ones_like(causal)


def _attend(
    generator: torch.Generator, allowed: Tensor, shape: tuple[int, ...], sharpness: float
) -> tuple[Tensor, Tensor]:
    """Weights and scores of the fused kernel: with values = identity its output is its weights."""
    b, h, queries, keys = shape
    q, k = (torch.randn(b, h, size, 8, generator=generator) for size in (queries, keys))
    q = q * sharpness
    identity = torch.eye(keys).expand(b, h, keys, keys)
    weights = F.scaled_dot_product_attention(q, k, identity, attn_mask=allowed.expand(shape))
    weights = weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
    return weights, q @ k.transpose(-2, -1) / 8**0.5


def _mask(random: np.random.Generator, allowed: np.ndarray, form: str) -> np.ndarray:
    """Boolean, or additive with -inf or the lowest number of the format."""
    fill = random.choice([0.0, -np.inf, -65504.0 if form == "float16" else float(np.finfo(np.float32).min)])
    return allowed if fill == 0 else np.where(allowed, 0.0, fill).astype(np.float32)


def _stored(weights: Tensor, form: str) -> np.ndarray:
    return weights.bfloat16().float().numpy() if form == "bfloat16" else weights.to(getattr(torch, form)).numpy()
