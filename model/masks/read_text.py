"""Arrays from text: tables, printed tensors and drawn masks, the names before them, and how their axes were read."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import chain, islice
from typing import Any

import numpy as np

from ..language import join_items, join_sentences, say, say_many, to_say
from ..trace import KINDS
from .array_normalisation import find_axis_sizes
from .arrays import ARGUMENT_ROLES, ARRAY_NAMES, DiagnosisError, is_known_array_name
from .structure import recognise_structure

# Tables: one matrix from text, as numpy, pandas, R and spreadsheets write it. Cells are separated by tabs, semicolons,
# commas or blanks. One heading and one column of names are skipped, be they words or numbers that count; an empty cell
# is NaN, as pandas writes it.


SEPARATORS = "\t;,"
"""Separators in the order in which they are tried; the comma last, which may be that of 0,5."""
DECIMAL_COMMA_PATTERN = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?")
SEPARATOR_LINES, SEPARATOR_CELLS = 20, 1000
"""Number of last lines in which the separator is looked for, and of the first cells of each."""
MAX_TABLE_ROWS, MAX_TABLE_CELLS = 200_000, 2**22
"""Largest table; it is counted before it is read, since a cell of text takes far more memory than a number."""

TableRows = list[list[str]]


def read_table(text: str) -> np.ndarray:
    """Return (Q, K) bool, int64 where all is 0 and 1 (text does not tell a float mask from a boolean one), or float64.

    Raises:
        DiagnosisError: for rows of different lengths, and for cells that are no numbers.
    """
    rows = _remove_heading_and_names(_split_rows(text))
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
    array = np.array([_parse_numbers(row, at) for at, row in enumerate(rows, 1)])
    return array.astype(np.int64) if np.isin(array, (0, 1)).all() else array


def _split_rows(text: str) -> TableRows:
    """Return the cells without blanks around them, a decimal comma made a point."""
    lines = text.splitlines()
    _check_count(
        len(lines), MAX_TABLE_ROWS, to_say("The table has {count:,} rows; {most:,} are read. Save it as .npy.")
    )
    separator = _find_separator(text.strip("\r\n").splitlines()[-SEPARATOR_LINES:])
    cells = text.count(separator) + len(lines) if separator else sum(len(line.split()) for line in lines)
    _check_count(cells, MAX_TABLE_CELLS, to_say("The table has {count:,} cells; {most:,} are read. Save it as .npy."))
    if not separator:
        return [[cell.strip('"') for cell in line.split()] for line in lines if line.strip()]
    read = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows = [[cell.strip() for cell in row] for row in read if len(row) > 1 or any(map(str.strip, row))]
    if any(map(any, rows)) and all(not row[-1] for row in rows):  # each line ends with a separator
        rows = [row[:-1] for row in rows]
    return (
        rows
        if separator == "," or "," not in text
        else [[_replace_decimal_comma(cell) for cell in row] for row in rows]
    )


def _check_count(count: int, most: int, refusal: str) -> None:
    if count > most:
        raise DiagnosisError(say(refusal, count=count, most=most))


def _find_separator(lines: list[str]) -> str:
    """Return the first that gives a line several cells and, after the first of them, a number; empty for blanks."""
    for separator in SEPARATORS:
        for cells in csv.reader(lines, delimiter=separator):
            some = cells[1 : 1 + SEPARATOR_CELLS]
            if any(cell.strip() and _is_cell_value(_replace_decimal_comma(cell.strip())) for cell in some):
                return separator
    return ""


def _replace_decimal_comma(cell: str) -> str:
    return cell.replace(",", ".") if DECIMAL_COMMA_PATTERN.fullmatch(cell) else cell


def _remove_heading_and_names(rows: TableRows) -> TableRows:
    """Return the rows without a heading and a column of names."""
    headed = len(rows) > 1 and _is_heading(rows[0], rows[1:])
    corner = headed and not rows[0][0]
    body = rows[1:] if headed else rows
    if not all(len(row) > 1 for row in body):
        return body
    first, rest = [row[0] for row in body], [row[1:] for row in body]
    return rest if corner or _mostly_words(first) or _is_numbering(first, chain(*rest)) else body


def _is_heading(row: list[str], body: TableRows) -> bool:
    start = int(len(row) > 1 and not _is_float(row[0]))  # the corner above a column of names may be anything
    names = row[start:]
    others = () if not row[0] else chain(*(one[start:] for one in body))
    return _mostly_words(names) or _is_numbering(names, others)


def _mostly_words(cells: list[str]) -> bool:
    """Whether the cells are names, some of which may be tokens that are numbers."""
    return 2 * sum(bool(cell) and not _is_cell_value(cell) for cell in cells) > len(cells)


def _is_numbering(cells: list[str], others: Iterable[str]) -> bool:
    """Whether the cells are 0, 1, 2, ... or 1, 2, 3, ..., and the others no whole numbers, or the two of a mask."""
    size = len(cells)
    if size < 2 or cells not in ([*map(str, range(size))], [*map(str, range(1, size + 1))]):
        return False
    return len({cell for cell in others if cell.removeprefix("-").isdigit()}) <= (2 if size > 2 else 0)


def _parse_numbers(cells: list[str], row: int) -> list[float]:
    try:
        return list(map(float, cells))
    except ValueError:  # a cell is empty, or a word
        return [_parse_number(cell, row, column) for column, cell in enumerate(cells, 1)]


def _parse_number(cell: str, row: int, column: int) -> float:
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


def _is_cell_value(cell: str) -> bool:
    return not cell or _is_float(cell) or _is_boolean(cell)


def _is_boolean(cell: str) -> bool:
    return cell.lower() in ("true", "false")


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# Printed tensors of torch, numpy and TensorFlow, and plain nested lists. The text is split into signs and numbers, and
# nothing of it is ever evaluated.


MAX_PRINT_CHARACTERS = 2_000_000
MAX_PRINT_DEPTH = 8
MAX_PRINT_ARRAYS = 256
MAX_PRINT_ROWS = 200_000
SHORTENED_TEXT = to_say(
    "The print is shortened with “...”, so most values are missing. Print it whole: "
    'torch.set_printoptions(profile="full") or np.set_printoptions(threshold=sys.maxsize), then paste again.'
)
CODE_TEXT = to_say("This is code, and nothing of it is run. Print what it made, print(mask), and paste that.")
UNNAMED_TEXT = to_say("There are several arrays. Put a name before each, such as “weights = tensor(...)”.")

# Every repetition is possessive (*+) or bounded: a text is read forwards alone, in time in proportion to its length.
_NUMBER_PATTERN = r"[-+]?(?>\d++\.?\d*+|\.\d++)(?>[eE][-+]?\d++)?+"
_WORD_PATTERN = r"(?:[-+]?\b(?:inf|infinity|nan)|(?<![-+])\b(?:true|false|null|none))\b"
_NUMBER_OR_WORD_PATTERN = rf"{_NUMBER_PATTERN}(?![\w.])|{_WORD_PATTERN}"
_VALUE_PATTERN = re.compile(rf"[\s,]*+({_NUMBER_OR_WORD_PATTERN})", re.IGNORECASE)
_VALUES_PATTERN = re.compile(rf"(?:[\s,]*+(?>{_NUMBER_OR_WORD_PATTERN}))*+", re.IGNORECASE)
_GAP_PATTERN = re.compile(r"[\s,]*+")
_PIECE_PATTERN = re.compile(r"\[(?P<row>[^\[\]()⟨]*+)\]|(?P<sign>[\[\]()⟨])|(?P<values>[^\[\]()⟨]++)")
_DIGITS_PATTERN = re.compile(r"[\d\s,+-]*+", re.ASCII)
_DECIMALS_PATTERN = re.compile(r"[\d\s,.eE+-]*+", re.ASCII)
_DETAIL_PATTERN = re.compile(
    r"\b(?:dtype|device|grad_fn|requires_grad|size|shape|layout|weak_type)\s*+=\s*+"
    r"(?:<[^<>\n]{0,80}>|'[^'\n]{0,80}'|\"[^\"\n]{0,80}\"|\([^()\n]{0,80}\)|[\w.]++)"
)
_DTYPE_PATTERN = re.compile(r"\bdtype\s*+=\s*+['\"]?(?:torch\.|np\.|numpy\.|jnp\.|tf\.|<dtype: ')?(\w++)")
_CALL_PATTERN = re.compile(
    r"(?:Parameter containing:\s*+)?\b(?:(?:np|numpy|torch|jnp)\.)?(?:tensor|array|Tensor|Array|DeviceArray)\s*+\("
)
_TENSORFLOW_PATTERN = re.compile(r"<tf\.Tensor:?[^\[\]<>]{0,200}?numpy\s*+=\s*+")
_NAME_PATTERN = re.compile(r"^[ \t]*+([A-Za-z_][\w.]*+)\s*+[:=]\s*+(?=[\[(⟨\d.+\-A-Za-z])", re.MULTILINE)
_DTYPE_FORMATS = {"float16": "f2", "half": "f2", "float32": "f4", "float64": "f8", "double": "f8", "bfloat16": "f4"}


def read_printed_tensors(text: str) -> dict[str, np.ndarray]:
    """Return the arrays of a text by the names before them; a single one without a name has the name ``""``.

    Raises:
        DiagnosisError: for a text that is no whole print of numbers; the message is one sentence or two.
    """
    if not text.strip():
        raise DiagnosisError(say("There is nothing to read yet: paste a printed tensor or nested lists."))
    if len(text) <= MAX_PRINT_CHARACTERS and is_drawn_mask(text):
        return {"": _read_drawn_mask(text)}
    if len(text) > MAX_PRINT_CHARACTERS:
        raise DiagnosisError(
            say(
                "The text has {characters:,} characters; {most:,} are read. Upload a file.",
                characters=len(text),
                most=MAX_PRINT_CHARACTERS,
            )
        )
    if (rows := _count_rows(text)) > MAX_PRINT_ROWS:
        raise DiagnosisError(
            say("The text has {rows:,} rows; {most:,} are read. Upload a file.", rows=rows, most=MAX_PRINT_ROWS)
        )
    if "..." in text or "…" in text:
        raise DiagnosisError(say(SHORTENED_TEXT))
    text = remove_console_prompts(text)
    found: dict[str, np.ndarray] = {}
    for name, part in _split_assignments(text):
        if name in found:
            raise DiagnosisError(say("{name} is there twice.", name=name) if name else say(UNNAMED_TEXT))
        found[name] = _parse_array(part, name or say("The array"))
    return found


def _count_rows(text: str) -> int:
    """Return the number of rows: those in brackets, or lines where there are none."""
    return text.count("[") + text.count("(") or len(text.splitlines())


def _split_assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and text of every assignment; a text without one is a single part."""
    starts = list(islice(_NAME_PATTERN.finditer(_remove_dtype_details(text, " ")), MAX_PRINT_ARRAYS + 1))
    if len(starts) > MAX_PRINT_ARRAYS:
        raise DiagnosisError(say("The text names more than {most} arrays; fewer are read.", most=MAX_PRINT_ARRAYS))
    if not starts:
        yield "", text
        return
    if text[: starts[0].start()].strip():
        raise DiagnosisError(say(UNNAMED_TEXT))
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        yield start[1], text[start.end() : after.start() if after else len(text)]


