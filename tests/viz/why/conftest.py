"""The page Why without a browser, on the toy model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from model.translate import Translator
from tests.viz import page_texts
from viz.ui import cache as shared
from viz.why import cache
from viz.why.cache import ReadingKey, WordKey

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "why.py"
SENTENCE = "the old dog sees a red house today."
OTHER = "the old cat sees a red house today."
SAME = "the old dog sees a red tree today."
Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> None:
    monkeypatch.setattr(shared, "checkpoints", lambda: [toy_translator.name])
    monkeypatch.setattr(shared, "live", lambda name: toy_translator)
    kept: list[Any] = [cache.value, cache._attributions, cache.deletion_curves, cache.logit_parts, cache.score_parts]
    kept += [
        cache.source_shares,
        cache.contrast,
        cache.patch_map,
        cache.control_map,
        cache.decoder_lens,
        cache.effects_of,
    ]
    for cached in (shared.translation, shared.teacher_forced, shared.with_changes, cache.sublayer_lens, *kept):
        cached.clear()
    cache._recording.clear()


@pytest.fixture
def open_page() -> Open:
    """Open the page at an address."""

    def opened(**address: str) -> AppTest:
        app = AppTest.from_file(str(PAGE), default_timeout=60)
        app.query_params.update({"sentence": SENTENCE} | address)
        app.run()
        assert not app.exception
        return app

    return opened


@pytest.fixture
def reading(toy_translator: Translator) -> ReadingKey:
    return ReadingKey(toy_translator.name, SENTENCE)


@pytest.fixture
def word(reading: ReadingKey) -> WordKey:
    """ "Hund": the third piece of "der alte Hund sieht ...", one piece long."""
    tokens = shared.reading(*reading).target_tokens
    return WordKey(reading, tokens.index(" Hund"), 1)


def captions(app: AppTest) -> str:
    return " ".join(page_texts.captions(app))


def infos(app: AppTest) -> str:
    return " ".join(one.value for one in app.info).replace("\\", "")
