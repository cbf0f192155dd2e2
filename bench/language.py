"""What a rerun of a page costs in another language than English: the same page, by one visitor, in turns."""

from __future__ import annotations

from functools import partial

from attenscope.language import COMPLETE_LANGUAGES, LANGUAGES
from bench.positions import app
from bench.timing import Row, side_by_side
from bench.visitor import Visitor

PAGES = {"Explore": None, "Masks": "masks"}
REPETITIONS = 40


def measure() -> list[Row]:
    with app() as url, Visitor(url) as visitor:
        return [_row(visitor, name, language) for name in PAGES for language in COMPLETE_LANGUAGES[1:]]


def _row(visitor: Visitor, name: str, language: str) -> Row:
    visitor.open("", PAGES[name] or "")
    again = partial(visitor.open, page=None)
    said, english = side_by_side(partial(again, f"lang={language}"), partial(again, "lang=en"), REPETITIONS, warm_up=3)
    assert not visitor.errors, visitor.errors
    what = f"language: a rerun of {name}, ms, in {LANGUAGES[language]} / in English"
    return Row(
        what, f"{1000 * said:.1f}", f"{1000 * english:.1f}", said / english, "at most 1.05", said <= 1.05 * english
    )
