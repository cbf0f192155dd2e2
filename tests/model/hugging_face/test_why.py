"""Layers, source or prefix and patches of a folder's model, against the model that transformers alone loads."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attenscope.attribution.alti_and_leave_one_out import compute_source_shares
from attenscope.attribution.any_model import compute_decoder_streams, run_attention_pass
from attenscope.attribution.methods import attribute_target, compute_target_value
from attenscope.attribution.target import make_piece_target
from attenscope.experiments.ablation import ablate_heads_for_word
from attenscope.experiments.lens import run_decoder_lens, run_logit_lens
from attenscope.experiments.patching import compare_at_first_difference, patch_heads, patch_stream
from attenscope.hugging_face.networks import can_patch_all_streams
from attenscope.network.abstract_model import make_decoder_inputs
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.trace import Kind
from tests.folders import SENTENCE

pytest.importorskip("transformers")
PROJECTIONS: dict[Kind, tuple[str, ...]] = {
    "encoder": ("self_attn.out_proj", "SelfAttention.o"),
    "decoder": ("self_attn.out_proj", "SelfAttention.o"),
    "cross": ("encoder_attn.out_proj", "EncDecAttention.o"),
}
"""The output projection of each attention, by what transformers calls it."""
OTHER = "the old tree sees a tree ."
STEPS = 6
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("bart", "m2m_100")]
Read = tuple[RunnableModel, Translation, Any]


@pytest.fixture(params=["marian", "t5", *SLOW])
def read(
    request: pytest.FixtureRequest, opened: Callable[[str], RunnableModel], reference: Callable[[str], Any]
) -> Read:
    """A folder's model, what it wrote, and the same model loaded by transformers."""
    live = opened(request.param)
    return live, live.translate(SENTENCE, max_tokens=STEPS, capture=False), reference(request.param)


def alone(reference: Any, found: Translation, start: int, **more: Any) -> Any:
    """One pass of the reference over a translation."""
    source = torch.tensor([found.source_ids])
    fed = torch.tensor([make_decoder_inputs(found.target_ids, start)])
    with torch.no_grad():
        return reference(source, decoder_input_ids=fed, use_cache=False, **more)


def head(reference: Any, stream: Tensor) -> Tensor:
    """Log-probabilities of what transformers' own last part makes of a stream behind the decoder's last layer."""
    decoder = reference.get_decoder()
    norm = next((getattr(decoder, name) for name in ("final_layer_norm", "layer_norm") if hasattr(decoder, name)), None)
    states = stream if norm is None else norm(stream)
    if reference.config.model_type == "t5" and reference.config.tie_word_embeddings:
        states = states * reference.config.d_model**-0.5
    with torch.no_grad():
        logits = reference.get_output_embeddings()(states) + getattr(reference, "final_logits_bias", 0.0)
    return logits.log_softmax(-1)


def test_the_lens_is_the_models_own_head_on_its_hidden_states(read: Read) -> None:
    live, found, reference = read
    lens = run_logit_lens(live, found, sublayers=True)
    states = alone(reference, found, live.model.start_id, output_hidden_states=True).decoder_hidden_states
    ids = torch.tensor(found.target_ids)[:, None]
    behind = [at for at, place in enumerate(lens.places) if not place.endswith("attention")]
    assert [lens.places[at] for at in behind] == ["embedding", "layer 1 feed-forward", "layer 2 feed-forward"]
    for at, stream in zip(behind[:-1], states[:-1], strict=True):  # the last is behind the final norm
        own = head(reference, stream)[0].gather(1, ids)[:, 0].detach()
        np.testing.assert_allclose(lens.target_log_probs[at], own, atol=1e-4)
    np.testing.assert_allclose(lens.target_log_probs[-1], [step.log_prob for step in found.steps], atol=1e-4)


def test_streams_between_sublayers_are_those_that_transformers_adds_up(read: Read) -> None:
    """What the next sublayer, or its norm, is given, read by hooks of torch."""
    live, found, reference = read
    fed = make_decoder_inputs(found.target_ids, live.model.start_id)
    streams = compute_decoder_streams(live.model, found.source_ids, fed)
    given: list[Tensor] = []
    for name, module in reference.get_decoder().named_modules():
        if name.endswith((".encoder_attn", "layer.1.layer_norm", "encoder_attn_layer_norm")):
            hook = lambda _, arguments, named: given.append(arguments[0] if arguments else named["hidden_states"])  # noqa: E731
            module.register_forward_pre_hook(hook, with_kwargs=True)
    alone(reference, found, live.model.start_id)
    for layer in (1, 2):
        own = streams[f"layer {layer} self-attention"]
        assert any(one.shape == own.shape and torch.allclose(one, own, atol=1e-5) for one in given)


