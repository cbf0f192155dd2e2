"""pruning.json beside a checkpoint: what is left of its translations as heads are taken away. No torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..atomic_write import write_file
from ..checkpoint.measurement_file import MeasurementFile
from ..language.say import to_say
from ..trace import Head

FILE = "pruning.json"
FORMAT = "attenscope-pruning-2"


class PruningError(ValueError):
    """A pruning.json that cannot be shown; the message says why and what to do."""


_KEPT = MeasurementFile(
    FILE,
    FORMAT,
    PruningError,
    "python -m model prune --checkpoint {model} --source FILE --target FILE",
    to_say("No heads of {model} have been taken away yet: measure it with `{how}`."),
)


@dataclass(frozen=True)
class Course:
    """Heads taken away in one order: a number for each number of heads left."""

    bleu: tuple[float, ...]
    log_prob: tuple[float, ...]
    """Mean of a reference token, in nats."""


@dataclass(frozen=True)
class Pruning:
    """What `python -m model prune` measured."""

    model: str
    model_hash: str
    source: str
    """The name of the text, without its folder."""
    first_line: int
    """The line of the text, from 1, that was used first."""
    sentences: int
    pairs_sha256: str
    """Of the sentences and their references, see :func:`model.checkpoint.measurement_file.pairs_sha256`."""
    signature: str
    """Of sacreBLEU."""
    left: tuple[int, ...]
    """How many heads are left, all first, 0 last."""
    order: tuple[Head, ...]
    """The heads as they are taken away by cost, the one that costs least first."""
    by_cost: Course
    random: tuple[Course, ...]
    """In orders of chance; the order of number N is :func:`model.heads.pruning.random_order` with the seed N."""

    def write(self, folder: Path) -> None:
        """Write pruning.json into a checkpoint's folder."""
        write_file(folder / FILE, json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False) + "\n")

    def removed(self, point: int) -> frozenset[Head]:
        """The heads that are gone at a point of :attr:`left`, taken away by cost."""
        return frozenset(self.order[: len(self.order) - self.left[point]])

    def fewest_with(self, share: float, bleu: Sequence[float]) -> int:
        """The fewest heads left, of one course of BLEU, down to which every point keeps a share of the first."""
        enough = self.left[0]
        for heads, score in zip(self.left, bleu, strict=True):
            if score < share * bleu[0]:
                break
            enough = heads
        return enough


def read_pruning(folder: Path, name: str, model_hash: str) -> Pruning:
    """Return what was measured of the model in a folder. PruningError where nothing was, or of another model."""
    return _KEPT.read(folder, name, model_hash, _read)


def _read(found: dict[str, Any]) -> Pruning:
    courses = [_course(one) for one in (found.pop("by_cost"), *found.pop("random"))]
    left = tuple(int(one) for one in found.pop("left"))
    order: tuple[Head, ...] = tuple((kind, int(layer), int(head)) for kind, layer, head in found.pop("order"))
    if any(len(one.bleu) != len(left) or len(one.log_prob) != len(left) for one in courses) or left[0] != len(order):
        raise ValueError("its lists are not of one length")
    if len(courses) < 2 or list(left) != sorted(set(left), reverse=True):
        raise ValueError("it has no random order, or numbers of heads that do not fall")
    return Pruning(**found, left=left, order=order, by_cost=courses[0], random=tuple(courses[1:]))


def _course(found: dict[str, Any]) -> Course:
    return Course(*(tuple(float(one) for one in found[name]) for name in ("bleu", "log_prob")))