def _remove_dtype_details(text: str, fill: str = "") -> str:
    """Return the text with ``, dtype=...`` and the like taken away, or each character of them replaced by ``fill``."""
    parts, at = [], 0
    for match in _DETAIL_PATTERN.finditer(text):
        before = text[at : match.start()].rstrip().removesuffix(",")
        parts += [before, fill * (match.end() - at - len(before))]
        at = match.end()
    return "".join([*parts, text[at:]])


def _parse_array(text: str, name: str) -> np.ndarray:
    format_name = _DTYPE_PATTERN.search(text)
    plain = _remove_dtype_details(_TENSORFLOW_PATTERN.sub("", text)).replace(">", " ")
    plain = _CALL_PATTERN.sub("⟨", plain)
    if "[" not in plain and "(" not in plain:
        plain = "".join(f"[{line}]" for line in plain.strip("⟨) \n").splitlines() if line.strip())
    tops = _parse_brackets(plain, name)
    if not tops:
        raise DiagnosisError(say("{name} holds no numbers.", name=name))
    array = _build_regular_array(tops[0] if len(tops) == 1 else tops, name)
    number_format = _DTYPE_FORMATS.get(format_name[1]) if format_name else None
    with np.errstate(over="ignore"):
        return array.astype(number_format) if number_format and array.dtype.kind == "f" else array


