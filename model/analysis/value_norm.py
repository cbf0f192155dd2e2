"""Attention weighted by what it carries: a large weight on a short value vector passes little on.

Kobayashi et al. (2020), "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", section 2: a head
adds the sum of alpha f(x) with f(x) = (x W_V + b_V) W_O, and the norm of alpha f(x) is what a key contributes.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ..language.say import say, to_say
from ..trace import AttentionMap, AttentionTrace, Kind, TraceError

if TYPE_CHECKING:
    from torch import nn

WITH_PROJECTION = to_say(
    "Weights are multiplied by the norm of what each key adds through the output projection (Kobayashi et al. 2020)."
)
VALUES_ALONE = to_say(
    "Weights are multiplied by the norm of each key's value vector alone: a saved trace does not hold the output "
    "projection, which Kobayashi et al. (2020) include."
)


def value_weighted(attention: AttentionMap, output: np.ndarray | None = None) -> AttentionMap:
    """Return the weights times ||f(x)|| of each key, each row rescaled to sum to 1; a row of zeros stays.

    Args:
        attention: a map captured with tensors=("v",): v (L, H, K, d) is x W_V + b_V.
        output: (L, H, d, D) the heads' slices of W_O, as :func:`output_projections` gives them. None for a saved trace,
            which holds value vectors and no projection: then the norm is that of v alone, and not the paper's.

    Raises:
        TraceError: for a trace made without v.
    """
    if "v" not in attention.tensors:
        raise TraceError(say('This trace was made without the value vectors; capture it with tensors=("v",).'))
    values = attention.tensors["v"] if output is None else attention.tensors["v"] @ output
    contributions = attention.weights * np.linalg.norm(values, axis=-1)[:, :, None, :]
    total = contributions.sum(-1, keepdims=True)
    shares = np.divide(contributions, total, out=np.zeros_like(contributions), where=total > 0)
    return dataclasses.replace(attention, weights=shares, tensors={})


def value_weighted_trace(trace: AttentionTrace, model: nn.Module | None = None) -> AttentionTrace:
    """Return the trace with every map value-weighted by the output projections of the `model` that made it.

    Without a model by the value vectors alone, as :func:`value_weighted` does.
    """
    maps: dict[str, Any] = {
        kind: value_weighted(attention, None if model is None else output_projections(model, kind))
        for kind, attention in trace.maps.items()
    }
    return dataclasses.replace(trace, **maps)


def output_projections(model: nn.Module, kind: Kind) -> np.ndarray:
    """Return every head's slice of W_O of one kind of attention (L, H, d, D), of a model with hook points.

    Raises TraceError where it is not known which layer of a model from elsewhere joins the heads.
    """
    from torch import Tensor  # which weighting a saved trace does not need, nor what comes with it

    from ..capture.sites import attention_sites
    from ..network.attention import MultiHeadAttention

    slices = []
    for site in attention_sites(model):
        if site.kind == kind:
            own = isinstance(site.module, MultiHeadAttention)
            found = site.module.get_parameter("out_proj.weight") if own else site.module.output_projection
            if not isinstance(found, Tensor):
                unknown = say("Where this model joins its heads is not known, so norms of values cannot weigh in.")
                raise TraceError(unknown)
            projection, heads = found.detach().float().cpu().numpy(), site.module.heads
            assert isinstance(heads, int)
            slices.append(projection.T.reshape(heads, -1, projection.shape[0]))
    return np.stack(slices)
