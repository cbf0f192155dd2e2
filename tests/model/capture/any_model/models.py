"""Models as strangers write them, to be recorded."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The free function of many notebooks: 0 blocks, filled with -1e9."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    return torch.matmul(weights, value), weights


class MultiHeadedAttention(nn.Module):
    """Annotated-Transformer style; keeps its last weights, to compare with."""

    def __init__(self, h: int = 2, d_model: int = 8) -> None:
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(4)])
        self.kept: Tensor | None = None

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (
            linear(x).view(x.size(0), -1, self.h, self.d_k).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        )
        x, self.kept = attention(q, k, v, mask if mask is None else mask.unsqueeze(1))
        return self.linears[-1](x.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, crossing: bool) -> None:
        super().__init__()
        self.self_attn = MultiHeadedAttention()
        self.src_attn = MultiHeadedAttention() if crossing else None

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, source: Tensor | None = None) -> Tensor:
        x = x + self.self_attn(x, x, x, mask)
        if self.src_attn is not None:
            x = x + self.src_attn(x, memory, memory, source)
        return x


class AttentionSeq2Seq(nn.Module):
    """Encoder and decoder by hand, whose own forward ends in a softmax that is no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.encoder = nn.ModuleList([Layer(False), Layer(False)])
        self.decoder = nn.ModuleList([Layer(True), Layer(True)])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        keep = (source != 0)[:, None, :]
        causal = torch.ones(target.shape[1], target.shape[1]).tril()[None]
        x, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            x = layer(x, keep)
        for layer in self.decoder:
            y = layer(y, causal, x, keep)
        return torch.softmax(y @ self.embed.weight.T, dim=-1)


class Head(nn.Module):
    """One head a module, as in a well-known lecture."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 12, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).split(4, -1)
        scores = (q @ k.transpose(-2, -1)) * 4**-0.5
        later = torch.ones(x.shape[1], x.shape[1]).tril() == 0
        return nn.functional.softmax(scores.masked_fill(later, -math.inf), dim=-1) @ v


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList([Head(), Head()])

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.cat([head(x) for head in self.heads], -1)


class Mixer(nn.Module):
    """Attention that nothing says is one, by exp and sum; it returns its weights."""

    def forward(self, x: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        raised = torch.exp(x @ x.transpose(-1, -2))
        weights = raised / raised.sum(-1, keepdim=True)
        return weights @ x, {"shares": weights}


class Mixers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Mixer(), Mixer()])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x, _ = block(x)
        return x


class Fused(nn.Module):
    """Calls the fused kernel with whatever it is given."""

    def __init__(self, **how: object) -> None:
        super().__init__()
        self.how = how

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, **self.how)  # type: ignore[arg-type]


def encoder(**how: object) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True, **how)  # type: ignore[arg-type]
    return nn.TransformerEncoder(layer, 3).eval()


def state(model: nn.Module) -> list[int]:
    """How many hooks each module has; and every own attribute's name."""
    counts = [len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules()]
    return counts + [len(vars(one)) for one in model.modules()]


class ByMethods(nn.Module):
    """Annotated-Transformer style: its layers are looped over in methods that are not forward."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.encoder = nn.ModuleList([Layer(False) for _ in range(3)])
        self.decoder = nn.ModuleList([Layer(True), Layer(True)])

    def encode(self, source: Tensor) -> Tensor:
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, torch.ones(1, 1, 1))
        return x

    def decode(self, target: Tensor, memory: Tensor) -> Tensor:
        y = self.embed(target)
        for layer in self.decoder:
            y = layer(y, torch.ones(y.shape[1], y.shape[1]).tril()[None], memory, torch.ones(1, 1, 1))
        return y

    def greedy(self, source: Tensor, steps: int) -> Tensor:
        memory, target = self.encode(source), torch.ones(1, 1, dtype=torch.long)
        for _ in range(steps):
            target = torch.cat([target, self.decode(target, memory)[:, -1:].sum(-1).long() % 12], 1)
        return target


class OtherAxes(nn.Module):
    """Attention whose softmax need not run over the last axis."""

    def __init__(self, layout: str, axis: int, heads: int = 4) -> None:
        super().__init__()
        self.layout, self.axis, self.heads = layout, axis, heads

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        scores = torch.einsum(f"bqhd,bkhd->{self.layout}", q, k)
        return nn.functional.softmax(scores, self.axis) if self.axis < 0 else scores.softmax(dim=self.axis)


class Additive(nn.Module):
    """One query over all keys, scored by a small network; keeps the weights of all its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.kept = nn.Linear(16, 1), list[Tensor]()

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        both = torch.cat([query[:, None].expand_as(keys), keys], -1)
        self.kept.append(self.score(torch.tanh(both)).softmax(1))
        return (self.kept[-1] * keys).sum(1)


class Recurrent(nn.Module):
    """A decoder that calls its attention once a time step: in forward, or in the forward of a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.attention = nn.GRUCell(8, 8), Additive()

    def forward(self, keys: Tensor, steps: int) -> Tensor:
        return self.greedy(keys, steps)

    def greedy(self, keys: Tensor, steps: int) -> Tensor:
        state = keys[:, 0]
        for _ in range(steps):
            state = self.cell(self.attention(state, keys), state)
        return state


class RecurrentFused(nn.Module):
    """The same by torch's own attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, keys: Tensor, steps: int) -> Tensor:
        state = keys[:, :1]
        for _ in range(steps):
            state = state + self.attn(state, keys, keys, need_weights=False)[0]
        return state
