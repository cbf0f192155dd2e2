"""The colours stand in three places, as each is read by another program; they must agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from attenscope.viz.figures.figure_style import DARK, LIGHT, Palette
from attenscope.viz.ui import style

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / ".streamlit" / "config.toml"
BEGINNING = [ROOT / "viz" / "web" / "src" / "shell" / name for name in ("begin.css", "welcome.css")]


@pytest.mark.parametrize(("name", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_streamlits_theme_is_the_palette(name: str, palette: Palette) -> None:
    written = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["theme"][name]
    assert written["backgroundColor"] == palette.background
    assert written["textColor"] == palette.ink
    assert written["borderColor"] == palette.line
    assert written["primaryColor"] == palette.accent


@pytest.mark.parametrize("field", ["background", "line", "accent"])
def test_the_style_sheet_has_the_same_colours(field: str) -> None:
    pair = f"--{field}: light-dark({getattr(LIGHT, field)}, {getattr(DARK, field)});"
    assert pair in style.STYLE_SHEET.read_text(encoding="utf-8")


def test_a_page_begins_in_the_same_colours() -> None:
    pairs = {(getattr(LIGHT, field), getattr(DARK, field)) for field in ("background", "ink", "line", "accent")}
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))["theme"]
    pairs |= {tuple(config[name]["secondaryBackgroundColor"] for name in ("light", "dark")), ("#efeef2", "#1d1b25")}
    written = re.findall(r"light-dark\((#\w+), ?(#\w+)\)", "".join(sheet.read_text() for sheet in BEGINNING))
    assert len(written) > 8
    assert set(written) <= pairs  # The last is that of what is not there yet.


def test_the_server_keeps_to_itself() -> None:
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    assert config["server"]["address"] == "127.0.0.1"
    assert config["server"]["enableXsrfProtection"] is True
    assert config["browser"]["gatherUsageStats"] is False
