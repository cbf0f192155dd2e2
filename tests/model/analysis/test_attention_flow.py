"""Attention flow against networkx, worked by hand, and held between rollout and what its ends can pass."""

from __future__ import annotations

import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attenscope.analysis.flow import (
    CAPACITY_SCALE,
    FlowEdges,
    compute_attention_flow,
    compute_rollout,
    solve_maximum_flow,
)
from attenscope.trace import KINDS, AttentionMap, AttentionTrace, Kind, TraceError

TARGET, SOURCE = 4, 5


def a_map(kind: Kind, chance: np.random.Generator, queries: int, keys: int, layers: int, sharp: float) -> AttentionMap:
    """Random weights of two heads; the decoder's are causal, and some rows may attend to nothing."""
    mask = np.tri(queries, keys, dtype=bool) if kind == "decoder" else np.ones((queries, keys), dtype=bool)
    mask = mask & (chance.random((queries, 1)) > 0.1)
    weights = np.where(mask, np.exp(sharp * chance.normal(size=(layers, 2, queries, keys))), 0)
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-9)
    names = [tuple(f"t{number}" for number in range(count)) for count in (queries, keys)]
    return AttentionMap(kind, weights.astype(np.float32), names[0], names[1], mask)


def a_trace(
    seed: int, layers: int = 3, sharp: float = 2.0, target: int = TARGET, source: int = SOURCE
) -> AttentionTrace:
    chance = np.random.default_rng(seed)
    return AttentionTrace(
        a_map("encoder", chance, source, source, layers, sharp),
        a_map("decoder", chance, target, target, layers, sharp),
        a_map("cross", chance, target, source, layers, sharp),
    )


def flow(trace: AttentionTrace, kind: Kind, layer: int = -1) -> np.ndarray:
    return compute_attention_flow(trace, kind, layer).weights[0, 0]


def stack(*layers: list[list[float]]) -> AttentionTrace:
    weights = np.array(layers, dtype=np.float32)[:, None]
    count = weights.shape[-1]
    names = tuple("abcdef"[:count])
    return AttentionTrace(encoder=AttentionMap("encoder", weights, names, names, np.ones((count, count), dtype=bool)))


def test_two_layers_by_hand() -> None:
    """A = 0.5 W + 0.5 I is ((1, 0), (1/4, 3/4)) below ((3/4, 1/4), (0, 1)); a path is as wide as its narrower edge."""
    trace = stack([[1, 0], [0.5, 0.5]], [[0.5, 0.5], [0, 1]])
    np.testing.assert_allclose(flow(trace, "encoder"), [[0.75 + 0.25, 0.25], [0.25, 0.75]], atol=1e-6)
    np.testing.assert_allclose(flow(trace, "encoder", 0), [[1.0, 0.0], [0.25, 0.75]], atol=1e-6)
    assert not compute_attention_flow(trace, "encoder", 0).mask[0, 1]


