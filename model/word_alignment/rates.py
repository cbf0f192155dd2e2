"""alignment.json beside a checkpoint: the alignment error rate of every cross-attention head. No torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ..analysis.alignment import READINGS, Reading
from ..atomic_write import write_file
from ..checkpoint.measurement_file import MeasurementFile
from ..language.say import to_say

FILE = "alignment.json"
FORMAT = "attenscope-alignment-1"
Part = Literal["head", "layer", "all"]
MOST = 1000
"""Layers, or heads of a layer, that a file may name."""


class AlignmentError(ValueError):
    """An alignment.json that cannot be shown; the message says why and what to do."""


_KEPT = MeasurementFile(
    FILE,
    FORMAT,
    AlignmentError,
    "python -m model align --checkpoint {model}",
    to_say(
        "{model} has not been held against a gold alignment: `{how}` does it with the released one of English and "
        "German, `{how} --gold FOLDER` with one of your own."
    ),
)


@dataclass(frozen=True)
class Rate:
    """One alignment held against the gold."""

    part: Part
    """A head, the mean of the heads of a layer, or the mean of all heads."""
    layer: int
    """From 0; -1 for the mean of all."""
    head: int
    """From 0; -1 for a mean."""
    reading: Reading
    aer: float
    low: float
    """The 95% bootstrap interval over pairs."""
    high: float
    precision: float
    recall: float


@dataclass(frozen=True)
class Rates:
    """What `python -m model align` measured."""

    model: str
    model_hash: str
    gold: str
    gold_sha256: str
    pairs: int
    left_out: int
    """Pairs that the model cannot read."""
    sure: int
    possible: int
    """Links of the gold; possible ones that are not sure."""
    diagonal: float
    """The error rate of linking each word to that at the same share of the other sentence: what order alone gives."""
    held_out: float
    """That of the best head, chosen on one half of the pairs and measured on the other, both ways."""
    rates: tuple[Rate, ...]

    def best(self, part: Part) -> Rate:
        """The lowest error rate of the heads, of the layers or of the mean of all, whichever the reading."""
        return min((one for one in self.rates if one.part == part), key=lambda one: one.aer)

    def of(self, part: Part, layer: int, head: int, reading: Reading) -> Rate:
        """One of the rates."""
        wanted = (part, layer, head, reading)
        return next(one for one in self.rates if (one.part, one.layer, one.head, one.reading) == wanted)

    def write(self, folder: Path) -> None:
        """Write alignment.json into a checkpoint's folder."""
        write_file(folder / FILE, json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False) + "\n")


def read_rates(folder: Path, name: str, model_hash: str) -> Rates:
    """Return what was measured of the model in a folder. AlignmentError where nothing was, or of another model."""
    return _KEPT.read(folder, name, model_hash, _read)


def _read(found: dict[str, Any]) -> Rates:
    rates = Rates(**found | {"rates": tuple(_rate(one) for one in found["rates"])})
    if {one.part for one in rates.rates} != set(get_args(Part)):
        raise ValueError("it lacks the rates of heads, layers or all")
    return rates


def _rate(found: dict[str, Any]) -> Rate:
    rate = Rate(**found)
    numbers = rate.aer, rate.low, rate.high, rate.precision, rate.recall
    places = (rate.layer, rate.head)
    if rate.part not in get_args(Part) or rate.reading not in READINGS:
        raise ValueError("a rate is of no part or reading")
    if not all(isinstance(one, int) and -1 <= one < MOST for one in places):
        raise ValueError("a rate has no layer and head")
    aer, low, high, precision, recall = (float(one) for one in numbers)
    return Rate(rate.part, rate.layer, rate.head, rate.reading, aer, low, high, precision, recall)
