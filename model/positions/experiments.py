"""A running model with its positional encoding changed: through hooks, for one thread, leaving no trace.

An experiment moves the positions. It replaces the whole table at the hook point ``positional_encoding.rows`` before
rows are looked up, so the encoder, a full pass of the decoder and a cached step at any offset see the same positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..network.autoregressive import shift_right
from ..network.hooks import OutputHook, hook_outputs
from ..network.positional_encoding import PositionalEncoding, sinusoidal_rows
from ..network.transformer import Transformer
from ..trace import AttentionTrace, with_tokens
from ..translate import Translation, Translator

Move = Literal["remove", "shift", "reverse", "shuffle", "stretch", "swap", "beyond"]
MOVES: tuple[Move, ...] = get_args(Move)
Sides = Literal["source", "target", "both"]
SIDES: tuple[Sides, ...] = get_args(Sides)


class ExperimentError(ValueError):
    """An experiment that this model or this sentence cannot take; the message is the sentence to show."""


@dataclass(frozen=True)
class PositionExperiment:
    """One change to the positional encoding of one side or both."""

    move: Move
    amount: float = 0.0
    """Positions to shift by, the factor to stretch by, the seed of the shuffle, or the position to begin at."""
    pair: tuple[int, int] = (0, 1)
    """The two positions that are swapped, from 0."""
    sides: Sides = "both"


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """A sentence before and after an experiment."""

    before: Translation
    after: Translation
    forced_trace: AttentionTrace
    """The attention under the experiment while the model is fed the translation it made before: shapes stay alike."""
    log_probs: np.ndarray
    """(T,) natural logarithm of the probability of each piece of the old translation, under the experiment."""

    @property
    def log_prob_loss(self) -> float:
        """Mean log-probability a piece of the old translation has lost, in nats; negative if it gained."""
        return float(np.mean([step.log_prob for step in self.before.steps]) - self.log_probs.mean())


def new_positions(experiment: PositionExperiment, length: int, count: int) -> np.ndarray:
    """(count,) float64: the position each slot is given instead of its own, for a sentence of `length` pieces.

    Reversing, shuffling and swapping rearrange the sentence's own positions and leave later ones where they are.
    """
    positions = np.arange(count, dtype=np.float64)
    inside = min(length, count)
    if experiment.move in ("shift", "beyond"):
        return positions + experiment.amount
    if experiment.move == "stretch":
        return positions * experiment.amount
    if experiment.move == "reverse":
        positions[:inside] = positions[:inside][::-1].copy()
    elif experiment.move == "shuffle":
        positions[:inside] = np.random.default_rng(int(experiment.amount)).permutation(inside)
    elif experiment.move == "swap":
        one, other = experiment.pair
        if max(one, other) >= length:
            raise ExperimentError(
                f"The sentence has {length} pieces, so positions 1 to {length} can be swapped; "
                f"{max(one, other) + 1} is outside."
            )
        positions[[one, other]] = positions[[other, one]]
    return positions


@contextmanager
def move_positions(
    model: Transformer, experiment: PositionExperiment, source_length: int, target_length: int
) -> Iterator[None]:
    """Run the model inside the block, in this thread, with its positions moved. Raises ExperimentError."""
    lengths = {"source": source_length, "target": target_length}
    chosen = lengths if experiment.sides == "both" else {experiment.sides: lengths[experiment.sides]}
    functions: dict[torch.nn.Module, OutputHook] = {}
    for side, length in chosen.items():
        encoding = model.get_submodule(f"{side}_embedding.positional_encoding")
        assert isinstance(encoding, PositionalEncoding)
        functions[encoding.rows] = _giving(experiment_table(encoding, experiment, length))
    with hook_outputs(functions):
        yield


def experiment_table(encoding: PositionalEncoding, experiment: PositionExperiment, length: int) -> Tensor:
    """The table the experiment puts in place of the model's: of the same shape, type and device.

    A sinusoidal row is computed afresh, so any position will do, whole or not, also past the last row. Between two
    rows of a learned table lies their mean by distance; past its ends there is nothing (ExperimentError).
    """
    table = encoding.table.detach()
    if experiment.move == "remove":
        return torch.zeros_like(table)
    positions = new_positions(experiment, length, encoding.max_length)
    if encoding.kind == "learned":
        return _between(table, positions, length)
    rows = sinusoidal_rows(torch.from_numpy(positions), table.shape[1]).to(table)
    return torch.cat([table[:1], rows]) if encoding.kind == "sinusoidal_pad_row" else rows


def run_experiment(translator: Translator, before: Translation, experiment: PositionExperiment) -> ExperimentResult:
    """Translate again with the positions moved, and feed the old translation through once more to compare."""
    with move_positions(translator.model, experiment, len(before.source_ids), len(before.target_ids)):
        after = translator.translate(before.source)
        with capture_attention(translator.model) as recording:
            log_probs = _forced(translator, before)
    return ExperimentResult(before, after, _labelled(recording.trace, before.trace), log_probs)


def log_prob_curve(
    translator: Translator, before: Translation, experiment: PositionExperiment, amounts: Sequence[float]
) -> np.ndarray:
    """(len(amounts),) mean log-probability a piece of the old translation keeps when the experiment grows."""
    found = []
    for amount in amounts:
        grown = replace(experiment, amount=amount)
        with move_positions(translator.model, grown, len(before.source_ids), len(before.target_ids)):
            found.append(_forced(translator, before).mean())
    return np.array(found)


@torch.inference_mode()
def _forced(translator: Translator, before: Translation) -> np.ndarray:
    """(T,) log-probability of each piece of a translation that the model is fed."""
    source = torch.tensor([before.source_ids], device=translator.device)
    target = torch.tensor([before.target_ids], device=translator.device)
    log_probs = translator.model(source, shift_right(target))[0].log_softmax(-1)
    return log_probs.gather(1, target.T)[:, 0].double().cpu().numpy()


def _giving(rows: Tensor) -> OutputHook:
    return lambda table: rows


def _between(table: Tensor, positions: np.ndarray, length: int) -> Tensor:
    last = len(table) - 1
    if positions[:length].min() < 0 or positions[:length].max() > last:
        raise ExperimentError(
            f"This model's positions are learned: its table ends at position {last}, and this would need "
            f"{positions[:length].min():g} to {positions[:length].max():g}. Choose a smaller amount."
        )
    # Slots behind the sentence may fall outside; they are held at the ends, as a longer translation may reach them.
    inside = torch.from_numpy(positions.clip(0, last)).to(table.device)
    low = inside.floor().long()
    share = (inside - low).to(table.dtype)[:, None]
    return table[low] * (1 - share) + table[(low + 1).clamp_max(last)] * share


def _labelled(trace: AttentionTrace, like: AttentionTrace) -> AttentionTrace:
    """The same maps with the names of rows and columns that those of `like` have."""
    named: dict[str, Any] = {
        kind: with_tokens(trace.maps[kind], one.query_tokens, one.key_tokens, one.predicted_tokens)
        for kind, one in like.maps.items()
    }
    return replace(trace, **named)
