"""Attention rollout against its definition in loops, worked by hand, and its rows as shares of the input."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.analysis.flow import compute_rollout, mean_map
from attenscope.trace import AttentionMap, AttentionTrace, Kind, TraceError

RNG = np.random.default_rng(0)
LAYERS, HEADS, SOURCE, TARGET = 3, 2, 5, 4


def a_map(kind: Kind, queries: int, keys: int, mask: np.ndarray | None = None, layers: int = LAYERS) -> AttentionMap:
    mask = np.ones((queries, keys), dtype=bool) if mask is None else mask
    weights = RNG.random((layers, HEADS, queries, keys)).astype(np.float32) * mask
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-9)
    names = [tuple(f"t{number}" for number in range(count)) for count in (queries, keys)]
    return AttentionMap(kind, weights, names[0], names[1], mask, tensors={"scores": weights})


def a_trace() -> AttentionTrace:
    return AttentionTrace(
        a_map("encoder", SOURCE, SOURCE),
        a_map("decoder", TARGET, TARGET, np.tri(TARGET, dtype=bool)),
        a_map("cross", TARGET, SOURCE),
    )


def test_encoder_rollout_is_the_product_of_section_3_in_loops() -> None:
    trace = a_trace()
    assert trace.encoder is not None
    found = compute_rollout(trace).encoder
    assert found is not None
    expected = [[float(row == column) for column in range(SOURCE)] for row in range(SOURCE)]
    for layer in range(LAYERS):
        mean = [[sum(trace.encoder.weights[layer, :, i, j]) / HEADS for j in range(SOURCE)] for i in range(SOURCE)]
        half = [[0.5 * mean[i][j] + 0.5 * (i == j) for j in range(SOURCE)] for i in range(SOURCE)]
        expected = [
            [sum(half[i][m] * expected[m][j] for m in range(SOURCE)) for j in range(SOURCE)] for i in range(SOURCE)
        ]
        np.testing.assert_allclose(found.weights[layer, 0], expected, rtol=1e-5)
    assert not found.tensors


def test_through_cross_attention_is_the_encoder_rollout_of_one_large_stack() -> None:
    """Source and target as one sequence: 2 L decoder layers after L encoder layers, multiplied out as one stack."""
    trace = a_trace()
    assert trace.encoder is not None
    assert trace.decoder is not None
    assert trace.cross is not None
    total = np.eye(SOURCE + TARGET)
    for layer in range(LAYERS):
        step = np.eye(SOURCE + TARGET)
        step[:SOURCE, :SOURCE] = 0.5 * np.eye(SOURCE) + 0.5 * trace.encoder.weights[layer].mean(0)
        total = step @ total
    for layer in range(LAYERS):
        own, read = np.eye(SOURCE + TARGET), np.eye(SOURCE + TARGET)
        own[SOURCE:, SOURCE:] = 0.5 * np.eye(TARGET) + 0.5 * trace.decoder.weights[layer].mean(0)
        read[SOURCE:, SOURCE:] = 0.5 * np.eye(TARGET)
        read[SOURCE:, :SOURCE] = 0.5 * trace.cross.weights[layer].mean(0)
        total = read @ own @ total
    found = compute_rollout(trace)
    assert found.cross is not None
    assert found.decoder is not None
    np.testing.assert_allclose(found.cross.weights[-1, 0], total[SOURCE:, :SOURCE], rtol=1e-5)
    np.testing.assert_allclose(found.decoder.weights[-1, 0], total[SOURCE:, SOURCE:], rtol=1e-5, atol=1e-7)


def test_rows_are_shares_and_the_future_stays_masked() -> None:
    found = compute_rollout(a_trace())
    assert found.encoder is not None
    assert found.decoder is not None
    assert found.cross is not None
    np.testing.assert_allclose(found.encoder.weights.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(found.decoder.weights.sum(-1) + found.cross.weights.sum(-1), 1, rtol=1e-5)
    assert np.array_equal(found.decoder.mask, np.tri(TARGET, dtype=bool))
    assert found.cross.mask.all()
    np.testing.assert_allclose(found.decoder.weights[0].sum(-1), 0.5, rtol=1e-5)  # half is read from the source


def test_identity_attention_by_hand() -> None:
    eye = AttentionMap("encoder", np.eye(2)[None, None], ("a", "b"), ("a", "b"), np.eye(2, dtype=bool))
    found = compute_rollout(AttentionTrace(encoder=eye)).encoder
    assert found is not None
    assert np.array_equal(found.weights, np.eye(2, dtype=np.float32)[None, None])
    assert np.array_equal(found.mask, np.eye(2, dtype=bool))


def test_a_row_that_may_attend_to_nothing_stays_what_it_was() -> None:
    mask = np.ones((SOURCE, SOURCE), dtype=bool)
    mask[2] = False
    found = compute_rollout(AttentionTrace(encoder=a_map("encoder", SOURCE, SOURCE, mask))).encoder
    assert found is not None
    np.testing.assert_allclose(found.weights.sum(-1), 1, rtol=1e-5)
    assert found.weights[-1, 0, 2].tolist() == [0, 0, 1, 0, 0]


def test_parts_of_a_trace() -> None:
    alone = compute_rollout(AttentionTrace(decoder=a_map("decoder", TARGET, TARGET))).decoder
    assert alone is not None
    np.testing.assert_allclose(alone.weights.sum(-1), 1, rtol=1e-5)
    whole = a_trace()
    headless = compute_rollout(AttentionTrace(decoder=whole.decoder, cross=whole.cross))
    assert headless.encoder is None
    assert headless.cross is not None
    fewer = AttentionTrace(whole.encoder, whole.decoder, a_map("cross", TARGET, SOURCE, layers=2))
    with pytest.raises(TraceError, match="3 decoder and 2 cross-attention layers"):
        compute_rollout(fewer)


def test_means_over_heads_layers_and_all() -> None:
    one = a_map("encoder", SOURCE, SOURCE)
    np.testing.assert_allclose(mean_map(one, "heads").weights[:, 0], one.weights.mean(1))
    np.testing.assert_allclose(mean_map(one, "layers").weights[0], one.weights.mean(0))
    np.testing.assert_allclose(mean_map(one, "all").weights[0, 0], one.weights.mean((0, 1)))
    assert not mean_map(one, "heads").tensors


def test_a_cached_step_has_no_rollout() -> None:
    weights = np.full((2, 1, 1, 4), 0.25, np.float32)
    one = AttentionMap("decoder", weights, ("d",), tuple("abcd"), np.ones((1, 4), bool))
    with pytest.raises(TraceError, match="1 queries and 4 keys"):
        compute_rollout(AttentionTrace(decoder=one))
