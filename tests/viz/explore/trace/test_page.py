"""The page of an opened trace: every view, and maps that do not fit each other."""

from __future__ import annotations

from typing import Any

from streamlit.testing.v1 import AppTest

from attenscope.trace import AttentionTrace
from attenscope.untrusted_trace import open_trace
from attenscope.viz.ui.addresses.explore import EXPLORE_VIEWS
from attenscope.viz.ui.addresses.shared import KIND
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
