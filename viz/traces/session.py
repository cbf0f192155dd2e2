"""The trace that a visitor has opened, and what was computed of it: both are kept in that visitor's session alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import streamlit as st

from model.untrusted_trace import OpenedTrace

T = TypeVar("T")
_TRACE, _RESULTS = "opened", "opened-results"


def current() -> OpenedTrace | None:
    """The trace that is open, or None."""
    found = st.session_state.get(_TRACE)
    return found if isinstance(found, OpenedTrace) else None


def set_current(opened: OpenedTrace) -> None:
    """Open a trace in place of the one that is open."""
    st.session_state[_TRACE] = opened


def close() -> None:
    """Forget the trace and everything computed of it; for callbacks."""
    for key in (_TRACE, _RESULTS):
        st.session_state.pop(key, None)


def remember(opened: OpenedTrace, name: str, arguments: Hashable, compute: Callable[[], T]) -> T:
    """Return `compute()`, computed once for the same arguments.

    For each `name` the latest result is kept. Results of another trace are dropped.
    """
    identity, results = st.session_state.get(_RESULTS, (None, {}))
    if identity != opened.identity:
        results = {}
        st.session_state[_RESULTS] = (opened.identity, results)
    if name not in results or results[name][0] != arguments:
        results[name] = (arguments, compute())
    return results[name][1]
