"""Gradients of attention weights, held to those that transformers' own weights and torch give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration, LlamaConfig, LlamaForCausalLM

from attenscope.capture.attention import capture_attention
from attenscope.trace import AttentionTrace, TraceError

IDS, TARGET = torch.tensor([[5, 7, 9, 11, 13], [6, 8, 10, 12, 14]]), torch.tensor([[2, 4, 6], [2, 3, 5]])
SIZES: dict[str, Any] = {"vocab_size": 30, "initializer_range": 0.5, "init_std": 0.5}


def llama(kernel: str) -> nn.Module:
    more: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 16}
    more |= {"num_hidden_layers": 2, "intermediate_size": 32, "attn_implementation": kernel}
    return LlamaForCausalLM(LlamaConfig(**SIZES, **more)).eval()


def bart(kernel: str) -> nn.Module:
    more: dict[str, Any] = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "pad_token_id": 0}
    more |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "attn_implementation": kernel}
    more |= {"encoder_ffn_dim": 32, "decoder_ffn_dim": 32}
    return BartForConditionalGeneration(BartConfig(**SIZES, **more)).eval()


def number(output: Any) -> Tensor:
    """A logit that depends on everything, and on the second sentence too."""
    return output.logits[:, -1].square().sum()


RUNS: dict[str, tuple[Callable[[str], nn.Module], Callable[..., Any], dict[str, str]]] = {
    "Llama": (llama, lambda model, **more: model(IDS, use_cache=False, **more), {"decoder": "attentions"}),
    "BART": (
        bart,
        lambda model, **more: model(IDS, decoder_input_ids=TARGET, use_cache=False, **more),
        {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"},
    ),
}

LONGER = (("Llama", "eager"), ("BART", "eager"), ("BART", "sdpa"))


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("Llama", "sdpa"), *(pytest.param(*case, marks=pytest.mark.sweep) for case in LONGER)],
)
def test_gradients_are_those_of_the_weights_that_a_model_returns(name: str, kernel: str) -> None:
    build, run, fields = RUNS[name]
    torch.manual_seed(0)
    reference = build("eager")
    output = run(reference, output_attentions=True)
    returned = {kind: list(output[field]) for kind, field in fields.items()}
    expected = {kind: torch.autograd.grad(number(output), found, retain_graph=True) for kind, found in returned.items()}
    torch.manual_seed(0)
    model = build(kernel)
    with capture_attention(model, detach=False) as capture:
        target = number(run(model))
    torch.testing.assert_close(target, number(output), rtol=1e-5, atol=1e-5)
    for index in (0, 1):
        gradients, trace = capture.gradients(target, index), capture.sample(index)
        for kind, layers in expected.items():
            found = gradients.maps[kind].weights  # type: ignore[index]
            wanted = np.stack([one[index].numpy() for one in layers])
            np.testing.assert_allclose(found, wanted, atol=1e-4 * max(1.0, float(abs(wanted).max())))
            assert abs(found).max() > 1e-3
            weights = np.stack([one[index].detach().numpy() for one in returned[kind]])
            np.testing.assert_allclose(trace.maps[kind].weights, weights, atol=1e-6)  # type: ignore[index]
    assert ("weights times values were computed in its place" in capture.observer_effect) == (kernel == "sdpa")


def test_a_model_of_this_project_has_the_gradients_of_a_changed_weight(tiny_model: nn.Module) -> None:
    """Against a finite difference: one weight of the cross-attention moved by a hook."""
    model = tiny_model.double()
    source, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 7, 8]])
    with capture_attention(model, detach=False) as capture:
        value = model(source, target)[0, -1, 3]
    gradient = capture.gradients(value)
    point = next(module for name, module in model.named_modules() if "cross" in name and name.endswith(".weights"))
    moved = []
    for step in (1e-6, -1e-6):

        def move(_module: nn.Module, _given: Any, weights: Tensor, step: float = step) -> Tensor:
            weights = weights.clone()
            weights[0, 1, 2, 0] += step
            return weights

        hook = point.register_forward_hook(move)
        with torch.no_grad(), capture_attention(model):
            moved.append(float(model(source, target)[0, -1, 3]))
        hook.remove()
    model.float()
    assert gradient.cross is not None
    assert gradient.cross.weights[0, 1, 2, 0] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-4)
    assert isinstance(gradient, AttentionTrace)


def test_without_a_graph_there_are_no_gradients() -> None:
    model = llama("sdpa")
    with capture_attention(model) as capture:
        target = number(model(IDS))
    with pytest.raises(TraceError, match="capture with detach=False"):
        capture.gradients(target)
    with torch.no_grad(), capture_attention(model, detach=False) as capture:
        target = number(model(IDS))
    with pytest.raises(TraceError, match=r"without torch.no_grad\(\)"):
        capture.gradients(target)
    with capture_attention(model, detach=False) as capture:
        logits = model(IDS).logits
    with pytest.raises(TraceError, match="give a number"):
        capture.gradients(logits)


def test_weights_that_are_dropped_are_refused() -> None:
    model: Any = bart("sdpa").train()
    model.config.attention_dropout = 0.1
    for module in model.modules():
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.1
    with pytest.raises(TraceError, match=r"call model.eval\(\)"), capture_attention(model, detach=False):
        model(IDS, decoder_input_ids=TARGET)
