"""timeline.json beside a checkpoint: the measures of every head at each snapshot of its training. No torch."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..atlas.measures import EXPLAINED
from ..atomic_write import write_file
from ..checkpoint.measurement_file import MeasurementFile
from ..language.say import to_say
from ..trace import Head

FILE = "timeline.json"
FORMAT = "attenscope-timeline-1"
PLACE = ["map", "layer", "head"]
DIGITS = 5


class TimelineError(ValueError):
    """A timeline.json that cannot be shown or made; the message says why and what to do."""


_KEPT = MeasurementFile(
    FILE,
    FORMAT,
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
        return tuple(name for name in EXPLAINED if name in self.heads and self.heads[name].notna().any())

    def courses(self, measure: str) -> dict[Head, tuple[float, ...]]:
        """A measure of every head, a number a stop; NaN where it is not defined."""
        found: dict[Head, tuple[float, ...]] = {}
        columns = (self.heads[name].tolist() for name in (*PLACE, measure))  # the rows stand in the order of the stops
        for kind, layer, head, value in zip(*columns, strict=True):
            found[kind, layer, head] = (*found.get((kind, layer, head), ()), float(value))
        return found

    def labelled(self, place: str) -> tuple[int, ...]:
        """How many heads are labelled with a place, at each stop."""
        counts = self.heads[self.heads["label"] == place].groupby("stop").size()
        return tuple(int(counts.get(stop, 0)) for stop in range(len(self.steps)))

    def write(self, folder: Path) -> None:
        """Write timeline.json into a checkpoint's folder."""
        columns = {name: [_rounded(value) for value in self.heads[name].tolist()] for name in self.heads}
        facts = {"model": self.model, "model_hash": self.model_hash, "source": self.source}
        found = {"format": FORMAT, **facts, "sentences": self.sentences, "steps": self.steps, "heads": columns}
        write_file(folder / FILE, json.dumps(found, ensure_ascii=False) + "\n")


def read_timeline(folder: Path, name: str, model_hash: str) -> Timeline:
    """Return what was measured of the model in a folder. TimelineError where nothing was, or of another model."""
    return _KEPT.read(folder, name, model_hash, _read)


def _read(found: dict[str, Any]) -> Timeline:
    timeline = Timeline(**found | {"steps": tuple(found["steps"]), "heads": _table(found["heads"])})
    if len(timeline.heads) % len(timeline.steps) or set(timeline.heads["stop"]) != set(range(len(timeline.steps))):
        raise ValueError("its stops and its rows do not fit")
    return timeline


def _table(columns: dict[str, list[Any]]) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    numbers = [name for name in table if name in EXPLAINED]
    return table.astype(dict.fromkeys(numbers, float) | {"stop": int, "layer": int, "head": int})


def _rounded(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, DIGITS)
