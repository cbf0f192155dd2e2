"""Views and talks as single files: what stands in them, what cannot, and how large they are."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import struct
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from attenscope.language import use_language
from attenscope.viz.export import talk_html
from attenscope.viz.export.__main__ import main as command_line
from attenscope.viz.export.offline_html import TILES_PICTURE_SHARES, build_talk_page, build_view_page
from attenscope.viz.export.parts import (
    SENTENCE_PICTURE_ROLE,
    Chart,
    Columns,
    Component,
    LiveSlide,
    Slide,
    View,
    Words,
    flatten_parts,
)
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.web import maps, players, text_components
from tests.viz.fakes import FakeTranslator, fill_disk

ROOT = Path(__file__).resolve().parents[3]
AWKWARD = "</script><script>alert(1)</script> \u2028 مرحبا &amp; $code"
MADE = date(2025, 1, 2)


def explored(text: str) -> View:
    result = FakeTranslator().translate(text)
    cross = result.trace.cross
    assert cross is not None
    tiles = maps.encode_heads_overview(cross, 1, 2, Look())
    lines = maps.encode_attention_links(cross, maps.LinkOptions(1, 2), Look(), "predicted", (None, None), "Lines.")
    pair = [Component("overview", tiles, "heads", follows=True)], [Component("links", lines, follows=True)]
    pieces = Component("tokens", text_components.token_line_data(result.steps, None), "translation")
    return View(text, [Words(text, "sentence", "large"), pieces, Columns(pair, (0.4, 0.6))], {"model": "fake-en-de"})


def decoded(text: str) -> View:
    result = FakeTranslator().translate(text)
    shown = players.PlayerStart(1, "aligning", "3.mean", (1, 2))
    return View(
        "Decoded",
        [Component("decode_player", players.encode_decode_player(result, shown, Look(), "saved")), Words("Said.")],
    )


def charted() -> View:
    figure = go.Figure(
        {"data": [{"type": "scatter", "y": [1, 3, 2], "text": [AWKWARD] * 3}], "layout": {"height": 300}}
    )
    return View("A curve", [Chart(figure, "A curve")])


def content(page: str) -> tuple[dict[str, Any], bytes]:
    """What the browser reads."""
    packed = re.search(r'id="content">([^<]*)<', page)
    assert packed
    data = gzip.decompress(base64.b64decode(packed[1]))
    (length,) = struct.unpack("<I", data[:4])
    return json.loads(data[4 : 4 + length]), data[4 + length :]


def font_notice(page: str) -> str:
    """What is said of the font in a page: it names the address of its licence."""
    (said,) = re.findall(r"/\* Source Sans, .*? \*/", page)
    return str(said)


def test_no_token_is_markup_and_only_the_named_scripts_run() -> None:
    page = build_view_page(explored(AWKWARD), LIGHT, MADE, AWKWARD)
    assert "alert(1)" not in page.replace("&lt;/script&gt;&lt;script&gt;alert(1)", "")
    assert page.count("<script") == page.count("</script>") == 3
    (code,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}';")
    asked = page.replace(font_notice(page), "")
    assert not re.search(r"https?://(?!www\.w3\.org)", asked)
    header, _ = content(page)
    assert header["slides"][0]["notes"] == AWKWARD
    words = header["slides"][0]["parts"][0]
    assert words["text"] == AWKWARD
    assert words["marked"] == []


def test_a_file_says_what_it_was_made_from() -> None:
    header, body = content(build_view_page(explored("a b c"), DARK, MADE))
    assert header["made"] == "2025-01-02"
    (slide,) = header["slides"]
    assert slide["facts"] == {"model": "fake-en-de"}
    columns = slide["parts"][-1]
    start, length = columns["columns"][0][0]["at"]
    assert len(body) > start + length > start


@pytest.mark.sweep
def test_a_file_is_in_the_language_of_who_makes_it() -> None:
    with use_language("de"):
        german = build_view_page(replace(explored("a b"), facts={"settings": "none"}), LIGHT, MADE)
    assert '<html lang="de"' in german
    assert content(german)[0]["slides"][0]["facts"] == {"Einstellungen": "none"}
    assert "Woraus dies entstanden ist" in german
    with use_language("zh"):
        assert '<html lang="zh-Hans"' in build_view_page(explored("a b"), LIGHT, MADE)
    assert '<html lang="en"' in build_view_page(explored("a b"), LIGHT, MADE)


def test_a_scene_of_a_talks_file_is_in_its_own_language(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Slide] = []

    def page(title: str, slides: list[Slide], *_: object) -> str:
        made.extend(slides)
        return title

    monkeypatch.setattr(talk_html, "build_talk_page", page)
    scenes = Scene("One", "nowhere", {"lang": "de"}), Scene("Two", "nowhere")
    with use_language("zh"):
        talk_html.build_talk_file(Talk("Both", scenes), {}, LIGHT, MADE)
    assert "Es gibt keine Seite" in made[0].missing
    assert "没有页面" in made[1].missing


@pytest.mark.sweep
def test_plotly_stands_in_a_file_once_or_not_at_all() -> None:
    curve = Slide("Curve", charted())
    sizes = [
        len(build_talk_page("T", slides, LIGHT, MADE))
        for slides in ([Slide("One", decoded("a b c"))], [curve], [curve, curve, curve])
    ]
    assert sizes[0] < 200_000 < sizes[1] < 3_000_000
    assert sizes[2] - sizes[1] < 2_000


def test_a_scene_gives_the_picture_the_room_beside_the_tiles() -> None:
    view = explored("a b c")
    shares = {}
    for name, page in (
        ("view", build_view_page(view, LIGHT, MADE)),
        ("scene", build_talk_page("T", [Slide("A", view)], LIGHT, MADE)),
    ):
        header, _ = content(page)
        (row,) = (part for part in header["slides"][0]["parts"] if part["is"] == "columns")
        shares[name] = row["shares"]
    assert shares == {"view": [0.4, 0.6], "scene": list(TILES_PICTURE_SHARES)}


def test_a_long_view_stays_below_three_megabytes() -> None:
    long = " ".join(f"word{at}" for at in range(120))
    assert len(build_view_page(explored(long), LIGHT, MADE)) < 3_000_000
    assert len(build_view_page(decoded(long), LIGHT, MADE)) < 3_000_000


def test_what_a_scene_omits_is_not_in_the_file() -> None:
    slide = Slide("Heads only", explored("a secret c"), omit=("picture", "sentence", "translation"))
    assert [part.role for part in flatten_parts(slide.parts)] == ["heads"]
    (columns,) = slide.parts
    assert isinstance(columns, Columns)
    assert columns.shares == (0.4,)


@pytest.mark.parametrize(
    ("omit", "live", "expected"),
    [
        ((), None, ["sentence", "translation", "heads", "picture"]),
        (("heads",), None, ["sentence", "translation", "picture"]),
        (("heads", "picture"), None, [SENTENCE_PICTURE_ROLE]),
        (("heads", "picture"), LiveSlide("m", {}), ["sentence", "translation"]),
    ],
)
def test_the_sentence_with_its_links_takes_the_place_of_its_texts_where_it_is_the_only_picture(
    omit: tuple[str, ...], live: LiveSlide | None, expected: list[str]
) -> None:
    drawn = [Component("any", b"", role) for role in ("sentence", "translation", SENTENCE_PICTURE_ROLE)]
    beside = Columns(([Component("any", b"", "heads")], [Component("any", b"", "picture")]), (0.4, 0.6))
    slide = Slide("Words", View("Words", [*drawn, beside]), omit=omit, live=live)
    assert [part.role for part in flatten_parts(slide.parts)] == expected


TALK = """[[scene]]
[[scene]]
page = "explor"
[[scene]]
title = "Shown"
page = "explore"
titel = "Misspelt"
[scene.view]
sentence = "Good morning."
haed = 2
[[scene]]
page = "explore"
[scene.view]
layer = 99
[[scene]]
page = "explore"
[scene.view]
model = "nope"
"""


@pytest.mark.sweep
def test_the_command_line_writes_what_can_be_shown_and_names_every_mistake(tmp_path: Path) -> None:
    talk, out = tmp_path / "talk.toml", tmp_path / "talk.html"
    talk.write_text(TALK, encoding="utf-8")
    command = [sys.executable, "-m", "attenscope.viz.export", str(talk), str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, "a scene was left out"
    assert done.stderr.splitlines()[-1].endswith("scenes are not in it.")
    assert "StreamlitPageNotFoundError" not in done.stderr, "the line that leads on to the next page"
    header, _ = content(out.read_text(encoding="utf-8"))
    assert [slide["title"] for slide in header["slides"]] == ["Shown"]
    told = [line.removeprefix(f"{talk}: ") for line in done.stderr.splitlines() if line.startswith(str(talk))]
    wanted = {1: "no page;", 3: "'explor'", 7: "'titel'", 10: "'haed'", 14: "no layer 99, head 1", 18: "'nope'"}
    assert [line.partition(":")[0] for line in told] == [f"Line {number}" for number in wanted]
    assert all(said in line for said, line in zip(wanted.values(), told, strict=True))


def test_a_talk_for_which_there_is_no_room_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(talk_html, "start_streamlit_runtime_without_server", lambda: None)
    monkeypatch.setattr(talk_html, "build_talk_file", lambda *_: "page")
    talk, out = tmp_path / "talk.toml", tmp_path / "talk.html"
    talk.write_text('[[scene]]\ntitle = "Shown"\npage = "masks"\n', encoding="utf-8")
    fill_disk(monkeypatch)
    monkeypatch.setattr(sys, "argv", ["attenscope.viz.export", str(talk), str(out)])
    assert command_line() == 1
    assert capsys.readouterr() == ("", f"'{out}' cannot be written: No space left on device.\n")
    assert list(tmp_path.iterdir()) == [talk]


def test_the_command_line_writes_nothing_where_there_is_nothing_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        talk_html, "start_streamlit_runtime_without_server", lambda: None
    )  # One process has one runtime, and nothing is drawn here.
    talk, out = tmp_path / "talk.toml", tmp_path / "talk.html"
    talk.write_text('[[scene]]\ntitle = "Gone"\npage = "nowhere"\n', encoding="utf-8")
    for file, into, says in (
        (talk, out, ["Line 3: There is no page 'nowhere'", "no scene can be shown, so nothing is written"]),
        (tmp_path / "none.toml", out, ["none.toml cannot be read as a talk"]),
        (talk, tmp_path / "none" / "talk.html", [f"There is no folder '{tmp_path / 'none'}'"]),
        (talk, tmp_path, ["is a folder; name a file"]),
    ):
        monkeypatch.setattr(sys, "argv", ["attenscope.viz.export", str(file), str(into)])
        assert command_line() == 1
        error = capsys.readouterr().err
        assert [said in error for said in says] == [True] * len(says)
        assert not out.exists()
