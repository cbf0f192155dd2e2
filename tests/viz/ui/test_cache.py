"""What is computed once for all visitors: each result belongs to what was asked for, and an error to its reader."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attenscope.checkpoint import load
from attenscope.experiments.lens import run_logit_lens
from attenscope.hugging_face.media import MediaModel, MediaReading
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.language import current_language, use_language
from attenscope.runnable_model import LocalError
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from attenscope.viz.ui import cache
from tests.viz.fakes import attention

SENTENCE = "the old dog sees a tree."


@pytest.fixture
def translator(toy_translator: Translator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Translator]:
    monkeypatch.setattr(cache, "load_runnable_model", lambda name: toy_translator)
    yield toy_translator
    cache.compute_logit_lens.clear()
    cache.compute_translation.clear()


def test_a_logit_lens_is_of_the_changed_model(translator: Translator) -> None:
    changes = "cross.1.1:off,cross.1.2:off,cross.2.1:uniform"
    plain, changed = (cache.compute_logit_lens(translator.name, SENTENCE, "", one) for one in ("", changes))
    found = cache.compute_translation_with_changes(translator.name, SENTENCE, "", changes)
    with apply_changes(translator.model, parse_changes(changes)):
        expected = run_logit_lens(translator, found)
    np.testing.assert_array_equal(changed.target_log_probs, expected.target_log_probs)
    assert not np.array_equal(changed.target_log_probs[:, 0], plain.target_log_probs[:, 0])


def test_an_error_is_said_to_each_reader_in_their_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--model", "nothing.there:make"])
    said: dict[str, str] = {}
    for language in ("en", "de", "zh", "en"):
        with use_language(language):
            error = cache.load_single_command_line_model()
        assert isinstance(error, LocalError)
        assert said.setdefault(language, str(error)) == str(error)
    cache._load_model_or_error.clear()
    assert len(set(said.values())) == 3
    assert "cannot be imported" in said["en"]


def test_a_medium_is_read_in_the_language_of_each_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Listener(MediaModel):
        def read(self, name: str, data: bytes | None = None) -> MediaReading:
            names = (current_language(),)  # as Whisper names the column of the silence
            return MediaReading(AttentionTrace(attention("encoder", names, names)))

    monkeypatch.setattr(cache, "find_encoder_only_model", lambda _: Listener.__new__(Listener))
    for language in ("en", "de", "zh", "en"):
        with use_language(language):
            opened = cache.compute_media_reading("a listener", "speech.wav").opened
        assert opened.drawable.maps["encoder"].key_tokens == (language,)
    cache._read_medium.clear()


def test_a_damaged_folder_is_left_out_of_the_models_that_scenes_can_have(
    toy_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(toy_checkpoint, tmp_path / "good")
    for name in ("damaged", "ours"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text('{"model": {}}')
    monkeypatch.setattr(load, "CHECKPOINTS_FOLDER", tmp_path)
    monkeypatch.setattr(cache, "list_checkpoint_names", lambda: load.list_checkpoints(tmp_path))
    monkeypatch.setattr(cache, "_list_command_line_specs", lambda: ({"ours": "hf:ours"}, ""))
    cache.load_model_configs.clear()
    found = cache.load_model_configs()
    cache.load_model_configs.clear()
    assert list(found) == ["ours", "good"]
    assert found["ours"] is None
    assert found["good"] is not None


def test_a_folder_of_models_that_is_missing_is_said_in_the_readers_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--models", "/nowhere/at/all"])
    said = []
    for language in ("en", "de", "zh"):
        with use_language(language):
            said += cache.list_command_line_errors()
    cache._find_command_line_model_folders.clear()
    assert len(set(said)) == 3
