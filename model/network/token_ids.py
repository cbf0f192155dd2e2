"""Token ids as a model is fed them: many sentences padded to one length, a target shifted right."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .config import BOS_ID, PAD_ID


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return ragged ids as one tensor (B, longest) on the CPU, PAD after the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD_ID] * (width - len(row))] for row in rows], device="cpu")


def decoder_inputs(target_ids: Sequence[int]) -> tuple[int, ...]:
    """Return the T ids that the decoder is fed to predict T ids: <s>, then all but the last."""
    return (BOS_ID, *target_ids[:-1])


def shift_right(target: Tensor) -> Tensor:
    """Return the same of a batch (..., T): the outputs shifted right by one position (section 3.1)."""
    return torch.cat([torch.full_like(target[..., :1], BOS_ID), target[..., :-1]], -1)