def test_paths_that_share_an_edge_share_its_capacity() -> None:
    """From a on top, half goes to a and half to b; both must pass the one edge of 3/4 from a down to a."""
    trace = stack([[0.5, 0.5], [0, 1]], [[1, 0], [1, 0]], [[0, 1], [0, 1]])
    np.testing.assert_allclose(flow(trace, "encoder")[0], [0.75, 0.25 + 0.5], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_of_one_layer_it_is_the_weight_with_the_residual_connection(seed: int) -> None:
    trace = a_trace(seed, layers=1)
    for kind in KINDS[:2]:
        weights = trace.maps[kind].weights[0].mean(0)
        read = weights.any(-1, keepdims=True)
        alone = AttentionTrace(**{kind: trace.maps[kind]})  # type: ignore[arg-type]
        np.testing.assert_allclose(
            flow(alone, kind),
            np.where(read, 0.5, 0) * weights + np.where(read, 0.5, 1) * np.eye(len(weights)),
            atol=1e-6,
        )
    without_encoder = AttentionTrace(decoder=trace.decoder, cross=trace.cross)
    np.testing.assert_allclose(flow(without_encoder, "cross"), 0.5 * trace.maps["cross"].weights[0].mean(0), atol=1e-6)


def network(trace: AttentionTrace) -> nx.DiGraph:
    """The attention graph with one node for each token of each layer, written down edge by edge."""
    graph = nx.DiGraph()
    mean = {kind: one.weights.mean(1, dtype=np.float64) for kind, one in trace.maps.items()}

    def step(name: str, layer: float, below: float, weights: np.ndarray, read_from: str, read_layer: float) -> None:
        for query, row in enumerate(weights):
            half = 0.5 if row.any() else 1.0
            edges = {(name, below, query): half}
            for key, weight in enumerate(row):
                node = (read_from, read_layer, key)
                edges[node] = edges.get(node, 0) + half * weight
            for node, capacity in edges.items():
                graph.add_edge((name, layer, query), node, capacity=capacity)

    for layer, weights in enumerate(mean.get("encoder", ())):
        step("source", layer + 1, layer, weights, "source", layer)
    top = len(mean.get("encoder", ()))
    for layer, weights in enumerate(mean.get("decoder", ())):
        if "cross" in mean:
            step("target", layer + 0.5, layer, weights, "target", layer)
            step("target", layer + 1, layer + 0.5, mean["cross"][layer], "source", top)
        else:
            step("target", layer + 1, layer, weights, "target", layer)
    return graph


@pytest.mark.sweep
@settings(max_examples=25)
@given(
    seed=st.integers(0, 9999),
    layers=st.integers(1, 4),
    sharp=st.floats(0, 5),
    parts=st.sampled_from(["edc", "dc", "d"]),
)
def test_it_is_the_maximum_flow_of_networkx(seed: int, layers: int, sharp: float, parts: str) -> None:
    whole = a_trace(seed, layers, sharp)
    trace = AttentionTrace(**{kind: one for kind, one in whole.maps.items() if kind[0] in parts})  # type: ignore[arg-type]
    graph = network(trace)
    for kind in trace.maps:
        side, sink = ("source" if kind == "encoder" else "target"), ("target" if kind == "decoder" else "source")
        found = flow(trace, kind)
        for (query, key), value in np.ndenumerate(found):
            expected = nx.maximum_flow_value(graph, (side, layers, query), (sink, 0, key))
            assert value == pytest.approx(expected, abs=1e-6)


@given(seed=st.integers(0, 9999), layer=st.integers(0, 2), sharp=st.floats(0, 6))
def test_it_passes_what_rollout_does_at_least_and_one_unit_at_most(seed: int, layer: int, sharp: float) -> None:
    """Rollout is one way of letting a whole unit flow, in which every node divides by its weights."""
    trace = a_trace(seed, sharp=sharp)
    shares = compute_rollout(trace).maps
    for kind in KINDS:
        found = flow(trace, kind, layer)
        assert (found >= shares[kind].weights[layer, 0] - 1e-6).all()
        assert (found <= 1 + 1e-6).all()
        assert np.array_equal(found > 0, compute_attention_flow(trace, kind, layer).mask)


def test_some_rows_alone_are_those_of_the_whole_map() -> None:
    trace = a_trace(4)
    some = compute_attention_flow(trace, "cross", queries=[2, 0]).weights[0, 0]
    np.testing.assert_array_equal(some[[2, 0]], flow(trace, "cross")[[2, 0]])
    assert not some[[1, 3]].any()


def test_many_networks_at_once_are_each_alone() -> None:
    chance = np.random.default_rng(1)
    top, middle, bottom = (chance.integers(0, 50, (20, *shape)) for shape in ((1, 4), (4, 3), (3, 1)))
    together = solve_maximum_flow(
        [FlowEdges(0, 1, top), FlowEdges(1, 2, middle), FlowEdges(2, 3, bottom), FlowEdges(0, 2, top[:, :, :3])]
    )
    for one, value in enumerate(together):
        graph = nx.DiGraph()
        for upper, capacity in ((0, top), (1, middle), (2, bottom)):
            for (u, v), room in np.ndenumerate(capacity[one]):
                graph.add_edge((upper, u), (upper + 1, v), capacity=room)
        for v, room in enumerate(top[one, 0, :3]):
            graph.add_edge((0, 0), (2, v), capacity=room)
        assert value == nx.maximum_flow_value(graph, (0, 0), (3, 0))


def test_capacities_are_rounded_by_less_than_the_last_digit_shown() -> None:
    """A cut has at most all edges of a step; each is off by half of a unit."""
    assert 100 * 100 * 0.5 / CAPACITY_SCALE < 1e-8


def test_what_cannot_be_followed_is_a_sentence() -> None:
    trace = a_trace(0)
    with pytest.raises(TraceError, match="holds no decoder attention"):
        compute_attention_flow(AttentionTrace(encoder=trace.encoder), "decoder")
    weights = np.full((2, 1, 1, 4), 0.25, np.float32)
    step = AttentionMap("decoder", weights, ("d",), tuple("abcd"), np.ones((1, 4), bool))
    with pytest.raises(TraceError, match="1 queries and 4 keys"):
        compute_attention_flow(AttentionTrace(decoder=step), "decoder")
    large = AttentionTrace(encoder=a_map("encoder", np.random.default_rng(0), 100, 100, 1, 1.0))
    with pytest.raises(TraceError, match="100 by 100 tokens through 1 steps takes too long"):
        compute_attention_flow(large, "encoder")
    assert compute_attention_flow(large, "encoder", queries=[3]).weights.any()


def test_forty_tokens_and_six_layers_take_less_than_two_seconds_a_row() -> None:
    trace = a_trace(0, layers=6, target=40, source=40)
    for kind in KINDS:
        started = time.process_time()
        compute_attention_flow(trace, kind, queries=[38])
        assert time.process_time() - started < 2
