"""DecoderLens: the translation that the decoder writes from each layer of the encoder.

Langedijk et al. (2023), "DecoderLens: Layerwise Interpretation of Encoder-Decoder Transformers",
https://arxiv.org/abs/2310.03686: the stream after an encoder layer takes the place of the last layer's and goes through
the encoder's final norm, where there is one, to the decoder. The last layer is the model itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..decoding.steps import greedy_batch
from ..live.live_model import LiveModel
from ..live.translation import Translation
from ..network.autoregressive import shift_right
from ..network.hooks import hook_streams, record_streams


@dataclass(frozen=True, eq=False)
class DecoderLens:
    """What the decoder makes of the encoder's embedding and of each of its layers: P = layers + 1 places."""

    places: tuple[str, ...]
    """(P,) "embedding", "layer 1", ...; the last is the model."""
    texts: tuple[str, ...]
    """(P,) the greedy translation from each place."""
    tokens: tuple[tuple[str, ...], ...]
    """(P,) its pieces."""
    target_tokens: tuple[str, ...]
    """(T,) the pieces of the translation at hand."""
    ranks: np.ndarray
    """(P, T) rank of each of them when the decoder is given the ones before, or of the word chosen instead; 1 if no
    piece is more probable."""
    log_probs: np.ndarray
    """(P, T) log-probability of the same piece, natural logarithm."""


@torch.inference_mode()
def decoder_lens(translator: LiveModel, translation: Translation, token_id: int | None = None) -> DecoderLens:
    """Read the encoder of a finished translation after its embedding and after each layer; P rows of one batch.

    Ranks are those of the written piece at each position, or everywhere of `token_id`.
    """
    model, device = translator.model, translator.device
    streams = model.streams("source")
    source = torch.tensor([translation.source_ids], device=device)
    with record_streams(streams) as found:
        model.encode(source)
    rows, each = source.expand(len(streams), -1), torch.cat([found[name] for name in streams])
    ids = torch.tensor(translation.target_ids, device=device)
    fed = shift_right(ids, model.start_id).expand(len(streams), -1)
    with hook_streams({[*streams.values()][-1]: lambda _: each}):
        written = greedy_batch(model, rows, constraints=translator.forced)
        log_probs = model(rows, fed).log_softmax(-1)
    ranked = ids if token_id is None else torch.full_like(ids, token_id)
    own = log_probs.gather(-1, ranked.expand(len(streams), -1)[..., None])
    name = translator.tokenizer.token
    return DecoderLens(
        tuple(streams),
        tuple(translator.written(row) for row in written),
        tuple(tuple(map(name, row)) for row in written),
        translation.target_tokens,
        ((log_probs > own).sum(-1) + 1).cpu().numpy(),
        own[..., 0].cpu().numpy(),
    )
