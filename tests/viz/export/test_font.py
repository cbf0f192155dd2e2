"""The letters in a file: those it needs and no others, of an open font that says its licence."""

from __future__ import annotations

import base64
import io
import re
from datetime import date

import pytest
from fontTools.ttLib import TTFont

from attenscope.viz.engine.pack_checkpoint import PackedModel
from attenscope.viz.export.browser_model_file import build_live_page as live_page
from attenscope.viz.export.offline_html import (
    CUT_FONT_NAME,
    TYPEABLE_LETTERS,
    build_font_faces,
    build_talk_page,
    build_view_page,
)
from attenscope.viz.export.parts import Slide, View, Words
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.streamlit_internals import find_font_file

MADE = date(2025, 1, 2)
FACE = re.compile(r'/\* (.*?) \*/\n@font-face \{ ([^}]*)url\("data:font/woff2;base64,([^"]*)"\)')


def fonts(page: str) -> list[tuple[str, str, TTFont]]:
    """The fonts in a page: what is said of each, its look, and the font."""
    return [(said, look, TTFont(io.BytesIO(base64.b64decode(data)))) for said, look, data in FACE.findall(page)]


def letters(font: TTFont) -> set[str]:
    return set(map(chr, font.getBestCmap()))


@pytest.mark.sweep
def test_a_font_has_the_letters_asked_for_in_all_weights() -> None:
    ((_, look, upright),) = fonts(build_font_faces("Grüße, 12 → ⁂", italic=False))
    whole = letters(TTFont(find_font_file(italic=False)))
    assert letters(upright) == set("Grüße, 12 → ⁂") & whole
    assert "font-style: normal; font-weight: 200 900" in look
    assert [(axis.axisTag, axis.minValue, axis.maxValue) for axis in upright["fvar"].axes] == [("wght", 200, 900)]
    assert "а" not in TYPEABLE_LETTERS, "what follows is about a letter that most files do not have"
    assert letters(fonts(build_font_faces("аб", italic=False))[0][2]) == set("аб")


@pytest.mark.sweep
def test_a_font_says_whose_it_is_and_does_not_bear_the_reserved_name() -> None:
    for said, _, font in fonts(build_font_faces("abc", italic=True)):
        names = font["name"]
        assert "SIL Open Font License" in said
        assert "Adobe" in said
        assert str(names.getDebugName(13)) in said
        assert CUT_FONT_NAME in names.getDebugName(1)
        assert not any("Source" in str(one) for one in names.names if one.nameID not in (0, 13))


@pytest.mark.sweep
def test_a_file_brings_the_letters_of_its_texts_alone() -> None:
    view = View("A view", [Words("Größe Ωμέγα", "picture")])
    for page in (build_view_page(view, LIGHT, MADE), build_talk_page("Talk", [Slide("Ж", view, "Łódź")], LIGHT, MADE)):
        ((_, _, font),) = fonts(page)
        assert set("GrößeΩμέγα") <= letters(font)
        assert "Ч" not in letters(font)
    assert set("ŻЖŁódź") - letters(font) == {"Ż"}


@pytest.mark.sweep
def test_a_file_that_takes_sentences_brings_every_latin_letter() -> None:
    facts = {"name": "m", "title": "A model", "facts": {"weights": "half"}}
    live = live_page([facts | {"examples": [], "tour": []}], MADE, "")
    assert (
        letters(TTFont(find_font_file(italic=False))) & TYPEABLE_LETTERS
        == letters(fonts(live)[0][2]) & TYPEABLE_LETTERS
    )
    talk = build_talk_page("Talk", [Slide("One", None, missing="x")], LIGHT, MADE, [PackedModel(facts, b"")])
    assert letters(fonts(talk)[0][2]) >= set("ŻŐğ")
