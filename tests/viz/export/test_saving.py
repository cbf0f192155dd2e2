"""What can be saved of a view as a picture, and when."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from attenscope import viz
from attenscope.translate import Translator
from attenscope.viz.export.parts import Chart, Columns, Component, Part, Words
from attenscope.viz.export.share_menu import OFFERED_VIEW, PICTURE_ROLES, build_iframe_html, has_picture
from attenscope.viz.masks.mask_input import Edits, MaskInput
from attenscope.viz.masks.pictures import build_panels, slice_judgement
from attenscope.viz.masks.verdict import judge_with_edits
from attenscope.viz.page_setup import SHARE_MENU
from attenscope.viz.ui import cache
from tests.scripts import COMPONENTS_FOLDER

CAUSAL = np.tril(np.ones((6, 6), bool))
SAVED = re.compile(r'\bComponent\("(\w+)"')
ASIDE = {"overview", "tokens", "versions"}
"""Saved beside a picture, in a role of their own."""


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([Words("A line of a table.", "picture"), Words("What it says.")], False),
        ([Component("overview", b"", "heads"), Words("All heads.")], False),
        ([Words("A sentence.", "sentence"), Columns(([Component("links", b"")], [Words("So.")]), (1, 1))], True),
        ([Component("decode_player", b"", "decoding")], True),
        ([Chart(go.Figure(), "A curve")], True),
    ],
)
def test_only_what_is_drawn_makes_a_picture(parts: list[Part], found: bool) -> None:
    assert has_picture(parts) is found


def test_the_browser_takes_pictures_of_the_same_roles() -> None:
    code = (COMPONENTS_FOLDER / "save" / "save.js").read_text(encoding="utf-8")
    assert set(re.findall(r"\[data-role=(\w+)\]", code)) == set(PICTURE_ROLES)


def test_every_component_that_is_saved_as_a_picture_can_draw_itself() -> None:
    sources = Path(viz.__file__).parent.rglob("*.py")
    names = {name for path in sources for name in SAVED.findall(path.read_text(encoding="utf-8"))} - ASIDE
    assert {"heatmap", "matrix", "snapshots", "decode_player"} <= names
    for name in names:
        assert "root.picture = " in (COMPONENTS_FOLDER / name / f"{name}.js").read_text(encoding="utf-8"), name


def test_a_click_is_only_spoken_of_where_cells_can_be_turned_over() -> None:
    one = MaskInput("one", {"mask": CAUSAL, "meant": CAUSAL}, editable=frozenset({"given", "meant"}))
    found = judge_with_edits(one, Edits("one"))
    drawn = build_panels(one, found, slice_judgement(found, 0, 0, 0), 1)
    assert [panel.name for panel in drawn if panel.editable] == ["meant", "given"]
    assert not any("lick" in panel.note for panel in drawn)


def test_the_line_for_another_page_names_the_file_and_breaks_no_markup() -> None:
    line = build_iframe_html('a "b".html', '<b> & "c"')
    assert line.startswith('<iframe src="a%20%22b%22.html" title="&lt;b&gt; &amp; &quot;c&quot;" width=')


@pytest.mark.parametrize(
    ("part", "box", "shows", "shows_nothing"),
    [
        ("judge", "mask_text", str(CAUSAL), ""),
        ("gallery", "symptom", "padding", "xyzzy"),
        ("convert", "convert_rule", "causal", "nonsense"),
        ("try on the model", "tried_rule", "causal", "nonsense"),
    ],
)
def test_a_view_of_masks_is_handed_out_only_while_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, toy_translator: Translator, part: str, box: str, shows: str, shows_nothing: str
) -> None:
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: [toy_translator.name])
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: toy_translator)
    app = AppTest.from_file(str(Path(viz.__file__).parent / "pages" / "masks.py"), default_timeout=60)
    app.query_params.update({"part": part, "tried_mask": "A rule", "sentence": "the old dog sees a cat."})
    app.session_state[box] = shows
    app.run()
    assert OFFERED_VIEW in app.session_state
    app.session_state[SHARE_MENU] = True  # Then the frame of the page leaves it offered, as a run of its view alone.
    app.session_state[box] = shows_nothing
    app.run()
    assert not app.exception
    assert OFFERED_VIEW not in app.session_state
