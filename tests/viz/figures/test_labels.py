"""Numbers as they are printed, places as they are named, and the room that names need."""

from __future__ import annotations

import pytest

import attenscope.viz.visitor_language  # noqa: F401  Figures speak its languages once it is imported.
from attenscope.language import use_language
from attenscope.viz.figures.figure_style import (
    LETTER_WIDTH,
    format_percent,
    format_signed,
    label_margin,
    quote_token,
    translate_stream_place_name,
)


@pytest.mark.parametrize(
    ("share", "printed"),
    [(0, "0%"), (1e-12, "<0.1%"), (0.0004999, "<0.1%"), (0.0006, "0.1%"), (0.0512, "5.1%"), (0.1, "10%"), (1, "100%")],
)
def test_what_is_not_zero_does_not_read_so(share: float, printed: str) -> None:
    assert format_percent(share) == printed


def test_numbers_and_quotation_marks_are_the_languages() -> None:
    with use_language("de"):
        assert (format_signed(-0.5, 2), format_percent(0.0512)) == ("−0,50", "5,1\N{NARROW NO-BREAK SPACE}%")
        assert quote_token("Hund") == "„\u2068Hund\u2069“"
    assert quote_token("dog") == "“\u2068dog\u2069”"


def test_places_of_a_stream_are_named_and_others_stay() -> None:
    names = ["embedding", "layer 2", "layer 2 self-attention", "layer 2 mixer", "somewhere"]
    assert [translate_stream_place_name(name) for name in names] == names
    with use_language("de"):
        assert [translate_stream_place_name(name) for name in names[:3]] == [
            "Embedding",
            "Schicht 2",
            "Schicht 2, Self-Attention",
        ]


def test_room_is_that_of_the_longest_line() -> None:
    assert label_margin(["a", "b\n" + 30 * "m"], 10) == label_margin([30 * "m"], 10) == int(LETTER_WIDTH * 30) + 16
    assert label_margin([15 * "层"], 10) == label_margin([30 * "m"], 10)
    assert label_margin(["short"], 300) == label_margin([], 300) == 300
