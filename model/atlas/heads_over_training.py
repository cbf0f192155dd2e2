"""Measure every head at each snapshot of a training, on one corpus, and read and write timeline.json."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..atomic_write import write_file
from ..checkpoint.measurements import MeasurementFile
from ..experiments.lens import TrainingSnapshot
from ..language import say, to_say
from ..trace import Head
from ..translate import Translator
from .build import Corpus, build_heads_table, encode_or_translate_pairs, read_usable_pairs
from .files import PART_SUMS, PartTables
from .measure import MEASURE_EXPLANATIONS, measure_heads
from .query import label_head
from .teacher_forced_batches import Sentence, make_batches, run_batch


def measure_timeline(
    stops: Sequence[TrainingSnapshot],
    corpus: Corpus,
    costs: bool = False,
    on_progress: Callable[[int], None] = lambda stops: None,
) -> Timeline:
    """Measure the heads of every stop; the released weights come last.

    Raises TimelineError where the model can read no line of the corpus.
    """
    released = stops[-1].translator
    numbers = range(-(-corpus.lines // corpus.size))
    parts = [encode_or_translate_pairs(released, read_usable_pairs(released, corpus, number)[0]) for number in numbers]
    sentences = sum(map(len, parts))
    if not sentences:
        raise TimelineError(say("{model} can read no line of {file}.", model=released.name, file=corpus.source))
    tables = []
    for stop in stops:
        tables.append(_measure_snapshot(stop.translator, parts, costs, sentences))
        on_progress(1)
    return Timeline(
        released.name,
        released.checkpoint.hash,
        corpus.source.name,
        sentences,
        tuple(stop.step for stop in stops),
        pd.concat(tables, keys=range(len(tables)), names=["stop"]).reset_index("stop").reset_index(drop=True),
    )


def _measure_snapshot(
    translator: Translator, parts: Sequence[Sequence[Sentence]], costs: bool, sentences: int
) -> pd.DataFrame:
    """A row a head: its place, its label, "" for none, and its measures."""
    tables = PartTables(least_weight=1.0)  # of links none are wanted
    for part in parts:
        for batch in make_batches(part, translator.device):
            found = run_batch(translator.model, batch)
            tables.add(found, measure_heads(translator.model, found, costs))
    sums = tables.tables()[PART_SUMS].to_pandas().drop(columns="half")
    heads = build_heads_table(sums, [])
    labels = [label_head(row, sentences).place or "" for _, row in heads.iterrows()]
    return (
        heads[TIMELINE_HEAD_COLUMNS]
        .assign(label=labels)
        .join(heads[[name for name in MEASURE_EXPLANATIONS if name in heads]])
    )


# timeline.json, beside a checkpoint.


TIMELINE_FILE = "timeline.json"
TIMELINE_FORMAT = "attenscope-timeline-1"
TIMELINE_HEAD_COLUMNS = ["map", "layer", "head"]
TIMELINE_DIGITS = 5


class TimelineError(ValueError):
    """A timeline.json that cannot be shown or made; the message says why and what to do."""


_TIMELINE_MEASUREMENT = MeasurementFile(
    TIMELINE_FILE,
    TIMELINE_FORMAT,
    TimelineError,
    "python -m model timeline --checkpoint {model} --source FILE --target FILE",
    to_say("The heads of {model} have not been measured over its training. Where it kept snapshots, `{how}` does it."),
)


@dataclass(frozen=True, eq=False)
class Timeline:
    """What `python -m model timeline` measured."""

    model: str
    model_hash: str
    source: str
    """The name of the text, without its folder."""
    sentences: int
    steps: tuple[int | None, ...]
    """Of each stop, in the order of the training; None for the released weights, which are the last."""
    heads: pd.DataFrame
    """A row a stop and head, in the order of the stops: ``stop`` (from 0), map, layer, head, ``label`` ("" for none)
    and the measures."""

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that were taken."""
        return tuple(name for name in MEASURE_EXPLANATIONS if name in self.heads and self.heads[name].notna().any())

    def courses(self, measure: str) -> dict[Head, tuple[float, ...]]:
        """A measure of every head, a number a stop; NaN where it is not defined."""
        found: dict[Head, tuple[float, ...]] = {}
        # The rows stand in the order of the stops.
        columns = (self.heads[name].tolist() for name in (*TIMELINE_HEAD_COLUMNS, measure))
        for kind, layer, head, value in zip(*columns, strict=True):
            found[kind, layer, head] = (*found.get((kind, layer, head), ()), float(value))
        return found

    def count_labelled_heads(self, place: str) -> tuple[int, ...]:
        """How many heads are labelled with a place, at each stop."""
        counts = self.heads[self.heads["label"] == place].groupby("stop").size()
        return tuple(int(counts.get(stop, 0)) for stop in range(len(self.steps)))

    def write(self, folder: Path) -> None:
        """Write timeline.json into a checkpoint's folder."""
        columns = {name: [_round_value(value) for value in self.heads[name].tolist()] for name in self.heads}
        facts = {"model": self.model, "model_hash": self.model_hash, "source": self.source}
        found = {"format": TIMELINE_FORMAT, **facts, "sentences": self.sentences, "steps": self.steps, "heads": columns}
        write_file(folder / TIMELINE_FILE, json.dumps(found, ensure_ascii=False) + "\n")


def read_timeline(folder: Path, name: str, model_hash: str) -> Timeline:
    """Return what was measured of the model in a folder.

    Raises TimelineError where nothing was, or of another model.
    """
    return _TIMELINE_MEASUREMENT.read(folder, name, model_hash, _parse_timeline)


def _parse_timeline(found: dict[str, Any]) -> Timeline:
    timeline = Timeline(**found | {"steps": tuple(found["steps"]), "heads": _parse_heads_table(found["heads"])})
    if len(timeline.heads) % len(timeline.steps) or set(timeline.heads["stop"]) != set(range(len(timeline.steps))):
        raise ValueError("its stops and its rows do not fit")
    return timeline


def _parse_heads_table(columns: dict[str, list[Any]]) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    numbers = [name for name in table if name in MEASURE_EXPLANATIONS]
    return table.astype(dict.fromkeys(numbers, float) | {"stop": int, "layer": int, "head": int})


def _round_value(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, TIMELINE_DIGITS)
