"""The input of the first layer: token embedding, positional encoding and their sum, as the model adds them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..live.live_model import LiveModel
from ..live.translation import Translation
from ..network.autoregressive import Side, decoder_inputs
from ..network.hooks import hook_outputs


@dataclass(frozen=True, eq=False)
class EmbeddingParts:
    """The embedding of one side of one sentence, (T, D) each."""

    pieces: tuple[str, ...]
    tokens: np.ndarray
    """Token embeddings, times `scale`."""
    encoding: np.ndarray
    """Positional encodings."""
    total: np.ndarray
    """Their sum, which the first layer reads, or a norm before it."""
    scale: float
    """sqrt(D) where the model scales its embeddings (section 3.4), else 1."""
    normalised: bool = False
    """Whether a norm of its own stands between the sum and the first layer."""

    @property
    def share(self) -> np.ndarray:
        """(T,) length of the encoding as a share of both lengths together."""
        tokens, encoding = np.linalg.norm(self.tokens, axis=1), np.linalg.norm(self.encoding, axis=1)
        both = tokens + encoding
        return np.divide(encoding, both, out=np.zeros_like(encoding), where=both > 0)


@torch.inference_mode()
def embedding_parts(model: LiveModel, translation: Translation, side: Side) -> EmbeddingParts:
    """Read the parts through hooks while the sentence runs; `target` is what the decoder was fed.

    Of a decoder alone that is the prompt too, and there is no other side. ValueError for a side that adds no positions.
    """
    network = model.model
    added = network.added_positions(side)
    if added is None:
        raise ValueError(f"{model.name} adds no positions to its {side}.")
    source = torch.tensor([translation.source_ids], device=model.device)
    target = torch.tensor([decoder_inputs(translation.target_ids, network.start_id)], device=model.device)
    tokens: list[Tensor] = []
    encodings: list[Tensor] = []
    with hook_outputs({network.token_embedding(side): tokens.append, added.module: encodings.append}):
        memory = network.encode(source)
        if side == "target":
            network.decode(target, memory, network.source_mask(source))
    embedded = tokens[-1][0] * added.factor
    encoding = encodings[-1].expand(1, *embedded.shape)[0]
    maps = translation.trace.maps
    pieces = translation.source_tokens if side == "source" else maps["decoder"].query_tokens
    own, place, total = (one.float().cpu().numpy() for one in (embedded, encoding, embedded + encoding))
    return EmbeddingParts(pieces, own, place, total, added.scale, added.normalised)