def test_each_encoder_layer_is_decoded(read: Read) -> None:
    live, found, reference = read
    lens = run_decoder_lens(live, found)
    assert lens.places == ("embedding", "layer 1", "layer 2")
    assert lens.texts[-1] == live.translate(SENTENCE, capture=False).text
    np.testing.assert_allclose(lens.log_probs[-1], [step.log_prob for step in found.steps], atol=1e-4)
    encoder = reference.get_encoder()
    state = alone(reference, found, live.model.start_id, output_hidden_states=True).encoder_hidden_states[1]
    norm = next((getattr(encoder, name) for name in ("final_layer_norm", "layer_norm") if hasattr(encoder, name)), None)
    memory = state if norm is None else norm(state)
    fed = torch.tensor([make_decoder_inputs(found.target_ids, live.model.start_id)])
    with torch.no_grad():
        logits = reference(encoder_outputs=(memory,), decoder_input_ids=fed, use_cache=False).logits
    own = logits[0].log_softmax(-1).gather(1, torch.tensor(found.target_ids)[:, None])[:, 0]
    np.testing.assert_allclose(lens.log_probs[1], own, atol=1e-4)


def test_shares_add_up_and_the_effect_is_that_of_no_memory(read: Read) -> None:
    live, found, reference = read
    fed = make_decoder_inputs(found.target_ids, live.model.start_id)
    shares = compute_source_shares(live, found, run_attention_pass(live.model, found.source_ids, fed))
    np.testing.assert_allclose(shares.by_piece.sum(1) + shares.by_input.sum(1), 1, atol=1e-6)
    out = alone(reference, found, live.model.start_id, output_attentions=True)
    cross = torch.stack(out.cross_attentions)[:, 0]
    np.testing.assert_allclose(shares.end_attention, cross[..., -1].mean((0, 1)), atol=1e-5)
    ids = torch.tensor(found.target_ids)[:, None]
    silent = [one.register_forward_hook(_nothing) for one in _output_projections(reference)]
    try:
        without = alone(reference, found, live.model.start_id).logits
    finally:
        for hook in silent:
            hook.remove()
    effect = (out.logits[0].log_softmax(-1) - without[0].log_softmax(-1)).gather(1, ids)[:, 0]
    np.testing.assert_allclose(shares.effect, effect, atol=1e-4)


def _output_projections(reference: Any) -> list[Any]:
    """Of the decoder's cross-attention."""
    return [one for name, one in reference.get_decoder().named_modules() if name.endswith(PROJECTIONS["cross"])]


def _nothing(module: Any, given: Any, output: Tensor) -> Tensor:
    """What an output projection makes of no context: its bias."""
    return torch.zeros_like(output) if module.bias is None else module.bias.expand_as(output)


def test_a_piece_is_left_out_as_if_it_were_padding(read: Read) -> None:
    """Blocked in every mask and with no embedding, the last source piece is one that is not there."""
    live, found, _ = read
    target = make_piece_target(live, found, 2)
    one = attribute_target(live, target, "leave-one-out")
    shorter = make_piece_target(live, _without_last(found), 2)
    assert one.source[-1] == pytest.approx(one.target_value - compute_target_value(live.model, shorter), abs=1e-4)


def _without_last(found: Translation) -> Translation:
    return replace(found, source_ids=found.source_ids[:-1], source_tokens=found.source_tokens[:-1])


def test_a_word_without_a_head_is_that_of_a_projection_without_its_columns(read: Read) -> None:
    """The columns of the output projection that read a head made zero, in the model that transformers loads."""
    live, found, reference = read
    target = make_piece_target(live, found, 2, 2)
    effects = ablate_heads_for_word(live.model, target).effects
    fed, model = torch.tensor([target.input_ids]), copy.deepcopy(reference)

    def value() -> float:
        with torch.no_grad():
            logits = model(torch.tensor([target.source_ids]), decoder_input_ids=fed, use_cache=False).logits
        return float(target.value(logits[:, target.position :])[0])

    whole = value()
    for kind, names in PROJECTIONS.items():
        stack = model.get_encoder() if kind == "encoder" else model.get_decoder()
        projection = next(module for name, module in stack.named_modules() if name.endswith(names))
        kept, width = projection.weight.detach().clone(), projection.weight.shape[1] // 4
        for head in range(4):
            with torch.no_grad():
                projection.weight[:, head * width : (head + 1) * width] = 0
            assert effects.changes[kind][0, head, 0] == pytest.approx(value() - whole, abs=1e-4)
            with torch.no_grad():
                projection.weight.copy_(kept)
    assert abs(effects.changes["cross"]).max() > 1e-3