def _parse_brackets(text: str, name: str) -> list[Any]:
    """Return the brackets as lists, without recursion."""
    stack: list[tuple[str, list[Any]]] = [("", [])]
    for piece in _PIECE_PATTERN.finditer(text):
        row, sign, values = piece.groups()
        if values is not None:
            stack[-1][1].extend(_parse_values(values, name, text))
        elif sign is None or sign in "[(⟨":
            if len(stack) > MAX_PRINT_DEPTH:
                deep = say("{name} is nested more than {most} brackets deep.", name=name, most=MAX_PRINT_DEPTH)
                raise DiagnosisError(deep)
            if row is not None:
                stack[-1][1].append(_parse_values(row, name, text))
            else:
                stack.append((sign, []))
        else:
            opened, items = stack.pop()
            if {"]": "[", ")": "(⟨"}[sign].find(opened) < 0 or not opened:
                raise DiagnosisError(say("{name} has a “{sign}” that closes nothing.", name=name, sign=sign))
            stack[-1][1].extend(items if opened == "⟨" else [items])
    if len(stack) != 1:
        raise DiagnosisError(
            say("{name} has a bracket that is not closed: the end of the print seems to be missing.", name=name)
        )
    return stack[0][1]


def _parse_values(text: str, name: str, whole: str) -> list[Any]:
    """Return the values between two brackets of the whole text; most hold one kind, which is read at once."""
    parts = text.replace(",", " ").split()
    if _DECIMALS_PATTERN.fullmatch(text):
        with suppress(ValueError):  # "1-2" is two values, which stand here as one
            return list(map(int if _DIGITS_PATTERN.fullmatch(text) and max(map(len, parts)) < 16 else float, parts))
    elif set(parts) <= {"True", "False"}:
        return [part == "True" for part in parts]
    end = _VALUES_PATTERN.match(text).end()  # type: ignore[union-attr]  # It matches an empty text too.
    if rest := _GAP_PATTERN.sub("", text[end:], count=1):
        raise _build_value_error(rest, name, whole)
    found = _VALUE_PATTERN.findall(text, 0, end)
    values = {one: _parse_value(one) for one in set(found)}
    return [values[one] for one in found]


