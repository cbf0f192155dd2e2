"""An attention block as a sum: what each query reads from each key, beside the residual stream that it adds to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..trace import KINDS, Kind
from .recording import HeldNorm, Recording, Sublayer, sublayers


@dataclass(frozen=True, eq=False)
class Block:
    """One attention block of one pass over one text; all float64."""

    kind: Kind
    weights: Tensor
    """(H, Q, K), zero for a head that is switched off."""
    values: Tensor
    """(H, K, D) (x W_V + b_V) W_O: what a head passes on of each key."""
    bias: Tensor | None
    """(D,) b_O"""
    before: Tensor
    """(Q, D) the residual stream that the block reads and adds to."""
    after: Tensor
    """(Q, D) the residual stream behind it, in a post-norm model behind its norm."""
    norm: nn.Module | None
    """That norm; None in a pre-norm model."""

    @property
    def vectors(self) -> Tensor:
        """What each query reads from each key, weighted and summed over heads: (Q, K, D).

        Kobayashi et al. (2020), section 2; their sum over the keys and b_O is what the block adds.
        """
        return torch.einsum("hqk,hkm->qkm", self.weights, self.values)

    @property
    def contributions(self) -> Tensor:
        """The shares of the keys in what is behind the block: (T, T), or (T, S + 1) of a cross-attention, the residual
        connection last. Every row sums to 1.
        """
        vectors, residual = (
            self.vectors,
            torch.eye(len(self.before), dtype=self.before.dtype, device=self.before.device),
        )
        if self.kind == "cross":
            vectors = torch.cat([vectors, self.before[:, None]], 1)
            keys = vectors.shape[1]
            residual = torch.eye(keys, dtype=residual.dtype, device=residual.device)[-1:].expand(len(vectors), -1)
        else:
            vectors = vectors + residual[..., None] * self.before[:, None]
        if self.norm is not None:
            whole = vectors.sum(1) + (0 if self.bias is None else self.bias)
            vectors = HeldNorm(self.norm, whole[:, None])(vectors)
        return contributions(vectors, self.after, residual)


Stacks = tuple[list[Block], list[Block]]
"""The attention blocks of encoder and decoder in the order in which they ran."""


@dataclass(frozen=True, eq=False)
class SeenAttention:
    """The attention of one pass over one text, with what is known of its blocks."""

    weights: Mapping[Kind, Tensor]
    """(L, H, Q, K) float64"""
    stacks: Callable[[], Stacks]
    """Raises AttributionError where the parts of a block are not found."""


def seen_of(recording: Recording) -> SeenAttention:
    """Return the attention of a recorded pass."""
    weights = {
        kind: torch.stack(
            [
                recording[f"{one.path}.weights"]
                for one in sublayers(recording.model, "encoder" if kind == "encoder" else "decoder")
                if one.kind == kind
            ]
        )
        for kind in KINDS
    }
    return SeenAttention(weights, lambda: stacks_of(recording))


def contributions(vectors: Tensor, result: Tensor, residual: Tensor) -> Tensor:
    """Return the shares of vectors (Q, K, D) in their results (Q, D): (Q, K), rows summing to 1.

    A row in which no vector comes nearer to the result than zero does is that of `residual` (Q, K).
    """
    near = (result.abs().sum(-1)[:, None] - (result[:, None] - vectors).abs().sum(-1)).clamp_min(0)
    total = near.sum(-1, keepdim=True)
    return torch.where(total > 0, near / total.clamp_min(torch.finfo(near.dtype).tiny), residual)


def stacks_of(recording: Recording) -> Stacks:
    """Return the attention blocks of a recorded pass."""
    return _stack(recording, "encoder"), _stack(recording, "decoder")


def _stack(recording: Recording, stack: str) -> list[Block]:
    before = recording[f"{'source' if stack == 'encoder' else 'target'}_embedding.stream"]
    found = []
    for sublayer in sublayers(recording.model, stack):
        after = recording[sublayer.residual_path]
        if sublayer.kind is not None:
            found.append(_block(recording, sublayer, sublayer.kind, before, after))
        before = after
    return found


def _block(recording: Recording, sublayer: Sublayer, kind: Kind, before: Tensor, after: Tensor) -> Block:
    bias = recording.attention(sublayer).out_proj.bias
    off = recording[f"{sublayer.path}.context"].abs().amax((1, 2)) == 0
    return Block(
        kind,
        recording[f"{sublayer.path}.weights"].masked_fill(off[:, None, None], 0.0),
        recording.projected_values(sublayer),
        None if bias is None else bias.detach().double(),
        before,
        after,
        None if sublayer.residual.pre else sublayer.residual.norm,
    )
