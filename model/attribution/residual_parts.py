"""The residual stream as a sum: embedding, position, every head, every feed-forward network, biases.

In a pre-norm model a sublayer adds to the stream and the sum is exact as it stands. In a post-norm model each sublayer
ends in a norm through which the parts so far pass with its scale held at its value in this run: the sum is still
exact, but how a part enters each scale is not counted to that part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from ..language.say import say, to_say
from ..network.layers import Residual
from ..network.transformer import Stack
from .recording import HeldNorm, Recording, Sublayer, output_slices, sublayers

PartKind = Literal["embedding", "position", "encoder", "decoder", "cross", "feed_forward", "bias"]
_SUBLAYERS: dict[PartKind, str] = {
    "encoder": to_say("layer {layer} self-attention"),
    "decoder": to_say("layer {layer} self-attention"),
    "cross": to_say("layer {layer} cross-attention"),
    "feed_forward": to_say("layer {layer} feed-forward"),
}
_HEADS: dict[PartKind, str] = {
    "encoder": to_say("layer {layer} self-attention head {head}"),
    "decoder": to_say("layer {layer} self-attention head {head}"),
    "cross": to_say("layer {layer} cross-attention head {head}"),
}
_OTHERS: dict[PartKind, str] = {
    "embedding": to_say("embedding"),
    "position": to_say("position"),
    "bias": to_say("biases"),
}


@dataclass(frozen=True)
class Part:
    """A term of the residual stream. Layers and heads count from 0; None where a part has none."""

    kind: PartKind
    """A head has the kind of its attention."""
    layer: int | None = None
    head: int | None = None

    @property
    def name(self) -> str:
        """Its name in tables and in JSON, in English; layers and heads count from 1."""
        message, numbers = self._message
        return message.format(**numbers)

    @property
    def label(self) -> str:
        """Its name in the reader's language."""
        message, numbers = self._message
        return say(message, **numbers)

    @property
    def sublayer(self) -> Part:
        """The sublayer that a head belongs to; the part itself where it is none."""
        return replace(self, head=None)

    @property
    def _message(self) -> tuple[str, dict[str, int]]:
        if self.layer is None:
            return _OTHERS[self.kind], {}
        if self.head is None:
            return _SUBLAYERS[self.kind], {"layer": self.layer + 1}
        return _HEADS[self.kind], {"layer": self.layer + 1, "head": self.head + 1}


BIASES = Part("bias")
"""All biases added outside the feed-forward networks: of the output projections and of norms. Always the first part."""


@dataclass(frozen=True, eq=False)
class ResidualParts:
    """Parts of a residual stream at some positions; their sum is the stream."""

    parts: tuple[Part, ...]
    vectors: Tensor
    """(P, T, D) float64"""
    norms: tuple[int, ...] = ()
    """(P,) how many norms each part has passed with the scale held."""

    @property
    def stream(self) -> Tensor:
        """(T, D)"""
        return self.vectors.sum(0)

    def add(self, parts: list[Part], vectors: Tensor, bias: Tensor | None = None) -> ResidualParts:
        """Add parts (N, T, D), and a bias (D,) to the biases."""
        own = self.vectors if bias is None else torch.cat([self.vectors[:1] + bias, self.vectors[1:]])
        return ResidualParts((*self.parts, *parts), torch.cat([own, vectors]), (*self.norms, *[0] * len(parts)))

    def through(self, norm: nn.Module) -> ResidualParts:
        """Pass every part through a norm whose scale is that of the whole stream; its bias joins the biases."""
        held = HeldNorm(norm, self.stream)
        vectors = held(self.vectors)
        vectors = torch.cat([vectors[:1] + held.bias, vectors[1:]])
        passed = 0 if held.identity else 1
        return ResidualParts(self.parts, vectors, tuple(count + passed for count in self.norms))


def residual_parts(recording: Recording, stack: str, rows: slice, before: Sublayer | None = None) -> ResidualParts:
    """Split the residual stream of ``encoder`` or ``decoder`` at the positions `rows`.

    `before` names the sublayer whose input it is; None for the end of the stack, before its final norm.
    """
    side = "source" if stack == "encoder" else "target"
    tokens = recording[f"{side}_embedding.tokens"][rows]
    position = recording[f"{side}_embedding.encoding"][rows].expand_as(tokens)
    start = (BIASES, Part("embedding"), Part("position"))
    found = ResidualParts(start, torch.stack([torch.zeros_like(tokens), tokens, position]), (0, 0, 0))
    for sublayer in sublayers(recording.model, stack):
        if before is not None and sublayer.path == before.path:
            break
        found = _after(recording, sublayer, found, rows)
    return found


def final_norm(recording: Recording, stack: str) -> nn.Module:
    """Return the norm at the end of a stack, nn.Identity where the model has none."""
    module = recording.model.get_submodule(stack)
    assert isinstance(module, Stack)
    return module.final_norm


def sublayer_input(residual: Residual, parts: ResidualParts) -> ResidualParts:
    """Return the parts as the sublayer itself reads them: in a pre-norm model through its norm."""
    return parts.through(residual.norm) if residual.pre else parts


def _after(recording: Recording, sublayer: Sublayer, parts: ResidualParts, rows: slice) -> ResidualParts:
    if sublayer.kind is None:
        added = parts.add([Part("feed_forward", sublayer.layer)], recording[sublayer.path][None, rows])
    else:
        attention = recording.attention(sublayer)
        heads = recording[f"{sublayer.path}.context"][:, rows] @ output_slices(attention)
        names = [Part(sublayer.kind, sublayer.layer, head) for head in range(len(heads))]
        bias = attention.out_proj.bias
        added = parts.add(names, heads, None if bias is None else bias.detach().double())
    return added if sublayer.residual.pre else added.through(sublayer.residual.norm)
