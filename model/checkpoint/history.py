"""The course of a training: history.csv, a row every so many steps."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from ..atomic_write import csv_text, write_file
from ..language.say import listed, say

HISTORY = "history.csv"


class HistoryError(ValueError):
    """A history that cannot be read; the message names the file and the fault."""


@dataclass(frozen=True)
class HistoryRow:
    """One line of history.csv."""

    step: int
    epoch: int
    loss: float
    """Label-smoothed cross-entropy a target token, mean since the last row."""
    rate: float
    tokens_per_second: float
    seconds: float
    """Training time since step 0, over all sessions."""
    bleu: float | None = None
    """Greedy sacreBLEU on the first `evaluate_sentences` of dev, or empty."""


NAMES = tuple(field.name for field in fields(HistoryRow))


def write_history(rows: Sequence[HistoryRow], path: Path) -> None:
    write_file(path, csv_text(NAMES, [tuple(asdict(row).values()) for row in rows]))


def read_history(folder: Path) -> tuple[HistoryRow, ...]:
    """Return the rows in a checkpoint's folder; none where there is no history. HistoryError."""
    path = folder / HISTORY
    if not path.exists():
        return ()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(file)
            if not set(NAMES) <= set(lines.fieldnames or ()):
                raise ValueError("columns are missing")
            return tuple(map(_row, lines))
    except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
        raise HistoryError(
            say(
                "{folder}/{history} is not a training history: it must have the columns {names} and numbers in them.",
                folder=folder.name,
                history=HISTORY,
                names=listed(NAMES),
            )
        ) from error


def _row(line: dict[str, str]) -> HistoryRow:
    loss, rate, speed, seconds = (float(line[name]) for name in ("loss", "rate", "tokens_per_second", "seconds"))
    bleu = float(line["bleu"]) if line["bleu"] else None
    return HistoryRow(int(line["step"]), int(line["epoch"]), loss, rate, speed, seconds, bleu)
