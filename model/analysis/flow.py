"""Many heads as one map: means, attention rollout, attention flow, and the joint matrix of a layer. No torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..language import say, to_say
from ..trace import AttentionMap, AttentionTrace, Kind, TraceError

# Means over heads or layers, and attention rollout.
#
# Abnar and Zuidema (2020), "Quantifying Attention Flow in Transformers", section 3: with A = 0.5 W + 0.5 I for the
# residual connection and W the mean over heads, rollout(l) = A(l) rollout(l - 1). They define it for a stack of
# self-attention. Carrying it through decoder and cross-attention is this project's own extension, in the same way:
# half of a target position is what it was, half is what it reads from the encoder.


ROLLOUT_EXPLANATION = to_say(
    "Rollout multiplies the layers' mean attention, half of each layer being the residual connection, and so says from "
    "which input tokens a position could have drawn. It knows nothing of the values, the feed-forward layers or the "
    "sign of what is passed on, and treats all heads alike: it shows where information may have come from, not why "
    "the model decided as it did."
)

ROLLOUT_EXTENSION = to_say(
    "Abnar and Zuidema (2020) define this for a stack of self-attention; carrying it through decoder and "
    "cross-attention is an extension made here."
)


def mean_map(attention: AttentionMap, over: Literal["heads", "layers", "all"]) -> AttentionMap:
    """Return the mean over heads (L, 1, Q, K), over layers (1, H, Q, K) or over both (1, 1, Q, K)."""
    axes = {"heads": (1,), "layers": (0,), "all": (0, 1)}[over]
    masks = attention.layer_masks
    own = None if masks is None else np.logical_or.reduce(masks, axis=axes, keepdims=True)
    weights = attention.weights.mean(axes, keepdims=True)
    paths = attention.layer_paths if over == "heads" else ()
    return dataclasses.replace(
        attention, weights=weights, layer_masks=own, layer_paths=paths, layer_calls=(), passed_masks=None, tensors={}
    )


def compute_rollout(trace: AttentionTrace) -> AttentionTrace:
    """Return the rollout after every layer: maps of one head, weights (L, 1, Q, K), of the kinds the trace has.

    A row of the encoder sums to 1; so does a row of the decoder and of the cross map taken together, for a target
    position is made of target tokens (decoder) and of source tokens (cross).
    """
    check_trace_supports_rollout(trace)
    encoder = trace.encoder and _make_rollout_map(
        trace.encoder, list(_compute_encoder_rollout(_mean_over_heads(trace.encoder)))
    )
    if trace.decoder is None:
        return dataclasses.replace(trace, encoder=encoder, cross=None)
    if trace.cross is None:  # a decoder without an encoder is a stack of self-attention like any other
        rolled = list(_compute_encoder_rollout(_mean_over_heads(trace.decoder)))
        return dataclasses.replace(trace, encoder=encoder, decoder=_make_rollout_map(trace.decoder, rolled))
    memory = np.eye(len(trace.cross.key_tokens)) if encoder is None else encoder.weights[-1, 0]
    own, other = zip(
        *_compute_decoder_rollout(_mean_over_heads(trace.decoder), _mean_over_heads(trace.cross), memory), strict=True
    )
    return dataclasses.replace(
        trace,
        encoder=encoder,
        decoder=_make_rollout_map(trace.decoder, list(own)),
        cross=_make_rollout_map(trace.cross, list(other)),
    )


def check_trace_supports_rollout(trace: AttentionTrace) -> None:
    """Raise TraceError unless tokens can be followed from layer to layer: no cached steps, cross in every layer."""
    for own in (trace.encoder, trace.decoder):
        if own is not None and own.weights.shape[-2] != own.weights.shape[-1]:
            raise TraceError(
                say(
                    "Tokens are followed from layer to layer, but the {kind} map has {queries} queries and {keys} "
                    "keys, as of a cached step; capture the whole text.",
                    kind=own.kind,
                    queries=own.weights.shape[-2],
                    keys=own.weights.shape[-1],
                )
            )
    decoder, cross = trace.decoder, trace.cross
    if decoder is not None and cross is not None and cross.layers != decoder.layers:
        raise TraceError(
            say(
                "Tokens are followed through a cross-attention in every decoder layer; the trace has {decoder} decoder "
                "and {cross} cross-attention layers.",
                decoder=decoder.layers,
                cross=cross.layers,
            )
        )


def average_weights_with_identity(weights: np.ndarray) -> np.ndarray:
    """Return 0.5 W + 0.5 I of mean weights W (T, T); a row that may attend to nothing is that of I."""
    return _average_with_residual_stream(weights, np.eye(len(weights)))


def _compute_encoder_rollout(layers: np.ndarray) -> Iterator[np.ndarray]:
    """Mean weights (L, S, S) -> the rollout (S, S) after each layer."""
    rolled = np.eye(layers.shape[1])
    for weights in layers:
        rolled = _average_with_residual_stream(weights @ rolled, rolled)
        yield rolled


def _compute_decoder_rollout(
    own: np.ndarray, cross: np.ndarray, memory: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Mean weights (L, T, T) and (L, T, S), the encoder's rollout (S, S) -> shares (T, T) and (T, S) by layer."""
    target, source = np.eye(own.shape[1]), np.zeros(cross.shape[1:])
    for self_weights, cross_weights in zip(own, cross, strict=True):
        seen = self_weights @ np.hstack([target, source])
        both = _average_with_residual_stream(seen, np.hstack([target, source]))
        read = np.hstack([np.zeros_like(target), cross_weights @ memory])
        both = _average_with_residual_stream(read, both)
        target, source = both[:, : own.shape[1]], both[:, own.shape[1] :]
        yield target, source


