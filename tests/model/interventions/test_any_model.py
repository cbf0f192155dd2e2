"""Heads of anybody's model changed, held to the same model with other weights in its projections."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LongformerConfig,
    LongformerModel,
)

from attenscope.capture.attention import capture_attention
from attenscope.interventions.any_model import head_effects, intervene
from attenscope.interventions.changes import InterventionError
from attenscope.trace import AttentionTrace

SIZES: dict[str, Any] = {"num_attention_heads": 4, "hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 30}
SIZES |= {"initializer_range": 0.5}  # large enough for no head to be near uniform
HEADS, WIDTH = 4, 4
IDS = torch.tensor([[5, 7, 9, 11, 13], [6, 8, 10, 12, 14]])


def bert(kernel: str) -> nn.Module:
    return BertModel(BertConfig(**SIZES, intermediate_size=32, attn_implementation=kernel)).eval()


def llama(kernel: str) -> nn.Module:
    more: dict[str, Any] = {"num_key_value_heads": 4, "intermediate_size": 32, "attn_implementation": kernel}
    return LlamaForCausalLM(LlamaConfig(**SIZES, **more)).eval()


def gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(n_head=4, n_embd=16, n_layer=2, vocab_size=30)).eval()


class Torch(nn.Module):
    """nn.TransformerEncoder, whose fused fast path never calls a function that could be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        layer = nn.TransformerEncoderLayer(16, HEADS, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.encoder(self.embed(ids))


def traced(model: nn.Module, run: Callable[[nn.Module], Any]) -> AttentionTrace:
    with torch.no_grad(), capture_attention(model) as capture:
        run(model)
    return capture.sample(0)


def rows(head: int) -> slice:
    return slice(head * WIDTH, (head + 1) * WIDTH)


def parts(model: nn.Module, path: str) -> tuple[list[tuple[Tensor, Tensor | None]], Tensor]:
    """(weight, bias) of q, k and v as (heads * d, D) and (heads * d,), and the output projection (D, heads * d)."""
    module: Any = model.get_submodule(path)
    if isinstance(module, nn.MultiheadAttention):
        found = zip(module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3), strict=True)
        return list(found), module.out_proj.weight
    if hasattr(module, "query"):
        around: Any = model.get_submodule(path.removesuffix(".self"))
        out = around.output.dense.weight
        return [(one.weight, one.bias) for one in (module.query, module.key, module.value)], out
    return [(one.weight, one.bias) for one in (module.q_proj, module.k_proj, module.v_proj)], module.o_proj.weight


@torch.no_grad()
def surgery(model: nn.Module, path: str, head: int, change: str, source: int | None) -> nn.Module:
    """The same change made to the weights: no output, no query, or the query and the key of another head."""
    other = copy.deepcopy(model)
    projections, out = parts(other, path)
    if change == "off":
        out[:, rows(head)] = 0
        return other
    changed = projections[: 1 if change == "uniform" else 2]
    for tensor in (one for pair in changed for one in pair):
        if tensor is not None:
            tensor[rows(head)] = 0 if source is None else tensor[rows(source)].clone()
    return other


CASES: dict[str, tuple[Callable[[], nn.Module], str, Callable[[nn.Module], Any]]] = {
    "BERT, eager": (lambda: bert("eager"), "encoder", lambda m: m(IDS).last_hidden_state),
    "BERT, fused": (lambda: bert("sdpa"), "encoder", lambda m: m(IDS).last_hidden_state),
    "Llama, eager": (lambda: llama("eager"), "decoder", lambda m: m(IDS).logits),
    "Llama, fused": (lambda: llama("sdpa"), "decoder", lambda m: m(IDS).logits),
    "torch": (lambda: Torch().eval(), "encoder", lambda m: m(IDS)),
}

QUICK = ("BERT, fused",)


