"""Attention weighted by what it carries: a large weight on a short value vector passes little on.

Kobayashi et al. (2020), "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", section 2: a head
adds the sum of alpha f(x) with f(x) = (x W_V + b_V) W_O, and the norm of alpha f(x) is what a key contributes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ..trace import AttentionMap, Kind, TraceError

if TYPE_CHECKING:
    from torch import nn


def value_weighted(attention: AttentionMap, output: np.ndarray | None = None) -> AttentionMap:
    """Weights times the norm of each key's value vector, each row rescaled to sum to 1; a row of zeros stays.

    output (L, H, d, D), the heads' slices of the output projection as :func:`output_projections` gives them, makes it
    the paper's measure; without it the norm is that of v alone. TraceError for a trace made without v.
    """
    if "v" not in attention.tensors:
        raise TraceError('This trace was made without the value vectors; capture it with tensors=("v",).')
    values = attention.tensors["v"] if output is None else attention.tensors["v"] @ output
    carried = attention.weights * np.linalg.norm(values, axis=-1)[:, :, None, :]
    total = carried.sum(-1, keepdims=True)
    shares = np.divide(carried, total, out=np.zeros_like(carried), where=total > 0)
    return dataclasses.replace(attention, weights=shares, tensors={})


def output_projections(model: nn.Module, kind: Kind) -> np.ndarray:
    """Every head's slice of W_O of one kind of attention -> (L, H, d, D)."""
    from ..capture.sites import attention_sites  # brings torch, which weighting a saved trace does not need

    slices = []
    for site in attention_sites(model):
        if site.kind == kind:
            projection = site.module.get_parameter("out_proj.weight").detach().float().cpu().numpy()
            heads = site.module.heads
            assert isinstance(heads, int)
            slices.append(projection.T.reshape(heads, -1, projection.shape[0]))
    return np.stack(slices)
