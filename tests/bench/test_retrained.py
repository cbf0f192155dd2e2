"""The first weights of the default model, as the history of git has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from attenscope.translate import Translator
from bench import retrained


def test_the_first_weights_translate(tmp_path: Path) -> None:
    if not retrained.write_first_weights(tmp_path):
        pytest.skip("this copy of the project has no history")
    first = Translator.load(tmp_path, "cpu")
    assert len(first.tokenizer) == 8000
    assert first.translate("I am hungry.").text == "Ich habe Hunger."
    assert len(Translator.load(retrained.MODEL, "cpu").encode(retrained.SENTENCE).ids) == retrained.PIECES


def test_without_the_history_there_are_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrained, "FIRST", "0" * 40)
    assert retrained.measure() == []
