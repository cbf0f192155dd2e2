"""The logit lens on the decoder: which token it would write if it stopped after each layer.

nostalgebraist (2020), "interpreting GPT: the logit lens": the residual stream after a layer is sent through the final
norm and the generator as if it were the last. Early layers were never trained to be read in this way; that a token is
far down the list there does not say that the model does not "know" it yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..attribution.foreign.live import decoder_streams
from ..live.live_model import LiveModel
from ..live.translation import Translation
from ..network.autoregressive import AutoregressiveModel, shift_right
from ..network.transformer import Transformer


@dataclass(frozen=True, eq=False)
class Lens:
    """The predictions of the decoder at P places along its residual stream, for each of T target positions."""

    places: tuple[str, ...]
    """(P,) "embedding", "layer 1", ..., or with sublayers "layer 1 self-attention" and so on; the last is the model's
    real prediction."""
    tokens: tuple[tuple[tuple[str, ...], ...], ...]
    """P x T x N, the most probable tokens, best first."""
    token_ids: np.ndarray
    """(P, T, N)"""
    log_probs: np.ndarray
    """(P, T, N), natural logarithm."""
    target_tokens: tuple[str, ...]
    """(T,) the token of the translation at each position."""
    ranks: np.ndarray
    """(P, T) rank of the written token, or of the word chosen instead; 1 if no token is more probable."""
    target_log_probs: np.ndarray
    """(P, T) log-probability of the same token."""


def _predictions(
    model: AutoregressiveModel, source: Tensor, target: Tensor, sublayers: bool
) -> Iterator[tuple[str, Tensor]]:
    if sublayers and not isinstance(model, Transformer):
        streams = decoder_streams(model, source[0].tolist(), target[0].tolist())
        return model.predicted_from(source, target, streams)
    return model.predictions(source, target, sublayers=sublayers)


@torch.inference_mode()
def logit_lens(
    translator: LiveModel,
    translation: Translation,
    count: int = 5,
    sublayers: bool = False,
    token_id: int | None = None,
) -> Lens:
    """Read the decoder's residual stream of a finished translation after each layer, or after each sublayer.

    Ranks are those of the written token at each position, or everywhere of `token_id`. Raises AttributionError where
    the sublayers of a model that is not of this project are not found.
    """
    model, ids = translator.model, translation.target_ids
    source = torch.tensor([translation.source_ids], device=translator.device)
    target = shift_right(torch.tensor([ids], device=translator.device), model.start_id)
    ranked = torch.tensor(ids if token_id is None else [token_id] * len(ids), device=translator.device)[:, None]
    places, best, found, ranks, chosen = [], [], [], [], []
    for place, logits in _predictions(model, source, target, sublayers):
        log_probs = logits[0].log_softmax(-1)
        values, tokens = log_probs.topk(min(count, log_probs.shape[-1]))
        own = log_probs.gather(1, ranked)
        places.append(place)
        best.append(tokens)
        found.append(values)
        chosen.append(own[:, 0])
        ranks.append((log_probs > own).sum(-1) + 1)
    token_ids = torch.stack(best).cpu().numpy()
    name = translator.tokenizer.token
    return Lens(
        tuple(places),
        tuple(tuple(tuple(map(name, row)) for row in rows) for rows in token_ids.tolist()),
        token_ids,
        torch.stack(found).cpu().numpy(),
        translation.target_tokens,
        torch.stack(ranks).cpu().numpy(),
        torch.stack(chosen).cpu().numpy(),
    )
