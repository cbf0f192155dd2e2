"""One sentence through a model at several moments of its training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checkpoint.load import Checkpoint
from ..checkpoint.snapshots import had_random_start, load_snapshot, snapshot_steps
from ..trace import AttentionTrace
from ..translate import Translation, Translator


@dataclass(frozen=True, eq=False)
class Stop:
    """The model at one moment."""

    step: int | None
    """Steps trained; None for the released weights."""
    translator: Translator


@dataclass(frozen=True, eq=False)
class Moment:
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
    def token_probability(self) -> float:
        """The probability it gives a token of the fixed translation: their geometric mean."""
        return math.exp(self.reading.log_prob / len(self.reading.steps))


def stops(checkpoint: Checkpoint, folder: str | Path | None = None) -> tuple[Stop, ...]:
    """The random start where there was one and the recipe knows its seed, every snapshot, and the released weights.

    CheckpointError.
    """
    place = folder or checkpoint.name
    steps = ((0,) if had_random_start(place) else ()) + snapshot_steps(place)
    found = [Stop(step, Translator(load_snapshot(checkpoint, step, place))) for step in steps]
    return (*found, Stop(None, Translator(checkpoint)))


def timeline(stops: Sequence[Stop], text: str, target_ids: Sequence[int]) -> tuple[Moment, ...]:
    """`text` at every stop, each reading the translation `target_ids`. InputError for a text that cannot be read."""
    return tuple(
        Moment(
            stop.step,
            stop.translator.translate(text, capture=False),
            stop.translator.force(text, target_ids),
        )
        for stop in stops
    )
