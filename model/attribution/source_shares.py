"""Source or prefix: how much of each word of a translation comes from the source, and whether it has come loose.

Two measures. The share by ALTI+ (:mod:`.alti`) says where the vectors come from; Dale et al. (2022), "Detecting and
Mitigating Hallucinations in Machine Translation", find hallucinations by it. The effect is an intervention: how much
more probable a piece is than without the source. The alarm goes by the effect, which tells true from shuffled pairs far
better (`python -m model attribution` measures both).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..decoding.teacher_forcing import forced_log_probs
from ..live.live_model import LiveModel
from ..live.translation import Translation
from ..network.autoregressive import decoder_inputs
from ..network.transformer import Transformer
from .alti import alti
from .blocking import blocked
from .blocks import SeenAttention, seen_of
from .recording import Recording, record_pass


@dataclass(frozen=True, eq=False)
class SourceShares:
    """Where each piece of a translation comes from, (T,) each."""

    tokens: tuple[str, ...]
    """The pieces predicted."""
    source: np.ndarray
    """The share that comes from the source; the rest is from the prefix, its start included."""
    by_piece: np.ndarray
    """(T, S) the same for each source piece."""
    by_input: np.ndarray
    """(T, T) the share of each decoder input, the start first."""
    effect: np.ndarray
    """log p of the piece less log p with all source pieces blocked, natural logarithm; below 0 the source speaks
    against the piece."""
    end_attention: np.ndarray
    """The weight on the source's last piece, mean of all layers and heads of the cross-attention."""
    end: str
    """That piece, </s>."""

    @property
    def prefix(self) -> np.ndarray:
        """1 - source"""
        return 1 - self.source

    @property
    def mean_effect(self) -> float:
        """The mean effect of the source over the pieces: low where a translation has come loose."""
        return float(self.effect.mean())


def source_shares(translator: LiveModel, translation: Translation, seen: SeenAttention | None = None) -> SourceShares:
    """Return the shares of a translation, read by teacher forcing; interventions open in this thread take part.

    `seen` as in :func:`.methods.attribute`. Raises AttributionError where the parts of a block are not found.
    """
    seen = seen or seen_of(record_translation(translator, translation))
    own, source = (one.cpu().numpy() for one in alti(*seen.stacks()))
    end = seen.weights["cross"][..., -1].mean((0, 1)).cpu().numpy()
    effect = source_effect(translator, translation)
    return SourceShares(
        translation.target_tokens, source.sum(-1), source, own, effect, end, translation.source_tokens[-1]
    )


def source_effect(translator: LiveModel, translation: Translation) -> np.ndarray:
    """Return log p of each piece less log p with all source pieces blocked in every mask: (T,) float64."""
    ids, model = translation.target_ids, translator.model
    source = torch.tensor([translation.source_ids], device=translator.device)
    with_source = forced_log_probs(model, source, ids)
    nothing = torch.zeros_like(source, dtype=torch.bool)
    with blocked(model, "encoder", nothing), blocked(model, "cross", nothing):
        without = forced_log_probs(model, source, ids)
    own = torch.tensor(ids, device=translator.device)[:, None]
    return (with_source - without).gather(1, own)[:, 0].double().cpu().numpy()


def record_translation(translator: LiveModel, translation: Translation) -> Recording:
    """Record the pass in which a whole translation is read, of a model of this project."""
    assert isinstance(translator.model, Transformer)
    return record_pass(translator.model, translation.source_ids, decoder_inputs(translation.target_ids))
