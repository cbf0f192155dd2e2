"""Registration of browser components: their scripts and styles joined, and arrays for them packed into bytes."""

from __future__ import annotations

import functools
import json
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attenscope.language import SOURCE_LANGUAGE, current_language, load_catalogue

# Streamlit takes one JavaScript text for a component, so imports are followed and inlined.
#
# All modules of a component then share one scope: a module's own imports come first, each file once, and the import
# lines and the comments are dropped. Names must therefore be unique within a component. Messages (shared/say.js) are
# translated into the current language, which the script learns too (shared/number.js).


COMPONENTS_FOLDER = Path(__file__).parent / "src"
IMPORT_LINE = re.compile(r'^import .* from "(?P<path>\.[^"]+)";\n', re.MULTILINE)
COMMENT_LINES = re.compile(r"^[ ]*(?:/\*\*.*?\*/|//[^\n]*)\n", re.MULTILINE | re.DOTALL)
"""Lines that hold only a comment. They are dropped because every rerun sends the scripts of a page again."""

LANGUAGE_LINE = 'const LANGUAGE = "{}";'
"""The line by which a script declares its language (shared/number.js)."""
MESSAGE_PATTERN = re.compile(r'"(?:[^"\\\n]|\\.)*"')
SAY_CALL = re.compile(
    rf"\bsay\(\s*{MESSAGE_PATTERN.pattern}|\bsayMany\(\s*{MESSAGE_PATTERN.pattern},\s*{MESSAGE_PATTERN.pattern}"
)
SHEET_IMPORT = re.compile(r'^@import "(?P<path>\.[^"]+)";\n', re.MULTILINE)


def bundle_scripts(entry: Path) -> str:
    """The JavaScript of `entry` with everything it imports, directly or not, before it, in the current language."""
    found: dict[Path, str] = {}
    _collect_scripts(entry.resolve(), found)
    spoken = "\n".join(found.values()).replace(
        LANGUAGE_LINE.format(SOURCE_LANGUAGE), LANGUAGE_LINE.format(current_language())
    )
    return SAY_CALL.sub(_translate_call, spoken)


def _translate_call(call: re.Match[str]) -> str:
    """The beginning of a call of `say` or `sayMany` with its one or two messages translated."""
    messages, spoken = [json.loads(one) for one in MESSAGE_PATTERN.findall(call[0])], load_catalogue(current_language())
    if len(messages) == 1:
        forms = iter([spoken.gettext(messages[0])])
    else:
        forms = iter([spoken.ngettext(messages[0], messages[1], count) for count in (1, 2)])
    return MESSAGE_PATTERN.sub(lambda _: json.dumps(next(forms), ensure_ascii=False), call[0])


def _collect_scripts(path: Path, found: dict[Path, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for match in IMPORT_LINE.finditer(text):
        needed = (path.parent / match["path"]).resolve()
        if needed not in found:
            _collect_scripts(needed, found)
    found[path] = COMMENT_LINES.sub("", IMPORT_LINE.sub("", text))


def create_mount(name: str) -> Callable[..., Any]:
    """Return a function that mounts the view in the folder `name` (name.js, name.css).

    The component is registered, and Streamlit imported, at the first mount: a notebook mounts the same views without
    Streamlit.
    """

    def mount(**arguments: Any) -> Any:
        return _register_component(name, current_language())(**arguments)

    return mount


@functools.cache
def _register_component(name: str, language: str) -> Any:
    import streamlit as st

    own = f"attenscope_{name}" if language == SOURCE_LANGUAGE else f"attenscope_{name}_{language}"
    return st.components.v2.component(
        own, css=component_style(name), js=bundle_scripts(COMPONENTS_FOLDER / name / f"{name}.js")
    )


def component_value(key: str) -> Any:
    """Return the last value that the view mounted as `key` has sent; for callbacks."""
    import streamlit as st

    return st.session_state[key]


def component_style(name: str) -> str:
    """The CSS that all views share, then that of the view in the folder `name`; imported sheets are inlined."""
    sheets = COMPONENTS_FOLDER / "shared" / "shared.css", COMPONENTS_FOLDER / name / f"{name}.css"
    return "".join(map(_read_sheet, sheets))


def _read_sheet(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return SHEET_IMPORT.sub(lambda match: _read_sheet(path.parent / match["path"]), text)


# Arrays for the browser: a small JSON header and raw bytes, one or two for each weight.


FULL_BYTE, MASKED_BYTE = 254, 255
"""Bytes 0..FULL are weights 0..1 and print as these do with two decimals; MASKED is no weight."""
FULL_UINT16, MASKED_UINT16 = 65534, 65535
"""The same in two bytes, for three decimals."""
CellFunction = Callable[[np.ndarray], np.ndarray]
"""Maps values to the numbers of their cells, which grow with the value; values in one cell are printed alike."""


def pack_arrays(header: Mapping[str, Any], body: bytes) -> bytes:
    """[header's length, uint32 little-endian][header, UTF-8 JSON][body]; shared/packed.js reads it."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return struct.pack("<I", len(text)) + text + body


def read_header_text(packed: bytes) -> str:
    """The JSON text of the header of packed bytes."""
    (length,) = struct.unpack_from("<I", packed)
    return packed[4 : 4 + length].decode()


def quantise_weights(weights: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return weights (..., Q, K) in 0..1 as uint8 of their shape, given a mask that broadcasts, True = may attend.

    A byte and its weight have the same two decimals, or whole percent, and lie on the same side of every threshold of
    whole percents.
    """
    parts = (
        np.multiply(np.where(mask, weights, 0), LOOKUP_PARTS, dtype=np.float64).clip(0, LOOKUP_PARTS).astype(np.int32)
    )
    return np.where(mask, LOOKUP_BYTES[parts], np.uint8(MASKED_BYTE))


def quantise_finely(weights: np.ndarray, mask: np.ndarray, top: float = 1.0) -> np.ndarray:
    """Return weights (Q, K) in 0..top as uint16; each has the same three decimals as its weight, and the same two."""
    numbers = quantise_to_levels(np.where(mask, weights, 0), 0.0, top, FULL_UINT16, half_step_cells(3))
    return np.where(mask, numbers, MASKED_UINT16).astype(np.uint16)


def quantise_to_levels(values: np.ndarray, low: float, high: float, full: int, cell: CellFunction) -> np.ndarray:
    """Return values in low..high as whole numbers 0..full, evenly; what lies outside is held at the ends.

    A level stands for low + (high - low) * level / full. Of the two levels beside a value, the nearer one is taken that
    lies in the value's own `cell`; every cell must be wide enough to hold a level.
    """
    values = values.astype(np.float64).clip(low, high)
    nearest = np.rint((values - low) / (high - low) * full)
    decoded = low + (high - low) * nearest / full  # In the browser's order, so that it is the browser's number.
    return nearest + np.sign(cell(values) - cell(decoded))


def half_step_cells(decimals: int) -> CellFunction:
    """Return cells of half a step of the last decimal: all in one are rounded alike, to these decimals and to fewer."""
    return lambda values: np.floor(values * 2 * 10**decimals)


LOOKUP_PARTS = 25_400
"""Equal parts of 0..1: half percents end where a part does, and so do the weights nearest to a byte."""
LOOKUP_BYTES = quantise_to_levels(
    (np.arange(LOOKUP_PARTS + 1) + 0.5) / LOOKUP_PARTS, 0.0, 1.0, FULL_BYTE, half_step_cells(2)
).astype(np.uint8)
"""(PARTS + 1,) the byte of the weights of each part: to look it up takes a tenth of the time of working it out."""
