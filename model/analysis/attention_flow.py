"""Attention flow: how much could pass at most from a position down to an input token. No torch.

Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", section 3: the mean attention of each layer with
the residual connection, A = 0.5 W + 0.5 I as in :mod:`.rollout`, gives the capacities of a network, and the attention
of a position to an input token is the maximum flow between them. They define it for a stack of self-attention; carrying
it through decoder and cross-attention is this project's own extension. Their code divides a row by its sum, this not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from ..language.say import say, to_say
from ..trace import AttentionMap, AttentionTrace, Kind, TraceError
from .max_flow import Edges, maximum_flow
from .rollout import check_whole, with_residual

EXPLAINED = to_say(
    "Attention flow takes the layers' mean attention, half of each layer being the residual connection, as the "
    "capacities of a network, and says how much could pass from a position down to one input token at most. Each cell "
    "is computed alone, as if nothing else were to pass: a row does not sum to 1, and its values can only be compared. "
    "Like rollout it knows nothing of the values and the feed-forward layers, and treats all heads alike."
)
SCALE = 2**40
"""Capacities are rounded to multiples of 1 / SCALE, 1e-12, since whole numbers can be added exactly."""
MOST_WORK = 50_000_000
"""Pairs of tokens times edges of the network: half a minute on one core. A stack has L n^2 edges for n^2 pairs."""
CELLS = 2**19
"""Capacities of the networks that are solved at once."""


def attention_flow(
    trace: AttentionTrace, kind: Kind, layer: int = -1, queries: Sequence[int] | None = None
) -> AttentionMap:
    """The flow from positions after `layer` to the input tokens of one kind: a map with weights (1, 1, Q, K).

    Args:
        kind: ``encoder``: from source positions to source tokens; ``cross``: from target positions to source tokens,
            through the decoder's layers up to `layer` and all of the encoder's; ``decoder``: to target tokens.
        queries: the rows that are computed; the others stay zero. None for all.

    Raises TraceError where the trace has no such map, for cached steps, and for more than MOST_WORK. On one core, a row
    of 40 tokens takes 0.2 s through 6 layers and 0.6 s through those of both sides; all of 20 tokens through 4 layers
    0.3 s and 0.9 s.
    """
    attention = trace.maps.get(kind)
    if attention is None:
        raise TraceError(say("This trace holds no {kind} attention.", kind=kind))
    check_whole(trace)
    count, keys = attention.mask.shape
    flow, rows = np.zeros((count, keys), np.float32), list(range(count) if queries is None else queries)
    edges = list(_edges(trace, kind, layer))
    if len(rows) * keys * sum(one.capacity.size for one in edges) > MOST_WORK:
        raise TraceError(
            say(
                "The attention flow of {queries} by {keys} tokens through {steps} steps takes too long to compute. "
                "Rollout takes any number of tokens.",
                queries=len(rows),
                keys=keys,
                steps=len(edges),
            )
        )
    flow[rows] = _flow(edges, rows, keys)
    return dataclasses.replace(
        attention,
        weights=flow[None, None],
        mask=flow > 0,
        layer_masks=None,
        layer_paths=(),
        layer_calls=(),
        passed_masks=None,
        tensors={},
    )


def _flow(edges: Sequence[Edges], queries: Sequence[int], keys: int) -> np.ndarray:
    """The flow (len(queries), keys) from nodes of the first group to nodes of the last."""
    last = max(one.lower for one in edges)
    size = sum(one.capacity.size for one in edges if one.upper > 0 and one.lower < last)
    sources, sinks = np.repeat(queries, keys), np.tile(np.arange(keys), len(queries))
    chunks = np.array_split(np.arange(len(sources)), len(sources) * size // CELLS + 1)
    found = [maximum_flow([_between(one, sources[chunk], sinks[chunk], last) for one in edges]) for chunk in chunks]
    return np.concatenate(found).reshape(len(queries), keys) / SCALE


def _between(edges: Edges, sources: np.ndarray, sinks: np.ndarray, last: int) -> Edges:
    """The same edges in P networks of one source and one sink each, given by their numbers (P,)."""
    capacity = edges.capacity
    if edges.upper == 0 and edges.lower == last:
        capacity = capacity[sources, sinks][:, None, None]
    elif edges.upper == 0:
        capacity = capacity[sources][:, None]
    elif edges.lower == last:
        capacity = capacity[:, sinks].T[:, :, None]
    return dataclasses.replace(edges, capacity=capacity)


def _edges(trace: AttentionTrace, kind: Kind, layer: int) -> Iterator[Edges]:
    """All edges from the positions after `layer` down to the input tokens."""
    if kind == "encoder" or trace.cross is None:
        yield from _stack(_mean(trace.maps[kind])[: _count(trace.maps[kind], layer)], first=0)
        return
    assert trace.decoder is not None
    count = _count(trace.decoder, layer)
    own, cross = _mean(trace.decoder)[:count], _mean(trace.cross)[:count]
    reads = cross.any(-1)
    stays = np.where(reads, 0.5, 1.0)[:, :, None] * np.eye(own.shape[1])
    memory = 2 * count - 1
    for index in reversed(range(count)):
        group = 2 * (count - 1 - index)
        if kind == "cross":
            yield Edges(group, memory, _whole(0.5 * cross[index]))
        if index or kind == "decoder":  # below the first layer's reading there is nothing of the source
            yield Edges(group, group + 1, _whole(stays[index]))
            yield Edges(group + 1, group + 2, _whole(with_residual(own[index])))
    if kind == "cross" and trace.encoder is not None:
        yield from _stack(_mean(trace.encoder), first=memory)


def _stack(layers: np.ndarray, first: int) -> Iterator[Edges]:
    """The edges of a stack of self-attention, mean weights (L, T, T), its top in the group `first`."""
    for group, weights in enumerate(reversed(layers), start=first):
        yield Edges(group, group + 1, _whole(with_residual(weights)))


def _count(attention: AttentionMap, layer: int) -> int:
    return range(attention.layers)[layer] + 1


def _mean(attention: AttentionMap) -> np.ndarray:
    return attention.weights.mean(1, dtype=np.float64)


def _whole(capacity: np.ndarray) -> np.ndarray:
    return np.rint(SCALE * capacity).astype(np.int64)
