"""Models of this project taken for strangers: what is found of them from outside is what is known of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attenscope.attribution.alti_and_leave_one_out import compute_source_shares
from attenscope.attribution.any_model import (
    attribute_available_methods,
    compute_decoder_streams,
    list_attribution_methods,
    run_attention_pass,
)
from attenscope.attribution.methods import ATTRIBUTION_METHODS, attribute_all_methods, attribute_target
from attenscope.attribution.target import AttributionError, Target, make_piece_target
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.network.abstract_model import make_decoder_inputs
from attenscope.network.hooks import record_outputs
from attenscope.translate import Translator
from tests import toy
from tests.model.attribution.conftest import read
from tests.strangers import as_stranger


def test_every_method_is_that_of_our_own(any_translator: Translator) -> None:
    stranger, translation = as_stranger(any_translator), read(any_translator)
    target = make_piece_target(any_translator, translation, 1, 2)
    assert make_piece_target(stranger, translation, 1, 2) == target
    found, refused = attribute_available_methods(stranger, target)
    assert refused == ""
    assert list(found) == list(list_attribution_methods(stranger)) == [*ATTRIBUTION_METHODS, "attention-x-gradient"]
    expected = attribute_all_methods(any_translator, target)
    expected["attention-x-gradient"] = attribute_target(any_translator, target, "attention-x-gradient")
    for method, one in expected.items():
        np.testing.assert_allclose(found[method].source, one.source, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(found[method].prefix, one.prefix, atol=1e-4, rtol=1e-4)
        assert found[method].target_value == pytest.approx(one.target_value, abs=1e-6)
    assert attribute_available_methods(any_translator, target)[0].keys() == ATTRIBUTION_METHODS.keys()


def test_shares_and_streams_are_those_of_our_own(any_translator: Translator) -> None:
    stranger, translation = as_stranger(any_translator), read(any_translator)
    fed = make_decoder_inputs(translation.target_ids)
    found = compute_source_shares(
        stranger, translation, run_attention_pass(stranger.model, translation.source_ids, fed)
    )
    expected = compute_source_shares(any_translator, translation)
    for name in ("source", "by_piece", "by_input", "effect", "end_attention"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-4)
    paths = {"embedding": "target_embedding.stream"}
    for layer in range(any_translator.config.decoder_layers):
        for name in ("self-attention", "cross-attention", "feed-forward"):
            path = f"decoder.layers.{layer}.after_{name.replace('-', '_')}.stream"
            paths[f"layer {layer + 1} {name}"] = path
    streams = compute_decoder_streams(stranger.model, translation.source_ids, fed)
    assert list(streams) == list(paths)
    model = any_translator.model
    with torch.no_grad(), record_outputs(model, *paths.values()) as recorded:
        model(torch.tensor([translation.source_ids]), torch.tensor([fed]))
    for name, path in paths.items():
        torch.testing.assert_close(streams[name], recorded[path], atol=1e-5, rtol=1e-4)


def test_a_head_that_is_off_passes_nothing_on(toy_translator: Translator) -> None:
    stranger, translation = as_stranger(toy_translator), read(toy_translator)
    fed, found = make_decoder_inputs(translation.target_ids), []
    with apply_changes(toy_translator.model, parse_changes("cross.2.1:off, encoder.1.2:off, decoder.1.1:uniform")):
        for model in (toy_translator, stranger):
            encoder, decoder = run_attention_pass(model.model, translation.source_ids, fed).stacks()
            assert not encoder[0].vectors.isnan().any()
            assert float(encoder[0].weights[1].abs().max()) == float(decoder[3].weights[0].abs().max()) == 0
            for block in (*encoder, *decoder):  # so that a block is a sum again
                assert block.bias is not None
                whole = block.before + block.vectors.sum(1) + block.bias
                behind = whole if block.norm is None else block.norm(whole.float()).double()
                torch.testing.assert_close(behind, block.after, atol=1e-5, rtol=1e-4)
            found.append(
                compute_source_shares(model, translation, run_attention_pass(model.model, translation.source_ids, fed))
            )
    for name in ("by_piece", "by_input", "effect"):
        np.testing.assert_allclose(getattr(found[1], name), getattr(found[0], name), atol=1e-4)


class Levelled(nn.Module):
    """A norm that is not called one."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:])


def test_what_is_not_found_is_refused_and_the_rest_computed() -> None:
    model: Any = toy.random_model()
    model.decoder.layers[1].after_feed_forward.norm = Levelled()
    translator = Translator(toy.checkpoint(model))
    translation = read(translator)
    stranger = as_stranger(translator)
    found, refused = attribute_available_methods(stranger, make_piece_target(stranger, translation, 1))
    assert list(found) == [one for one in list_attribution_methods(stranger) if one not in ("attention-norm", "alti")]
    assert "What its attention passes on cannot be followed" in refused
    assert "what own.decoder.layers.1.cross_attention adds is added to no stream that a norm reads" in refused
    with pytest.raises(AttributionError, match="cannot be followed"):
        compute_decoder_streams(stranger.model, translation.source_ids, make_decoder_inputs(translation.target_ids))


def test_attention_times_gradient_by_differences(toy_translator: Translator, toy_target: Target) -> None:
    """The same by finite differences: every weight on a piece made a little larger, in all layers and heads."""
    model: Any = toy_translator.model
    found = attribute_target(toy_translator, toy_target, "attention-x-gradient")
    source, fed = torch.tensor([toy_target.source_ids]), torch.tensor([toy_target.input_ids])
    step, piece = 1e-3, 2

    def value(scale: float) -> float:
        def scaled(module: nn.Module, given: Any, weights: Tensor) -> Tensor:
            changed = weights.clone()
            changed[..., piece] *= scale
            return changed

        hooks = [one.cross_attention.weights.register_forward_hook(scaled) for one in model.decoder.layers]
        try:
            with torch.no_grad():
                return float(toy_target.value(model(source, fed)[:, toy_target.position :]))
        finally:
            for hook in hooks:
                hook.remove()

    slope = (value(1 + step) - value(1 - step)) / (2 * step)
    assert found.source[piece] == pytest.approx(slope, abs=2e-2)
