"""Registration of browser components: their built scripts and sheets, and arrays for them packed into bytes."""

from __future__ import annotations

import functools
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from attenscope.language import SOURCE_LANGUAGE, current_language, load_catalogue

# What browsers get stands in dist/: `make web` builds it from src/ and the scripts beside it in viz/ (build.mjs). A
# script there is a module whose default export is a function: of the scripts that it builds on, by name, and of
# MESSAGES, the language and the messages that all of them say (shared/say.js). A page of Streamlit
# fetches each once; files and notebooks hold them.


DIST_FOLDER = Path(__file__).parent / "dist"
STANDALONE = ("begin", "film", "welcome", "worker")
"""Scripts that build on no other; each is an expression. Before that of the worker stand its messages."""
_SHEET_IMPORT = re.compile(r'@import"(\w+)";\n?')
_MODULE_PATTERN = re.compile(r"export default(\(\{([\w,]*)\}\)=>.*)", re.DOTALL)


def read_standalone_script(name: str) -> str:
    """Return a script of :data:`STANDALONE`: an expression."""
    return _read_dist_file(f"{name}.js").rstrip()


def list_needed_scripts(names: Iterable[str]) -> list[str]:
    """Return the names of these scripts and of all that they build on, each behind those that it builds on."""
    found: list[str] = []
    for name in names:
        uses, _ = _read_script_and_dependencies(name)
        found += [one for one in [*list_needed_scripts(uses), name] if one not in found]
    return found


def build_scripts_constant(names: Iterable[str]) -> str:
    """Return the statements that make the scripts `names`, and what they build on, members of the constant `scripts`.

    They speak the current language.
    """
    needed = list_needed_scripts(names)
    members = "".join(f"scripts.{name} = ({_read_script_and_dependencies(name)[1]})(scripts);\n" for name in needed)
    return f"const scripts = {{ MESSAGES: {_encode_script_messages(needed)} }};\n{members}"


def _read_script_and_dependencies(name: str) -> tuple[list[str], str]:
    """The scripts that a script builds on, and the function that it is."""
    found = _MODULE_PATTERN.match(_read_dist_file(f"{name}.js").rstrip())
    assert found, name
    return [one for one in found[2].split(",") if one not in ("", "MESSAGES")], found[1]


def read_style_sheet(name: str) -> str:
    """Return a sheet of dist/, with those that it imports."""
    return _SHEET_IMPORT.sub(lambda found: read_style_sheet(found[1]), _read_dist_file(f"{name}.css"))


def read_component_style_sheet(name: str) -> str:
    """Return what all components share, then the component's own sheet, which one that draws nothing has not."""
    return read_style_sheet("shared") + (read_style_sheet(name) if (DIST_FOLDER / f"{name}.css").exists() else "")


def _read_dist_file(name: str) -> str:
    return (DIST_FOLDER / name).read_text(encoding="utf-8")


def build_messages_statement(names: Iterable[str]) -> str:
    """Return the statement that stands before a standalone script: the language, and the messages of `names` in it."""
    return f"const MESSAGES = {_encode_script_messages(names)};\n"


def _encode_script_messages(names: Iterable[str]) -> str:
    spoken = {"language": current_language(), "said": translate_script_messages(names)}
    return json.dumps(spoken, ensure_ascii=False).replace("</", "<\\/")  # It may stand in the script of a page.


def build_standalone_module(name: str) -> str:
    """Return a script of dist/ as a module that imports nothing, in the current language."""
    return f"{build_scripts_constant([name])}export default scripts.{name};\n"


_FETCHING_STATEMENTS = """const scripts = {{ MESSAGES: {messages} }};
const found = await Promise.all({addresses}.map((one) => import(new URL(one, document.baseURI))));
{names}.forEach((name, at) => (scripts[name] = found[at].default(scripts)));
"""


def build_fetching_module(name: str, folder: str) -> str:
    """Return the module that a page of Streamlit mounts, which fetches what others have not."""
    return f"{build_fetching_statements(name, folder)}export default scripts.{name};\n"


