"""The picture of a trace where no script runs: its colours, its tokens, and nothing that a token could do."""

from __future__ import annotations

import base64
import io
import re
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from plotly.colors import find_intermediate_color, hex_to_rgb

from attenscope.viz.figures.figure_style import Look
from attenscope.viz.notebook.static_html import colour_weights, encode_png, static_html
from tests.viz.fakes import FakeTranslator

AWKWARD = "<img src=x onerror=alert(1)> & 'quoted'"
TRACE = FakeTranslator().translate("two words").trace
SVG = "{http://www.w3.org/2000/svg}"


def pictures(html: str) -> list[ElementTree.Element]:
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    return [ElementTree.fromstring(base64.b64decode(one)) for one in found]


def image(element: ElementTree.Element) -> np.ndarray:
    data = element.attrib["href"].removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))


def test_a_png_is_read_back_by_pillow() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert (np.asarray(Image.open(io.BytesIO(encode_png(pixels)))) == pixels).all()


@pytest.mark.parametrize("look", [Look(), Look(scale="linear"), Look(scale="log")])
def test_a_weight_has_the_colour_that_plotly_gives_it(look: Look) -> None:
    weights = np.linspace(0, 1, 41)[None]
    drawn = colour_weights(weights, np.ones_like(weights, dtype=bool), look)[0]
    for weight, colour in zip(weights[0], drawn, strict=True):
        stops = look.colorscale
        above = next(at for at, (place, _) in enumerate(stops) if place >= weight)
        (low, first), (high, last) = stops[max(above - 1, 0)], stops[above]
        share = (weight - low) / (high - low) if high > low else 0.0
        expected = find_intermediate_color(hex_to_rgb(first), hex_to_rgb(last), share)
        np.testing.assert_allclose(colour, expected, atol=0.51)


def test_the_overview_has_a_tile_for_every_head_of_every_map() -> None:
    for one, drawn in zip(TRACE.maps.values(), pictures(static_html(TRACE)), strict=True):
        tiles = [image(element) for element in drawn.iter(f"{SVG}image")]
        assert len(tiles) == one.layers * one.heads
        for at, tile in enumerate(tiles):
            layer, head = divmod(at, one.heads)
            assert (tile == colour_weights(one.weights[layer, head], one.mask, Look())).all()
    assert (tiles[0] != tiles[1]).any()


def test_a_masked_cell_is_grey() -> None:
    decoder = TRACE.maps["decoder"]
    grey = tuple(int(Look().palette.masked[at : at + 2], 16) for at in (1, 3, 5))
    drawn = colour_weights(decoder.weights[0, 0], decoder.mask, Look())
    assert (drawn[~decoder.mask] == grey).all()


def test_a_token_is_text() -> None:
    decoder = TRACE.maps["decoder"]
    awkward = (AWKWARD[:20], *decoder.key_tokens[1:])
    trace = replace(
        TRACE,
        decoder=replace(decoder, key_tokens=awkward, query_tokens=awkward, predicted_tokens=()),
        source=AWKWARD,
        model=AWKWARD,
    )
    html = static_html(trace, ("decoder", 1, 2))
    assert "<img src=x" not in html
    overview, head = pictures(html)
    texts = [element.text or "" for element in head.iter(f"{SVG}text")]
    assert sum("onerr" in text or "<img" in text for text in texts) == 2
    assert {element.tag.removeprefix(SVG) for drawn in (overview, head) for element in drawn.iter()} <= {
        "svg", "rect", "text", "image", "g",
    }  # fmt: skip


def test_a_trace_shows_itself_where_the_views_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "<img" in str(TRACE._repr_html_())
    monkeypatch.setitem(sys.modules, "attenscope.viz.notebook.static_html", None)
    assert TRACE._repr_html_() is None