def _build_value_error(rest: str, name: str, whole: str) -> DiagnosisError:
    """Return the error of a whole text whose rest begins with no value."""
    if is_code(whole):
        return DiagnosisError(say(CODE_TEXT))
    seen = re.split(r"[\s,]", rest[:24], maxsplit=1)[0]
    return DiagnosisError(
        say("{name} holds “{seen}”, which is not a number, True, False, inf or nan.", name=name, seen=seen)
    )


def _parse_value(text: str) -> bool | int | float:
    word = text.lower()
    if word in ("true", "false"):
        return word == "true"
    if word in ("null", "none"):
        return float("nan")
    digits = text.lstrip("+-")
    return int(text) if len(digits) < 16 and digits.isdecimal() else float(text)


def _build_regular_array(nested: Any, name: str) -> np.ndarray:
    kinds = _find_value_types(nested)
    if not kinds:
        raise DiagnosisError(say("{name} is empty.", name=name))
    if bool in kinds and len(kinds) > 1:
        raise DiagnosisError(say("{name} mixes True and False with numbers.", name=name))
    try:
        return np.array(nested, dtype=bool if bool in kinds else np.float64 if float in kinds else np.int64)
    except (ValueError, TypeError) as error:
        irregular = say("{name} has rows of different lengths, so it is no regular array.", name=name)
        raise DiagnosisError(irregular) from error


def _find_value_types(nested: Any) -> set[type]:
    """Return the types of the values in nested lists."""
    level, found = [nested], set()
    while level:
        found |= set(map(type, level)) - {list}
        level = [item for one in level if type(one) is list for item in one]
    return found


# Around a printed tensor: prompts of a debugger or a notebook, a name before it; and code in its place.


# Possessive repetitions, so that a text is read forwards alone.
_PROMPT_PATTERN = re.compile(
    r"^[ \t]*+(?:\(Pdb\+*+\)|ipdb>|pdb>|>>>|In \[\d++\]:|Out\[\d++\]:)[ \t]*+(?:(?:pp?|print)\b[ \t(]*+)?", re.MULTILINE
)
_ARRAY_PATTERN = r"(?:(?:torch|np|numpy|jnp)\.)?(?:tensor|array|Tensor|Array)\("
_NAMED_LINE_PATTERN = re.compile(
    rf"^[ \t]*+([A-Za-z_][\w.]*+)\)?[ \t]*+\n\s*+(?=(?:{_ARRAY_PATTERN}|\[))", re.MULTILINE
)
_NAME_BEFORE_PATTERN = re.compile(rf"^[ \t]*+([A-Za-z_][\w.]*+)[ \t]++(?={_ARRAY_PATTERN}|\[)", re.MULTILINE)
_CODE_PATTERN = re.compile(
    r"\b(?:import|def|return|lambda|for|nn|F)\b|\w\.\w++\(|\b(?:ones|zeros|tril|triu|arange|softmax)\("
)


