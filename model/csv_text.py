"""CSV as the project writes it: safe to be opened in a spreadsheet, and read back as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from .atomic_write import whole_characters

_RUN = re.compile(r"""(?:^|(?<=[,;\t\r\n"]))(?=[=+\-@\t\r])""")
"""Where a cell begins that a spreadsheet runs as a formula, also a quoted one; or would begin, where the spreadsheet
takes another sign for the end of a cell."""
QUOTED = frozenset(',;"\t\r\n')
"""Signs for which a cell is quoted: all that any spreadsheet takes for the end of a cell."""


def csv_text(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV with its heading.

    Tokens and titles may begin with a sign that a spreadsheet runs as a formula (CWE-1236). It gets a backslash
    before it, and a backslash in a text is doubled: spreadsheets show a text, and
    ``pandas.read_csv(..., escapechar="\\\\")`` or ``csv.reader`` with the same argument give back what it was. An
    apostrophe, a blank or a tab before it, which are often advised, could not be told from what a token begins with.
    Numbers stay numbers; None and NaN are empty.
    """
    return "".join(",".join(map(_cell, row)) + "\n" for row in (names, *rows))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (Number, np.bool_)):
        return "" if value != value else str(value)
    text = _RUN.sub(r"\\", whole_characters(str(value)).replace("\\", "\\\\"))
    return '"' + text.replace('"', '""') + '"' if QUOTED & set(text) else text
