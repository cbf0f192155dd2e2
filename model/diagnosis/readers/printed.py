"""Arrays from printed tensors: those of torch, numpy and TensorFlow, and plain nested lists.

The text is split into signs and numbers, and nothing of it is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np

from ...language.say import say, to_say
from ..inputs.arrays import DiagnosisError
from .prompts import is_code, without_prompts

MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 8
MAX_ARRAYS = 256
MAX_ROWS = 200_000
SHORTENED = to_say(
    "The print is shortened with “...”, so most values are missing. Print it whole: "
    'torch.set_printoptions(profile="full") or np.set_printoptions(threshold=sys.maxsize), then paste again.'
)
CODE = to_say("This is code, and nothing of it is run. Print what it made, print(mask), and paste that.")
UNNAMED = to_say("There are several arrays. Put a name before each, such as “weights = tensor(...)”.")

# Every repetition is possessive (*+) or bounded: a text is read forwards alone, in time in proportion to its length.
_NUMBER = r"[-+]?(?>\d++\.?\d*+|\.\d++)(?>[eE][-+]?\d++)?+"
_WORD = r"(?:[-+]?\b(?:inf|infinity|nan)|(?<![-+])\b(?:true|false|null|none))\b"
_VALUE = re.compile(rf"[\s,]*+({_WORD}|{_NUMBER}(?![\w.]))", re.IGNORECASE)
_GAP = re.compile(r"[\s,]*+")
_PIECE = re.compile(r"\[(?P<row>[^\[\]()⟨]*+)\]|(?P<sign>[\[\]()⟨])|(?P<values>[^\[\]()⟨]++)")
_DIGITS = re.compile(r"[\d\s,+-]*+", re.ASCII)
_DECIMALS = re.compile(r"[\d\s,.eE+-]*+", re.ASCII)
_DETAIL = re.compile(
    r"\b(?:dtype|device|grad_fn|requires_grad|size|shape|layout|weak_type)\s*+=\s*+"
    r"(?:<[^<>\n]{0,80}>|'[^'\n]{0,80}'|\"[^\"\n]{0,80}\"|\([^()\n]{0,80}\)|[\w.]++)"
)
_DTYPE = re.compile(r"\bdtype\s*+=\s*+['\"]?(?:torch\.|np\.|numpy\.|jnp\.|tf\.|<dtype: ')?(\w++)")
_CALL = re.compile(
    r"(?:Parameter containing:\s*+)?\b(?:(?:np|numpy|torch|jnp)\.)?(?:tensor|array|Tensor|Array|DeviceArray)\s*+\("
)
_TENSORFLOW = re.compile(r"<tf\.Tensor:?[^\[\]<>]{0,200}?numpy\s*+=\s*+")
_NAME = re.compile(r"^[ \t]*+([A-Za-z_][\w.]*+)\s*+[:=]\s*+(?=[\[(⟨\d.+\-A-Za-z])", re.MULTILINE)
_FORMATS = {"float16": "f2", "half": "f2", "float32": "f4", "float64": "f8", "double": "f8", "bfloat16": "f4"}


def read_printed(text: str) -> dict[str, np.ndarray]:
    """Return the arrays of a text by the names before them; a single one without a name has the name ``""``.

    Raises:
        DiagnosisError: for a text that is no whole print of numbers; the message is one sentence or two.
    """
    if not text.strip():
        raise DiagnosisError(say("There is nothing to read yet: paste a printed tensor or nested lists."))
    if len(text) > MAX_CHARACTERS:
        raise DiagnosisError(
            say(
                "The text has {characters:,} characters; {most:,} are read. Upload a file.",
                characters=len(text),
                most=MAX_CHARACTERS,
            )
        )
    if (rows := _row_count(text)) > MAX_ROWS:
        raise DiagnosisError(
            say("The text has {rows:,} rows; {most:,} are read. Upload a file.", rows=rows, most=MAX_ROWS)
        )
    if "..." in text or "…" in text:
        raise DiagnosisError(say(SHORTENED))
    text = without_prompts(text)
    found: dict[str, np.ndarray] = {}
    for name, part in _parts(text):
        if name in found:
            raise DiagnosisError(say("{name} is there twice.", name=name) if name else say(UNNAMED))
        found[name] = _array(part, name or say("The array"))
    return found


def _row_count(text: str) -> int:
    """Return the number of rows: those in brackets, or lines where there are none."""
    return text.count("[") + text.count("(") or len(text.splitlines())


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Every assignment with its name; a text without one is a single part."""
    starts = list(islice(_NAME.finditer(_without_details(text, " ")), MAX_ARRAYS + 1))
    if len(starts) > MAX_ARRAYS:
        raise DiagnosisError(say("The text names more than {most} arrays; fewer are read.", most=MAX_ARRAYS))
    if not starts:
        yield "", text
        return
    if text[: starts[0].start()].strip():
        raise DiagnosisError(say(UNNAMED))
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        yield start[1], text[start.end() : after.start() if after else len(text)]


