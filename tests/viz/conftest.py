"""The app without a browser, on a translator that answers at once."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from attenscope.viz.decode import runs
from attenscope.viz.explore import model_page
from attenscope.viz.ui import cache
from tests.viz.fakes import FakeTranslator

APP = Path(__file__).resolve().parents[2] / "app.py"


@pytest.fixture(scope="session", autouse=True)
def installed_components() -> Iterator[None]:
    """Search the installed packages for components once a run: each AppTest does so, which takes half a second."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests)
        )
        yield


@pytest.fixture(autouse=True)
def whole_decodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is read once: it waits for the end of its decoding, however busy the machine is."""
    monkeypatch.setattr(runs, "WAIT_SECONDS", 60)


@pytest.fixture(autouse=True)
def one_page_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is run by itself has no other that its foot could link to."""
    monkeypatch.setattr("streamlit.page_link", lambda *_, **__: None)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> AppTest:
    fake = FakeTranslator()
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: [fake.name])
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: fake)
    monkeypatch.setattr(
        model_page, "draw_token_card", lambda *_: None
    )  # It asks the model itself, which the fake does not have.
    cache.compute_translation.clear()
    cache.compute_observer_check.clear()
    return AppTest.from_file(str(APP), default_timeout=30)
