"""One forward pass with all that the exact decompositions need, in float64: streams, heads, weights, norms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..network.attention import MultiHeadAttention
from ..network.config import PAD_ID
from ..network.hooks import record
from ..network.layers import DecoderLayer, EncoderLayer, Residual
from ..network.masks import padding_mask
from ..network.transformer import Stack, Transformer
from ..trace import Kind

_ATTENTION = ("q", "k", "v", "scores", "weights", "context")
_EMBEDDING = ("tokens", "encoding", "stream")


@dataclass(frozen=True)
class Sublayer:
    """One sublayer of a stack: its modules, and the paths at which its tensors were recorded."""

    layer: int
    kind: Kind | None
    """None for a feed-forward network."""
    path: str
    residual: Residual
    residual_path: str


@dataclass(frozen=True, eq=False)
class Recording:
    """The tensors of one sentence's pass, by module path; what interventions changed is recorded as changed."""

    model: Transformer
    tensors: dict[str, Tensor]

    def __getitem__(self, path: str) -> Tensor:
        """Return a tensor without its batch axis, float64: streams (T, D), heads (H, T, d), weights (H, Q, K)."""
        return self.tensors[path][0].double()

    def attention(self, sublayer: Sublayer) -> MultiHeadAttention:
        """Return the attention module of a sublayer."""
        module = self.model.get_submodule(sublayer.path)
        assert isinstance(module, MultiHeadAttention)
        return module

    def projected_values(self, sublayer: Sublayer) -> Tensor:
        """Return what each head passes on of each key, (x W_V + b_V) W_O: (H, K, D)."""
        return torch.einsum("hkd,hdm->hkm", self[f"{sublayer.path}.v"], output_slices(self.attention(sublayer)))


def record_pass(model: Transformer, source_ids: Sequence[int], input_ids: Sequence[int]) -> Recording:
    """Run a sentence (S,) and decoder inputs (T,), <s> first, once, without the generator."""
    paths = [f"{side}_embedding.{name}" for side in ("source", "target") for name in _EMBEDDING]
    for stack in ("encoder", "decoder"):
        for sublayer in sublayers(model, stack):
            paths += [f"{sublayer.path}.{name}" for name in _ATTENTION] if sublayer.kind else [sublayer.path]
            paths.append(sublayer.residual_path)
        paths.append(f"{stack}.output")
    device = next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    with torch.no_grad(), record(model, *paths) as tensors:
        model.decode(inputs, model.encode(source), padding_mask(source, PAD_ID))
    return Recording(model, tensors)


def sublayers(model: Transformer, stack: str) -> list[Sublayer]:
    """Return the sublayers of ``encoder`` or ``decoder`` in the order in which they run."""
    layers = model.get_submodule(stack)
    assert isinstance(layers, Stack)
    found = []
    for index, layer in enumerate(layers.layers):
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        kinds: dict[str, Kind | None] = {"self_attention": "encoder" if stack == "encoder" else "decoder"}
        if isinstance(layer, DecoderLayer):
            kinds["cross_attention"] = "cross"
        for name, kind in (kinds | {"feed_forward": None}).items():
            path, after = f"{stack}.layers.{index}", f"after_{name}"
            residual = layer.get_submodule(after)
            assert isinstance(residual, Residual)
            found.append(Sublayer(index, kind, f"{path}.{name}", residual, f"{path}.{after}.stream"))
    return found


def output_slices(attention: MultiHeadAttention) -> Tensor:
    """Return every head's slice of W_O (H, d, D), float64: context of a head @ slice is what it adds."""
    weight = attention.out_proj.weight.detach().double()
    return weight.T.reshape(attention.heads, -1, len(weight))


class HeldNorm:
    """A layer norm with its scale held at one input, which makes it linear: gain * (x - mean(x)) / scale (+ bias)."""

    def __init__(self, norm: nn.Module, x: Tensor) -> None:
        """`norm` of any form of this project, or nn.Identity; x (T, D) float64 is the input that sets the scale."""
        self.identity = isinstance(norm, nn.Identity)
        if self.identity:
            self.bias = x.new_zeros(x.shape[-1])
            return
        self.gain, self.bias = (norm.get_parameter(name).detach().double() for name in ("weight", "bias"))
        if isinstance(norm, nn.LayerNorm):
            self.scale = (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        else:
            epsilon = norm.eps
            assert isinstance(epsilon, float)
            self.scale = x.std(-1, keepdim=True) + epsilon

    def __call__(self, part: Tensor) -> Tensor:
        """Apply the linear map, without the bias: (..., T, D) -> (..., T, D)"""
        if self.identity:
            return part
        return self.gain * (part - part.mean(-1, keepdim=True)) / self.scale
