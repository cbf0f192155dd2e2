"""Cross-attention is told by where the keys come from, whatever the modules are called and however long the texts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.trace import TraceError

X, MEMORY = (torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1))
TURN = torch.linspace(0, 1, 5)[:, None]


class Attend(nn.Module):
    """The product alone, given queries and keys, by either kernel."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.fused = fused

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.fused:
            return nn.functional.scaled_dot_product_attention(q, k, v)
        scores = torch.einsum("bhid,bhjd->bhij", q, k)
        scores += torch.zeros(1, 4, 1, 1)  # a bias, added in place
        return scores.softmax(dim=-1) @ v


class Attention(nn.Module):
    """As of x-transformers: `context` is what the keys are made of, if given."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.heads = 4
        self.norm, self.to_q, self.to_k, self.attend = (
            nn.LayerNorm(16),
            *(nn.Linear(16, 16) for _ in "qk"),
            Attend(fused),
        )
        self.cached: Tensor | None = None

    def forward(self, x: Tensor, context: Tensor | None = None, turn: Tensor = TURN, cache: bool = False) -> Tensor:
        x = self.norm(x)
        context = x if context is None else context
        q, k = (one.unflatten(-1, (4, 4)).transpose(1, 2) for one in (self.to_q(x), self.to_k(context)))
        k = self.cached if cache and self.cached is not None else k
        self.cached = k
        q, k = (one * turn[: one.shape[2]].cos() for one in (q, k))  # positions that both sides share
        return self.attend(q, k, k).transpose(1, 2).flatten(2)


class Stack(nn.Module):
    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Attention(fused) for _ in range(4)])

    def forward(self, x: Tensor, memory: Tensor, cache: bool = False) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = x + (layer(x, memory, cache=cache) if number % 2 else layer(x))
        return x


def layers(model: nn.Module, run: Callable[[], object]) -> dict[str, int]:
    with torch.no_grad(), capture_attention(model) as capture:
        run()
    return {kind: one.layers for kind, one in capture.sample(1).maps.items()}


@pytest.mark.parametrize("fused", [True, False])
def test_names_need_not_say_it_and_lengths_may_be_equal(fused: bool) -> None:
    model = Stack(fused)
    assert layers(model, lambda: model(X, MEMORY)) == {"encoder": 2, "cross": 2}
    with torch.no_grad(), capture_attention(model) as capture:
        model(X, MEMORY)
    cross = model.layers[3]
    assert isinstance(cross, Attention)
    inputs: list[Tensor] = []
    cross.norm.register_forward_hook(lambda module, given, output: inputs.append(output))
    model(X, MEMORY)
    q, k = (one.unflatten(-1, (4, 4)).transpose(1, 2) for one in (cross.to_q(inputs[0]), cross.to_k(MEMORY)))
    scores = (q * TURN.cos()) @ (k * TURN.cos()).mT / (2 if fused else 1)
    one = capture.sample(1).cross
    assert one is not None
    np.testing.assert_allclose(one.weights[1], scores.softmax(-1)[1].detach(), atol=1e-6)


@pytest.mark.parametrize("fused", [True, False])
def test_keys_out_of_a_cache_are_those_of_the_memory(fused: bool) -> None:
    model = Stack(fused)
    model(X, MEMORY)
    assert layers(model, lambda: model(X, MEMORY, cache=True)) == {"encoder": 2, "cross": 2}


@pytest.mark.parametrize("fused", [True, False])
def test_two_sums_of_one_sequence_and_its_positions_are_self_attention(fused: bool) -> None:
    """As in DETR: queries and keys are made of x and positions, added twice."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn = nn.MultiheadAttention(16, 4, batch_first=True) if fused else Attention(False)

        def forward(self, x: Tensor, positions: Tensor, memory: Tensor | None = None) -> Tensor:
            query, key = x + positions, (x if memory is None else memory) + positions
            return x + (self.attn(query, key, key)[0] if fused else self.attn(query, key))

    model = Layer().eval()
    assert set(layers(model, lambda: model(X, MEMORY))) == {"encoder"}
    assert set(layers(model, lambda: model(X, TURN.expand(2, 5, 16), MEMORY))) == {"cross"}


