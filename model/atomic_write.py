"""Files written beside their place and then renamed, so that no file is ever half written; and text fit to be written:
whole characters, and CSV that no spreadsheet runs."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np

_FORMULA_START = re.compile(r"""(?:^|(?<=[,;\t\r\n"]))(?=[=+\-@\t\r])""")
"""Where a cell begins that a spreadsheet runs as a formula, also a quoted one; or would begin, where the spreadsheet
takes another sign for the end of a cell."""
QUOTED_SIGNS = frozenset(',;"\t\r\n')
"""Signs for which a cell is quoted: all that any spreadsheet takes for the end of a cell."""


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, which replaces `path` when the block ends well; else what was there before stays.

    Where `path` is no regular file, such as a pipe, it is given itself.
    """
    place = Path(os.path.realpath(path))  # A link stays one: the file that it names is replaced.
    if place.exists() and not place.is_file():
        yield place
        return
    beside = place.with_name(f".{uuid.uuid4().hex}.new")  # Without its name, which may be as long as one can be.
    try:
        yield beside
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def is_file_being_written(name: str) -> bool:
    """Whether a file so named is one that :func:`atomic_write` has not put in its place yet."""
    return re.fullmatch(r"\.[0-9a-f]{32}\.new", name) is not None


def replace_lone_surrogates(text: str) -> str:
    """Return a text that UTF-8 can hold: half of a surrogate pair, which JSON can bring, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write bytes, or text as UTF-8 (:func:`replace_lone_surrogates`), as :func:`atomic_write` does."""
    with atomic_write(path) as beside:
        beside.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))


def format_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV with its heading.

    Tokens and titles may begin with a sign that a spreadsheet runs as a formula (CWE-1236). It gets a backslash
    before it, and a backslash in a text is doubled: spreadsheets show a text, and
    ``pandas.read_csv(..., escapechar="\\\\")`` or ``csv.reader`` with the same argument give back what it was. An
    apostrophe, a blank or a tab before it, which are often advised, could not be told from what a token begins with.
    Numbers stay numbers; None and NaN are empty.
    """
    return "".join(",".join(map(_format_csv_cell, row)) + "\n" for row in (names, *rows))


def _format_csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (Number, np.bool_)):
        return "" if value != value else str(value)
    text = _FORMULA_START.sub(r"\\", replace_lone_surrogates(str(value)).replace("\\", "\\\\"))
    return '"' + text.replace('"', '""') + '"' if QUOTED_SIGNS & set(text) else text