@pytest.mark.parametrize(("change", "source"), [("off", None), ("uniform", None), ("copy", 3)])
@pytest.mark.parametrize(
    "case", [name if name in QUICK else pytest.param(name, marks=pytest.mark.sweep) for name in CASES]
)
def test_a_changed_head_is_the_model_with_other_projections(case: str, change: str, source: int | None) -> None:
    torch.manual_seed(0)
    build, kind, run = CASES[case]
    model = build()
    trace = traced(model, run)
    path = trace.maps[kind].layer_paths[1]  # type: ignore[index]
    text = f"{kind}.2.2:{change if source is None else f'head.{source + 1}'}"
    with torch.no_grad():
        unchanged = run(model)
        expected = run(surgery(model, path, 1, change, source))
        with intervene(model, text, trace):
            changed = run(model)
            with capture_attention(model) as capture:
                run(model)
        assert torch.equal(run(model), unchanged)
    assert (changed - unchanged).abs().max() > 1e-3
    torch.testing.assert_close(changed, expected, atol=2e-6, rtol=1e-5)
    seen = capture.sample(0).maps[kind].weights[1]  # type: ignore[index]
    own = trace.maps[kind].weights[1]  # type: ignore[index]
    mask = trace.maps[kind].mask  # type: ignore[index]
    there = {"off": np.zeros_like(own[1]), "uniform": mask / mask.sum(-1, keepdims=True), "copy": own[3]}
    np.testing.assert_allclose(seen[1], there[change], atol=1e-6)
    np.testing.assert_array_equal(seen[[0, 2, 3]], own[[0, 2, 3]])
    effect = capture.observer_effect
    if "differ" in effect and "at most" in effect:  # the kernel's own output is that of the weights that were recorded
        most = effect.rpartition("at most ")[2].partition(". ")[0].rstrip(".")
        assert float(most.replace("−", "-")) < 1e-5


@pytest.mark.sweep
def test_grouped_heads_are_changed_one_by_one_with_a_cache_too() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {**SIZES, "num_key_value_heads": 2, "intermediate_size": 32}
    model = LlamaForCausalLM(LlamaConfig(**sizes, attn_implementation="sdpa")).eval()
    trace = traced(model, lambda m: m(IDS))
    expected = copy.deepcopy(model)
    with torch.no_grad():
        layer: Any = expected.model.layers[1]
        layer.self_attn.o_proj.weight[:, rows(2)] = 0
    options: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False, "output_logits": True}
    options |= {"return_dict_in_generate": True, "pad_token_id": 0, "eos_token_id": 29}
    before = model.generate(IDS[:1], **options)
    with intervene(model, "decoder.2.3:off", trace):
        found = model.generate(IDS[:1], **options)
    wanted = expected.generate(IDS[:1], **options)
    assert torch.equal(found.sequences, wanted.sequences)
    torch.testing.assert_close(torch.stack(found.logits), torch.stack(wanted.logits), atol=2e-6, rtol=1e-5)
    assert not torch.allclose(torch.stack(found.logits), torch.stack(before.logits), atol=1e-4)


def test_layers_that_share_a_module_are_told_apart() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {**SIZES, "embedding_size": 8, "intermediate_size": 32, "num_hidden_layers": 3}
    model = AlbertModel(AlbertConfig(**sizes)).eval()
    trace = traced(model, lambda m: m(IDS))
    assert len(set(trace.maps["encoder"].layer_paths)) == 1
    with torch.no_grad(), intervene(model, "encoder.2.1:off", trace):
        for _ in range(2):  # a second run counts its layers anew
            with capture_attention(model) as capture:
                model(IDS)
            zero = (capture.sample(0).maps["encoder"].weights == 0).all(axis=(2, 3))
            assert zero.tolist() == [[False] * 4, [True, False, False, False], [False] * 4]


@pytest.mark.sweep
def test_effects_are_those_of_each_head_alone() -> None:
    torch.manual_seed(0)
    model = gpt2()
    trace = traced(model, lambda m: m(IDS))
    effects = head_effects(model, lambda: model(IDS, use_cache=False).logits, trace)["decoder"]
    assert effects.shape == (2, HEADS)
    with torch.no_grad():
        logits = model(IDS).logits
        other = copy.deepcopy(model)
        other.transformer.h[0].attn.c_proj.weight[rows(3)] = 0  # Conv1D: (in, out)
        expected = (other(IDS).logits - logits).norm() / logits.norm()
    assert effects[0, 3] == pytest.approx(float(expected), rel=1e-4)
    assert (effects > 0).all()


