"""Token ids as a model is fed them: many sentences padded to one length, a target shifted right."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .config import BOS_ID, PAD_ID


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return ragged ids as one tensor (B, longest), PAD after the end."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[PAD_ID] * (width - len(row))] for row in rows])


def shift_right(target: Tensor) -> Tensor:
    """Return what the decoder is fed to predict `target` (..., T): <s>, then all but the last token (section 3.1)."""
    return torch.cat([torch.full_like(target[..., :1], BOS_ID), target[..., :-1]], -1)
