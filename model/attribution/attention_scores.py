"""What attention alone says of a word: the last cross-attention, the vectors it carries, and rollout.

A row of attention does not know which word is predicted from it; these scores are the same for every X at one place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..analysis.rollout import rollout
from ..trace import KINDS, AttentionMap, AttentionTrace, Kind
from .blocks import Block, stacks_of
from .recording import Recording, Sublayer, sublayers


def last_cross_attention(recording: Recording) -> Tensor:
    """Return the weights of the last cross-attention, their mean over heads: (T, S)."""
    return recording[f"{_last(recording, 'cross').path}.weights"].mean(0)


def attention_norms(recording: Recording) -> tuple[Tensor, Tensor]:
    """Return the norms of what the last layer reads from each decoder input (T, T) and from the memory (T, S).

    Kobayashi et al. (2020), "Attention is Not Only a Weight", section 2, the heads added up before the norm is taken:
    the norm of the sum over heads of alpha (x W_V + b_V) W_O.
    """
    return norms_of_last(stacks_of(recording)[1])


def norms_of_last(decoder: Sequence[Block]) -> tuple[Tensor, Tensor]:
    """Return the same of the attention blocks of a decoder."""
    own, source = (
        next(one for one in reversed(decoder) if one.kind == kind).vectors.norm(dim=-1) for kind in ("decoder", "cross")
    )
    return own, source


def rolled_out(recording: Recording) -> tuple[Tensor, Tensor]:
    """Return the rollout of decoder inputs (T, T) and source pieces (T, S) at the last layer."""
    encoder, decoder, cross = (_map(recording, kind) for kind in KINDS)
    found = rollout(AttentionTrace(encoder, decoder, cross))
    assert found.decoder is not None
    assert found.cross is not None
    return torch.from_numpy(found.decoder.weights[-1, 0]), torch.from_numpy(found.cross.weights[-1, 0])


def _map(recording: Recording, kind: Kind) -> AttentionMap:
    stack = "encoder" if kind == "encoder" else "decoder"
    paths = [one.path for one in sublayers(recording.model, stack) if one.kind == kind]
    weights = np.stack([recording.tensors[f"{path}.weights"][0].float().cpu().numpy() for path in paths])
    rows, columns = ([str(at + 1) for at in range(count)] for count in weights.shape[-2:])
    return AttentionMap(kind, weights, tuple(rows), tuple(columns), np.ones(weights.shape[-2:], dtype=bool))


def _last(recording: Recording, kind: Kind) -> Sublayer:
    return [one for one in sublayers(recording.model, "decoder") if one.kind == kind][-1]
