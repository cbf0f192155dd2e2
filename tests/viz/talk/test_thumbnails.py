"""The small pictures that come with the talk: which scene has which."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from PIL import Image

from attenscope.viz.talk.editor import THUMBNAIL_SIZE, build_thumbnail_style, get_thumbnail_sheet_path
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.talk.session import load_shipped_talk

LIGHT_ENOUGH = 60_000
"""Bytes of all pictures of one colour scheme."""


def pictured(talk: Talk, scheme: str = "light") -> dict[int, float]:
    """Which scenes have a picture, from 0, and how far down it stands, in per cent."""
    style = build_thumbnail_style("list", talk, load_shipped_talk()[0], scheme)
    found = re.findall(r'\[value="(\d+)"\]\) > div::before \{ content: ""; background: 0 ([\d.]+)% ', style)
    return {int(at): float(place) for at, place in found}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_scene_of_the_talk_that_ships_has_a_picture_of_its_own(scheme: str) -> None:
    shipped = load_shipped_talk()[0]
    count = len(shipped.scenes)
    assert pictured(shipped, scheme) == pytest.approx({at: 100 * at / (count - 1) for at in range(count)}, abs=1e-3)
    file = get_thumbnail_sheet_path(scheme)
    assert file.stat().st_size < LIGHT_ENOUGH
    width, height = THUMBNAIL_SIZE
    column = Image.open(file).convert("RGB")
    assert column.size == (width, count * height)
    rows = [column.crop((0, at * height, width, (at + 1) * height)).tobytes() for at in range(count)]
    assert len(set(rows)) == count
    is_dark = sum(column.getpixel((1, 1))) < 3 * 128  # type: ignore[arg-type]
    assert is_dark == (scheme == "dark")


def test_a_picture_follows_its_scene_and_stays_while_the_scene_is_drawn_alike() -> None:
    shipped = load_shipped_talk()[0]
    first, second, *others = shipped.scenes
    moved = replace(shipped, scenes=(second, replace(first, title="Mine", notes="Mine", hide=("picture",)), *others))
    before = pictured(shipped)
    assert pictured(moved)[1] == before[0]
    assert pictured(moved)[0] == before[1]
    for change in ({"view": dict(first.view) | {"head": "5"}}, {"omit": ()}, {"guess": ("a", "b")}, {"page": "decode"}):
        assert 0 not in pictured(replace(shipped, scenes=(replace(first, **change), second)))
    assert not pictured(replace(shipped, model="preset-original", scenes=(first,)))


def test_a_talk_of_other_scenes_asks_for_no_picture() -> None:
    assert (
        build_thumbnail_style("list", Talk("Mine", (Scene("Waves", "positions"),)), load_shipped_talk()[0], "light")
        == ""
    )
