"""Models written into one file, from the command line."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoint.load import save_checkpoint
from viz.export import collect
from viz.export.__main__ import main as command_line

from ... import toy


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(collect, "begin", lambda: None)  # One process has one runtime, and nothing is drawn here.
    monkeypatch.setattr(sys, "argv", ["viz.export", "live", *map(str, arguments)])
    return command_line()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    checkpoint = toy.checkpoint(toy.random_model(), "toy </script><b>")
    checkpoint = replace(checkpoint, card={**checkpoint.card, "title": "A model </script><b>"})
    save_checkpoint(checkpoint, tmp_path / "toy")
    return tmp_path / "toy"


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