def _average_with_residual_stream(read: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Return half of what was read and half of the stream; a row that read nothing stays what it was."""
    return np.where(read.any(-1, keepdims=True), 0.5 * read + 0.5 * stream, stream)


def _mean_over_heads(attention: AttentionMap) -> np.ndarray:
    return attention.weights.mean(1, dtype=np.float64)


def _make_rollout_map(attention: AttentionMap, rolled: list[np.ndarray]) -> AttentionMap:
    """Return the rollout (L, Q, K) as a map; a cell that no path reaches after the last layer is masked."""
    weights = np.stack(rolled)[:, None]
    mask, weights = weights.max((0, 1)) > 0, weights.astype(np.float32)
    return dataclasses.replace(attention, weights=weights, mask=mask, layer_masks=None, passed_masks=None, tensors={})


# Attention flow: how much could pass at most from a position down to an input token.
#
# Abnar and Zuidema (2020), section 3: the mean attention of each layer with the residual connection, A = 0.5 W + 0.5 I
# as in :func:`compute_rollout`, gives the capacities of a network, and the attention of a position to an input token is
# the maximum flow between them. The extension to decoder and cross-attention is again this project's own. Their code
# divides a row by its sum; this code does not.


FLOW_EXPLANATION = to_say(
    "Attention flow takes the layers' mean attention, half of each layer being the residual connection, as the "
    "capacities of a network, and says how much could pass from a position down to one input token at most. Each cell "
    "is computed alone, as if nothing else were to pass: a row does not sum to 1, and its values can only be compared. "
    "Like rollout it knows nothing of the values and the feed-forward layers, and treats all heads alike."
)
CAPACITY_SCALE = 2**40
"""Capacities are rounded to multiples of 1 / CAPACITY_SCALE, 1e-12, since whole numbers can be added exactly."""
MOST_FLOW_WORK = 50_000_000
"""Pairs of tokens times edges of the network: half a minute on one core. A stack has L n^2 edges for n^2 pairs."""
CAPACITIES_AT_ONCE = 2**19
"""Capacities of the networks that are solved at once."""


def compute_attention_flow(
    trace: AttentionTrace, kind: Kind, layer: int = -1, queries: Sequence[int] | None = None
) -> AttentionMap:
    """Return the flow from positions after `layer` to the input tokens of one kind: a map, weights (1, 1, Q, K).

    Args:
        kind: ``encoder``: from source positions to source tokens; ``cross``: from target positions to source tokens,
            through the decoder's layers up to `layer` and all of the encoder's; ``decoder``: to target tokens.
        queries: the rows that are computed; the others stay zero. None for all.

    Raises TraceError where the trace has no such map, for cached steps, and for more than MOST_FLOW_WORK. On one core,
    a row of 40 tokens takes 0.2 s through 6 layers and 0.6 s through those of both sides; all of 20 tokens through 4
    layers 0.3 s and 0.9 s.
    """
    attention = trace.maps.get(kind)
    if attention is None:
        raise TraceError(say("This trace holds no {kind} attention.", kind=kind))
    check_trace_supports_rollout(trace)
    count, keys = attention.mask.shape
    flow, rows = np.zeros((count, keys), np.float32), list(range(count) if queries is None else queries)
    edges = list(_list_trace_edges(trace, kind, layer))
    if len(rows) * keys * sum(one.capacity.size for one in edges) > MOST_FLOW_WORK:
        raise TraceError(
            say(
                "The attention flow of {queries} by {keys} tokens through {steps} steps takes too long to compute. "
                "Rollout takes any number of tokens.",
                queries=len(rows),
                keys=keys,
                steps=len(edges),
            )
        )
    flow[rows] = _solve_flow(edges, rows, keys)
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


def _solve_flow(edges: Sequence[FlowEdges], queries: Sequence[int], keys: int) -> np.ndarray:
    """The flow (len(queries), keys) from nodes of the first group to nodes of the last."""
    last = max(one.lower for one in edges)
    size = sum(one.capacity.size for one in edges if one.upper > 0 and one.lower < last)
    sources, sinks = np.repeat(queries, keys), np.tile(np.arange(keys), len(queries))
    chunks = np.array_split(np.arange(len(sources)), len(sources) * size // CAPACITIES_AT_ONCE + 1)
    found = [
        solve_maximum_flow([_connect_source_sink_pairs(one, sources[chunk], sinks[chunk], last) for one in edges])
        for chunk in chunks
    ]
    return np.concatenate(found).reshape(len(queries), keys) / CAPACITY_SCALE


def _connect_source_sink_pairs(edges: FlowEdges, sources: np.ndarray, sinks: np.ndarray, last: int) -> FlowEdges:
    """The same edges in P networks of one source and one sink each, given by their numbers (P,)."""
    capacity = edges.capacity
    if edges.upper == 0 and edges.lower == last:
        capacity = capacity[sources, sinks][:, None, None]
    elif edges.upper == 0:
        capacity = capacity[sources][:, None]
    elif edges.lower == last:
        capacity = capacity[:, sinks].T[:, :, None]
    return dataclasses.replace(edges, capacity=capacity)


def _list_trace_edges(trace: AttentionTrace, kind: Kind, layer: int) -> Iterator[FlowEdges]:
    """All edges from the positions after `layer` down to the input tokens."""
    if kind == "encoder" or trace.cross is None:
        yield from _list_stack_edges(
            _mean_over_heads(trace.maps[kind])[: _count_layers_through_index(trace.maps[kind], layer)], first=0
        )
        return
    assert trace.decoder is not None
    count = _count_layers_through_index(trace.decoder, layer)
    own, cross = _mean_over_heads(trace.decoder)[:count], _mean_over_heads(trace.cross)[:count]
    reads = cross.any(-1)
    stays = np.where(reads, 0.5, 1.0)[:, :, None] * np.eye(own.shape[1])
    memory = 2 * count - 1
    for index in reversed(range(count)):
        group = 2 * (count - 1 - index)
        if kind == "cross":
            yield FlowEdges(group, memory, _scale_capacity_to_integer(0.5 * cross[index]))
        if index or kind == "decoder":  # below the first layer's reading there is nothing of the source
            yield FlowEdges(group, group + 1, _scale_capacity_to_integer(stays[index]))
            yield FlowEdges(group + 1, group + 2, _scale_capacity_to_integer(average_weights_with_identity(own[index])))
    if kind == "cross" and trace.encoder is not None:
        yield from _list_stack_edges(_mean_over_heads(trace.encoder), first=memory)


def _list_stack_edges(layers: np.ndarray, first: int) -> Iterator[FlowEdges]:
    """The edges of a stack of self-attention, mean weights (L, T, T), its top in the group `first`."""
    for group, weights in enumerate(reversed(layers), start=first):
        yield FlowEdges(group, group + 1, _scale_capacity_to_integer(average_weights_with_identity(weights)))


def _count_layers_through_index(attention: AttentionMap, layer: int) -> int:
    return range(attention.layers)[layer] + 1


def _scale_capacity_to_integer(capacity: np.ndarray) -> np.ndarray:
    return np.rint(CAPACITY_SCALE * capacity).astype(np.int64)


# Maximum flow through many layered networks at once, in numpy alone.
#
# Push-relabel (Goldberg and Tarjan 1988) in rounds: label every node with its distance to the sink, push all excess
# along edges that lead one step nearer until none is left that can, and label again. Capacities are whole numbers, so
# that the flow is exact.


UNREACHABLE_LABEL = np.int16(2**14)
"""The label of a node from which nothing can reach the sink; networks have fewer nodes."""


@dataclass(frozen=True, eq=False)
class FlowEdges:
    """All edges that lead from one group of nodes, U of them, to one below it, V of them."""

    upper: int
    lower: int
    capacity: np.ndarray
    """int64, 0 for no edge: (U, V), or (P, U, V) for P networks that differ."""


def solve_maximum_flow(edges: Sequence[FlowEdges]) -> np.ndarray:
    """Return the greatest flow (P,) of each network from its first node to its last.

    Groups of nodes are numbered from the top; the first and the last hold one node each.
    """
    return _FlowNetworks(edges).solve_flows()


class _FlowNetworks:
    """The state of P networks: what each edge can still take, what it carries, and the excess of each node."""

    def __init__(self, edges: Sequence[FlowEdges]) -> None:
        edges = sorted(edges, key=lambda one: one.upper)
        count = max(one.capacity.shape[0] for one in edges if one.capacity.ndim == 3)
        self.ends = [(one.upper, one.lower) for one in edges]
        self.sink = max(lower for _, lower in self.ends)
        self.room = [np.broadcast_to(one.capacity, (count, *one.capacity.shape[-2:])).copy() for one in edges]
        self.carried = [np.zeros_like(room) for room in self.room]
        self.excess = [np.zeros((count, 1), np.int64)] * (self.sink + 1)
        leaving, arriving = np.zeros((2, count), np.int64)
        for (upper, lower), room in zip(self.ends, self.room, strict=True):
            self.excess[lower] = np.zeros((count, room.shape[2]), np.int64)
            leaving += room.sum((1, 2)) * (upper == 0)
            arriving += room.sum((1, 2)) * (lower == self.sink)
        self.excess[0] = np.minimum(leaving, arriving)[:, None]  # more can never flow

    def solve_flows(self) -> np.ndarray:
        """Push until no excess can reach the sink -> what has arrived there (P,)."""
        flow = np.zeros(len(self.excess[0]), np.int64)
        unsolved = np.arange(len(flow))
        while True:
            labels = self._compute_sink_distances()
            above = zip(self.excess[:-1], labels[:-1], strict=True)
            active = np.logical_or.reduce(
                [((excess > 0) & (label < UNREACHABLE_LABEL)).any(1) for excess, label in above]
            )
            flow[unsolved[~active]] = self.excess[-1][~active, 0]
            unsolved = unsolved[active]
            if not len(unsolved):
                return flow
            self._keep(active)
            labels = [label[active] for label in labels]
            while self._push_excess_toward_sink(labels) | self._push_excess_back_up(labels):
                pass

    def _compute_sink_distances(self) -> list[np.ndarray]:
        """The distance (P, N) of every node of each group to the sink, along edges that can take more."""
        labels = [np.full(excess.shape, UNREACHABLE_LABEL) for excess in self.excess]
        labels[self.sink][:] = 0
        nearer = True
        while nearer:
            for (upper, lower), room in zip(reversed(self.ends), reversed(self.room), strict=True):
                through = np.where(room > 0, labels[lower][:, None] + np.int16(1), UNREACHABLE_LABEL).min(2)
                np.minimum(labels[upper], through, out=labels[upper])
            nearer = False
            for (upper, lower), carried in zip(self.ends, self.carried, strict=True):
                if lower < self.sink:  # what an edge carries can be sent back up
                    through = np.where(carried > 0, labels[upper][:, :, None] + np.int16(1), UNREACHABLE_LABEL).min(1)
                    nearer |= bool((through < labels[lower]).any())
                    np.minimum(labels[lower], through, out=labels[lower])
        return labels

    def _push_excess_toward_sink(self, labels: list[np.ndarray]) -> bool:
        """Push excess towards the sink, group by group; returns whether any moved."""
        moved = False
        for (upper, lower), room, carried in zip(self.ends, self.room, self.carried, strict=True):
            moved |= self._push_excess_between_groups(upper, lower, labels, room, carried)
        return moved

    def _push_excess_back_up(self, labels: list[np.ndarray]) -> bool:
        """Send excess back up where another way leads from there; returns whether any moved."""
        moved = False
        for at in reversed(range(len(self.ends))):
            upper, lower = self.ends[at]
            if lower < self.sink:
                backwards = self.carried[at].swapaxes(1, 2), self.room[at].swapaxes(1, 2)
                moved |= self._push_excess_between_groups(lower, upper, labels, *backwards)
        return moved

    def _push_excess_between_groups(
        self, start: int, end: int, labels: list[np.ndarray], room: np.ndarray, other: np.ndarray
    ) -> bool:
        """Push from one group's nodes with excess into another: `room` (P, N, M) is left on the way, `other` back."""
        network, node = np.nonzero((self.excess[start] > 0) & (labels[start] < UNREACHABLE_LABEL))
        if not len(network):
            return False
        left = room[network, node]
        nearer = labels[end][network] + 1 == labels[start][network, node][:, None]
        taken = np.minimum(np.where(nearer, left, 0).cumsum(1), self.excess[start][network, node][:, None])
        pushed = np.diff(taken, axis=1, prepend=0)  # first come, first served
        room[network, node] = left - pushed
        other[network, node] += pushed
        self.excess[start][network, node] -= taken[:, -1]
        np.add.at(self.excess[end], network, pushed)
        return bool(taken[:, -1].any())

    def _keep(self, networks: np.ndarray) -> None:
        """Go on with some of the networks (P,) bool; the others are solved."""
        if not networks.all():
            self.room = [room[networks] for room in self.room]
            self.carried = [carried[networks] for carried in self.carried]
            self.excess = [excess[networks] for excess in self.excess]


# The joint matrix: all three attentions of one layer over source and target, as Tensor2Tensor draws them.
#
#                 source     target
#     source   |  encoder  |  never   |
#     target   |  cross    |  decoder |
#
# A target row sums to 2: one attention over the source and one over the target. The blocks lie as in Tensor2Tensor's
# visualization/attention.py, `get_full_attention`.


@dataclass(frozen=True, eq=False)
class JointAttention:
    """One layer of a trace over source and target together: R rows of queries, C columns of keys.

    R and C are both S + T of a trace as it was captured; merged into words, rows and columns may differ in number.
    """

    weights: np.ndarray
    """(R, C) float32"""
    mask: np.ndarray
    """(R, C) bool, True = may attend; the encoder never sees the target."""
    row_tokens: tuple[str, ...]
    """(R,) the source tokens, then the tokens fed in to the decoder."""
    predicted_tokens: tuple[str, ...]
    """(R,) the source tokens, then the tokens predicted, where known."""
    column_tokens: tuple[str, ...]
    """(C,) the source tokens, then the tokens that the decoder attends to."""
    source_length: int
    """S, where the blocks meet, down and across."""


def build_joint_attention(trace: AttentionTrace, layer: int, head: int | None = None) -> JointAttention:
    """Return one head of a layer, or the mean over its heads, of all three attentions; counted from 0.

    Raises TraceError if one of the maps is missing or has no such layer or head.
    """
    encoder, decoder, cross = trace.encoder, trace.decoder, trace.cross
    if encoder is None or decoder is None or cross is None:
        raise TraceError(
            say("The joint picture needs encoder, decoder and cross-attention; this trace has not all three.")
        )
    maps = (encoder, decoder, cross)
    layers, heads = min(one.layers for one in maps), min(one.heads for one in maps)
    if not 0 <= layer < layers or not (head is None or 0 <= head < heads):
        raise TraceError(
            say(
                "All three attentions have layers 1 to {layers} and heads 1 to {heads}; choose among these.",
                layers=layers,
                heads=heads,
            )
        )
    source = len(encoder.query_tokens)
    weights = np.zeros((source + len(decoder.query_tokens), source + len(decoder.key_tokens)), dtype=np.float32)
    mask = np.zeros(weights.shape, dtype=bool)
    places = (
        (encoder, slice(0, source), slice(0, source)),
        (decoder, slice(source, None), slice(source, None)),
        (cross, slice(source, None), slice(0, source)),
    )
    for one, rows, columns in places:
        weights[rows, columns] = one.weights[layer].mean(0) if head is None else one.weights[layer, head]
        mask[rows, columns] = one.masks[layer].any(0) if head is None else one.mask_of(layer, head)
    return JointAttention(
        weights,
        mask,
        (*encoder.query_tokens, *decoder.query_tokens),
        (*encoder.query_tokens, *decoder.rows("predicted")),
        (*encoder.key_tokens, *decoder.key_tokens),
        source,
    )
