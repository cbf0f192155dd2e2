"""One query through eq. (1): the steps by hand, on a real trace, and caught where they do not follow."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attenscope.analysis.attention_steps import (
    compute_attention_steps,
    read_output_projections,
    weight_by_value_norms,
    weight_trace_by_value_norms,
)
from attenscope.capture.attention import capture_attention
from attenscope.decoding.greedy_and_sampling import decode_greedily
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import HeadChange
from attenscope.network.config import BOS_ID
from attenscope.network.transformer import Transformer
from attenscope.trace import KINDS, TENSOR_NAMES, AttentionMap, AttentionTrace, TraceError
from attenscope.translate import Translator
from tests.toy import random_model

SOURCE, TARGET = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[BOS_ID, 11, 12]])


def traced(model: Transformer) -> AttentionTrace:
    with torch.inference_mode(), capture_attention(model, TENSOR_NAMES) as capture:
        model(SOURCE, TARGET)
    return capture.trace


def by_hand() -> AttentionMap:
    """d = 4, so the scale is 1/2; q = (2, 0, 0, 0) against three keys, the last one masked."""
    q, k, v = np.array([[2.0, 0, 0, 0]]), np.array([[1.0, 9, 9, 9], [0, 1, 1, 1], [5, 5, 5, 5]]), np.eye(3, 4)
    scores = np.array([[1.0, 0.0, 5.0]])
    masked = np.array([[1.0, 0.0, -math.inf]])
    weights = np.array([[math.e / (math.e + 1), 1 / (math.e + 1), 0]])
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": masked}
    return AttentionMap(
        "cross",
        weights[None, None],
        ("a",),
        ("x", "y", "z"),
        np.array([[True, True, False]]),
        tensors={name: tensor[None, None] for name, tensor in tensors.items()},
    )


def test_by_hand() -> None:
    found = compute_attention_steps(by_hand(), 0, 0, 0)
    assert found.scale == 0.5
    assert found.product.tolist() == [[2, 0, 0, 0], [0, 0, 0, 0], [10, 0, 0, 0]]
    assert found.dot.tolist() == [2, 0, 10]
    assert found.scores.tolist() == [1, 0, 5]
    assert found.masked_scores.tolist() == [1, 0, -math.inf]
    np.testing.assert_allclose(found.context, [0.7310586, 0.2689414, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(found.weighted_values[0], [0.7310586, 0, 0, 0], rtol=1e-6)
    assert (found.query_token, found.key_tokens) == ("a", ("x", "y", "z"))
    assert found.difference < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_of_a_real_model_against_torch(tiny_model: Transformer, kind: str) -> None:
    one = traced(tiny_model).maps[kind]  # type: ignore[index]
    for place in np.ndindex(one.weights.shape[:3]):
        found = compute_attention_steps(one, *place)
        assert found.scale == pytest.approx(32**-0.5)
        assert found.difference < 1e-5
        parts = (torch.tensor(found.q)[None], torch.tensor(found.k), torch.tensor(found.v))
        expected = F.scaled_dot_product_attention(*parts, attn_mask=torch.tensor(found.mask)[None])[0]
        np.testing.assert_allclose(found.context, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.weights.sum(), 1, rtol=1e-5)


def test_a_model_that_does_not_scale() -> None:
    one = traced(random_model(scale_scores=False)).encoder
    assert one is not None
    assert compute_attention_steps(one, 1, 1, 0).scale == 1.0


def test_a_cached_decoding_shows_what_masked_scores_would_have_been(toy_translator: Translator) -> None:
    model = toy_translator.model
    source = torch.tensor([toy_translator.encode("the cat sees a dog.").ids])
    with capture_attention(model, TENSOR_NAMES) as capture:
        list(decode_greedily(model, source))
    assert capture.trace.decoder is not None
    found = compute_attention_steps(capture.trace.decoder, 0, 0, 1)
    assert found.mask.tolist()[:3] == [True, True, False]
    assert np.isfinite(found.scores).all()
    assert np.isneginf(found.masked_scores[2:]).all()


def test_the_trace_of_a_given_translation_has_all_steps(toy_translator: Translator) -> None:
    one = toy_translator.force("the cat sees a dog.", "die Katze.", tensors=TENSOR_NAMES).trace.cross
    assert one is not None
    assert compute_attention_steps(one, 1, 0, 0).key_tokens == one.key_tokens


def test_a_row_with_nothing_allowed() -> None:
    one = by_hand()
    tensors = {**one.tensors, "masked_scores": np.full((1, 1, 1, 3), -math.inf)}
    empty = dataclasses.replace(one, weights=one.weights * 0, mask=one.mask & False, tensors=tensors)
    found = compute_attention_steps(empty, 0, 0, 0)
    assert not found.context.any()
    assert found.difference == 0


def test_steps_that_do_not_follow_are_refused(tiny_model: Transformer) -> None:
    with apply_changes(tiny_model, [HeadChange("encoder", 0, 0, "copy", 1)]):
        copied = traced(tiny_model).encoder
    assert copied is not None
    with pytest.raises(TraceError, match="The weights of this query do not follow from the step before"):
        compute_attention_steps(copied, 0, 0, 1)
    with apply_changes(tiny_model, [HeadChange("encoder", 0, 0, "uniform")]):
        level = traced(tiny_model).encoder
    assert level is not None
    with pytest.raises(TraceError, match="The masked scores of this query"):
        compute_attention_steps(level, 0, 0, 1)
    with pytest.raises(TraceError, match="The scores of this query"):
        compute_attention_steps(by_hand(), 0, 0, 0, scale=0.7)
    soft = by_hand()
    finite = {**soft.tensors, "masked_scores": np.nan_to_num(soft.tensors["masked_scores"], neginf=-1e4)}
    with pytest.raises(TraceError, match="masks in another way than with -inf"):
        compute_attention_steps(dataclasses.replace(soft, tensors=finite), 0, 0, 0)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(TraceError, match="made without q, k, v, scores, masked_scores; capture it with tensors="):
        compute_attention_steps(dataclasses.replace(by_hand(), tensors={}), 0, 0, 0)
    for place in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0)):
        with pytest.raises(TraceError, match="layers 1 to 1, heads 1 to 1 and queries 1 to 1"):
            compute_attention_steps(by_hand(), *place)


def test_value_norms_by_hand() -> None:
    one = by_hand()
    longer = {**one.tensors, "v": one.tensors["v"] * np.array([0, 2, 1])[:, None]}
    found = weight_by_value_norms(dataclasses.replace(one, tensors=longer))
    assert found.weights[0, 0, 0].tolist() == [0, 1, 0]
    same = weight_by_value_norms(one)  # all values of the same length: the weights themselves
    np.testing.assert_allclose(same.weights, one.weights)


def test_a_row_that_carries_nothing_stays_zero() -> None:
    one = by_hand()
    empty = dataclasses.replace(one, tensors={"v": one.tensors["v"] * 0})
    assert not weight_by_value_norms(empty).weights.any()
    with pytest.raises(TraceError, match="without the value vectors"):
        weight_by_value_norms(dataclasses.replace(one, tensors={}))


def test_with_the_output_projection_it_is_what_each_key_adds_to_the_stream(tiny_model: Transformer) -> None:
    """Held to the module itself: the value of one key alone, sent through the output projection."""
    one = traced(tiny_model).cross
    assert one is not None
    found = weight_by_value_norms(one, read_output_projections(tiny_model, "cross"))
    module = tiny_model.decoder.layers[1].get_submodule("cross_attention")
    norms = np.zeros(4)
    for key in range(4):
        context = torch.zeros(64)
        context[32:] = torch.tensor(one.weights[1, 1, 2, key] * one.tensors["v"][1, 1, key])
        added = module.get_submodule("out_proj")(context) - module.get_parameter("out_proj.bias")
        norms[key] = added.norm().item()
    np.testing.assert_allclose(found.weights[1, 1, 2], norms / norms.sum(), rtol=1e-4)


def test_every_map_of_a_trace_is_weighted_by_its_own_projections(tiny_model: Transformer) -> None:
    trace = traced(tiny_model)
    projected, values_alone = weight_trace_by_value_norms(trace, tiny_model), weight_trace_by_value_norms(trace)
    for kind, one in trace.maps.items():
        expected = weight_by_value_norms(one, read_output_projections(tiny_model, kind)).weights
        np.testing.assert_array_equal(projected.maps[kind].weights, expected)
        np.testing.assert_array_equal(values_alone.maps[kind].weights, weight_by_value_norms(one).weights)
        assert np.abs(expected - values_alone.maps[kind].weights).max() > 1e-3  # more than a matter of scale
