"""Models written into one file, from the command line."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
import streamlit as st

from attenscope.checkpoint.load import list_checkpoints, load_checkpoint, save_checkpoint
from attenscope.evaluation.quality import EightBits
from attenscope.translate import Translator
from attenscope.viz.engine import pack_checkpoint
from attenscope.viz.engine.pack_checkpoint import WeightForm
from attenscope.viz.export import talk_html
from attenscope.viz.export.__main__ import main as command_line
from attenscope.viz.export.browser_model_file import build_live_model_html, list_live_files
from tests import toy
from tests.viz.fakes import fill_disk


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(
        talk_html, "start_streamlit_runtime_without_server", lambda: None
    )  # One process has one runtime, and nothing is drawn here.
    monkeypatch.setattr(sys, "argv", ["attenscope.viz.export", "live", *map(str, arguments)])
    return command_line()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    checkpoint = toy.checkpoint(toy.random_model(), "toy </script><b>")
    checkpoint = replace(checkpoint, card={**checkpoint.card, "title": "A model </script><b>"})
    save_checkpoint(checkpoint, tmp_path / "toy")
    return tmp_path / "toy"


@pytest.mark.sweep
def test_a_file_is_written_in_the_language_asked_for(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "live.html"
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    chosen = {(): "Diese Datei", ("--language", "zh"): "此文件", ("--language", "en"): "This file"}
    for arguments, words in chosen.items():
        assert run(monkeypatch, "--checkpoint", folder, *arguments, out) == 0
        assert words in out.read_text(encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        run(monkeypatch, "--help")
    assert "Modelle, die in einer HTML-Datei laufen" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        run(monkeypatch, "--language", "xx", out)


@pytest.mark.parametrize("arguments", [(), ("--folder",)])
def test_models_for_which_there_is_no_room_are_one_sentence(
    arguments: tuple[str, ...],
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill_disk(monkeypatch)
    out = tmp_path / "live"
    assert run(monkeypatch, "--checkpoint", folder, *arguments, out) == 1
    said, error = capsys.readouterr()
    assert said == ""
    assert re.fullmatch(rf"'{out}.*' cannot be written: No space left on device\.\n", error)
    assert not list(out.iterdir() if arguments else out.parent.glob("live*"))


def test_a_file_holds_the_model_and_one_script(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "live.html"
    assert run(monkeypatch, "--checkpoint", folder, out) == 0
    assert capsys.readouterr().out == f"{out}: {out.stat().st_size / 1e6:.1f} MB\n"
    text = out.read_text(encoding="utf-8")
    (code,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    own = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{own}' 'wasm-unsafe-eval';" in policy[1]
    assert "default-src 'none'" in policy[1]
    assert "connect-src 'none'" in policy[1]
    assert "<b>" not in text
    (packed,) = re.findall(r'id="model-0">([^<]*)<', text)
    assert hashlib.sha256(gzip.decompress(base64.b64decode(packed))).hexdigest() in code
    whole = out.stat().st_size
    assert run(monkeypatch, "--int8", "--checkpoint", folder, out) == 0
    assert out.stat().st_size < whole
    assert run(monkeypatch, "--checkpoint", folder, "--checkpoint", folder, out) == 0
    assert 'id="model-1"' in out.read_text(encoding="utf-8")


def test_a_folder_holds_the_page_and_the_model_beside_it(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, "--folder", "--checkpoint", folder, tmp_path / "site" / "live") == 0
    written = {path.name: path.read_bytes() for path in (tmp_path / "site" / "live").iterdir()}
    page = written.pop("index.html").decode()
    ((name, data),) = written.items()
    assert f'"file": "{name}"' in page
    assert hashlib.sha256(gzip.decompress(data)).hexdigest().startswith(name.removesuffix(".bin"))
    assert "connect-src 'self'" in page
    own = load_checkpoint(folder).hash
    monkeypatch.setattr(
        pack_checkpoint, "INT8_BLEU", {own: EightBits(own, "dev.en", sentences=9, half=30.0, int8=29.8)}
    )
    for forms, count in (((), 2), (("--half",), 1), (("--int8",), 1)):
        out = tmp_path / f"site{len(forms)}{count}"
        assert run(monkeypatch, "--folder", *forms, "--checkpoint", folder, out) == 0
        assert len(list(out.glob("*.bin"))) == count
        assert ('"phone": {' in (out / "index.html").read_text(encoding="utf-8")) == (count == 2)
        for one in out.iterdir():
            one.unlink()
    monkeypatch.setitem(pack_checkpoint.INT8_BLEU, own, EightBits(own, "dev.en", sentences=9, half=30.0, int8=29.6))
    assert not pack_checkpoint.is_int8_loss_small(load_checkpoint(folder).hash)
    (tmp_path / "taken").write_text("a file")
    assert run(monkeypatch, "--folder", "--checkpoint", folder, tmp_path / "taken") == 1


def test_what_cannot_be_written_is_said(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, said in (
        (("--checkpoint", tmp_path / "none", tmp_path / "a.html"), "none"),
        (("--checkpoint", folder, tmp_path / "none" / "a.html"), "There is no folder"),
    ):
        assert run(monkeypatch, *arguments) == 1
        assert said in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.sweep
@pytest.mark.skipif("everyday-zh-en" not in list_checkpoints(), reason="the checkpoint is not here")
def test_a_size_is_said_before_the_file_is_made() -> None:
    checkpoint = load_checkpoint("everyday-zh-en")
    parameters = sum(one.numel() for one in checkpoint.model.parameters())
    for form in get_args(WeightForm):
        size = len(build_live_model_html([checkpoint], date(2026, 11, 22), form))
        assert pack_checkpoint.estimate_file_size(parameters, form) == pytest.approx(size, rel=0.1)


@pytest.mark.skipif("everyday-zh-en" not in list_checkpoints(), reason="the checkpoint is not here")
def test_a_phone_is_offered_what_is_small_first(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Translator.load("everyday-zh-en", "cpu")
    for agent, first in (
        ("Mozilla/5.0 (Android 15) Mobile", "8-bit"),
        ("Mozilla/5.0 (X11)", "live.html"),
    ):
        monkeypatch.setattr(st, "context", SimpleNamespace(headers={"User-Agent": agent}))
        offered = list_live_files(model)
        assert len(offered) == 2
        assert first in next(iter(offered))
        assert all("about" in label for label, _ in offered.values())
