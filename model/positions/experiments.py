"""Run a model with its positional encoding changed, through hooks that act in one thread and are then removed.

An experiment moves the positions. It replaces the whole table before rows are looked up, so the encoder, a full pass
of the decoder and a cached step at any offset see the same positions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..decoding.greedy_and_sampling import teacher_forced_log_probs
from ..language import say
from ..network.abstract_model import AutoregressiveModel, Side
from ..network.layers import AddedPositions
from ..runnable_model import RunnableModel, Translation
from ..trace import AttentionTrace, replace_tokens

PositionMove = Literal["remove", "shift", "reverse", "shuffle", "stretch", "swap", "beyond"]
POSITION_MOVES: tuple[PositionMove, ...] = get_args(PositionMove)
ExperimentSides = Literal["source", "target", "both"]
EXPERIMENT_SIDES: tuple[ExperimentSides, ...] = get_args(ExperimentSides)


class ExperimentError(ValueError):
    """An experiment that this model or this sentence cannot take; the message is the sentence to show."""


@dataclass(frozen=True)
class PositionExperiment:
    """One change to the positional encoding of one side or both."""

    move: PositionMove
    amount: float = 0.0
    """Positions to shift by, the factor to stretch by, the seed of the shuffle, or the position to begin at."""
    pair: tuple[int, int] = (0, 1)
    """The two positions that are swapped, from 0."""
    sides: ExperimentSides = "both"
    """A model with a decoder alone has one side, whatever this is."""


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
    def log_prob_drop(self) -> float:
        """Mean log-probability a piece of the old translation has lost, in nats; negative if it gained."""
        return float(np.mean([step.log_prob for step in self.before.steps]) - self.log_probs.mean())


def compute_new_positions(experiment: PositionExperiment, length: int, count: int) -> np.ndarray:
    """Return (count,) float64: the position each slot is given instead of its own, for a sentence of `length` pieces.

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
                say(
                    "The sentence has {length} pieces, so positions 1 to {length} can be swapped; {position} is "
                    "outside.",
                    length=length,
                    position=max(one, other) + 1,
                )
            )
        positions[[one, other]] = positions[[other, one]]
    return positions


@contextmanager
def apply_position_experiment(
    network: AutoregressiveModel, experiment: PositionExperiment, source_length: int, target_length: int
) -> Iterator[None]:
    """Run the network inside the block, in this thread, with its positions moved. Raises ExperimentError.

    A side that adds no positions is left as it is. The target of a decoder alone begins with its prompt.
    """
    lengths: dict[Side, int] = {"source": source_length, "target": target_length}
    with ExitStack() as stack:
        for side, length in lengths.items():
            added = network.added_positions(side)
            if added is not None and experiment.sides in (side, "both"):
                stack.enter_context(added.replace_rows(compute_replacement_position_rows(added, experiment, length)))
        yield


def compute_replacement_position_rows(added: AddedPositions, experiment: PositionExperiment, length: int) -> Tensor:
    """Return the rows (P, D) the experiment puts in place of the model's: of the same shape, type and device.

    A row of a formula is computed afresh, so any position will do, whole or not, also past the last row. Between two
    rows of a learned table lies their mean by distance; past its ends there is nothing (ExperimentError).
    """
    if experiment.move == "remove":
        return torch.zeros_like(added.rows)
    positions = compute_new_positions(experiment, length, len(added.rows))
    if added.formula is None:
        return _interpolate_rows(added.rows, positions, length)
    return added.formula(torch.from_numpy(positions).to(added.rows.device)).to(added.rows)


def run_experiment(model: RunnableModel, before: Translation, experiment: PositionExperiment) -> ExperimentResult:
    """Translate again with the positions moved, and feed in the old translation once more to compare."""
    with _apply_experiment_to_model(model, before, experiment):
        after = model.translate(before.source)
        with capture_attention(model.model) as recording:
            log_probs = _translation_log_probs(model, before)
    return ExperimentResult(before, after, _copy_token_names(recording.trace, before.trace), log_probs)


def compute_log_prob_curve(
    model: RunnableModel, before: Translation, experiment: PositionExperiment, amounts: Sequence[float]
) -> np.ndarray:
    """Return the mean log-probability (len(amounts),) of a piece of the old translation at each amount."""
    found = []
    for amount in amounts:
        with _apply_experiment_to_model(model, before, replace(experiment, amount=amount)):
            found.append(_translation_log_probs(model, before).mean())
    return np.array(found)


def _apply_experiment_to_model(
    model: RunnableModel, before: Translation, experiment: PositionExperiment
) -> AbstractContextManager[None]:
    if not model.can("positions"):
        raise ExperimentError(model.cannot("positions"))
    if not model.can("translate"):
        experiment = replace(experiment, sides="both")
    fed = before.trace.maps["decoder"].query_tokens
    return apply_position_experiment(model.model, experiment, len(before.source_ids), len(fed))


def _translation_log_probs(model: RunnableModel, before: Translation) -> np.ndarray:
    """(T,) log-probability of each piece of a translation that the model is fed."""
    log_probs = teacher_forced_log_probs(
        model.model, torch.tensor([before.source_ids], device=model.device), before.target_ids
    )
    target = torch.tensor([before.target_ids], device=model.device)
    return log_probs.gather(1, target.T)[:, 0].double().cpu().numpy()


def _interpolate_rows(table: Tensor, positions: np.ndarray, length: int) -> Tensor:
    last = len(table) - 1
    if positions[:length].min() < 0 or positions[:length].max() > last:
        raise ExperimentError(
            say(
                "This model's positions are learned: its table ends at position {last}, and this would need {low:g} to "
                "{high:g}. Choose a smaller amount.",
                last=last,
                low=float(positions[:length].min()),
                high=float(positions[:length].max()),
            )
        )
    # Slots behind the sentence may fall outside; they are held at the ends, as a longer translation may reach them.
    inside = torch.from_numpy(positions.clip(0, last)).to(table.device)
    low = inside.floor().long()
    share = (inside - low).to(table.dtype)[:, None]
    return table[low] * (1 - share) + table[(low + 1).clamp_max(last)] * share


def _copy_token_names(trace: AttentionTrace, like: AttentionTrace) -> AttentionTrace:
    """The same maps with the names of rows and columns that those of `like` have."""
    named: dict[str, Any] = {
        kind: replace_tokens(trace.maps[kind], one.query_tokens, one.key_tokens, one.predicted_tokens)
        for kind, one in like.maps.items()
    }
    return replace(trace, **named)
