"""The app without a browser, on a translator that answers at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from viz.decode import runs
from viz.explore.live import run
from viz.ui import cache

from .fakes import FakeTranslator

APP = Path(__file__).resolve().parents[2] / "app.py"


@pytest.fixture(autouse=True)
def whole_decodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is read once: it waits for the end of its decoding, however busy the machine is."""
    monkeypatch.setattr(runs, "PATIENCE", 60)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    fake = FakeTranslator()
    monkeypatch.setattr(cache, "checkpoints", lambda: [fake.name])
    monkeypatch.setattr(cache, "live", lambda name: fake)
    monkeypatch.setattr(run, "word_card", lambda *_: None)  # It asks the model itself, which the fake does not have.
    cache.translation.clear()
    return AppTest.from_file(str(APP), default_timeout=30)