def build_fetching_statements(name: str, folder: str) -> str:
    """Return the statements that make a script a member of the constant `scripts`, from a `folder` of addresses.

    An address has what tells a script from that of another version.
    """
    needed = list_needed_scripts([name])
    addresses = [f"{folder}/{one}.js?{zlib.crc32(_read_dist_file(f'{one}.js').encode()):08x}" for one in needed]
    return _FETCHING_STATEMENTS.format(
        messages=_encode_script_messages(needed), addresses=json.dumps(addresses), names=json.dumps(needed)
    )


def translate_script_messages(names: Iterable[str]) -> dict[str, str]:
    """Return the messages of scripts in the current language, by the English ones; none for English itself.

    Of a message whose words depend on a number both forms stand there.
    """
    if current_language() == SOURCE_LANGUAGE:
        return {}
    catalogue, found = load_catalogue(current_language()), {}
    for forms in (forms for name in names for forms in _read_script_messages().get(name, ())):
        if len(forms) == 1:
            found[forms[0]] = catalogue.gettext(forms[0])
        else:
            one, many = forms
            found |= {form: catalogue.ngettext(one, many, count) for form, count in ((one, 1), (many, 2))}
    return found


@functools.cache
def _read_script_messages() -> dict[str, list[list[str]]]:
    """What each script says: a message, or its two forms where a number changes the words."""
    found: dict[str, list[list[str]]] = json.loads(_read_dist_file("messages.json"))
    return found


def create_mount_function(name: str) -> Callable[..., Any]:
    """Return a function that mounts the component `name`.

    The component is registered, and Streamlit imported, at the first mount: a notebook mounts the same components
    without Streamlit.
    """

    def mount(**arguments: Any) -> Any:
        from attenscope.viz.streamlit_internals import serve_folder

        folder = serve_folder("scripts", DIST_FOLDER)
        guarded = {
            one: functools.partial(_call_while_mounted, arguments["key"], value) if one.startswith("on_") else value
            for one, value in arguments.items()
        }
        return _register_component(name, current_language(), folder, _read_build_time(name))(**guarded)

    return mount


def _call_while_mounted(key: str, callback: Callable[[], None]) -> None:
    """Call what hears of a view, unless the view is gone: a page that is left may still send what was done on it."""
    import streamlit as st

    if key in st.session_state:
        callback()


def _read_build_time(name: str) -> int:
    """When `make dev` has built it, or what it builds on, again, the new script is registered."""
    return max((DIST_FOLDER / f"{one}.js").stat().st_mtime_ns for one in _list_needed_script_names(name))


@functools.cache
def _list_needed_script_names(name: str) -> tuple[str, ...]:
    return tuple(list_needed_scripts([name]))


@functools.cache
def _register_component(name: str, language: str, folder: str, _built: int) -> Any:
    import streamlit as st

    own = f"attenscope_{name}" if language == SOURCE_LANGUAGE else f"attenscope_{name}_{language}"
    style = f"/* {name} */\n{read_component_style_sheet(name)}"  # Streamlit takes a text of one line for a path.
    return st.components.v2.component(own, css=style, js=build_fetching_module(name, folder))


def component_value(key: str) -> Any:
    """Return the last value that the view mounted as `key` has sent; for callbacks."""
    import streamlit as st

    return st.session_state[key]


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


def read_packed_header_json(packed: bytes) -> str:
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


def quantise_weights_to_uint16(weights: np.ndarray, mask: np.ndarray, top: float = 1.0) -> np.ndarray:
    """Return weights (Q, K) in 0..top as uint16; each has the same three decimals as its weight, and the same two."""
    numbers = quantise_to_levels(np.where(mask, weights, 0), 0.0, top, FULL_UINT16, make_half_decimal_bin_function(3))
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


def make_half_decimal_bin_function(decimals: int) -> CellFunction:
    """Return cells of half a step of the last decimal: all in one are rounded alike, to these decimals and to fewer."""
    return lambda values: np.floor(values * 2 * 10**decimals)


LOOKUP_PARTS = 25_400
"""Equal parts of 0..1: half percents end where a part does, and so do the weights nearest to a byte."""
LOOKUP_BYTES = quantise_to_levels(
    (np.arange(LOOKUP_PARTS + 1) + 0.5) / LOOKUP_PARTS, 0.0, 1.0, FULL_BYTE, make_half_decimal_bin_function(2)
).astype(np.uint8)
"""(PARTS + 1,) the byte of the weights of each part: to look it up takes a tenth of the time of working it out."""
