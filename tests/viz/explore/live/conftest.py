"""Explore, and other pages, of a folder beside others in the `directory` of the test file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.why import cache as why_cache
from tests import folders

APP = Path(__file__).parents[4] / "app.py"
Start = Callable[..., AppTest]


@pytest.fixture
def start(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(sys, "argv", ["app.py", "--models", str(directory)])
    ui_cache._find_command_line_model_folders.clear()

    def begin(model: str, **address: str) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=150)
        asked = {"model": model, "sentence": folders.SENTENCE, "layer": "1", **address}
        for name in filter(asked.get, asked):
            app.query_params[name] = asked[name]
        app.run()
        assert not app.exception
        return app

    yield begin
    for one in (
        ui_cache._find_command_line_model_folders,
        ui_cache._load_model_on_device,
        ui_cache._load_model_from_spec,
        ui_cache._load_model_or_error,
        ui_cache.compute_encoder_only_trace,
        ui_cache._read_medium,
        ui_cache.compute_masked_word_head_effects,
        ui_cache.compute_masked_word,
        ui_cache.compute_pooled_attention,
        ui_cache.compute_attention_row,
        ui_cache.compute_translation,
        ui_cache.compute_word_facts,
        why_cache.compute_decoder_lens,
    ):
        one.clear()
