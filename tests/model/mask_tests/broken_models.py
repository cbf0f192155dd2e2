"""Models whose attention is right, and in which something else lets the future, padding or other samples in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

T, D, BATCH = 7, 12, 3
IDS = torch.tensor([[5, 9, 14, 3, 8, 21, 30], [7, 2, 41, 6, 11, 9, 4], [13, 35, 6, 28, 2, 17, 10]])
KEEP = torch.arange(T) < torch.tensor([[7], [5], [6]])
Assertion = Literal["future", "padding", "batch"]


class Attention(nn.Module):
    """Causal attention of two heads over real keys."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        allowed = keep[:, None, None] & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        scores = (q @ k.mT).masked_fill(~allowed, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and what else stands in a layer: ``mixer(x, keep, ids)``, right or broken."""

    def __init__(self, mixer: nn.Module | None = None) -> None:
        super().__init__()
        self.norm, self.attention, self.mixer = nn.LayerNorm(D), Attention(), mixer

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        x = x + self.attention(self.norm(x), keep)
        return x if self.mixer is None else x + self.mixer(x, keep, ids)


class Model(nn.Module):
    """Three layers, of which the second has the broken part, if there is one."""

    def __init__(self, mixer: Callable[[], nn.Module] | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(50, D)
        self.layers = nn.ModuleList([Block(), Block(mixer() if mixer else None), Block()])
        self.head = nn.Linear(D, 50)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, ids != 0, ids)
        return self.head(x)


class Apply(nn.Module):
    """A module of torch over positions, features last or first, and nothing else."""

    def __init__(self, inner: nn.Module, features_first: bool = False) -> None:
        super().__init__()
        self.inner, self.features_first = inner, features_first

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        found = self.inner(x.mT if self.features_first else x)
        found = found[0] if isinstance(found, tuple) else found
        return found.mT if self.features_first else found


class Own(nn.Module):
    """A function of (x, keep, ids) with a linear layer after it."""

    def __init__(self, function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function, self.after = function, nn.Linear(D, D)

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        return self.after(self.function(x, keep, ids))


class NormOverTime(nn.Module):
    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)


class Gate(nn.Module):
    """Squeeze and excite: a gate from the mean over all positions."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze = nn.Linear(D, D)

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        return x * self.squeeze(x.mean(1)).sigmoid()[:, None]


class LookAhead(nn.Module):
    """A gate from the next position."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(D, D)

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        return x * self.gate(x.roll(-1, 1)).sigmoid()


class Capacity(nn.Module):
    """An expert that takes the first so many tokens of the whole batch that ask for it."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.expert = nn.Linear(D, 1), nn.Linear(D, D)

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        asks = self.router(flat)[:, 0] > 0
        served = asks & (asks.cumsum(0) <= 4)
        found = torch.zeros_like(flat)
        found[served] = self.expert(flat[served])
        return found.view_as(x)


class ExpertChoice(nn.Module):
    """An expert that chooses the tokens that it wants most, of each sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.expert = nn.Linear(D, 1), nn.Linear(D, D)

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        wants = self.router(x)[..., 0]
        chosen = wants >= wants.topk(3, -1).values[:, -1:]
        return torch.where(chosen[..., None], self.expert(x), torch.zeros_like(x))


class MixOverTime(nn.Module):
    """The linear map over positions of an MLP-Mixer."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(16, 16))

    def forward(self, x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
        return self.tokens[: x.shape[1], : x.shape[1]] @ x


def next_id(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x * (1 + torch.cat([ids[:, 1:], ids[:, -1:]], 1)[..., None] % 2)


def count_of_ids(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x * (1 + (ids > 20).sum(-1)[:, None, None])


def reversed_sum(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x.flip(1).cumsum(1).flip(1)


def fourier(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return torch.fft.fft(x, dim=1).real


def last_state(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x + x[:, -1:]


def over_samples(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x - x.mean(0)


def largest_of_batch(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x / x.abs().amax()


def batch_size(x: Tensor, keep: Tensor, ids: Tensor) -> Tensor:
    return x / len(x)


def wide(kernel: int, dilation: int = 1, groups: int = 1) -> nn.Module:
    return nn.Conv1d(D, D, kernel, padding="same", dilation=dilation, groups=groups)


@dataclass(frozen=True)
class Broken:
    """A part that stands in the second layer, and what is to be said of it."""

    name: str
    mixer: Callable[[], nn.Module]
    asserted: Assertion
    """Which assertion it fails."""
    path: str
    """The module below the layer's mixer that is to be named; empty for the mixer itself."""


BROKEN = (
    Broken("convolution padded at both ends", lambda: Apply(wide(3), True), "future", "inner"),
    Broken("dilated convolution", lambda: Apply(wide(3, dilation=2), True), "future", "inner"),
    Broken("depthwise convolution", lambda: Apply(wide(5, groups=D), True), "future", "inner"),
    Broken("convolution that reads padding", lambda: Apply(wide(3), True), "padding", "inner"),
    Broken("average pooling", lambda: Apply(nn.AvgPool1d(3, 1, 1), True), "future", "inner"),
    Broken("norm over time", NormOverTime, "future", ""),
    Broken("norm over time that reads padding", NormOverTime, "padding", ""),
    Broken("InstanceNorm1d", lambda: Apply(nn.InstanceNorm1d(D), True), "future", "inner"),
    Broken("GroupNorm", lambda: Apply(nn.GroupNorm(2, D), True), "future", "inner"),
    Broken("BatchNorm1d", lambda: Apply(nn.BatchNorm1d(D, track_running_stats=False), True), "batch", "inner"),
    Broken("squeeze and excite", Gate, "future", ""),
    Broken("squeeze and excite of padding", Gate, "padding", ""),
    Broken("gate from the next position", LookAhead, "future", ""),
    Broken("next id", lambda: Own(next_id), "future", ""),
    Broken("count of ids", lambda: Own(count_of_ids), "future", ""),
    Broken("capacity of the batch", Capacity, "batch", ""),
    Broken("expert's choice", ExpertChoice, "future", ""),
    Broken(
        "recurrence both ways",
        lambda: Apply(nn.GRU(D, D // 2, batch_first=True, bidirectional=True)),
        "future",
        "inner",
    ),
    Broken("sum from the end", lambda: Own(reversed_sum), "future", ""),
    Broken("Fourier mixing", lambda: Own(fourier), "future", ""),
    Broken("last state", lambda: Own(last_state), "padding", ""),
    Broken("mixing over positions", MixOverTime, "future", ""),
    Broken("mean over samples", lambda: Own(over_samples), "batch", ""),
    Broken("largest of the batch", lambda: Own(largest_of_batch), "batch", ""),
    Broken("size of the batch", lambda: Own(batch_size), "batch", ""),
)