def test_patches_bring_back_what_they_carry(
    opened: Callable[[str], RunnableModel], reference: Callable[[str], Any]
) -> None:
    live = opened("t5")
    first, second = (live.translate(one, max_tokens=STEPS, capture=False) for one in (SENTENCE, OTHER))
    pair = compare_at_first_difference(live, first, second)
    encoder, decoder = (patch_stream(live, pair, stack) for stack in ("encoder", "decoder"))
    np.testing.assert_allclose(encoder.whole_row_recovered_fraction, 1, atol=1e-3)
    np.testing.assert_allclose(decoder.fraction[0], 0, atol=1e-3)  # the same prefix
    assert decoder.whole_row_recovered_fraction[-1] == pytest.approx(1, abs=1e-3)
    ids = torch.tensor([pair.target.source_ids]), torch.tensor([pair.second_ids])
    fed = torch.tensor([pair.target.input_ids])
    own = reference("t5")
    kept: list[Tensor] = []
    layer = own.get_encoder().block[0]
    hook = layer.register_forward_hook(lambda _, __, output: kept.append(_first(output).clone()))
    with torch.no_grad():
        own(ids[0], decoder_input_ids=fed, use_cache=False)
    hook.remove()

    def put(_: Any, __: Any, output: Any) -> Any:
        stream = _first(output).clone()
        stream[:, 1] = kept[0][:, 1]
        return (stream, *output[1:]) if isinstance(output, tuple) else stream

    hook = layer.register_forward_hook(put)
    with torch.no_grad():
        logits = own(ids[1], decoder_input_ids=fed, use_cache=False).logits
    hook.remove()
    value = float(pair.target.value(logits[:, pair.target.position :])[0])
    assert encoder.change[1, 1] == pytest.approx(value - pair.second_value, abs=1e-4)
    heads = patch_heads(live, pair, "cross")
    assert heads.change.shape == (2, 4)
    assert abs(heads.change).max() > 1e-3


def _first(output: Any) -> Tensor:
    found: Tensor = output[0] if isinstance(output, tuple) else output
    return found


def test_few_rows_at_once_give_the_same(
    opened: Callable[[str], RunnableModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder's network returns the logits of every token, so a large vocabulary takes more passes."""
    live = opened("t5")
    first, second = (live.translate(one, max_tokens=STEPS, capture=False) for one in (SENTENCE, OTHER))
    pair = compare_at_first_difference(live, first, second)
    whole = attribute_target(live, pair.target, "leave-one-out").scores, patch_stream(live, pair, "encoder").change
    assert live.model.rows_at_once(128, len(pair.target.input_ids)) == 128
    monkeypatch.setattr(
        "attenscope.hugging_face.networks.MAX_LOGITS", 3 * len(live.tokenizer) * len(pair.target.input_ids)
    )
    assert live.model.rows_at_once(128, len(pair.target.input_ids)) == 3
    split = attribute_target(live, pair.target, "leave-one-out").scores, patch_stream(live, pair, "encoder").change
    for one, other in zip(whole, split, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("name", ["marian", "t5", "gpt2", *SLOW, pytest.param("llama", marks=pytest.mark.slow)])
def test_what_is_handed_on_beside_the_stream_is_noticed(opened: Callable[[str], RunnableModel], name: str) -> None:
    live = opened(name)
    assert live.can("lens")
    network: Any = copy.deepcopy(live.model)
    source = torch.tensor([live.encode(SENTENCE).ids])
    target = torch.tensor([list(range(3, 11))])
    assert can_patch_all_streams(network, source, target)
    kept: list[Tensor] = []
    network.token_embedding("target").register_forward_hook(lambda *call: kept.append(call[2]))
    head = network.model.get_output_embeddings()
    head.register_forward_pre_hook(lambda _, given: (given[0] + kept[-1][:, -given[0].shape[1] :],))
    assert not can_patch_all_streams(network, source, target)
