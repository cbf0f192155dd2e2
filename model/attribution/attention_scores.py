"""What attention alone says of a word: the last cross-attention, the vectors it carries, and rollout.

A row of attention does not know which word is predicted from it; these scores are the same for every X at one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ..analysis.rollout import rollout
from ..trace import KINDS, AttentionMap, AttentionTrace, Kind
from .blocks import Block, SeenAttention


def last_cross_attention(seen: SeenAttention) -> Tensor:
    """Return the weights of the last cross-attention, their mean over heads: (T, S)."""
    return seen.weights["cross"][-1].mean(0)


def norms_of_last(decoder: Sequence[Block]) -> tuple[Tensor, Tensor]:
    """Return the norms of what the last layer reads from each decoder input (T, T) and from the memory (T, S).

    Kobayashi et al. (2020), "Attention is Not Only a Weight", section 2, the heads added up before the norm is taken:
    the norm of the sum over heads of alpha (x W_V + b_V) W_O. `decoder` are its attention blocks.
    """
    own, source = (
        next(one for one in reversed(decoder) if one.kind == kind).vectors.norm(dim=-1) for kind in ("decoder", "cross")
    )
    return own, source


def rolled_out(seen: SeenAttention) -> tuple[Tensor, Tensor]:
    """Return the rollout of decoder inputs (T, T) and source pieces (T, S) at the last layer."""
    encoder, decoder, cross = (_map(seen.weights, kind) for kind in KINDS)
    found = rollout(AttentionTrace(encoder, decoder, cross))
    assert found.decoder is not None
    assert found.cross is not None
    return torch.from_numpy(found.decoder.weights[-1, 0]), torch.from_numpy(found.cross.weights[-1, 0])


def _map(seen: Mapping[Kind, Tensor], kind: Kind) -> AttentionMap:
    weights = seen[kind].float().cpu().numpy()
    rows, columns = ([str(at + 1) for at in range(count)] for count in weights.shape[-2:])
    return AttentionMap(kind, weights, tuple(rows), tuple(columns), np.ones(weights.shape[-2:], dtype=bool))
