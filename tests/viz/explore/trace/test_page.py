"""The page of an opened trace: every view, maps that do not fit each other, and the way back to the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from attenscope.trace import AttentionTrace
from attenscope.untrusted_trace import open_trace
from attenscope.viz.traces import session
from attenscope.viz.traces.upload_store import ArrayBytesCounter
from attenscope.viz.ui.addresses.explore import EXPLORE_VIEWS
from attenscope.viz.ui.addresses.shared import HEAD, KIND, LAYER, PIN
from tests.viz.fakes import attention, foreign_trace
from tests.viz.page_texts import ISOLATES, as_read


def captions(app: AppTest) -> str:
    return " ".join(as_read(one.value for one in (*app.caption, *app.info, *app.error))).translate(ISOLATES)


def test_every_view_of_an_opened_trace(app: AppTest) -> None:
    app.session_state["opened"] = open_trace(
        "mine.safetensors", foreign_trace(settings={"observer_effect": "It was observed."})
    )
    app.run()
    assert not app.exception
    assert "**mine\\.safetensors** · an opened trace of Theirs" in [one.value for one in app.markdown]
    assert "Masks: encoder no contradiction" in captions(app)
    assert "It was observed." in captions(app)
    assert "named by the token fed in" in captions(app)
    for view in EXPLORE_VIEWS:
        app.session_state["view chosen"] = view
        app.run()
        assert not app.exception, view
    app.session_state["view chosen"] = "layers"
    app.run()
    assert "needs a running model" in captions(app)
    app.session_state["view chosen"] = "pipeline"
    app.run()
    assert "holds no queries, keys" in captions(app)
    app.session_state["view chosen"] = "heatmap"
    app.run()
    app.button(key="close").click().run()
    assert not app.exception
    assert app.text_area(key="sentence").value


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
        app.session_state["view chosen"] = view
        app.run()
        assert not app.exception, view
    app.session_state[KIND.key] = "encoder"
    app.run()
    assert not app.exception
    assert any("Tokens are followed from layer to layer" in one.value for one in app.info)


SEEN = {"sentence": "Two words here", "layer": "2", "head": "3", "order": "alignment", "pin": "target.2"}


def upload(app: AppTest, name: str, folder: Path) -> None:
    """Open a decoder of one layer and two heads in the settings."""
    tokens = ("a", "b", "c")
    decoder = attention("decoder", tokens, tokens)
    AttentionTrace(decoder=replace(decoder, weights=decoder.weights[:1, :2]), model="Theirs").save(folder / name)
    app.session_state["settings"] = True
    app.run()
    (uploader,) = app.file_uploader
    uploader.set_value((name, (folder / name).read_bytes(), "application/octet-stream")).run()
    assert not app.exception


def test_the_way_back_to_the_model_brings_what_was_seen_of_it(app: AppTest, tmp_path: Path) -> None:
    app.query_params.update(SEEN)
    app.run()
    for name in ("first.safetensors", "second.safetensors"):
        upload(app, name, tmp_path)
        assert any("an opened trace" in one.value for one in app.markdown)
        assert (app.query_params["layer"], app.query_params["head"]) == ("1", "1")
    app.session_state[HEAD.key] = 2
    app.session_state[KIND.key] = "decoder"
    app.session_state[PIN.key] = {"target": 0}  # As a click on a cell of the trace pins it.
    app.session_state["address"].owners[PIN.key] = app.session_state["opened"].identity
    app.run()
    upload(app, "third.safetensors", tmp_path)
    assert app.query_params["head"] == "2"  # Another trace is looked at where the one before was.
    app.button(key="close").click().run()
    assert not app.exception
    assert dict(app.query_params) == SEEN


def test_a_pin_that_another_page_has_set_meanwhile_stays(app: AppTest, tmp_path: Path) -> None:
    app.query_params.update(SEEN)
    app.run()
    upload(app, "mine.safetensors", tmp_path)
    app.session_state[PIN.key] = {"target": 0}
    app.button(key="close").click().run()
    assert dict(app.query_params) == {**SEEN, "pin": "target.1"}


def test_a_trace_that_has_no_room_leaves_the_model_as_it_was(
    app: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.query_params.update(SEEN)
    app.run()
    upload(app, "mine.safetensors", tmp_path)
    monkeypatch.setattr(session, "get_array_bytes_counter", lambda: ArrayBytesCounter(0, 0))
    upload(app, "large.safetensors", tmp_path)
    assert len(app.error) == 1
    assert {name: app.query_params[name] for name in ("layer", "head", "order")} == {
        name: SEEN[name] for name in ("layer", "head", "order")
    }


def test_a_head_that_another_page_opens_is_one_of_the_model() -> None:
    def script() -> None:
        import streamlit as st

        from attenscope.viz.traces.session import get_open_trace, set_open_trace
        from attenscope.viz.ui.links import open_head_in_explore
        from tests.viz.fakes import foreign_trace

        def begin() -> None:
            from attenscope.untrusted_trace import open_trace

            st.session_state["layer"] = 2
            set_open_trace(open_trace("mine", foreign_trace()))

        st.button("Begin", key="begin", on_click=begin)
        st.button("Open on Explore", key="on-explore", on_click=open_head_in_explore, args=(("encoder", 0, 3),))
        st.session_state["found"] = get_open_trace()

    page = AppTest.from_function(script, default_timeout=30).run()
    page.button(key="begin").click().run()
    assert page.session_state["found"] is not None
    page.button(key="on-explore").click().run()
    assert not page.exception
    assert page.session_state["found"] is None
    assert [page.session_state[one.key] for one in (KIND, LAYER, HEAD)] == ["encoder", 1, 4]