def remove_console_prompts(text: str) -> str:
    """Return the text with prompts taken away and ``name tensor(...)`` made ``name = tensor(...)``."""
    plain = _PROMPT_PATTERN.sub("", text)
    plain = _NAMED_LINE_PATTERN.sub(r"\1 = ", plain)
    return _NAME_BEFORE_PATTERN.sub(r"\1 = ", plain)


def is_code(text: str) -> bool:
    """Whether a text that is no print looks like a program."""
    return _CODE_PATTERN.search(text) is not None


# The names of arrays in a file: which are read, of which map, and what an array without one is called.


MAX_LISTED_NAMES, MAX_NAME_CHARACTERS = 5, 24
"""Unknown names that a refusal lists, and the characters of each."""


def select_known_array_names(names: Iterable[Any]) -> list[str]:
    """Return those of ``names`` that are read: ARRAY_NAMES and arguments of libraries, alone or as ``cross.weights``.

    Raises:
        DiagnosisError: where there is none; the message lists what there is.
    """
    present = list(names)
    known = [name for name in present if isinstance(name, str) and _is_known_qualified_array_name(name)]
    if known:
        return known
    short = (
        name if len(str(name)) <= MAX_NAME_CHARACTERS else f"{str(name)[:MAX_NAME_CHARACTERS]}…" for name in present
    )
    shown = _abbreviate_name_list(sorted(map(repr, short))) or say("nothing")
    raise DiagnosisError(
        say(
            "The file holds {shown}. Name its arrays {names}, cross.weights or attn_mask.",
            shown=shown,
            names=join_items(ARRAY_NAMES),
        )
    )


def unread_array_names_text(names: Iterable[Any]) -> tuple[str, ...]:
    """Return a sentence that lists the names that are not read, or nothing."""
    unread = [
        f"{name!r}"[:MAX_NAME_CHARACTERS]
        for name in names
        if not (isinstance(name, str) and _is_known_qualified_array_name(name))
    ]
    return (
        (say("Not read, since the name is not known: {names}.", names=_abbreviate_name_list(unread)),) if unread else ()
    )


def _abbreviate_name_list(names: list[str]) -> str:
    """Return the first of these names, and how many more there are."""
    shown, more = join_items(names[:MAX_LISTED_NAMES]), len(names) - MAX_LISTED_NAMES
    return say("{names} and {count} more", names=shown, count=more) if more > 0 else shown


