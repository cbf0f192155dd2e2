"""The logit lens, the DecoderLens, and one sentence run through every training snapshot."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..attribution.any_model import compute_decoder_streams
from ..checkpoint.load import Checkpoint
from ..checkpoint.snapshots import has_random_initial_weights, list_snapshot_steps, load_snapshots
from ..decoding.greedy_and_sampling import decode_batch_greedily
from ..network.abstract_model import AutoregressiveModel, shift_right
from ..network.hooks import hook_streams, record_streams
from ..network.transformer import Transformer
from ..runnable_model import RunnableModel, Translation
from ..trace import AttentionTrace
from ..translate import Translator

# The logit lens on the decoder: which token it would write if it stopped after each layer.
#
# nostalgebraist (2020), "interpreting GPT: the logit lens": the residual stream after a layer is sent through the
# final norm and the generator as if it were the last. Early layers were never trained to be read in this way; that a
# token is far down the list there does not say that the model does not "know" it yet.


@dataclass(frozen=True, eq=False)
class LogitLens:
    """Predictions of the decoder at P places along its residual stream, for each of T target positions."""

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


def _predict_after_each_layer(
    model: AutoregressiveModel, source: Tensor, target: Tensor, sublayers: bool
) -> Iterator[tuple[str, Tensor]]:
    if sublayers and not isinstance(model, Transformer):
        streams = compute_decoder_streams(model, source[0].tolist(), target[0].tolist())
        return model.predict_from_streams(source, target, streams)
    return model.predictions(source, target, sublayers=sublayers)


@torch.inference_mode()
def run_logit_lens(
    translator: RunnableModel,
    translation: Translation,
    count: int = 5,
    sublayers: bool = False,
    token_id: int | None = None,
) -> LogitLens:
    """Read the decoder's residual stream of a finished translation after each layer, or after each sublayer.

    Ranks are those of the written token at each position, or everywhere of `token_id`. Raises AttributionError where
    the sublayers of a model that is not of this project are not found.
    """
    model, ids = translator.model, translation.target_ids
    source = torch.tensor([translation.source_ids], device=translator.device)
    target = shift_right(torch.tensor([ids], device=translator.device), model.start_id)
    ranked = torch.tensor(ids if token_id is None else [token_id] * len(ids), device=translator.device)[:, None]
    places, best, found, ranks, chosen = [], [], [], [], []
    for place, logits in _predict_after_each_layer(model, source, target, sublayers):
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
    return LogitLens(
        tuple(places),
        tuple(tuple(tuple(map(name, row)) for row in rows) for rows in token_ids.tolist()),
        token_ids,
        torch.stack(found).cpu().numpy(),
        translation.target_tokens,
        torch.stack(ranks).cpu().numpy(),
        torch.stack(chosen).cpu().numpy(),
    )


# DecoderLens: the translation that the decoder writes from each layer of the encoder.
#
# Langedijk et al. (2023), "DecoderLens: Layerwise Interpretation of Encoder-Decoder Transformers",
# https://arxiv.org/abs/2310.03686: the stream after an encoder layer takes the place of the last layer's and goes
# through the encoder's final norm, where there is one, to the decoder. The last layer is the model itself.


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
def run_decoder_lens(translator: RunnableModel, translation: Translation, token_id: int | None = None) -> DecoderLens:
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
        written = decode_batch_greedily(model, rows, constraints=translator.forced)
        log_probs = model(rows, fed).log_softmax(-1)
    ranked = ids if token_id is None else torch.full_like(ids, token_id)
    own = log_probs.gather(-1, ranked.expand(len(streams), -1)[..., None])
    name = translator.tokenizer.token
    return DecoderLens(
        tuple(streams),
        tuple(translator.decode_target(row) for row in written),
        tuple(tuple(map(name, row)) for row in written),
        translation.target_tokens,
        ((log_probs > own).sum(-1) + 1).cpu().numpy(),
        own[..., 0].cpu().numpy(),
    )


# One sentence run through the snapshots of a training.


@dataclass(frozen=True, eq=False)
class TrainingSnapshot:
    """A model at one moment of its training."""

    step: int | None
    """Steps trained; None for the released weights."""
    translator: Translator


@dataclass(frozen=True, eq=False)
class SnapshotRun:
    """A sentence through the model at one moment of its training."""

    step: int | None
    translation: Translation
    """Its own greedy translation, without a trace."""
    reading: Translation
    """The fixed translation, read by teacher forcing, with its trace: the axes are the same at every moment."""

    @property
    def trace(self) -> AttentionTrace:
        return self.reading.trace

    @property
    def mean_token_probability(self) -> float:
        """The probability it gives a token of the fixed translation: their geometric mean."""
        return math.exp(self.reading.log_prob / len(self.reading.steps))


def load_training_snapshots(checkpoint: Checkpoint, folder: str | Path | None = None) -> tuple[TrainingSnapshot, ...]:
    """Load the random start, if there was one and the recipe has its seed, every snapshot, and the released weights.

    Raises CheckpointError.
    """
    place = folder or checkpoint.name
    steps = ((0,) if has_random_initial_weights(place) else ()) + list_snapshot_steps(place)
    found = load_snapshots(checkpoint, steps, place)
    stops = [TrainingSnapshot(step, Translator(one)) for step, one in zip(steps, found, strict=True)]
    return (*stops, TrainingSnapshot(None, Translator(checkpoint)))


def run_snapshots(stops: Sequence[TrainingSnapshot], text: str, target_ids: Sequence[int]) -> tuple[SnapshotRun, ...]:
    """Run `text` at every stop: translate it, and read the translation `target_ids`.

    A model that does not end its sentences yet writes at most twice as many tokens as `target_ids` has, and ten.

    Raises InputError for a text that cannot be read.
    """
    most = 2 * len(target_ids) + 10
    return tuple(
        SnapshotRun(
            stop.step,
            stop.translator.translate(text, capture=False, max_tokens=most),
            stop.translator.force(text, target_ids),
        )
        for stop in stops
    )
