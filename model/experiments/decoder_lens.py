"""DecoderLens: the translation that the decoder writes from each layer of the encoder.

Langedijk et al. (2023), "DecoderLens: Layerwise Interpretation of Encoder-Decoder Transformers",
https://arxiv.org/abs/2310.03686: the stream after an encoder layer goes through the encoder's final norm, where there
is one, and to the decoder as if it were the last. The last layer is the model itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..decoding.steps import greedy_batch
from ..network.autoregressive import shift_right
from ..network.hooks import hook_outputs, record
from ..translate import Translation, Translator


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
def decoder_lens(translator: Translator, translation: Translation, token_id: int | None = None) -> DecoderLens:
    """Read the encoder of a finished translation after its embedding and after each layer; P rows of one batch.

    Ranks are those of the written piece at each position, or everywhere of `token_id`.
    """
    model, device = translator.model, translator.device
    places = {"embedding": "source_embedding.stream"}
    for layer in range(translator.config.encoder_layers):
        places[f"layer {layer + 1}"] = f"encoder.layers.{layer}.after_feed_forward.stream"
    source = torch.tensor([translation.source_ids], device=device)
    with record(model, *places.values()) as streams:
        model.encode(source)
    memory = model.encoder.final_norm(torch.cat([streams[path] for path in places.values()]))
    rows = source.expand(len(places), -1)
    ids = torch.tensor(translation.target_ids, device=device)

    def from_each_place(_: Tensor) -> Tensor:
        return memory

    with hook_outputs({model.encoder.output: from_each_place}):
        written = greedy_batch(model, rows)
        log_probs = model(rows, shift_right(ids).expand(len(places), -1)).log_softmax(-1)
    ranked = ids if token_id is None else torch.full_like(ids, token_id)
    own = log_probs.gather(-1, ranked.expand(len(places), -1)[..., None])
    name = translator.tokenizer.token
    return DecoderLens(
        tuple(places),
        tuple(translator.tokenizer.decode(row) for row in written),
        tuple(tuple(map(name, row)) for row in written),
        translation.target_tokens,
        ((log_probs > own).sum(-1) + 1).cpu().numpy(),
        own[..., 0].cpu().numpy(),
    )
