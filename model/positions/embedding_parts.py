"""The input of the first layer: token embedding, positional encoding and their sum, as the model adds them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..network.autoregressive import Side, decoder_inputs
from ..network.hooks import record
from ..translate import Translation, Translator


@dataclass(frozen=True, eq=False)
class EmbeddingParts:
    """The embedding of one side of one sentence, (T, D) each."""

    pieces: tuple[str, ...]
    tokens: np.ndarray
    """Token embeddings, times `scale`."""
    encoding: np.ndarray
    """Positional encodings."""
    total: np.ndarray
    """Their sum, which is what the first layer reads."""
    scale: float
    """sqrt(D) where the model scales its embeddings (section 3.4), else 1."""

    @property
    def share(self) -> np.ndarray:
        """(T,) length of the encoding as a share of both lengths together."""
        tokens, encoding = np.linalg.norm(self.tokens, axis=1), np.linalg.norm(self.encoding, axis=1)
        both = tokens + encoding
        return np.divide(encoding, both, out=np.zeros_like(encoding), where=both > 0)


def embedding_parts(translator: Translator, translation: Translation, side: Side) -> EmbeddingParts:
    """Read the three tensors through hooks while the sentence runs; `target` is what the decoder was fed."""
    model = translator.model
    ids = translation.source_ids if side == "source" else decoder_inputs(translation.target_ids)
    embedding = model.source_embedding if side == "source" else model.target_embedding
    with torch.inference_mode(), record(embedding, "tokens", "encoding", "stream") as found:
        embedding(torch.tensor([ids], device=translator.device))
    tokens, encoding, total = (found[name][0].float().cpu().numpy() for name in ("tokens", "encoding", "stream"))
    maps = translation.trace.maps
    pieces = translation.source_tokens if side == "source" else maps["decoder"].query_tokens
    return EmbeddingParts(pieces, tokens, encoding, total, embedding.scale)
