"""The trace that a visitor has opened and the results computed from it, both in that visitor's session alone."""

from __future__ import annotations

import hashlib
import secrets
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, TypeVar

import numpy as np
import streamlit as st

from attenscope.runnable_model import LocalModel, RunnableModel
from attenscope.untrusted_trace import (
    OpenedRun,
    OpenedTrace,
    OpenError,
    read_trace_file,
    read_training_traces,
    read_uploaded_trace,
)
from attenscope.viz.traces.upload_store import UploadStoreError, get_array_bytes_counter, get_upload_store
from attenscope.viz.ui.open_trace import OPEN_TRACE, TRACE_RESULTS, close_trace, keep_model_view
from attenscope.viz.worker_process import call_here_if_short

T = TypeVar("T")
OPEN_ERROR_KEY = "open-error"
"""Session key of the sentence that says why a file could not be opened, until it is shown."""
UPLOADED_MASKS_KEY, PASTED_MASK_KEY = "own mask files", "mask_text"
"""Session keys of the files that were uploaded to the page Masks, and of the text that was pasted there."""
CHANGED_MASK_KEY = "mask changed"
"""Session key of whether the mask on the page Masks is edited, or read by hand: its file alone does not show that."""
OWN_PACKAGE = "attenscope."
"""What the modules begin with whose objects are looked into; those of libraries may lead to all that there is."""
UPLOADED_FILE_KEY = "uploaded medium"
"""Session key of the sound or picture that was uploaded to the page Explore."""
UPLOAD_MARK = "upload-"
"""What begins the name of an uploaded file in the address; a digest of its bytes follows, and the end of its name."""
SHORT_TRACE_BYTES = 2**20
"""Bytes of a trace that is read at once; a larger one is read by the worker process, in turn."""
MOST_ARRAY_CELLS = 2**22
"""Cells of the largest array that the page Masks takes; the command line takes more."""
OPEN_OPTION = "--open"
_OWNER_KEY = "unpacked-owner"
_COMMAND_LINE_KEY, _RUN_KEY, _ARRAYS_KEY = "named-trace", "opened-run", "opened-arrays"


def open_command_line_trace() -> None:
    """Open what the command line names (``--open``), once in a session: a trace, or a folder with those of a training.

    Of a folder the last trace is open on Explore, and all of them on Training.
    """
    if OPEN_OPTION not in sys.argv[:-1] or _COMMAND_LINE_KEY in st.session_state:
        return
    st.session_state[_COMMAND_LINE_KEY] = True
    path = Path(sys.argv[sys.argv.index(OPEN_OPTION) + 1])
    try:
        if path.is_dir():
            run = st.session_state[_RUN_KEY] = read_training_traces(path)
            set_open_trace(run.traces[-1])
        else:
            set_open_trace(read_trace_file(path))
    except OpenError as error:
        st.session_state[OPEN_ERROR_KEY] = str(error)


def get_open_trace() -> OpenedTrace | None:
    """The trace that is open, or None."""
    found = st.session_state.get(OPEN_TRACE)
    return found if isinstance(found, OpenedTrace) else None


def pop_open_error() -> str:
    """Return, once, the sentence that says why a file could not be opened; "" where none was refused."""
    return str(st.session_state.pop(OPEN_ERROR_KEY, ""))


def get_open_training_run() -> OpenedRun | None:
    """The traces of a training that are open, or None."""
    found = st.session_state.get(_RUN_KEY)
    return found if isinstance(found, OpenedRun) else None


def close_training_run() -> None:
    """Forget the traces of a training; for callbacks."""
    st.session_state.pop(_RUN_KEY, None)


@dataclass(frozen=True, eq=False)
class UploadedFile:
    """A sound or a picture that a visitor has uploaded; it stays in the session."""

    name: str
    data: bytes

    @property
    def address(self) -> str:
        """What the address calls it: its contents can neither be guessed nor found by that."""
        return f"{UPLOAD_MARK}{hashlib.sha256(self.data).hexdigest()[:24]}{Path(self.name).suffix[:6].lower()}"


