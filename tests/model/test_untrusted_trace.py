"""Traces from strangers: what is read of them, and what is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from attenscope import untrusted_trace
from attenscope.trace import AttentionMap, AttentionTrace
from attenscope.untrusted_trace import (
    MAX_NAME_CHARACTERS,
    MAX_TOKEN_CHARACTERS,
    OpenError,
    clean_text,
    open_trace,
    read_trace_file,
    read_training_traces,
    read_uploaded_trace,
)
from tests.model.masks.readers.hostile_files import mutated, special
from tests.viz.fakes import foreign_trace


def saved(folder: Path, one: AttentionTrace) -> bytes:
    one.save(folder / "t.safetensors")
    return (folder / "t.safetensors").read_bytes()


def test_a_saved_trace_is_shown_with_its_tokens(tmp_path: Path) -> None:
    found = read_uploaded_trace("../../mine.safetensors", saved(tmp_path, foreign_trace()))
    assert found.name == "../../mine.safetensors"
    assert found.drawable.encoder is not None
    assert found.drawable.encoder.key_tokens == (" a", "b", " c", "</s>")
    assert (found.drawable.source, found.drawable.model, found.notes) == ("a bc", "Theirs", ())


def test_what_cannot_be_drawn_is_made_fit_and_said() -> None:
    weights = np.array([[[[np.nan, 1], [np.inf, 0.5]]]], np.float16)
    wild = ("\ud800" + "\u202e" * 3, "long " * 1000)
    one = AttentionMap("encoder", weights, wild, wild, np.ones((2, 2), bool), layer_paths=("layers.\ud800" * 90,))
    found = open_trace("x", AttentionTrace(one, source="\ud800" * 9000))
    shown = found.drawable.encoder
    assert shown is not None
    assert shown.weights.dtype == np.float32
    assert shown.weights.tolist() == [[[[0, 1], [0, 0.5]]]]
    assert found.notes == ("2 weights are NaN or infinite: they are drawn as zero.",)
    assert all(len(token) <= MAX_TOKEN_CHARACTERS for token in shown.key_tokens)
    assert all(len(path) <= MAX_NAME_CHARACTERS for path in shown.layer_paths)
    json.dumps([*shown.key_tokens, *shown.layer_paths, found.drawable.source], ensure_ascii=False).encode()
    assert found.trace.encoder is one


def test_weights_that_dropout_has_scaled_are_counted() -> None:
    weights = np.array([[[[1.11, -0.1], [1.0001, 0.0]]]], np.float32)
    one = AttentionMap("encoder", weights, ("a", "b"), ("a", "b"), np.ones((2, 2), bool))
    found = open_trace("x", AttentionTrace(one))
    assert found.notes == ("2 weights lie below 0 or above 1: heatmap, links and text show 0 or 1.",)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.zeros((1, 1, 1, 1025), np.float32), "at most 1,024 tokens"),
        (np.zeros((2305, 1, 1, 1), np.float32), "2,304 heads and"),
        (np.zeros((1, 0, 2, 2), np.float32), "its encoder map is empty"),
    ],
)
def test_sizes_that_no_page_can_show_are_refused(weights: np.ndarray, said: str) -> None:
    queries, keys = weights.shape[2:]
    one = AttentionMap("encoder", weights, ("a",) * queries, ("b",) * keys, np.ones((queries, keys), bool))
    with pytest.raises(OpenError, match=said):
        open_trace("big", AttentionTrace(one))
    with pytest.raises(OpenError, match="without any map"):
        open_trace("none", AttentionTrace())


def test_a_map_of_too_many_weights_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.zeros((2, 3, 4, 5), np.float32)
    one = AttentionMap("encoder", weights, ("a",) * 4, ("b",) * 5, np.ones((4, 5), bool))
    monkeypatch.setattr(untrusted_trace, "MAX_CELLS", weights.size)
    open_trace("fits", AttentionTrace(one))
    monkeypatch.setattr(untrusted_trace, "MAX_CELLS", weights.size - 1)
    with pytest.raises(OpenError, match="and 119 weights"):
        open_trace("big", AttentionTrace(one))


def test_a_large_file_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = saved(tmp_path, foreign_trace())
    run = tmp_path / "run"
    run.mkdir()
    for step in (1, 2):
        (run / f"step-{step:07d}.safetensors").write_bytes(data)
    one_file = len(data) / 2**20
    monkeypatch.setattr(untrusted_trace, "MAX_FILE_MEGABYTES", one_file)
    read_uploaded_trace("fits", data)
    with pytest.raises(OpenError, match=r"run has 0 MB; at most .* MB are read"):
        read_training_traces(run)
    monkeypatch.setattr(untrusted_trace, "MAX_FILE_MEGABYTES", one_file / 2)
    with pytest.raises(OpenError, match="MB are read"):
        read_uploaded_trace("big", data)
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(OpenError, match="MB are read"):
        read_trace_file(tmp_path / "t.safetensors")


def test_signs_that_cannot_be_seen_are_blanks() -> None:
    assert clean_text("a\0b\u202ec\x1bd\ud800 ä 中", 99) == "a b c d? ä 中"
    assert clean_text("abcdef", 4) == "abc…"


def test_hostile_files_get_a_sentence_and_run_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    for name, data in special(mark).items():
        with pytest.raises(OpenError, match=r"(is empty|cannot be opened|nothing to show).*\.$"):
            read_uploaded_trace(name, data)
    assert not mark.exists()


def test_a_damaged_trace_is_refused_or_shown(tmp_path: Path) -> None:
    good, random = saved(tmp_path, foreign_trace()), np.random.default_rng(0)
    answers = set()
    for _ in range(300):
        data = bytearray(good)
        for at in random.integers(0, min(len(data), 2000), int(random.integers(1, 6))):
            data[at] = int(random.integers(0, 256))
        try:
            answers.add(
                type(
                    read_uploaded_trace("x", bytes(data[: int(random.integers(len(data) // 2, len(data) * 2))]))
                ).__name__
            )
        except OpenError:
            answers.add("refused")
    assert answers == {"OpenedTrace", "refused"}


def test_random_files_are_refused() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        with pytest.raises(OpenError):
            read_uploaded_trace("x", mutated(random)[1])