def test_learned_queries_pool_what_they_are_given() -> None:
    class Pool(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.latents, self.attention = nn.Parameter(torch.randn(5, 16)), Attention(True)

        def forward(self, x: Tensor) -> Tensor:
            return self.attention(self.latents.expand(2, -1, -1), x)

    model = Pool()
    assert layers(model, lambda: model(X)) == {"cross": 1}


@pytest.mark.parametrize("torchs", [True, False])
def test_learned_queries_that_attend_to_each_other_are_self_attention(torchs: bool) -> None:
    class Latents(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.latents, self.turn = nn.Parameter(torch.randn(5, 16)), nn.Parameter(TURN)
            self.attention = nn.MultiheadAttention(16, 4, batch_first=True) if torchs else Attention(True)

        def forward(self, x: Tensor) -> Tensor:
            own = self.latents.expand(2, -1, -1)
            return x + (self.attention(own, own, own)[0] if torchs else self.attention(own, turn=self.turn))

    model = Latents().eval()
    assert layers(model, lambda: model(X)) == {"encoder": 1}


@pytest.mark.parametrize("name", ["multihead_attn", "encoder_attn", "encoder_decoder_attn", "cross_attn"])
def test_self_attention_is_no_cross_attention_whatever_its_name(name: str) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module(name, nn.MultiheadAttention(16, 2, batch_first=True))

        def forward(self, x: Tensor) -> Tensor:
            later = torch.ones(5, 5, dtype=torch.bool).triu(1)
            return x + self.get_submodule(name)(x, x, x, attn_mask=later)[0]

    model = nn.Sequential(Block(), Block()).eval()
    assert layers(model, lambda: model(X)) == {"decoder": 2}


@pytest.mark.parametrize("name", ["encoder_decoder", "enc_dec", "cross_encoder"])
@pytest.mark.parametrize("length", [4, 5])
def test_what_a_network_is_called_is_no_kind_of_its_layers(name: str, length: int) -> None:
    model = nn.ModuleDict({name: nn.Transformer(16, 2, 2, 3, 32, batch_first=True)}).eval()
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    assert layers(model, lambda: model[name](X, MEMORY[:, :length], tgt_mask=later)) == {
        "encoder": 2,
        "decoder": 3,
        "cross": 3,
    }


def test_a_stack_called_cross_encoder_has_self_attention() -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = nn.ModuleDict({"cross_encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)}).eval()
    assert layers(model, lambda: model["cross_encoder"](X)) == {"encoder": 2}


def test_a_name_decides_where_queries_and_keys_come_from_one_sequence_by_two_ways() -> None:
    """A decoder whose memory is its own input, and attention of a sequence to what an encoder made of it."""
    layer = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True)
    decoder, later = nn.TransformerDecoder(layer, 2).eval(), torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert layers(decoder, lambda: decoder(X, X, tgt_mask=later)) == {"decoder": 2, "cross": 2}

    class Reread(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.read = nn.Linear(16, 16)
            self.cross_attn = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            memory = self.read(x)
            return self.cross_attn(x, memory, memory)[0]

    model = Reread().eval()
    assert layers(model, lambda: model(X)) == {"cross": 1}


@pytest.mark.parametrize("extra", [{}, {"attn_flash": True}, {"rotary_pos_emb": True}], ids=str)
def test_a_decoder_of_x_transformers(extra: dict[str, bool]) -> None:
    package = pytest.importorskip("x_transformers")
    decoder = package.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, cross_attend=True, **extra)
    model = package.TransformerWrapper(num_tokens=50, max_seq_len=8, attn_layers=decoder).eval()
    run = {"context": torch.randn(2, 7, 32)}
    assert layers(model, lambda: model(torch.arange(14).reshape(2, 7), **run)) == {"decoder": 2, "cross": 2}


class LinearAttention(nn.Module):
    """A softmax of the queries over their features, and one of the keys over tokens; or scores of both beside it."""

    def __init__(self, scores: bool) -> None:
        super().__init__()
        self.heads, self.to_qkv, self.scores = 4, nn.Linear(16, 48), scores
        self.kept = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (4, 4)).transpose(1, 2) for one in self.to_qkv(x).chunk(3, -1))
        queries, keys = q.softmax(dim=-1), k.softmax(dim=-2)
        if self.scores:
            self.kept = (q @ k.mT).softmax(dim=-1)
        return queries @ (keys.mT @ v)


@pytest.mark.parametrize("scores", [False, True])
@torch.no_grad()
def test_a_softmax_of_queries_or_keys_alone_is_no_attention(scores: bool) -> None:
    model = nn.Sequential(LinearAttention(scores), nn.Identity())
    with capture_attention(model) as capture:
        model(X)
    reason = "one projection alone, as in linear attention: no product of queries and keys"
    assert reason in capture.observer_effect
    if not scores:
        with pytest.raises(TraceError, match=reason):
            capture.sample(0)
        return
    assert isinstance(model[0], LinearAttention)
    one = capture.sample(1).encoder
    assert one is not None
    np.testing.assert_array_equal(one.weights[0], model[0].kept[1])