def test_another_thread_runs_the_model_unchanged() -> None:
    torch.manual_seed(0)
    model = bert("sdpa")
    trace = traced(model, lambda m: m(IDS))
    found: list[Tensor] = []
    with torch.no_grad():
        unchanged = model(IDS).last_hidden_state
        with intervene(model, "encoder.1.1:off", trace):
            other = threading.Thread(target=lambda: found.append(model(IDS).last_hidden_state.detach()))
            other.start()
            other.join()
            changed = model(IDS).last_hidden_state
    assert torch.equal(found[0], unchanged)
    assert not torch.allclose(changed, unchanged)


def test_gradients_pass_a_changed_head_by() -> None:
    torch.manual_seed(0)
    model = bert("sdpa")
    trace = traced(model, lambda m: m(IDS))
    with intervene(model, "encoder.2.2:off", trace):
        model(IDS).last_hidden_state.square().sum().backward()
    module: Any = model.get_submodule(trace.maps["encoder"].layer_paths[1])
    assert (module.value.weight.grad[rows(1)] == 0).all()
    assert (module.value.weight.grad[rows(0)] != 0).any()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("encoder.3.1:off", "this model has 2 layers of encoder"),
        ("cross.1.1:off", "this model has 0 layers of cross"),
        ("encoder.1.5:off", "heads 1 to 4"),
        ("encoder.1.1:head.9", "heads 1 to 4"),
        ("encoder.1.1:off, encoder.1.1:uniform", "changed twice"),
        ("mask.encoder.*.1.1:block", "of this project only"),
        ("encoder.1.1", "is no change"),
    ],
)
def test_what_cannot_be_changed_is_refused_by_name(text: str, sentence: str) -> None:
    model = bert("eager")
    trace = traced(model, lambda m: m(IDS))
    with pytest.raises(InterventionError, match=sentence), intervene(model, text, trace):
        pytest.fail("the block must not be entered")


def test_nothing_is_left_unsaid() -> None:
    model = bert("eager")
    trace = traced(model, lambda m: m(IDS))
    with pytest.raises(InterventionError, match="computed no attention"), intervene(model, "encoder.1.1:off", trace):
        pass
    with pytest.raises(InterventionError, match="run the model once"), intervene(model, "encoder.1.1:off"):
        pass
    with pytest.raises(InterventionError, match="names no module"), intervene(gpt2(), "encoder.1.1:off", trace):
        pass
    opened = intervene(model, "encoder.1.1:off", trace)
    with capture_attention(model), pytest.raises(InterventionError, match="around capture_attention"), opened:
        pass
    with pytest.raises(InterventionError, match="no tensor"):
        head_effects(model, lambda: None, trace)
    model = bert("sdpa")
    model.train()
    with pytest.raises(InterventionError, match=r"call model.eval\(\)"), intervene(model, "encoder.1.1:off", trace):
        model(IDS)


def test_blocks_are_refused() -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {**SIZES, "attention_window": [4, 4], "intermediate_size": 32, "pad_token_id": 0}
    model = LongformerModel(LongformerConfig(**sizes, max_position_embeddings=40)).eval()
    ids = torch.randint(1, 30, (1, 16))
    trace = traced(model, lambda m: m(ids))
    with (
        torch.no_grad(),
        pytest.raises(InterventionError, match="cannot be told apart"),
        intervene(model, "encoder.1.1:off", trace),
    ):
        model(ids)


def test_a_model_of_this_project_needs_no_trace(tiny_model: nn.Module) -> None:
    source, target = torch.tensor([[4, 5, 6, 2]]), torch.tensor([[1, 7, 8]])
    with torch.no_grad():
        unchanged = tiny_model(source, target)
        with intervene(tiny_model, "cross.1.1:off"):
            assert not torch.equal(tiny_model(source, target), unchanged)
        assert torch.equal(tiny_model(source, target), unchanged)
