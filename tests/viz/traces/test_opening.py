"""Traces from strangers: what is shown of them, and what is refused with a sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.trace import AttentionMap, AttentionTrace
from model.untrusted_trace import LONGEST_TOKEN, OpenError, open_trace, read_trace
from tests.model.diagnosis.readers.hostile_files import mutated, special
from viz.explore.trace.static_trace import pool
from viz.explore.view_texts import VIEWS
from viz.traces.verdict import MOST_CELLS, verdict

from ..fakes import attention

TOKENS = ("▁a", "b", "Ġc", "</s>")


def trace(**more: Any) -> AttentionTrace:
    fed = ("<s>", "x", "y")
    maps: dict[str, Any] = {"encoder": attention("encoder", TOKENS, TOKENS), "decoder": attention("decoder", fed, fed)}
    return AttentionTrace(**maps, cross=attention("cross", fed, TOKENS), source="a bc", model="Theirs", **more)


def saved(folder: Path, one: AttentionTrace) -> bytes:
    one.save(folder / "t.safetensors")
    return (folder / "t.safetensors").read_bytes()


def captions(app: AppTest) -> str:
    return re.sub(r"[\\\u2068\u2069]", "", " ".join(one.value for one in (*app.caption, *app.info, *app.error)))


def test_a_saved_trace_is_shown_with_its_tokens(tmp_path: Path) -> None:
    found = read_trace("../../mine.safetensors", saved(tmp_path, trace()))
    assert found.name == "../../mine.safetensors"
    assert found.drawable.encoder is not None
    assert found.drawable.encoder.key_tokens == (" a", "b", " c", "</s>")
    assert (found.drawable.source, found.drawable.model, found.notes) == ("a bc", "Theirs", ())


def test_what_cannot_be_drawn_is_made_fit_and_said() -> None:
    weights = np.array([[[[np.nan, 1], [np.inf, 0.5]]]], np.float16)
    wild = ("\ud800" + "\u202e" * 3, "long " * 1000)
    one = AttentionMap("encoder", weights, wild, wild, np.ones((2, 2), bool))
    found = open_trace("x", AttentionTrace(one, source="\ud800" * 9000))
    shown = found.drawable.encoder
    assert shown is not None
    assert shown.weights.dtype == np.float32
    assert shown.weights.tolist() == [[[[0, 1], [0, 0.5]]]]
    assert found.notes == ("2 weights are NaN or infinite: they are drawn as zero.",)
    assert all(len(token) <= LONGEST_TOKEN for token in shown.key_tokens)
    json.dumps([*shown.key_tokens, found.drawable.source], ensure_ascii=False).encode()
    assert found.trace.encoder is one


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.zeros((1, 1, 1, 1025), np.float32), "at most 1,024 tokens"),
        (np.zeros((2305, 1, 1, 1), np.float32), "and 2,304 heads"),
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


def test_hostile_files_get_a_sentence_and_run_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    for name, data in special(mark).items():
        with pytest.raises(OpenError, match=r"(is empty|cannot be opened|nothing to show).*\.$"):
            read_trace(name, data)
    assert not mark.exists()


def test_a_damaged_trace_is_refused_or_shown(tmp_path: Path) -> None:
    good, random = saved(tmp_path, trace()), np.random.default_rng(0)
    answers = set()
    for _ in range(300):
        data = bytearray(good)
        for at in random.integers(0, min(len(data), 2000), int(random.integers(1, 6))):
            data[at] = int(random.integers(0, 256))
        try:
            answers.add(
                type(read_trace("x", bytes(data[: int(random.integers(len(data) // 2, len(data) * 2))]))).__name__
            )
        except OpenError:
            answers.add("refused")
    assert answers == {"OpenedTrace", "refused"}


def test_random_files_are_refused() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        with pytest.raises(OpenError):
            read_trace("x", mutated(random)[1])


def test_a_large_map_has_smaller_tiles_that_keep_the_largest_weight() -> None:
    one = attention("decoder", tuple("abcdefgh"), tuple("abcdefgh"))
    small = pool(one, one.weights.size // 4)
    assert small.weights.shape == (*one.weights.shape[:2], 4, 4)
    np.testing.assert_array_equal(small.mask, np.tri(4, dtype=bool))
    assert small.weights[1, 2, 3, 0] == one.weights[1, 2, 6:, :2].max()
    assert pool(one, one.weights.size) is one


def test_the_verdict_of_a_large_map_says_how_many_heads_it_is_of() -> None:
    size = int((MOST_CELLS / 4) ** 0.5)
    weights = np.tri(size, dtype=np.float32) / np.arange(1, size + 1, dtype=np.float32)[:, None]
    tokens = ("x",) * size
    whole = np.broadcast_to(weights, (3, 4, size, size))
    found = verdict(AttentionMap("decoder", whole, tokens, tokens, np.tri(size, dtype=bool)))
    assert found.coverage == "4 of 12 heads were judged; python -m model diagnose judges all."
    assert found.sentence.startswith("sound")


def test_every_view_of_an_opened_trace(app: AppTest) -> None:
    app.session_state["opened"] = open_trace("mine.safetensors", trace(settings={"looking": "It was looked at."}))
    app.run()
    assert not app.exception
    assert "**mine\\.safetensors** · an opened trace of Theirs" in [one.value for one in app.markdown]
    assert "Masks: encoder sound" in captions(app)
    assert "It was looked at." in captions(app)
    assert "named by the token fed in" in captions(app)
    for view in VIEWS:
        app.segmented_control(key="view").set_value(view).run()
        assert not app.exception, view
    app.segmented_control(key="view").set_value("layers").run()
    assert "needs a running model" in captions(app)
    app.segmented_control(key="view").set_value("pipeline").run()
    assert "holds no queries, keys" in captions(app)
    app.segmented_control(key="view").set_value("heatmap").run()
    app.button(key="close").click().run()
    assert not app.exception
    assert app.text_input(key="sentence").value


def test_maps_that_do_not_fit_each_other_leave_the_page_alive(app: AppTest) -> None:
    maps: dict[str, Any] = {
        "encoder": attention("encoder", ("a",), ("a", "b", "c")),
        "cross": attention("cross", ("x",), ("y",)),
    }
    app.session_state["opened"] = open_trace(
        "odd", AttentionTrace(**maps, decoder=attention("decoder", ("d",) * 5, ("e",)))
    )
    app.run()
    for view in ("links", "joint", "flow"):
        app.segmented_control(key="view").set_value(view).run()
        assert not app.exception, view
    app.segmented_control(key="kind").set_value("encoder").run()
    assert not app.exception
    assert any("Rollout follows tokens" in one.value for one in app.info)
