"""The maps behind the view Flow: averaged or rolled out, and weights times the norms of what they carry."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from model.analysis.rollout import averaged, rollout
from model.trace import TraceError

if TYPE_CHECKING:
    from model.trace import AttentionMap, AttentionTrace, Kind
    from viz.figures.flow import Flow


def flow_of(trace: AttentionTrace, kind: Kind, which: Flow, *, weighted: bool) -> AttentionMap:
    """The map of `kind` that a flow is of; with `weighted`, the trace must hold the value vectors.

    Raises TraceError where a rollout is not defined.
    """
    if weighted:
        maps: dict[str, Any] = {name: times_value_norms(one) for name, one in trace.maps.items()}
        trace = dataclasses.replace(trace, **maps)
    if which == "rollout":
        return rollout(trace).maps[kind]
    over = {"mean of heads": "heads", "mean of layers": "layers", "mean of all": "all"}[which]
    return averaged(trace.maps[kind], over)  # type: ignore[arg-type]


def times_value_norms(attention: AttentionMap) -> AttentionMap:
    """Weights times ||v_k||, each row divided by its sum so that it sums to 1 again.

    Kobayashi et al. (2020), "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", without their
    output projection: a weight on a value vector of length 0 passes nothing on. TraceError where there are none.
    """
    if "v" not in attention.tensors:
        raise TraceError("This trace holds no value vectors; capture it with tensors=['v'].")
    norms = np.linalg.norm(attention.tensors["v"], axis=-1)[:, :, None, :]
    weights = attention.weights * norms
    total = weights.sum(-1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return dataclasses.replace(attention, weights=shares, tensors={})
