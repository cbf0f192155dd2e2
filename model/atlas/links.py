"""The heaviest keys of every row of every head of a batch, and the weight between parts of speech."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..text.tags import TAGS
from ..trace import KINDS, Kind
from .forward import Run

KEYS_A_ROW = 3
STEPS = 250
"""Weights are kept in steps of 0.004, which packs well; a key with less than half a step is no link."""


class Links(NamedTuple):
    """Links of one map, a column each; all (N,)."""

    sentence: np.ndarray
    """The number of its line, from 0."""
    layer: np.ndarray
    head: np.ndarray
    query: np.ndarray
    key: np.ndarray
    weight: np.ndarray
    """In steps of 1 / STEPS."""


class TagMass(NamedTuple):
    """The weight that goes from one part of speech to another, all summed over rows."""

    mass: np.ndarray
    """(L, H, G, G) from the tag of the query to that of the key."""
    even: np.ndarray
    """(G, G) the same of a head that spreads every row evenly."""
    rows: np.ndarray
    """(G,)"""


def links_of(found: Run, least: float = 0.0) -> dict[Kind, Links]:
    """Return the heaviest keys of each row that has a choice, by map; none below a weight of `least`."""
    lines = np.array([one.line for one in found.batch.sentences])
    return {kind: _links(found, kind, lines, max(1, round(least * STEPS))) for kind in KINDS}


def _links(found: Run, kind: Kind, lines: np.ndarray, least: int) -> Links:
    weights = found.weights(kind)
    best = weights.topk(min(KEYS_A_ROW, weights.shape[-1]), dim=-1)
    steps = (best.values * STEPS).round().short()
    choosing = (found.batch.allowed(kind).sum(-1) > 1)[:, None, None, :, None]
    kept = ((steps >= least) & choosing).cpu().numpy()
    sentence, layer, head, query, _ = (axis.astype(np.int32) for axis in np.nonzero(kept))
    keys, values = (one.cpu().numpy()[kept] for one in (best.indices, steps))
    return Links(lines[sentence], layer, head, query, keys.astype(np.int32), values)


def tag_mass(found: Run, kind: Kind) -> TagMass:
    """Sum a map's weights over the parts of speech of queries and keys, rows without a choice left out."""
    batch = found.batch
    allowed = batch.allowed(kind)
    choosing = allowed.sum(-1) > 1
    shapes = [(*one.shape, len(TAGS)) for one in batch.real(kind)]
    queries, keys = (torch.zeros(shape, dtype=torch.float64, device=allowed.device) for shape in shapes)
    for row, sentence in enumerate(batch.sentences):
        for hot, side in zip((queries, keys), sentence.sides(kind), strict=True):
            hot[row, np.arange(len(side.tags)), [TAGS.index(tag) for tag in side.tags]] = 1.0
    queries = queries * choosing[..., None]
    mass = _tagged(found.weights(kind).double(), queries, keys)
    evenly = allowed.double() / allowed.sum(-1, keepdim=True).clamp_min(1)
    even = _tagged(evenly[:, None, None], queries, keys)[0, 0]
    return TagMass(mass.cpu().numpy(), even.cpu().numpy(), queries.sum((0, 1)).cpu().numpy())


def _tagged(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """weights (B, L, H, Q, K), queries (B, Q, G), keys (B, K, G) -> (L, H, G, G)"""
    return torch.einsum("blhqj,bqi->lhij", torch.einsum("blhqk,bkj->blhqj", weights, keys), queries)
