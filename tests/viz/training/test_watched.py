"""The traces of somebody's own training on the page Training, as the command line names their folder."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from attenscope.trace import AttentionTrace
from attenscope.untrusted_trace import OpenError, read_training_traces
from tests.viz.fakes import LAYERS, attention
from tests.viz.page_texts import as_read, offered_kinds

APP = Path(__file__).resolve().parents[3] / "app.py"
TOKENS = ("a", "b", "c")


def trace(seed: int, tokens: tuple[str, ...] = TOKENS) -> AttentionTrace:
    return AttentionTrace(encoder=attention("encoder", tokens, tokens, seed=seed), model="<b>Mine</b>")


def texts(app: AppTest) -> list[str]:
    return as_read([one.value for one in (*app.markdown, *app.caption)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "my-run"
    place.mkdir()
    for step in (0, 40, 1000):
        trace(step).save(place / f"step-{step:07d}.safetensors")
    (place / "notes.txt").write_text("mine", encoding="utf-8")
    return place


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.setattr(sys, "argv", ["app.py", "--open", str(folder)])
    app = AppTest.from_file(str(APP), default_timeout=60)
    app.run()  # app.py opens the folder; the page follows
    app.query_params.update(query)
    return app.switch_page("viz/pages/training.py").run()


def component(app: AppTest) -> tuple[dict[str, Any], bytes]:
    (found,) = [one for one in app.get("bidi_component") if "moments" in str(one.proto)]
    data = found.proto.bytes
    (length,) = struct.unpack_from("<I", data)
    return json.loads(data[4 : 4 + length]), data[4 + length :]


@pytest.mark.sweep
def test_every_step_is_a_stop_and_nothing_else_is_claimed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(folder, monkeypatch, layer="2", at="40")
    assert not app.exception
    header, body = component(app)
    assert [one["name"] for one in header["moments"]] == ["step 0 of 1,000", "step 40 of 1,000", "step 1,000 of 1,000"]
    assert {(one["text"], one["belief"], one["quality"]) for one in header["moments"]} == {(None, None, "")}
    chosen = app.session_state["layer"] - 1  # The head that was seen on Explore stays.
    assert (header["start"], header["layer"], header["layers"]) == (1, chosen, LAYERS)
    cells = np.frombuffer(body, np.uint8).reshape(3, *trace(0).maps["encoder"].weights.shape) / 254
    for stop, step in zip(cells, (0, 40, 1000), strict=True):
        np.testing.assert_allclose(stop, trace(step).maps["encoder"].weights, atol=0.006)
    said = " ".join(texts(app))
    assert "3 traces, step 0 to step 1,000." in said
    assert not any(one.proto.allow_html for one in app.markdown if "Mine" in one.value)
    assert not app.segmented_control
    assert offered_kinds(app) == ["encoder"]


@pytest.mark.sweep
def test_the_models_are_there_again_afterwards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened(folder, monkeypatch)
    app.button(key="close-run").click().run()
    assert not app.exception
    assert not any(one.key == "close-run" for one in app.button)


def test_a_folder_that_is_no_run_is_refused(folder: Path, tmp_path: Path) -> None:
    assert read_training_traces(folder).steps == (0, 40, 1000)
    with pytest.raises(OpenError, match="holds no trace of a step"):
        read_training_traces(tmp_path)
    trace(1, ("a", "b")).save(folder / "step-0000000.safetensors")
    with pytest.raises(OpenError, match=r"step-0000000.safetensors has maps of other shapes than step-0001000"):
        read_training_traces(folder)
    (folder / "step-0000000.safetensors").write_bytes(b"no trace")
    with pytest.raises(OpenError, match=r"step-0000000.safetensors cannot be opened"):
        read_training_traces(folder)


def test_a_trace_of_the_last_step_is_open_on_explore(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--open", str(folder)])
    app = AppTest.from_file(str(APP), default_timeout=60).run()
    assert not app.exception
    assert any("step-0001000.safetensors" in one for one in texts(app))


@pytest.mark.sweep
def test_a_trace_can_be_named_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py", "--open", str(folder / "step-0000040.safetensors")])
    app = AppTest.from_file(str(APP), default_timeout=60).run()
    assert any("step-0000040.safetensors" in one for one in texts(app))
    app.button(key="close").click().run()  # and stays closed
    assert not any("step-0000040.safetensors" in one for one in texts(app))
    monkeypatch.setattr(sys, "argv", ["app.py", "--open", "/nowhere"])
    app = AppTest.from_file(str(APP), default_timeout=60).run()
    assert any("/nowhere cannot be read" in one.value for one in app.error)