def get_uploaded_file() -> UploadedFile | None:
    """The sound or picture that was uploaded last, or None."""
    found = st.session_state.get(UPLOADED_FILE_KEY)
    return found if isinstance(found, UploadedFile) else None


@dataclass(frozen=True, eq=False)
class StageValues:
    """Values of a page's session by their keys, for the stage, which is another session."""

    values: Mapping[str, Any]


def build_opened_file_session_values(file: Any) -> dict[str, Any]:
    """Return the session values with which a file is open: a trace, or arrays for the page Masks; nothing for None."""
    if isinstance(file, StageValues):
        return dict(file.values)
    return {} if file is None else {OPEN_TRACE if isinstance(file, OpenedTrace) else _ARRAYS_KEY: file}


def open_scene_file_and_check_if_lost(key: str) -> bool:
    """Open the file of a scene by its key, "" for none; return whether the file is no longer stored."""
    if not key:
        return False
    found = get_upload_store().get(key)
    for name, value in build_opened_file_session_values(found).items():
        st.session_state[name] = value
    return found is None


def get_open_arrays_file() -> Any:
    """The file with arrays that a scene shows, or None."""
    return st.session_state.get(_ARRAYS_KEY)


def set_open_trace(opened: OpenedTrace) -> None:
    """Open a trace in place of the model, or of the trace that is open."""
    keep_model_view()
    st.session_state[OPEN_TRACE] = opened


def get_array_bytes_owner() -> str:
    """Return a name of this session, under which its bytes are counted."""
    return str(st.session_state.setdefault(_OWNER_KEY, secrets.token_hex(16)))


def measure_session_bytes(state: Mapping[str, Any]) -> int:
    """Return the bytes of the texts and arrays that a session holds, by what its objects and functions hold too.

    Models are left out: all visitors share them.
    """
    found, seen = 0, set[int]()
    waiting: list[Any] = list(state.values())
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, str | bytes | bytearray):
            found += len(one)
        elif isinstance(one, np.ndarray | memoryview):
            found += one.nbytes
        elif isinstance(one, Mapping):
            waiting += [*one, *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif isinstance(one, FunctionType):
            waiting += [cell.cell_contents for cell in one.__closure__ or () if cell != CellType()]
        elif type(one).__module__.startswith(OWN_PACKAGE) and not isinstance(one, RunnableModel | LocalModel):
            waiting += getattr(one, "__dict__", {}).values()
    return found


def open_uploaded_trace(name: str, data: bytes | memoryview) -> OpenedTrace:
    """Open an uploaded trace in place of the one that is open, and return it.

    Raises OpenError, UploadStoreError, BusyError.
    """
    opened = read_trace_maybe_in_worker(name, data)
    for key in (OPEN_TRACE, TRACE_RESULTS):  # Its arrays make room for those of this one.
        st.session_state.pop(key, None)
    try:
        get_array_bytes_counter().count(get_array_bytes_owner(), opened, opened.size)
    except UploadStoreError:
        close_trace()
        raise
    set_open_trace(opened)
    return opened


def read_trace_maybe_in_worker(name: str, data: bytes | memoryview) -> OpenedTrace:
    """As :func:`.read_uploaded_trace`; a large file is read by the worker process. Raises OpenError, BusyError."""
    return call_here_if_short(len(data) <= SHORT_TRACE_BYTES, read_uploaded_trace, name, bytes(data))


def cache_trace_result(opened: OpenedTrace, name: str, arguments: Hashable, compute: Callable[[], T]) -> T:
    """Return `compute()`, computed once for the same arguments.

    The latest result of each `name` is kept. Results of another trace are dropped.
    """
    identity, results = st.session_state.get(TRACE_RESULTS, (None, {}))
    if identity != opened.identity:
        results = {}
        st.session_state[TRACE_RESULTS] = (opened.identity, results)
    if name not in results or results[name][0] != arguments:
        results[name] = (arguments, compute())
    return results[name][1]
