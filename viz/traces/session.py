"""The trace that a visitor has opened, and what was computed of it: both are kept in that visitor's session alone."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from model.untrusted_trace import OpenedRun, OpenedTrace, OpenError, read_file, read_run, read_trace

from ..turns import READING
from .kept import kept, unpacked

T = TypeVar("T")
ERROR = "open-error"
"""Of the session: the sentence that says why a file could not be opened, until it is shown."""
UPLOADED_MASKS, PASTED_MASK = "mask_files", "mask_text"
"""Of the session: the files that were uploaded to the page Masks, and the text that was pasted there."""
MOST_CELLS = 2**22
"""Cells of the largest array that the page Masks takes; the command line takes more."""
OPTION = "--open"
_OWNER = "unpacked-owner"
_TRACE, _RESULTS, _NAMED, _RUN, _ARRAYS = "opened", "opened-results", "named-trace", "opened-run", "opened-arrays"


def open_named() -> None:
    """Open what the command line names (``--open``), once in a session: a trace, or a folder with those of a training.

    Of a folder the last trace is open on Explore, and all of them on Training.
    """
    if OPTION not in sys.argv[:-1] or _NAMED in st.session_state:
        return
    st.session_state[_NAMED] = True
    path = Path(sys.argv[sys.argv.index(OPTION) + 1])
    try:
        if path.is_dir():
            run = st.session_state[_RUN] = read_run(path)
            set_current(run.traces[-1])
        else:
            set_current(read_file(path))
    except OpenError as error:
        st.session_state[ERROR] = str(error)


def current() -> OpenedTrace | None:
    """The trace that is open, or None."""
    found = st.session_state.get(_TRACE)
    return found if isinstance(found, OpenedTrace) else None


def current_run() -> OpenedRun | None:
    """The traces of a training that are open, or None."""
    found = st.session_state.get(_RUN)
    return found if isinstance(found, OpenedRun) else None


def close_run() -> None:
    """Forget the traces of a training; for callbacks."""
    st.session_state.pop(_RUN, None)


@dataclass(frozen=True, eq=False)
class Handed:
    """What a page hands to the stage, which is a session of its own: values of its session by their keys."""

    values: Mapping[str, Any]


def holding(file: Any) -> dict[str, Any]:
    """What a session holds in which this file is open: a trace, or arrays for the page Masks; nothing for None."""
    if isinstance(file, Handed):
        return dict(file.values)
    return {} if file is None else {_TRACE if isinstance(file, OpenedTrace) else _ARRAYS: file}


def open_kept(key: str) -> bool:
    """Open the file of a scene by its key; "" for none. Return whether there is no such file any more."""
    if not key:
        return False
    found = kept().get(key)
    for name, value in holding(found).items():
        st.session_state[name] = value
    return found is None


def current_arrays() -> Any:
    """The file with arrays that a scene shows, or None."""
    return st.session_state.get(_ARRAYS)


def set_current(opened: OpenedTrace) -> None:
    """Open a trace in place of the one that is open."""
    st.session_state[_TRACE] = opened


def owner() -> str:
    """A name of this session, for what is counted of it."""
    return str(st.session_state.setdefault(_OWNER, secrets.token_hex(16)))


def open_uploaded(name: str, data: bytes | memoryview) -> OpenedTrace:
    """Open an uploaded trace in place of the one that is open, and return it. OpenError, KeptError, BusyError."""
    with READING.turn(READING.ticket(is_long=True)):
        opened = read_trace(name, data)
        close()
        unpacked().count(owner(), opened, opened.size)
    set_current(opened)
    return opened


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
