"""Attention over blocks and windows: laid out as queries x keys, it is what the model computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.trace import AttentionMap, AttentionTrace
from tests.model.capture.any_model.test_hugging_face import SIZES, TWO

transformers = pytest.importorskip("transformers")
TOKENS = torch.randint(3, 50, (2, 11), generator=torch.Generator().manual_seed(0))
TARGET = TOKENS[:, :3]
KEEP = torch.ones_like(TOKENS)
KEEP[1, 8:] = 0


def built(name: str, config: str, **sizes: Any) -> Any:
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**sizes)).eval()
    for parameter in model.parameters():
        parameter.data *= 4  # or random weights are nearly uniform
    return model


@torch.no_grad()
def traces(model: nn.Module, **inputs: Tensor) -> list[AttentionTrace]:
    with capture_attention(model) as capture:
        model(**inputs)
    assert "Not recorded" not in capture.observer_effect
    return [capture.sample(number) for number in range(len(inputs["input_ids"]))]


def from_band(bands: Tensor, length: int, first: Tensor) -> np.ndarray:
    """(L, c) of one head, by hand: `first` are the keys of the first columns, the others lie around the query."""
    dense, width = np.zeros((length, length)), bands.shape[1] - len(first)
    for query in range(length):
        for column, key in enumerate(first):
            dense[query, key] += bands[query, column]
        for column in range(width):
            key = query - width // 2 + column
            if 0 <= key < length:
                dense[query, key] += bands[query, len(first) + column]
    return dense


@torch.no_grad()
@pytest.mark.parametrize("some", [[], [[0], [0, 5]]], ids=["local", "global"])
@pytest.mark.parametrize("name", ["Longformer", "LED"])
def test_a_band_with_global_tokens(name: str, some: list[list[int]]) -> None:
    if name == "LED":
        model = built("LEDModel", "LEDConfig", **TWO, attention_window=4)
    else:
        sizes = {**SIZES, "attention_window": 4, "max_position_embeddings": 64, "pad_token_id": 1}
        model = built("LongformerModel", "LongformerConfig", **sizes)
    inputs = {"input_ids": TOKENS, "attention_mask": KEEP}
    inputs |= {"decoder_input_ids": TARGET} if name == "LED" else {}
    if some:
        whole = torch.zeros_like(TOKENS)
        for sample, keys in enumerate(some):
            whole[sample, keys] = 1
        inputs["global_attention_mask"] = whole
    out = model(**inputs, output_attentions=True)
    local = out["encoder_attentions" if name == "LED" else "attentions"]
    globals_ = out["encoder_global_attentions" if name == "LED" else "global_attentions"] if some else ()
    for sample, trace in enumerate(traces(model, **inputs)):
        one = trace.encoder
        assert one is not None
        assert one.weights.shape == (2, 4, 11, 11)
        real = int(KEEP[sample].sum())
        np.testing.assert_allclose(one.weights[:, :, :real].sum(-1), 1, atol=1e-5)
        assert one.mask[:, real:].sum() == 0
        for layer in range(2):
            for head in range(4):
                first = some[sample] if some else []
                band = local[layer][sample, head]
                unused = max(map(len, some), default=0) - len(first)
                band = torch.cat([band[:, : len(first)], band[:, len(first) + unused :]], 1)
                dense = from_band(band, 11, torch.tensor(first, dtype=torch.long))
                for row, query in enumerate(first):
                    dense[query] = globals_[layer][sample, head, :11, row]
                np.testing.assert_allclose(one.weights[layer, head], dense, atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["local", "transient-global"])
def test_blocks_with_their_neighbours_and_summaries(kind: str) -> None:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4}
    how = {"local_radius": 3, "global_block_size": 4, "encoder_attention_type": kind}
    model = built("LongT5Model", "LongT5Config", vocab_size=50, decoder_start_token_id=0, **sizes, **how)
    inputs = {"input_ids": TOKENS, "attention_mask": KEEP, "decoder_input_ids": TARGET}
    blocks = model(**inputs, output_attentions=True).encoder_attentions
    summaries = 0 if kind == "local" else 11 // 4
    for sample, trace in enumerate(traces(model, **inputs)):
        one = trace.encoder
        assert one is not None
        assert one.key_tokens[11:] == tuple(f"summary {number + 1}" for number in range(summaries))
        real = int(KEEP[sample].sum())  # a row of padding alone is uniform, also over keys that there are not
        np.testing.assert_allclose(one.weights[:, :, :real].sum(-1), 1, atol=1e-5)
        for layer in range(2):
            dense = np.zeros((4, 11, 11 + summaries))
            for query in range(11):
                block, row = divmod(query, 4)
                for column, weights in enumerate(blocks[layer][sample, block, :, row].T):
                    key = (block - 1) * 4 + column if column < 12 else 11 + column - 12
                    if column >= 12 or 0 <= key < 11:
                        dense[:, query, key] = weights
            np.testing.assert_allclose(one.weights[layer], dense, atol=1e-6)
        assert trace.cross is not None
        assert trace.cross.weights.shape == (2, 4, 3, 11)


@pytest.mark.parametrize("length", [64, 61])
def test_random_blocks_explain_what_the_module_gives(length: int) -> None:
    """Its random blocks are drawn anew at every run, so the weights are held against the output of the same run."""
    sizes = {"block_size": 8, "num_random_blocks": 1, "max_position_embeddings": 128, "attention_type": "block_sparse"}
    model = built("BigBirdModel", "BigBirdConfig", **SIZES, **sizes)
    tokens = torch.randint(3, 50, (2, length), generator=torch.Generator().manual_seed(0))
    seen: list[tuple[Tensor, Tensor]] = []
    block = model.encoder.layer[1].attention.self
    block.register_forward_hook(
        lambda module, given, output: seen.append((module.value(given[0]).unflatten(-1, (4, 8)), output[0]))
    )
    for sample, trace in enumerate(traces(model, input_ids=tokens)):
        one = trace.encoder
        assert one is not None
        assert one.weights.shape == (2, 4, length, length)
        values, output = (tensor[sample, :length] for tensor in seen[0])
        context = np.einsum("hqk,khd->qhd", one.weights[1], values.detach()).reshape(length, 32)
        np.testing.assert_allclose(context, output.reshape(-1, 32)[:length].detach(), atol=1e-5)


class LocalAttention(nn.Module):
    """As the class of this name in the package local-attention, which it stands in for."""

    def __init__(self, window: int, backward: int, forward: int) -> None:
        super().__init__()
        self.window_size, self.look_backward, self.look_forward = window, backward, forward

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        shape = q.shape
        q, k, v = (one.flatten(0, -3) for one in (q, k, v))
        padding = -q.shape[1] % self.window_size
        q, k, v = (nn.functional.pad(one, (0, 0, 0, padding)) for one in (q, k, v))
        places = torch.arange(q.shape[1]).unflatten(0, (-1, self.window_size))
        places = torch.where(places < shape[-2], places, -1)
        around = range(-self.look_backward, self.look_forward + 1)
        keys = torch.cat([self._beside(places[None, ..., None], by)[..., 0] for by in around], -1)
        q, k, v = (one.unflatten(1, (-1, self.window_size)) for one in (q, k, v))
        k, v = (torch.cat([self._beside(one, by) for by in around], 2) for one in (k, v))
        scores = torch.einsum("bhie,bhje->bhij", q, k).masked_fill(keys[:, :, None] < 0, -1e9)
        out = torch.einsum("bhij,bhje->bhie", scores.softmax(dim=-1), v).flatten(1, 2)
        return out[:, : shape[-2]].reshape(shape)

    @staticmethod
    def _beside(tensor: Tensor, by: int) -> Tensor:
        moved = tensor.roll(-by, 1)
        empty = torch.full_like(moved, -1 if not tensor.is_floating_point() else 0)
        windows = torch.arange(tensor.shape[1]) + by
        inside = (windows >= 0) & (windows < tensor.shape[1])
        return torch.where(inside[None, :, None, None], moved, empty)


class LocalHeads(nn.Module):
    def __init__(self, backward: int, forward: int) -> None:
        super().__init__()
        self.heads, self.qkv = 4, nn.Linear(32, 96)
        self.attn_fn = LocalAttention(4, backward, forward)
        self.values = self.output = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, self.values = (one.unflatten(-1, (4, 8)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        self.output = self.attn_fn(q, k, self.values)
        return self.output


@pytest.mark.parametrize(("backward", "forward"), [(1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("length", [11, 16])
def test_local_windows(length: int, backward: int, forward: int) -> None:
    """With a length of 16 there are as many windows as heads."""
    model = LocalHeads(backward, forward)
    with torch.no_grad(), capture_attention(model) as capture:
        model(torch.randn(2, length, 32))
    for sample in (0, 1):
        one: AttentionMap = capture.sample(sample).maps.popitem()[1]
        assert one.weights.shape == (1, 4, length, length)
        np.testing.assert_allclose(one.weights[0] @ model.values[sample].numpy(), model.output[sample], atol=1e-5)


@pytest.mark.parametrize("length", [12, 16])
def test_local_windows_of_the_package(length: int) -> None:
    package = pytest.importorskip("local_attention")
    model = LocalHeads(1, 0)
    model.attn_fn = package.LocalAttention(window_size=4, look_backward=1, causal=True, use_rotary_pos_emb=False)
    with torch.no_grad(), capture_attention(model) as capture:
        model(torch.randn(2, length, 32))
    one = capture.sample(1).decoder
    assert one is not None
    np.testing.assert_allclose(one.weights[0] @ model.values[1].numpy(), model.output[1], atol=1e-5)
