"""Capture: every head of every kind, changing nothing, leaving nothing behind."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.any_model.module_kinds import read_kind_from_path
from attenscope.capture.attention import capture_attention, find_attention_sites
from attenscope.decoding.greedy_and_sampling import decode_greedily
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.network.attention import AttentionPath, force_attention_path, make_causal_mask, make_padding_mask
from attenscope.network.config import BOS_ID, PAD_ID
from attenscope.network.hooks import hook_outputs, is_observed
from attenscope.network.layers import DecoderCache
from attenscope.network.transformer import Transformer
from attenscope.trace import TENSOR_NAMES, AttentionMap, AttentionTrace, TraceError
from attenscope.translate import Translator
from tests.model.network.test_hooks import hooks_on
from tests.toy import checkpoint, random_model

SOURCE = torch.tensor([[5, 6, 7, 8, 3]])
TARGET = torch.tensor([[BOS_ID, 11, 12, 13]])
SHAPES = {"encoder": (2, 2, 5, 5), "decoder": (2, 2, 4, 4), "cross": (2, 2, 4, 5)}


def captured(model: Transformer, source: Tensor = SOURCE, target: Tensor = TARGET) -> AttentionTrace:
    with torch.no_grad(), capture_attention(model, TENSOR_NAMES) as capture:
        model(source, target)
    return capture.trace


def softmax(scores: np.ndarray) -> np.ndarray:
    highest = scores.max(-1, keepdims=True)
    shares = np.exp(scores - highest)
    return shares / shares.sum(-1, keepdims=True)


@pytest.mark.parametrize("path", ["explicit", None])
@pytest.mark.parametrize("training", [True, False])
def test_logits_are_bitwise_equal(path: AttentionPath | None, training: bool) -> None:
    model = random_model(dropout=0.2).train(training)

    def logits() -> Tensor:
        torch.manual_seed(0)
        if path is None:
            return model(SOURCE, TARGET)
        with force_attention_path(path):
            return model(SOURCE, TARGET)

    before = logits()
    with capture_attention(model, TENSOR_NAMES):
        during = logits()
    assert torch.equal(before, during)
    assert torch.equal(before, logits())


def test_gradients_are_bitwise_equal() -> None:
    model = random_model()
    gradients = []
    for looking in (False, True):
        model.zero_grad()
        if looking:
            with capture_attention(model):
                model(SOURCE, TARGET).square().sum().backward()
        else:
            model(SOURCE, TARGET).square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))


def test_all_kinds_and_shapes(tiny_model: Transformer) -> None:
    trace = captured(tiny_model)
    assert {kind: one.weights.shape for kind, one in trace.maps.items()} == SHAPES
    assert trace.model == "Transformer"
    for kind, one in trace.maps.items():
        assert one.kind == kind
        assert one.weights.dtype == np.float32
        assert set(one.tensors) == set(TENSOR_NAMES)


def test_rows_sum_to_one_and_the_mask_is_where_weights_are(tiny_model: Transformer) -> None:
    for one in captured(tiny_model).maps.values():
        np.testing.assert_allclose(one.weights.sum(-1), 1, rtol=1e-5)
        np.testing.assert_array_equal(one.weights > 0, np.broadcast_to(one.mask, one.weights.shape))


def test_masks_by_hand(tiny_model: Transformer) -> None:
    source = torch.tensor([[5, 6, PAD_ID, PAD_ID]])
    target = torch.tensor([[BOS_ID, 11, PAD_ID]])
    trace = captured(tiny_model, source, target)
    assert trace.encoder is not None
    assert trace.decoder is not None
    assert trace.cross is not None
    assert trace.encoder.mask.tolist() == [[True, True, False, False]] * 4
    assert trace.decoder.mask.tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert trace.cross.mask.tolist() == [[True, True, False, False]] * 3


def test_a_mask_without_batch_and_head_axes_is_read_as_it_was_broadcast(tiny_model: Transformer) -> None:
    band = (torch.arange(5)[:, None] - torch.arange(5)).abs() <= 1
    with capture_attention(tiny_model) as capture:
        tiny_model.encode(SOURCE, band)
    assert capture.trace.encoder is not None
    np.testing.assert_array_equal(capture.trace.encoder.mask, band.numpy())
    np.testing.assert_array_equal(capture.trace.encoder.weights[0, 0] > 0, band.numpy())


def test_the_last_number_of_a_path_is_the_layer(tiny_model: Transformer) -> None:
    alone, inside = (
        [(site.kind, site.layer) for site in find_attention_sites(model)]
        for model in (tiny_model, nn.ModuleDict({"models": nn.ModuleList([tiny_model])}))
    )
    assert alone == inside
    assert {layer for _, layer in alone} == {0, 1}


def test_where_heads_have_masks_of_their_own_the_map_has_what_any_may_see(tiny_model: Transformer) -> None:
    heads = torch.ones(2, 5, 5, dtype=torch.bool)
    heads[0, :, 4] = heads[:, :, 3] = False
    with torch.no_grad(), capture_attention(tiny_model) as capture:
        tiny_model.encode(SOURCE, heads)
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.mask.tolist() == [[True, True, True, False, True]] * 5


def test_a_run_without_a_mask_allows_everything(tiny_model: Transformer) -> None:
    with capture_attention(tiny_model) as capture:
        tiny_model.encoder(torch.randn(1, 3, 64), None)
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.mask.all()
    assert set(capture.trace.maps) == {"encoder"}


def test_a_row_with_no_key_is_zero_and_says_so(tiny_model: Transformer) -> None:
    trace = captured(tiny_model, torch.tensor([[PAD_ID, PAD_ID]]), torch.tensor([[BOS_ID, 5]]))
    assert trace.cross is not None
    assert not trace.cross.mask.any()
    assert not trace.cross.weights.any()


def test_scores_on_request_explain_the_weights(tiny_model: Transformer) -> None:
    for one in captured(tiny_model).maps.values():
        q, k, scores, masked = (one.tensors[name] for name in ("q", "k", "scores", "masked_scores"))
        np.testing.assert_allclose(scores, q @ k.swapaxes(2, 3) / np.sqrt(32), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(masked, np.where(one.mask, scores, -np.inf))
        np.testing.assert_allclose(softmax(masked), one.weights, rtol=1e-4, atol=1e-6)
        assert one.tensors["v"].shape == k.shape == (2, 2, one.weights.shape[3], 32)


def test_only_what_was_asked_for_is_kept(tiny_model: Transformer) -> None:
    with capture_attention(tiny_model, ["scores"]) as capture:
        tiny_model(SOURCE, TARGET)
    assert all(set(one.tensors) == {"scores"} for one in capture.trace.maps.values())
    with (
        pytest.raises(TraceError, match="Cannot capture logits; there are q, k, v, scores, masked_scores"),
        capture_attention(tiny_model, ["logits"]),
    ):
        pass


def stepwise(model: Transformer, target: Tensor, split: list[int]) -> AttentionTrace:
    with torch.inference_mode(), capture_attention(model, TENSOR_NAMES) as capture:
        memory, mask = model.encode(SOURCE), make_padding_mask(SOURCE, PAD_ID)
        cache = DecoderCache(2)
        for part in target.split(split, 1):
            model.decode(part, memory, mask, cache=cache)
    return capture.trace


def assert_same_maps(one: AttentionMap, other: AttentionMap) -> None:
    np.testing.assert_array_equal(one.mask, other.mask)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)
    assert one.tensors.keys() == other.tensors.keys()
    for name in one.tensors:
        mine, theirs = one.tensors[name], other.tensors[name]
        if name == "scores":  # a key that did not exist yet has no score in cached decoding
            assert (np.isnan(mine) <= ~one.mask).all()
            mine, theirs = mine[..., one.mask], theirs[..., one.mask]
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("split", [[1, 1, 1, 1, 1, 1], [2, 1, 3], [6]])
def test_cached_decoding_step_by_step_equals_one_forward(tiny_model: Transformer, split: list[int]) -> None:
    target = torch.tensor([[BOS_ID, 11, 12, 13, 14, 15]])
    whole, steps = captured(tiny_model, SOURCE, target), stepwise(tiny_model, target, split)
    for kind in whole.maps:
        if split == [6]:
            np.testing.assert_array_equal(whole.maps[kind].tensors["scores"], steps.maps[kind].tensors["scores"])
        else:
            assert_same_maps(steps.maps[kind], whole.maps[kind])


def test_the_last_of_several_runs_is_the_trace(tiny_model: Transformer) -> None:
    """Cached or not, also when runs of both sorts follow each other."""
    with torch.inference_mode(), capture_attention(tiny_model, TENSOR_NAMES) as capture:
        tiny_model(SOURCE[:, :3], TARGET)
        list(decode_greedily(tiny_model, SOURCE[:, 1:], max_tokens=6))
        list(decode_greedily(tiny_model, SOURCE, max_tokens=4))
    fed = torch.tensor([[BOS_ID, *(step.token_id for step in decode_greedily(tiny_model, SOURCE, max_tokens=4))]])[
        :, :4
    ]
    whole = captured(tiny_model, SOURCE, fed)
    for kind, one in capture.trace.maps.items():
        np.testing.assert_allclose(one.weights, whole.maps[kind].weights, atol=1e-5)
        np.testing.assert_allclose(one.tensors["v"], whole.maps[kind].tensors["v"], atol=1e-5)


def test_each_sentence_of_a_batch_has_its_trace(tiny_model: Transformer) -> None:
    source = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, PAD_ID, PAD_ID]])
    with torch.no_grad(), capture_attention(tiny_model) as capture:
        tiny_model(source, TARGET.expand(2, -1))
    with pytest.raises(TraceError, match=r"of one sentence, but batches of \[2\] ran: use \.sample\(i\)"):
        _ = capture.trace
    for row in (0, 1):
        alone = captured(tiny_model, source[row : row + 1])
        for kind, one in capture.sample(row).maps.items():
            np.testing.assert_array_equal(one.mask, alone.maps[kind].mask)
            np.testing.assert_allclose(one.weights, alone.maps[kind].weights, atol=1e-5)


@pytest.mark.parametrize("foreign", [False, True])
def test_arrays_of_a_batch_need_no_tokens(tiny_model: Transformer, foreign: bool) -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True).eval() if foreign else tiny_model.encoder
    with torch.no_grad(), capture_attention(model, tokens=list("abc")) as capture:
        if foreign:
            model(*[torch.randn(2, 3, 8)] * 3)
        else:
            tiny_model.encode(torch.tensor([[5, 6, 3], [7, 8, 3]]))
    assert capture.arrays("encoder")["weights"].shape == (2, 1 if foreign else 2, 2, 3, 3)
    assert capture.sample(0).maps["encoder"].query_tokens == ("a", "b", "c")
    with pytest.raises(TraceError, match="tokens are of 1 samples"):
        capture.sample(1)


def test_nothing_run_is_said(tiny_model: Transformer) -> None:
    with capture_attention(tiny_model) as capture:
        pass
    with pytest.raises(TraceError, match="Nothing was captured: run the model inside the block"):
        _ = capture.trace


def test_a_model_without_attention_is_refused() -> None:
    model = nn.Linear(2, 2)
    with capture_attention(model) as capture:
        model(torch.ones(1, 2))
    with pytest.raises(TraceError, match="this Linear ran, but called no softmax"):
        _ = capture.trace


def test_hooks_are_gone_afterwards_and_after_an_exception() -> None:
    model = random_model()
    with capture_attention(model, TENSOR_NAMES):
        assert hooks_on(model) == 2 * 3 * (2 + len(TENSOR_NAMES))
    assert hooks_on(model) == 0
    with pytest.raises(ValueError, match="positions for 64"), capture_attention(model):
        model.encode(torch.full((1, 65), 5))
    assert hooks_on(model) == 0
    assert not is_observed()


def test_a_suspended_generator_leaves_no_hooks() -> None:
    """Closed, thrown away, or simply left alone: the hooks live in the block of the capture, not in the generator."""
    model = random_model()
    with capture_attention(model) as capture:
        steps = decode_greedily(model, SOURCE, max_tokens=10)
        next(steps)
        next(steps)
    assert hooks_on(model) == 0
    assert not is_observed()
    assert capture.trace.decoder is not None
    assert capture.trace.decoder.weights.shape == (2, 2, 2, 2)
    next(steps)  # goes on unobserved
    assert capture.trace.decoder.weights.shape == (2, 2, 2, 2)
    del steps
    gc.collect()
    assert hooks_on(model) == 0
    assert torch.is_inference_mode_enabled() is False


def test_a_replaced_tensor_is_captured_as_replaced(tiny_model: Transformer) -> None:
    """An intervention and a capture at once: the trace shows what the model really used."""
    site = next(one for one in find_attention_sites(tiny_model) if one.kind == "cross")
    point = site.module.get_submodule("weights")
    quarter = {point: lambda weights: torch.full_like(weights, 0.25)}
    with hook_outputs(quarter), capture_attention(tiny_model) as capture:
        tiny_model(SOURCE, TARGET)
    assert capture.trace.cross is not None
    assert (capture.trace.cross.weights[site.layer] == 0.25).all()
    assert (capture.trace.cross.weights[1 - site.layer] != 0.25).any()


def test_sites_and_their_kinds(tiny_model: Transformer) -> None:
    found = [(site.kind, site.layer) for site in find_attention_sites(tiny_model)]
    assert found == [("encoder", 0), ("encoder", 1), ("decoder", 0), ("cross", 0), ("decoder", 1), ("cross", 1)]
    assert read_kind_from_path("encoder.layers.0.self_attention") == "encoder"
    assert read_kind_from_path("model.decoder.layers.3.encoder_attn") == "cross"
    assert read_kind_from_path("decoder.layers.0.multihead_attn") == "cross"
    assert read_kind_from_path("encoder_decoder.encoder.layers.0.self_attention") == "encoder"
    assert read_kind_from_path("encoder_decoder.decoder.layers.0.self_attention") == "decoder"
    assert read_kind_from_path("cross_encoder.layers.0.self_attention") == "encoder"


def test_rows_carry_the_token_fed_in_and_the_token_predicted(toy_translator: Translator) -> None:
    result = toy_translator.translate("the old dog sees a tree.")
    predicted = (" der", " alte", " Hund", " sieht", " ein", " Baum", ".", "</s>")
    assert result.target_tokens == predicted
    for one in (result.trace.decoder, result.trace.cross):
        assert one is not None
        assert one.rows("fed") == ("<s>", *predicted[:-1])
        assert one.rows("predicted") == predicted
    assert result.trace.decoder is not None
    assert result.trace.decoder.key_tokens == ("<s>", *predicted[:-1])
    assert result.trace.cross is not None
    assert result.trace.cross.key_tokens == result.source_tokens
    np.testing.assert_array_equal(result.trace.decoder.mask, make_causal_mask(8)[0, 0].numpy())


def test_a_beam_search_is_no_sentence_of_a_batch() -> None:
    """Its rows change places at every step, so no row is any hypothesis."""
    translator = Translator(checkpoint(random_model()))
    with capture_attention(translator.model) as capture:
        translator.search("the dog sees a house.", 3)
    with pytest.raises(TraceError, match="as in a beam search"):
        capture.sample(0)


def test_a_sentence_that_the_batch_has_not_is_refused() -> None:
    model = random_model()
    with capture_attention(model) as capture, torch.no_grad():
        model(torch.full((2, 4), 5), torch.full((2, 3), 6))
    for index in (2, -1):
        with pytest.raises(TraceError, match="in a batch of 2"):
            capture.sample(index)


def test_a_decoder_by_itself_is_a_decoder() -> None:
    model = random_model()
    with capture_attention(model.decoder) as capture, torch.no_grad():
        model.decode(torch.full((1, 4), 5), model.encode(torch.full((1, 3), 6)), None)
    assert set(capture.trace.maps) == {"decoder", "cross"}


def test_a_cell_that_any_layer_may_see_is_not_forbidden() -> None:
    model = random_model()
    source, target = torch.full((1, 5), 5), torch.full((1, 4), 6)
    with (
        apply_changes(model, parse_changes("mask.cross.1.*.3:block")),
        capture_attention(model) as capture,
        torch.no_grad(),
    ):
        model(source, target)
    cross = capture.trace.cross
    assert cross is not None
    assert (cross.weights[0, :, :, 2] == 0).all()
    assert (cross.weights[1:, :, :, 2] > 0).all()
    assert cross.mask.all()
    assert cross.layer_masks is not None
    assert cross.layer_masks.shape == (2, 1, 4, 5)
    assert np.argwhere(~cross.layer_masks[:, 0]).tolist() == [[0, query, 2] for query in range(4)]
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.layer_masks is None  # one mask for all its layers
