"""Arrays from printed tensors: those of torch, numpy and TensorFlow, and plain nested lists.

The text is split into signs and numbers, and nothing of it is ever evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...language.say import say, to_say
from ..inputs.arrays import DiagnosisError
from .prompts import is_code, without_prompts

MAX_CHARACTERS = 2_000_000
MAX_DEPTH = 8
SHORTENED = to_say(
    "The print is shortened with “...”, so most values are missing. Print it whole: "
    'torch.set_printoptions(profile="full") or np.set_printoptions(threshold=sys.maxsize), then paste again.'
)
CODE = to_say("This is code, and nothing of it is run. Print what it made, print(mask), and paste that.")
UNNAMED = to_say("There are several arrays. Put a name before each, such as “weights = tensor(...)”.")

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WORD = r"(?:[-+]?\b(?:inf|infinity|nan)|(?<![-+])\b(?:true|false|null|none))\b"
_TOKEN = re.compile(rf"(?P<value>{_WORD}|{_NUMBER}(?![\w.]))|(?P<sign>[\[\](),⟨])|(?P<space>\s+)", re.IGNORECASE)
_DETAIL = re.compile(
    r",?\s*\b(?:dtype|device|grad_fn|requires_grad|size|shape|layout|weak_type)\s*=\s*"
    r"(?P<value><[^<>\n]{0,80}>|'[^'\n]{0,80}'|\"[^\"\n]{0,80}\"|\([^()\n]{0,80}\)|[\w.]+)"
)
_DTYPE = re.compile(r"\bdtype\s*=\s*['\"]?(?:torch\.|np\.|numpy\.|jnp\.|tf\.|<dtype: ')?(\w+)")
_CALL = re.compile(
    r"(?:Parameter containing:\s*)?\b(?:(?:np|numpy|torch|jnp)\.)?(?:tensor|array|Tensor|Array|DeviceArray)\s*\("
)
_TENSORFLOW = re.compile(r"<tf\.Tensor:?[^\[\]<>]{0,200}?numpy\s*=\s*")
_NAME = re.compile(r"^[ \t]*([A-Za-z_][\w.]*)\s*[:=]\s*(?=[\[(⟨\d.+\-A-Za-z])", re.MULTILINE)
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
    if "..." in text or "…" in text:
        raise DiagnosisError(say(SHORTENED))
    text = without_prompts(text)
    found: dict[str, np.ndarray] = {}
    for name, part in _parts(text):
        if name in found:
            raise DiagnosisError(say("{name} is there twice.", name=name) if name else say(UNNAMED))
        found[name] = _array(part, name or say("The array"))
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Every assignment with its name; a text without one is a single part."""
    starts = list(_NAME.finditer(_DETAIL.sub(lambda match: " " * len(match[0]), text)))
    if not starts:
        yield "", text
        return
    if text[: starts[0].start()].strip():
        raise DiagnosisError(say(UNNAMED))
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        yield start[1], text[start.end() : after.start() if after else len(text)]


def _array(text: str, name: str) -> np.ndarray:
    format_name = _DTYPE.search(text)
    plain = _DETAIL.sub("", _TENSORFLOW.sub("", text)).replace(">", " ")
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
    for sign, value in _tokens(text, name):
        if sign in ("[", "(", "⟨"):
            if len(stack) > MAX_DEPTH:
                deep = say("{name} is nested more than {most} brackets deep.", name=name, most=MAX_DEPTH)
                raise DiagnosisError(deep)
            stack.append((sign, []))
        elif sign in ("]", ")"):
            opened, items = stack.pop()
            if {"]": "[", ")": "(⟨"}[sign].find(opened) < 0 or not opened:
                raise DiagnosisError(say("{name} has a “{sign}” that closes nothing.", name=name, sign=sign))
            stack[-1][1].extend(items if opened == "⟨" else [items])
        elif value:
            stack[-1][1].append(_value(value))
    if len(stack) != 1:
        raise DiagnosisError(
            say("{name} has a bracket that is not closed: the end of the print seems to be missing.", name=name)
        )
    return stack[0][1]


def _tokens(text: str, name: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if is_code(text):
                raise DiagnosisError(say(CODE))
            seen = re.split(r"[\s,\[\]()]", text[at : at + 24].strip(), maxsplit=1)[0] or text[at]
            raise DiagnosisError(
                say("{name} holds “{seen}”, which is not a number, True, False, inf or nan.", name=name, seen=seen)
            )
        at = match.end()
        yield match["sign"] or "", match["value"] or ""


def _value(text: str) -> bool | int | float:
    word = text.lower()
    if word in ("true", "false"):
        return word == "true"
    if word in ("null", "none"):
        return float("nan")
    if re.fullmatch(r"[-+]?\d{1,15}", text):
        return int(text)
    return float(text)


def _regular(nested: Any, name: str) -> np.ndarray:
    kinds = {type(leaf) for leaf in _leaves(nested)}
    if not kinds:
        raise DiagnosisError(say("{name} is empty.", name=name))
    if bool in kinds and len(kinds) > 1:
        raise DiagnosisError(say("{name} mixes True and False with numbers.", name=name))
    try:
        return np.array(nested, dtype=bool if bool in kinds else np.float64 if float in kinds else np.int64)
    except (ValueError, TypeError) as error:
        irregular = say("{name} has rows of different lengths, so it is no regular array.", name=name)
        raise DiagnosisError(irregular) from error


def _leaves(nested: Any) -> Iterator[Any]:
    """Values of nested lists; their depth is bounded by the reader."""
    if not isinstance(nested, list):
        yield nested
        return
    for item in nested:
        yield from _leaves(item)