def _without_details(text: str, fill: str = "") -> str:
    """Return the text with ``, dtype=...`` and the like taken away, or each character of them replaced by ``fill``."""
    parts, at = [], 0
    for match in _DETAIL.finditer(text):
        before = text[at : match.start()].rstrip().removesuffix(",")
        parts += [before, fill * (match.end() - at - len(before))]
        at = match.end()
    return "".join([*parts, text[at:]])


def _array(text: str, name: str) -> np.ndarray:
    format_name = _DTYPE.search(text)
    plain = _without_details(_TENSORFLOW.sub("", text)).replace(">", " ")
    plain = _CALL.sub("⟨", plain)
    if "[" not in plain and "(" not in plain:
        plain = "".join(f"[{line}]" for line in plain.strip("⟨) \n").splitlines() if line.strip())
    tops = _nested(plain, name)
    if not tops:
        raise DiagnosisError(say("{name} holds no numbers.", name=name))
    array = _regular(tops[0] if len(tops) == 1 else tops, name)
    number_format = _FORMATS.get(format_name[1]) if format_name else None
    with np.errstate(over="ignore"):
        return array.astype(number_format) if number_format and array.dtype.kind == "f" else array


def _nested(text: str, name: str) -> list[Any]:
    """Return the brackets as lists, without recursion."""
    stack: list[tuple[str, list[Any]]] = [("", [])]
    for piece in _PIECE.finditer(text):
        row, sign, values = piece.groups()
        if values is not None:
            stack[-1][1].extend(_values(values, name, text))
        elif sign is None or sign in "[(⟨":
            if len(stack) > MAX_DEPTH:
                deep = say("{name} is nested more than {most} brackets deep.", name=name, most=MAX_DEPTH)
                raise DiagnosisError(deep)
            if row is not None:
                stack[-1][1].append(_values(row, name, text))
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


def _values(text: str, name: str, whole: str) -> list[Any]:
    """Return the values between two brackets of the whole text; most hold one kind, which is read at once."""
    parts = text.replace(",", " ").split()
    if _DECIMALS.fullmatch(text):
        with suppress(ValueError):  # "1-2" is two values, which stand here as one
            return list(map(int if _DIGITS.fullmatch(text) and max(map(len, parts)) < 16 else float, parts))
    elif set(parts) <= {"True", "False"}:
        return [part == "True" for part in parts]
    return [*_values_in_turn(text, name, whole)]


def _values_in_turn(text: str, name: str, whole: str) -> Iterator[Any]:
    at = 0
    while match := _VALUE.match(text, at):
        at = match.end()
        yield _value(match[1])
    rest = _GAP.sub("", text[at:], count=1)
    if not rest:
        return
    if is_code(whole):
        raise DiagnosisError(say(CODE))
    seen = re.split(r"[\s,]", rest[:24], maxsplit=1)[0]
    raise DiagnosisError(
        say("{name} holds “{seen}”, which is not a number, True, False, inf or nan.", name=name, seen=seen)
    )


def _value(text: str) -> bool | int | float:
    word = text.lower()
    if word in ("true", "false"):
        return word == "true"
    if word in ("null", "none"):
        return float("nan")
    digits = text.lstrip("+-")
    return int(text) if len(digits) < 16 and digits.isdecimal() else float(text)


def _regular(nested: Any, name: str) -> np.ndarray:
    kinds = _kinds(nested)
    if not kinds:
        raise DiagnosisError(say("{name} is empty.", name=name))
    if bool in kinds and len(kinds) > 1:
        raise DiagnosisError(say("{name} mixes True and False with numbers.", name=name))
    try:
        return np.array(nested, dtype=bool if bool in kinds else np.float64 if float in kinds else np.int64)
    except (ValueError, TypeError) as error:
        irregular = say("{name} has rows of different lengths, so it is no regular array.", name=name)
        raise DiagnosisError(irregular) from error


def _kinds(nested: Any) -> set[type]:
    """Return the types of the values in nested lists."""
    level, found = [nested], set()
    while level:
        found |= set(map(type, level)) - {list}
        level = [item for one in level if type(one) is list for item in one]
    return found
