"""The page Why without a browser, on the toy model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.translate import Translator
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.why import cache as why_cache
from attenscope.viz.why.cache import ReadingKey, WordKey
from tests.viz import page_texts

PAGE = Path(__file__).resolve().parents[3] / "viz" / "pages" / "why.py"
SENTENCE = "the old dog sees a red house today."
OTHER = "the old cat sees a red house today."
SAME = "the old dog sees a red tree today."
Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, toy_translator: Translator) -> None:
    monkeypatch.setattr(ui_cache, "list_checkpoint_names", lambda: [toy_translator.name])
    monkeypatch.setattr(ui_cache, "load_runnable_model", lambda name: toy_translator)
    kept: list[Any] = [
        why_cache.compute_target_value,
        why_cache.compute_words_left_out,
        why_cache._attribute_word,
        why_cache.has_attention_blocks,
        why_cache.compute_deletion_curves,
        why_cache.compute_logit_parts,
        why_cache.compute_score_parts,
    ]
    kept += [
        why_cache.compute_source_shares,
        why_cache.compute_sentence_pair_contrast,
        why_cache.compute_patch_map,
        why_cache.compute_control_patch_map,
        why_cache.compute_decoder_lens,
        why_cache.compute_head_effects,
    ]
    for cached in (
        ui_cache.compute_translation,
        ui_cache.compute_teacher_forced,
        ui_cache.compute_intervention_comparison,
        why_cache.compute_sublayer_lens,
        *kept,
    ):
        cached.clear()
    why_cache._record_translation_pass.clear()


@pytest.fixture
def open_page() -> Open:
    """Open the page at an address; with `methods`, unfold how other methods answer."""

    def opened(*, methods: bool = False, **address: str) -> AppTest:
        app = AppTest.from_file(str(PAGE), default_timeout=60)
        app.query_params.update({"sentence": SENTENCE} | address)
        if methods:
            app.session_state["methods-fold"] = True
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
    tokens = ui_cache.compute_translation_with_changes(*reading).target_tokens
    return WordKey(reading, tokens.index(" Hund"), 1)


def captions(app: AppTest) -> str:
    return " ".join(page_texts.captions(app))


def infos(app: AppTest) -> str:
    return " ".join(one.value for one in app.info).replace("\\", "")
