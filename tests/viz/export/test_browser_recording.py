"""What the command says where it can make no film."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from attenscope.viz.export import browser_recording
from tests.viz.fakes import fill_disk


def test_without_a_browser_a_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser_recording.shutil, "which", lambda name: None)
    assert browser_recording.write_movie(["/decode", str(tmp_path / "film.webm")]) == 1
    assert "No Chromium or Chrome was found" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("view", "more", "says"),
    [
        ("/nowhere", [], "There is no page 'nowhere'."),
        ("none.toml", [], "none.toml cannot be read as a talk"),
        ("viz/talk/talk.toml", ["--scene", "21"], "There is no scene 21: the talk has 20."),
    ],
)
def test_what_cannot_be_filmed_is_named(view: str, more: list[str], says: str) -> None:
    given = browser_recording.build_movie_parser().parse_args([view, "film.gif", *more])
    with pytest.raises(browser_recording.MovieError) as raised:
        browser_recording.read_single_scene_talk(given)
    assert says in str(raised.value)


def test_a_film_for_which_there_is_no_room_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(browser_recording, "_find_browser", lambda: "chromium")
    monkeypatch.setattr(browser_recording.talk_html, "start_streamlit_runtime_without_server", lambda: None)
    monkeypatch.setattr(browser_recording, "_build_slide", lambda _: SimpleNamespace(title="Film", hide=()))
    monkeypatch.setattr(browser_recording, "build_talk_page", lambda *_: "page")
    monkeypatch.setattr(browser_recording, "record_slide_film", lambda *_, covers: ([], b"film"))
    fill_disk(monkeypatch)
    out = tmp_path / "film.webm"
    assert browser_recording.write_movie(["/decode", str(out)]) == 1
    assert capsys.readouterr() == ("", f"'{out}' cannot be written: No space left on device.\n")
    assert not list(tmp_path.iterdir())


def test_a_file_of_another_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        browser_recording.build_movie_parser().parse_args(["/decode", "film.mp4"])
    assert ".webm or .gif" in capsys.readouterr().err
