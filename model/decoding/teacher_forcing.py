"""Teacher forcing: what the model thinks of a translation that is given, in one forward pass or token by token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..language.say import say
from ..network.autoregressive import AutoregressiveModel, decoder_inputs, shift_right
from .steps import CachedDecoder, DecodingStep, considered, rank


@torch.inference_mode()
def forced_log_probs(model: AutoregressiveModel, source: Tensor, target_ids: Sequence[int]) -> Tensor:
    """Read T given tokens in one forward pass: source (1, S) -> log-probabilities (T, V), row t after t tokens."""
    target = shift_right(torch.tensor([target_ids], device=source.device), model.start_id)
    return model(source, target)[0].log_softmax(-1)


@torch.inference_mode()
def replayed_log_probs(model: AutoregressiveModel, source: Tensor, target_ids: Sequence[int]) -> Tensor:
    """The same one token at a time with a cache, as a decoding that wrote these tokens computed them."""
    decoder = CachedDecoder(model, source)
    fed = decoder_inputs(target_ids, model.start_id)
    return torch.stack([decoder.next_log_probs(token) for token in fed])


@torch.inference_mode()
def forced(
    model: AutoregressiveModel, source: Tensor, target_ids: Sequence[int], candidates: int = 10
) -> tuple[DecodingStep, ...]:
    """source (1, S), the T ids of a whole or begun translation -> T steps, each with the given token's probability.

    Raises ValueError for no tokens at all and for more than the model has positions.
    """
    most = model.room(source.shape[1]) + 1
    if not 0 < len(target_ids) <= most:
        raise ValueError(
            say(
                "A given translation has 1 to {most} tokens in this model, not {count}.",
                most=most,
                count=len(target_ids),
            )
        )
    log_probs = forced_log_probs(model, source, target_ids)
    last = len(target_ids) - 1
    return tuple(
        DecodingStep(
            position,
            token,
            row[token].item(),
            considered(row, candidates),
            stopped="eos" if position == last and token in model.end_ids else None,
            rank=rank(row, token),
            forced=True,
        )
        for position, (token, row) in enumerate(zip(target_ids, log_probs, strict=True))
    )