def group_by_map(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Return arrays by the map that their names begin with (``cross.weights``; else ""), then by name.

    Raises:
        DiagnosisError: where no name is known.
    """
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name in select_known_array_names(arrays):
        kind, _, plain = name.rpartition(".")
        groups.setdefault(kind, {})[plain] = arrays[name]
    return groups


def name_array(array: np.ndarray, stem: str) -> dict[str, np.ndarray]:
    """Return a single array under the name ``stem`` of its file, or else the one that its values suggest."""
    if is_known_array_name(stem):
        role = ARGUMENT_ROLES.get(stem.lower())
        return {role if role in ("weights", "scores") else stem: array}
    if array.dtype.kind == "b" or _is_mask_array(array):
        return {"mask": array.astype(bool)}
    numbers = array.astype(np.float64) if array.dtype.kind in "iu" else array
    with np.errstate(invalid="ignore"):
        added = numbers.dtype.kind == "f" and bool((numbers < 0).any()) and not bool((numbers > 0).any())
    return {"mask": numbers} if added else {"weights": numbers}


def _is_mask_array(array: np.ndarray) -> bool:
    """Whether it holds nothing but 0 and 1, and not one 1 in each row: that would be one-hot weights."""
    if array.dtype.kind not in "iuf" or not ((array == 0) | (array == 1)).all():
        return False
    return array.ndim < 2 or not ((array == 1).sum(-1) == 1).all()


def _is_known_qualified_array_name(name: str) -> bool:
    kind, _, plain = name.rpartition(".")
    return is_known_array_name(plain) and kind in ("", *KINDS)


# How the axes of an array were read, in words: which axis is what, and what is shared by broadcasting.


AXIS_NAMES = ("samples", "layers", "heads", "queries", "keys")
_COUNT_TEXTS: dict[str, Callable[[int], str]] = {
    "samples": lambda count: say_many("{count} sample", "{count} samples", count),
    "layers": lambda count: say_many("{count} layer", "{count} layers", count),
    "heads": lambda count: say_many("{count} head", "{count} heads", count),
    "queries": lambda count: say_many("{count} query", "{count} queries", count),
    "keys": lambda count: say_many("{count} key", "{count} keys", count),
}
_ALL_TEXTS = {
    "samples": to_say("all {count} samples"),
    "layers": to_say("all {count} layers"),
    "heads": to_say("all {count} heads"),
    "queries": to_say("all {count} queries"),
    "keys": to_say("all {count} keys"),
}


@dataclass(frozen=True)
class ArrayAxis:
    """One of the five axes."""

    name: str
    size: int
    """The size of the whole map."""
    own_size: int | None
    """The size of the array; None where it has no such axis."""

    @property
    def is_shared(self) -> bool:
        """Whether one slice stands for several."""
        return self.size > 1 and self.own_size in (None, 1)


def interpret_array_axes(
    name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]
) -> tuple[ArrayAxis, ...]:
    """Return how an array of ``shape`` is read beside a map of ``sizes`` (B, L, H, Q, K)."""
    if name in ("key_keep", "query_keep"):
        own: list[int | None] = [None] * 5
        own[4 if name == "key_keep" else 3] = shape[-1]
        own[0] = shape[0] if len(shape) > 1 else None
    else:
        own = find_axis_sizes(shape, sizes[0], sizes[2])
    return tuple(ArrayAxis(axis, size, own_size) for axis, size, own_size in zip(AXIS_NAMES, sizes, own, strict=True))


def describe_axes(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> str:
    """Return a sentence: ``Your mask (2, 5) was read as 2 samples × 5 keys; shared by all 5 queries.``"""
    axes = interpret_array_axes(name, shape, sizes)
    own = " × ".join(_COUNT_TEXTS[axis.name](axis.own_size) for axis in axes if axis.own_size is not None)
    if len(shape) == 3 and axes[2].own_size is not None and axes[0].own_size not in (None, shape[0]):
        own = say("{axes}, all heads of a sample one after the other", axes=own)
    if shared := [say(_ALL_TEXTS[axis.name], count=axis.size) for axis in axes if axis.is_shared]:
        own = say("{axes}; shared by {shared}", axes=own, shared=reduce(_join_with_and, shared))
    if name.endswith(("weights", "scores")):
        return say("Your {name} {shape} were read as {axes}.", name=name, shape=shape, axes=own)
    return say("Your {name} {shape} was read as {axes}.", name=name, shape=shape, axes=own)


def _join_with_and(one: str, other: str) -> str:
    return say("{one} and {other}", one=one, other=other)


def ambiguous_axes_text(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> str:
    """Return a warning where the same shape would also fit another reading, else an empty text."""
    samples, _, heads, queries, keys = sizes
    if name == "mask" and shape == (samples, keys) and samples == queries > 1:
        return say(
            "There are as many samples as queries ({samples}), so ({samples}, {keys}) could also be one row of keys a "
            "sample. Two axes are read as queries × keys; for padding name it key_keep.",
            samples=samples,
            keys=keys,
        )
    if name != "key_keep" and len(shape) == 3 and shape[0] == samples == heads > 1:
        return say(
            "There are as many samples as heads ({heads}); the first of three axes is read as heads.", heads=heads
        )
    return ""


# Masks drawn in squares, as transformers' AttentionMaskVisualizer and a BlockMask of flex_attention print them.


_COLOUR_PATTERN = re.compile(r"\x1b\[[0-9;]{0,8}m")
_SEEN, _HIDDEN = "■", "⬚"
_ROW_PATTERN = re.compile(rf"[{_SEEN}{_HIDDEN}](?:[ \t]*+[{_SEEN}{_HIDDEN}])*+")
_LEGEND = "i == j (diagonal)"
"""What stands in the line of AttentionMaskVisualizer that explains its colours."""
_BLOCK_MASK_PATTERN = re.compile(r"\bBlockMask\(\s*+(?:[a-z_]++=|shape=)")
_SHAPE_PATTERN = re.compile(r"\bshape=\(([\d, ]{1,80})\)")
_SPARSITY_PATTERN = re.compile(r"\bsparsity=(-?[\d.]{1,10})%")
_COMPUTED, _PARTLY, _SKIPPED = "█", "░", " "
MAX_DRAWN_SIZE = 4096
"""Most rows, and most columns, of a drawn mask."""


def is_drawn_mask(text: str) -> bool:
    """Whether a text draws a mask in squares, or is the print of a BlockMask."""
    return _SEEN in text or _HIDDEN in text or _BLOCK_MASK_PATTERN.search(text) is not None


def _read_drawn_mask(text: str) -> np.ndarray:
    """Return the mask (Q, K) bool, True = may attend, or (1, 2, 1, Q, K) where one of a window stands beside it.

    Raises:
        DiagnosisError: for squares that are no mask, and for a BlockMask, whose print holds no cells: the message says
            what it shows.
    """
    if _SEEN not in text and _HIDDEN not in text:
        raise DiagnosisError(_block_mask_text(text))
    lines = (line for line in _COLOUR_PATTERN.sub("", text).splitlines() if _LEGEND not in line)
    drawn = [[row[0] for row in _ROW_PATTERN.finditer(line.rpartition("'")[2])] for line in lines]
    rows = [[re.sub(r"\s", "", row) for row in line] for line in drawn if line]
    masks = {len(line) for line in rows}
    sizes = {len(row) for line in rows for row in line}
    if len(masks) != 1 or len(sizes) != 1 or max(masks) > 2:
        raise DiagnosisError(say("The squares are no mask: its rows have different lengths. Paste all of it."))
    if max(len(rows), *sizes) > MAX_DRAWN_SIZE:
        raise DiagnosisError(say("A drawn mask has at most {most:,} rows and columns.", most=MAX_DRAWN_SIZE))
    grids = np.array([[[cell == _SEEN for cell in row] for row in line] for line in rows]).transpose(1, 0, 2)
    return grids[0] if len(grids) == 1 else grids[None, :, None]


def _block_mask_text(text: str) -> str:
    """Return what the print of a BlockMask shows, that it holds no cells, and how they are had."""
    shape = _SHAPE_PATTERN.search(text)
    sizes = [int(size) for size in re.findall(r"\d{1,9}", shape[1])] if shape else []
    sparsity = _SPARSITY_PATTERN.search(text)
    queries, keys = sizes[-2:] if len(sizes) > 1 else (0, 0)
    said = [say("This is the print of a BlockMask: it shows blocks, and no cells.")]
    grid = _read_block_mask_grid(text, square=queries == keys)
    if sparsity and grid is not None:
        said.append(
            say(
                "Of {squares} squares of about {rows} queries and {columns} keys, {computed} are computed, {partly} in "
                "part, and {skipped} skipped (sparsity {sparsity}%).",
                squares=grid.size,
                rows=math.ceil(queries / grid.shape[0]),
                columns=math.ceil(keys / grid.shape[1]),
                computed=int((grid == 2).sum()),
                partly=int((grid == 1).sum()),
                skipped=int((grid == 0).sum()),
                sparsity=sparsity[1],
            )
        )
        structure = recognise_structure(grid > 0, np.ones_like(grid, bool))
        if structure is not None and structure.is_plausible:
            said.append(say("Block by block it is {mask}.", mask=structure.words()))
    said.append(
        say(
            "For its cells paste the print of {code}, or call {call}, or capture the model.",
            call="diagnose(mask=block_mask)",
            code="create_mask(block_mask.mask_mod, *block_mask.shape)",
        )
    )
    return join_sentences(*said)


def _read_block_mask_grid(text: str, square: bool) -> np.ndarray | None:
    """Return the first grid of a BlockMask, 0 for skipped, 1 for partly and 2 for computed blocks; None without one.

    Every block is two signs wide; blanks at the end of a line may be lost.
    """
    rows: list[str] = []
    for line in text.splitlines():
        if line and set(line) <= {_COMPUTED, _PARTLY, _SKIPPED}:
            rows.append(line[::2])
        elif rows:
            break
    if not any(row.strip() for row in rows) or len(rows) > MAX_DRAWN_SIZE:
        return None
    width = max(len(rows) if square else 0, *map(len, rows))
    return np.array([[" ░█".index(sign) for sign in row.ljust(width)] for row in rows])
