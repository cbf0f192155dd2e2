"""Teacher forcing: what the model thinks of a translation that is given, token by token, in one forward pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..network.config import EOS_ID
from ..network.token_ids import shift_right
from ..network.transformer import Transformer
from .steps import DecodingStep, considered, rank


@torch.inference_mode()
def forced(
    model: Transformer, source: Tensor, target_ids: Sequence[int], candidates: int = 10
) -> tuple[DecodingStep, ...]:
    """source (1, S), the T ids of a whole or begun translation -> T steps, each with the given token's probability.

    Raises ValueError for no tokens at all and for more than the model has positions.
    """
    if not 0 < len(target_ids) <= model.config.max_length:
        raise ValueError(
            f"A given translation has 1 to {model.config.max_length} tokens in this model, not {len(target_ids)}."
        )
    target = shift_right(torch.tensor([target_ids], device=source.device))
    log_probs = model(source, target)[0].log_softmax(-1)
    last = len(target_ids) - 1
    return tuple(
        DecodingStep(
            position,
            token,
            row[token].item(),
            considered(row, candidates),
            stopped="eos" if position == last and token == EOS_ID else None,
            rank=rank(row, token),
            forced=True,
        )
        for position, (token, row) in enumerate(zip(target_ids, log_probs, strict=True))
    )
