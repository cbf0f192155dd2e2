"""The trace that this visitor opened, on Explore or here: one trace, looked at on both pages."""

from __future__ import annotations

import streamlit as st

from model.diagnosis.readers.files import Contents, contents_of_trace
from model.language.say import say
from model.trace import AttentionMap, Kind
from model.untrusted_trace import OpenError

from ....traces.kept import KeptError
from ....traces.session import MOST_CELLS, current, open_uploaded
from ....traces.verdict import verdicts
from ....turns import BusyError
from ....ui import widgets
from ....ui.addresses.masks import FROM
from ....ui.captions import caption, plain
from .interpretation import interpret
from .mask_input import MaskInput

SOURCE = "opened trace"
_SEEN = "mask-trace-seen"


def is_open() -> bool:
    """Whether a trace is open. One that was opened since the last look is what the page begins with."""
    opened = current()
    if opened is None:
        if st.session_state.get(FROM.key) == SOURCE:
            del st.session_state[FROM.key]
        return False
    if st.session_state.get(_SEEN) != opened.identity:
        st.session_state[_SEEN] = opened.identity
        st.session_state[FROM.key] = SOURCE
    return True


def share(name: str, data: bytes | memoryview, *, alone: bool) -> None:
    """Let Explore show a trace that was uploaded here, where it can; uploaded ``alone`` it is that trace here too."""
    try:
        identity = open_uploaded(name, data).identity
    except (OpenError, KeptError, BusyError):
        return
    if alone:
        st.rerun(scope="fragment")
    st.session_state[_SEEN] = identity


def mask_input() -> MaskInput | None:
    """Draw the choice of one map of the trace; of a large map, of one layer."""
    opened = current()
    if opened is None:
        return None
    named = {"name": plain(opened.name), "model": plain(opened.drawable.model)}
    st.markdown(say("**{name}** · a trace of {model}, open on Explore too", **named))
    maps = dict(zip(opened.trace.maps, contents_of_trace(opened.trace), strict=True))
    kinds: list[Kind] = list(maps)
    judged = verdicts(opened)
    faulty = [one.map for one in judged if one.faulty]
    questions = [one.map for one in judged if one.diagnosis and one.diagnosis.verdict == "question"]
    if st.session_state.get("mask-trace-map") not in (None, *kinds):
        del st.session_state["mask-trace-map"]
    kind = widgets.offer(
        st.segmented_control,
        say("Map"),
        kinds,
        default=next(iter([*faulty, *questions, kinds[-1]])),
        required=True,
        format_func=lambda one: f"{say(one)} ●" if one in faulty else say(one),
        key="mask-trace-map",
        label_visibility="collapsed",
    )
    if faulty:
        caption(say("● Something is wrong with this map."))
    one, identity, whole = maps[kind], f"trace {opened.identity} {kind}", opened.trace.maps[kind]
    if whole.weights.size > MOST_CELLS:
        layer = widgets.offer(st.selectbox, say("Layer"), range(1, whole.layers + 1), key="mask-trace-layer", width=130)
        one, identity = _layer(one, whole, layer - 1), f"{identity} {layer}"
    return interpret(one, identity)


def _layer(one: Contents, whole: AttentionMap, layer: int) -> Contents:
    """Only one layer of every array that has layers."""
    per_layer = {name for name, array in one.arrays.items() if array.shape[:2] == (1, whole.layers) and array.ndim == 5}
    arrays = {name: array[:, layer : layer + 1] if name in per_layer else array for name, array in one.arrays.items()}
    passed = None if one.passed is None else one.passed.layer(layer)
    return Contents(one.map, arrays, one.tokens, calls=one.calls[layer : layer + 1], passed=passed)
