"""One matrix from text, as numpy, pandas, R and spreadsheets write it.

Cells are separated by tabs, semicolons, commas or blanks. One heading and one column of names are skipped, be they
words or numbers that count; an empty cell is NaN, as pandas writes it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from itertools import chain

import numpy as np

from ...language.say import say, to_say
from ..inputs.arrays import DiagnosisError

SEPARATORS = "\t;,"
"""Separators in the order in which they are tried; the comma last, which may be that of 0,5."""
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?")
SEPARATOR_LINES, SEPARATOR_CELLS = 20, 1000
"""Number of last lines in which the separator is looked for, and of the first cells of each."""
MAX_ROWS, MAX_CELLS = 200_000, 2**22
"""Most of a table: it is counted before it is read, since a cell of text takes far more memory than a number."""

Rows = list[list[str]]


def read_table(text: str) -> np.ndarray:
    """Return (Q, K) bool, int64 where all is 0 and 1 (text does not tell a float mask from a boolean one), or float64.

    Raises:
        DiagnosisError: for rows of different lengths, and for cells that are no numbers.
    """
    rows = _without_names(_rows(text))
    if not rows:
        raise DiagnosisError(say("The file has no rows."))
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise DiagnosisError(
            say(
                "The rows of the file have different lengths, from {least} to {most} cells; every row needs a cell for "
                "each key.",
                least=lengths[0],
                most=lengths[-1],
            )
        )
    if all(_is_boolean(cell) for row in rows for cell in row):
        return np.array([[cell.lower() == "true" for cell in row] for row in rows])
    array = np.array([_numbers(row, at) for at, row in enumerate(rows, 1)])
    return array.astype(np.int64) if np.isin(array, (0, 1)).all() else array


def _rows(text: str) -> Rows:
    """Return the cells without blanks around them, a decimal comma made a point."""
    lines = text.splitlines()
    _check_count(len(lines), MAX_ROWS, to_say("The table has {count:,} rows; {most:,} are read. Save it as .npy."))
    separator = _separator(text.strip("\r\n").splitlines()[-SEPARATOR_LINES:])
    cells = text.count(separator) + len(lines) if separator else sum(len(line.split()) for line in lines)
    _check_count(cells, MAX_CELLS, to_say("The table has {count:,} cells; {most:,} are read. Save it as .npy."))
    if not separator:
        return [[cell.strip('"') for cell in line.split()] for line in lines if line.strip()]
    read = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows = [[cell.strip() for cell in row] for row in read if len(row) > 1 or any(map(str.strip, row))]
    if any(map(any, rows)) and all(not row[-1] for row in rows):  # each line ends with a separator
        rows = [row[:-1] for row in rows]
    return rows if separator == "," or "," not in text else [[_with_point(cell) for cell in row] for row in rows]


def _check_count(count: int, most: int, refusal: str) -> None:
    if count > most:
        raise DiagnosisError(say(refusal, count=count, most=most))


def _separator(lines: list[str]) -> str:
    """Return the first that gives a line several cells and, after the first of them, a number; empty for blanks."""
    for separator in SEPARATORS:
        for cells in csv.reader(lines, delimiter=separator):
            some = cells[1 : 1 + SEPARATOR_CELLS]
            if any(cell.strip() and _is_value(_with_point(cell.strip())) for cell in some):
                return separator
    return ""


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell


def _without_names(rows: Rows) -> Rows:
    """Return the rows without a heading and a column of names."""
    headed = len(rows) > 1 and _is_heading(rows[0], rows[1:])
    corner = headed and not rows[0][0]
    body = rows[1:] if headed else rows
    if not all(len(row) > 1 for row in body):
        return body
    first, rest = [row[0] for row in body], [row[1:] for row in body]
    return rest if corner or _mostly_words(first) or _is_count(first, chain(*rest)) else body


def _is_heading(row: list[str], body: Rows) -> bool:
    start = int(len(row) > 1 and not _is_float(row[0]))  # the corner above a column of names may be anything
    names = row[start:]
    others = () if not row[0] else chain(*(one[start:] for one in body))
    return _mostly_words(names) or _is_count(names, others)


def _mostly_words(cells: list[str]) -> bool:
    """Whether the cells are names, some of which may be tokens that are numbers."""
    return 2 * sum(bool(cell) and not _is_value(cell) for cell in cells) > len(cells)


def _is_count(cells: list[str], others: Iterable[str]) -> bool:
    """Whether the cells are 0, 1, 2, ... or 1, 2, 3, ..., and the others no whole numbers, or the two of a mask."""
    size = len(cells)
    if size < 2 or cells not in ([*map(str, range(size))], [*map(str, range(1, size + 1))]):
        return False
    return len({cell for cell in others if cell.removeprefix("-").isdigit()}) <= (2 if size > 2 else 0)


def _numbers(cells: list[str], row: int) -> list[float]:
    try:
        return list(map(float, cells))
    except ValueError:  # a cell is empty, or a word
        return [_number(cell, row, column) for column, cell in enumerate(cells, 1)]


def _number(cell: str, row: int, column: int) -> float:
    if cell and not _is_float(cell):
        shown = cell if len(cell) < 24 else f"{cell[:24]}…"
        raise DiagnosisError(
            say(
                "Row {row}, column {column} of the matrix holds {shown}, which is not a number. Beside numbers there "
                "may be one heading and one column of names.",
                row=row,
                column=column,
                shown=repr(shown),
            )
        )
    return float(cell or "nan")


def _is_value(cell: str) -> bool:
    return not cell or _is_float(cell) or _is_boolean(cell)


def _is_boolean(cell: str) -> bool:
    return cell.lower() in ("true", "false")


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
