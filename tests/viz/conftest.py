"""The app without a browser, on a translator that answers at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from viz.ui import cache

from .fakes import FakeTranslator

APP = Path(__file__).resolve().parents[2] / "app.py"


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    fake = FakeTranslator()
    monkeypatch.setattr(cache, "checkpoints", lambda: [fake.name])
    monkeypatch.setattr(cache, "translator", lambda name: fake)
    cache.translation.clear()
    return AppTest.from_file(str(APP), default_timeout=30)
