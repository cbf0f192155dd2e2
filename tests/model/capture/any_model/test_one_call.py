"""What one call of a module computes is one attention: heads beside each other, and columns that are no tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.trace import TraceError
from tests.model.capture.any_model.test_hugging_face import SIZES, built

GROUPED = {**SIZES, "num_key_value_heads": 2}
TOKENS = torch.arange(5, 12)[None]


def made(name: str, config: str, **sizes: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()


@torch.no_grad()
def test_one_attention_over_two_halves_of_the_values_is_one_layer() -> None:
    model = made("DiffLlamaForCausalLM", "DiffLlamaConfig", **GROUPED)
    with capture_attention(model, ["v"]) as capture:
        model(TOKENS)
    model.set_attn_implementation("eager")
    weights = torch.stack(model(TOKENS, output_attentions=True).attentions)[:, 0]
    one = capture.trace.decoder
    assert one is not None
    np.testing.assert_allclose(one.weights, weights, atol=1e-6)


class Differential(nn.Module):
    """Two attentions of their own queries and keys in one call, as of the Differential Transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.qk, self.kept = 2, nn.Linear(8, 32), list[Tensor]()

    def forward(self, x: Tensor) -> Tensor:
        q1, k1, q2, k2 = (one.unflatten(-1, (2, 4)).transpose(1, 2) for one in self.qk(x).chunk(4, -1))
        self.kept = [(q1 @ k1.mT).softmax(-1), (q2 @ k2.mT).softmax(-1)]
        return (self.kept[0] - self.kept[1]).sum(1) @ x


@torch.no_grad()
def test_two_attentions_of_one_call_are_heads_beside_each_other() -> None:
    model = nn.ModuleDict({"attention": (module := Differential())})
    with capture_attention(model) as capture:
        for _ in range(2):  # two layers that share their weights
            module(torch.randn(1, 5, 8))
    one = capture.trace.maps.popitem()[1]
    assert one.weights.shape == (1, 4, 5, 5)
    np.testing.assert_array_equal(one.weights[0], torch.cat(module.kept, 1)[0])


class Chunked(Differential):
    """The same queries and keys, a few queries at a time to save memory."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, *_ = (one.unflatten(-1, (2, 4)).transpose(1, 2) for one in self.qk(x).chunk(4, -1))
        return torch.cat([(part @ k.mT).softmax(-1) for part in q.split(2, 2)], 2).sum(1)


def test_some_queries_at_a_time_are_no_heads() -> None:
    module = Chunked()
    with torch.no_grad(), capture_attention(nn.ModuleDict({"attention": module})) as capture:
        module(torch.randn(1, 6, 8))
    with pytest.raises(TraceError, match=r"several attentions in one call, of \(1, 2, 2, 6\) and \(1, 2, 2, 6\)"):
        _ = capture.trace


@pytest.mark.parametrize("generating", [False, True])
@torch.no_grad()
def test_a_learned_sink_is_a_column_with_a_name(generating: bool) -> None:
    how = {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1, "eos_token_id": None}
    model = made("GptOssForCausalLM", "GptOssConfig", **GROUPED, **how, layer_types=["full_attention"] * 2)
    names = [f" t{number}" for number in range(7)]
    tokens = TOKENS
    with capture_attention(model, tokens=names) as capture:
        if generating:
            tokens = model.generate(TOKENS[:, :4], max_new_tokens=4, do_sample=False, pad_token_id=0)[:, :-1]
        else:
            model(TOKENS)
    one = capture.trace.decoder
    assert one is not None
    assert one.key_tokens == (*names, "sink")
    assert one.query_tokens == tuple(names)
    np.testing.assert_allclose(one.weights.sum(-1), 1, atol=1e-6)
    weights = torch.stack(model(tokens, output_attentions=True).attentions)[:, 0]
    np.testing.assert_allclose(one.weights[..., :-1], weights, atol=1e-5)
    np.testing.assert_array_equal(one.mask, np.concatenate([np.tri(7, dtype=bool), np.ones((7, 1), bool)], 1))


@torch.no_grad()
def test_a_sink_is_no_later_key() -> None:
    """A decoder without a head of its own is told by its mask, to which the column of a sink does not belong."""
    how = {"head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1}
    model = made("GptOssModel", "GptOssConfig", **GROUPED, **how)
    with capture_attention(model) as capture:
        model(TOKENS)
    assert set(capture.trace.maps) == {"decoder"}


def test_columns_that_torch_adds_have_names() -> None:
    model = nn.MultiheadAttention(16, 4, batch_first=True, add_bias_kv=True, add_zero_attn=True).eval()
    x = torch.randn(1, 3, 16)
    with capture_attention(model, tokens=["a", "b", "c"]) as capture:
        model(x, x, x, need_weights=False)
    assert capture.trace.maps.popitem()[1].key_tokens == ("a", "b", "c", "bias", "zero")
    capture.tokens = ["a", "b", "c", "d"]
    with pytest.raises(TraceError, match="has 3 rows, but 4 tokens"):
        _ = capture.trace


@torch.no_grad()
def test_autocast_does_not_round_what_is_computed_beside_the_kernel() -> None:
    pytest.importorskip("transformers")
    model = built("BertModel", "sdpa")
    for parameter in model.parameters():
        parameter.data *= 4
    with torch.autocast("cpu", dtype=torch.bfloat16), capture_attention(model, ["q", "k", "scores"]) as capture:
        model(TOKENS)
    one = capture.trace.encoder
    assert one is not None
    scores = one.tensors["q"] @ one.tensors["k"].swapaxes(2, 3) / 8**0.5
    np.testing.assert_allclose(one.tensors["scores"], scores, atol=1e-5)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(one.weights, raised / raised.sum(-1, keepdims=True), atol=1e-6)
