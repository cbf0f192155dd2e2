"""What a notebook is sent of a trace, in light and dark, and what is refused; no browser and no anywidget."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attenscope.analysis.flow import build_joint_attention
from attenscope.trace import AttentionTrace, TraceError
from attenscope.viz.export.parts import Component, flatten_parts
from attenscope.viz.figures.figure_style import DARK, Look
from attenscope.viz.notebook.views import (
    NOTEBOOK_VIEWS,
    WIDGET_COMPONENTS,
    NotebookState,
    build_notebook_parts,
    build_widget_script,
    encode_widget_content,
)
from attenscope.viz.web.component_scripts import FULL_UINT16, MASKED_UINT16
from tests.viz.fakes import FakeTranslator, attention

ROOT = Path(__file__).resolve().parents[3]
RESULT = FakeTranslator().translate("an awkward </script> sentence")


def shown(view: Any, **more: Any) -> NotebookState:
    chosen: dict[str, Any] = {"kind": "decoder", "layer": 1, "head": 2, "translation": RESULT} | more
    return NotebookState(RESULT.trace, view, **chosen)


def unpacked(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack_from("<I", data)
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def components(what: NotebookState, look: Look | None = None) -> list[Component]:
    return [part for part in flatten_parts(build_notebook_parts(what, look or Look())) if isinstance(part, Component)]


@pytest.mark.parametrize("view", NOTEBOOK_VIEWS)
def test_a_dark_page_draws_what_python_would_pack_for_it(view: Any) -> None:
    """The light header with its `dark` fields, as follow.js puts them in, is the header of the dark view."""
    header, body = unpacked(encode_widget_content(shown(view), Look()))
    sent = [(part, change) for part, change in zip(flat(header["slide"]["parts"]), header["dark"], strict=True)]
    sent = [(part, change) for part, change in sent if part["is"] == "component"]
    for (part, change), dark in zip(sent, components(shown(view), Look(DARK)), strict=True):
        first, length = part["at"]
        light_header, light_bytes = unpacked(body[first : first + length])
        assert isinstance(dark.data, bytes)
        assert (light_header | change, light_bytes) == unpacked(dark.data)
        assert part["name"] == dark.name in WIDGET_COMPONENTS
        assert change


def flat(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    columns = [flat(column) for part in found if part["is"] == "columns" for column in part["columns"]]
    return [part for part in found if part["is"] != "columns"] + [part for column in columns for part in column]


def test_the_heatmap_holds_the_weights_of_the_chosen_head() -> None:
    picture = next(one for one in components(shown("heatmap")) if one.name == "heatmap")
    assert isinstance(picture.data, bytes)
    header, body = unpacked(picture.data)
    decoder = RESULT.trace.maps["decoder"]
    sent = np.frombuffer(body, "<u2").reshape(decoder.mask.shape).astype(float)
    assert ((sent == MASKED_UINT16) == ~decoder.mask).all()
    expected = np.where(decoder.mask, decoder.weights[1, 2], 0)
    np.testing.assert_allclose(np.where(decoder.mask, sent / FULL_UINT16, 0), expected, atol=5e-4)
    assert header["title"] == "Decoder self-attention · layer 2, head 3"
    assert header["pins"]


def test_the_joint_view_is_the_joint_matrix() -> None:
    (picture,) = components(shown("joint"))
    assert isinstance(picture.data, bytes)
    matrix = build_joint_attention(RESULT.trace, 1, 2)
    assert unpacked(picture.data)[0]["breaks"] == [matrix.source_length]
    assert unpacked(picture.data)[0]["rows"] == [token.strip() for token in matrix.predicted_tokens]


@pytest.mark.parametrize(("alone", "title"), [(False, "The translation so far"), (True, "The text so far")])
def test_the_text_of_a_decoder_alone_is_no_translation(alone: bool, title: str) -> None:
    trace = AttentionTrace(decoder=RESULT.trace.decoder) if alone else RESULT.trace
    (text, *_) = [one for one in components(replace(shown("text"), trace=trace)) if one.name == "text"]
    assert isinstance(text.data, bytes)
    assert unpacked(text.data)[0]["key"]["title"] == title


def test_what_can_be_chosen_is_what_the_trace_has() -> None:
    whole, _ = unpacked(encode_widget_content(shown("links"), Look()))
    assert whole["views"] == list(NOTEBOOK_VIEWS)
    assert whole["kinds"] == ["encoder", "decoder", "cross"]
    assert whole["of"] == "layer 2, head 3"
    alone = replace(RESULT.trace, encoder=None, cross=None, model="Theirs")
    header, _ = unpacked(encode_widget_content(NotebookState(alone, "overview", "decoder", 0, 0), Look()))
    assert header["views"] == ["overview", "heatmap", "links", "text"]
    assert (header["kinds"], header["of"]) == (["decoder"], "Theirs")


def test_a_trace_without_steps_has_no_decoding() -> None:
    with pytest.raises(TraceError, match="does not hold: show the Translation"):
        build_notebook_parts(shown("decode", translation=None), Look())


@pytest.mark.parametrize(("tokens", "follows"), [(128, True), (129, False)])
def test_a_head_is_drawn_from_its_tile_only_where_the_tile_has_every_weight(tokens: int, follows: bool) -> None:
    names = tuple(map(str, range(tokens)))
    trace = replace(RESULT.trace, encoder=attention("encoder", names, names), decoder=None, cross=None)
    assert [one.follows for one in components(NotebookState(trace, "text", "encoder", 0, 0))] == [follows, follows]


def test_a_map_of_one_head_stands_alone() -> None:
    one = attention("encoder", ("a", "b"), ("a", "b"))
    one = replace(one, weights=one.weights[:1, :1])
    trace = replace(RESULT.trace, encoder=one, decoder=None, cross=None)
    names = [
        part.name
        for part in flatten_parts(build_notebook_parts(NotebookState(trace, "links", "encoder", 0, 0), Look()))
        if isinstance(part, Component)
    ]
    assert names == ["links"]


def test_the_pinned_cell_is_packed() -> None:
    picture = next(part for part in components(shown("heatmap", pinned=(2, 1))) if part.name == "heatmap")
    assert isinstance(picture.data, bytes)
    assert unpacked(picture.data)[0]["pinned"] == [2, 1]
    assert "looks at" in unpacked(picture.data)[0]["alt"]


def test_the_script_is_one_module_that_fetches_nothing() -> None:
    code = build_widget_script()
    assert not any(line.startswith("import ") for line in code.splitlines())
    assert code.rstrip().splitlines()[-1].startswith("export default { render:")
    assert "http" not in code.replace("http://www.w3.org/", "")


@pytest.mark.sweep
def test_a_notebook_needs_neither_streamlit_nor_torch() -> None:
    code = (
        "import sys; sys.modules['streamlit'] = sys.modules['torch'] = None\n"
        "from attenscope.viz.notebook import static_html, views; views.build_widget_script()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_script_is_one_module_that_asks_for_nothing_else() -> None:
    """A host such as VS Code or Colab runs it in a frame of its own, where no file and no address of ours is found."""
    found = build_widget_script()
    names = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}  # of namespaces, not addresses
    assert set(re.findall(r"https?://[^\s\"'`)]+", found)) <= names
    for asked in (r"^\s*import\b", r"\bimport\(", r"\bfetch\(", r"XMLHttpRequest", r"file:/", r"importScripts"):
        assert not re.search(asked, found, re.MULTILINE), asked
    assert str(ROOT) not in found
    assert found.count("export default {") == 1
