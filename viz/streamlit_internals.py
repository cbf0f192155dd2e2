"""All uses of Streamlit beyond its public interface, as version 1.67 has it.

- Query parameters: one that a widget is bound to can be neither removed by code nor taken to another page, nor told
  apart from one that the visitor's Back button has brought (``QueryParams``, ``ScriptRunContext``).
- Runs of a page without a browser, in a session of their own (``LocalScriptRunner`` and what it needs, ``Runtime``).
  The public ``AppTest`` cannot be used: each of its runs takes the place of the process's runtime and leaves none
  behind, while that runtime serves visitors.
- Whether a visitor's browser is still connected, asked from another thread (``Runtime.is_active_session``), and the
  sessions that wait for one that is gone (``SessionManager``'s storage).
- Whether a Host header names this server (``is_host_allowed``), which Streamlit asks of the connection alone.
- The options that its command line knows (``config._config_options_template``): a server that is started by
  ``st.App.run`` takes no list from text, and reads no environment variables.
- What a browser's message asks for (``BackMsg``), and the uploaded files in memory (``MemoryUploadedFileManager``).
- The logger that warns at every use of a cache outside of a visitor's run.
- A folder served beside the files of components, as it is of one that is installed (``BidiComponentManager``): what is
  given as text is sent again with every message.
- The files of the font that pages are set in, and the script that a page loads for its charts.

Where another version lacks a part, :class:`InternalsError` names it.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

# A cache of a command, which has no server, is kept in memory without a warning.
logging.getLogger("streamlit.runtime.caching.cache_data_api").addFilter(
    lambda record: "No runtime found" not in record.getMessage()
)

STREAMLIT_VERSION = "1.67"
MANIFEST_PARTS = ("ComponentManifest", "ComponentConfig")


class InternalsError(RuntimeError):
    """A part of Streamlit that is not where version 1.67 has it."""

    def __init__(self, part: str) -> None:
        super().__init__(
            f"Streamlit {st.__version__} has no {part}; Attenscope was written for Streamlit {STREAMLIT_VERSION}. "
            "Install the version that requirements.txt names."
        )


def remove_query_parameters(names: Iterable[str]) -> None:
    """Take parameters out of the address, bound ones too, so that no widget of this run reads them.

    Raises InternalsError.
    """
    names, context = tuple(names), _get_run_context()
    if not names or context is None:
        return
    parts = "SessionState.query_params, QueryParams.remove_param or QueryParams.set_initial_query_params_from_current"
    with _raise_on_missing_streamlit_part(parts), context.session_state.query_params() as parameters:
        for name in names:
            parameters.remove_param(name)
        parameters.set_initial_query_params_from_current()


def restore_stripped_query_parameters() -> None:
    """Put back what Streamlit has taken out of the address that the browser asked for. Raises InternalsError.

    On the way to another page it takes out the parameters that the page which is left has bound to its widgets.
    """
    context = _get_run_context()
    if context is None:
        return
    parts = "ScriptRunContext.query_string, QueryParams.populate_from_query_string or QueryParams._send_query_param_msg"
    with _raise_on_missing_streamlit_part(parts), context.session_state.query_params() as parameters:
        asked = context.query_string
        parameters.populate_from_query_string(asked)
        parameters.set_initial_query_params_from_current()
        parameters._send_query_param_msg()


def write_query_parameter(name: str, text: str) -> None:
    """Put a parameter into the address for the widget that is about to be bound to it. Raises InternalsError.

    Streamlit does not write what a script has given a widget before it was first drawn, and on the way through the
    browser's history it takes the default instead.
    """
    context = _get_run_context()
    if context is None:
        return
    parts = "QueryParams.set_corrected_value or QueryParams.set_initial_query_params_from_current"
    with _raise_on_missing_streamlit_part(parts), context.session_state.query_params() as parameters:
        parameters.set_corrected_value(name, text, "string_value")
        parameters.set_initial_query_params_from_current()


def unbind_query_parameters(*names: str) -> None:
    """Unbind these parameters of the address, or all that stand there, from their widgets. Raises InternalsError."""
    context = _get_run_context()
    if context is None:
        return
    parts = "QueryParams.get_binding_for_param or QueryParams.unbind_widget"
    with _raise_on_missing_streamlit_part(parts), context.session_state.query_params() as parameters:
        for name in names or list(parameters):
            if binding := parameters.get_binding_for_param(name):
                parameters.unbind_widget(binding.widget_id)


def is_thread_running_page() -> bool:
    """Whether this thread runs a page for a visitor."""
    return _get_run_context() is not None


def is_history_navigation() -> bool:
    """Whether the browser's Back or Forward has caused this run. Raises InternalsError."""
    context = _get_run_context()
    with _raise_on_missing_streamlit_part("ScriptRunContext.is_history_navigation"):
        return context is not None and bool(context.is_history_navigation)


def create_connection_probe() -> Callable[[], bool]:
    """Return a function that tells, from any thread, whether the visitor of this run still has the page open.

    For a run without a browser it always returns True. Raises InternalsError.
    """
    context, runtime = _get_run_context(), _find_streamlit_object("streamlit.runtime", "Runtime")
    with _raise_on_missing_streamlit_part("Runtime.exists, Runtime.instance or Runtime.is_active_session"):
        if context is None or not runtime.exists():
            return lambda: True
        is_active, session = runtime.instance().is_active_session, context.session_id
    return (lambda: bool(is_active(session))) if is_active(session) else (lambda: True)


def create_run_probe() -> Callable[[], bool]:
    """Return a function that tells whether this run is wanted: its visitor is there and has asked for no other run.

    For a run without a browser it always returns True. Raises InternalsError.
    """
    context, is_connected = _get_run_context(), create_connection_probe()
    requests = None if context is None else context.script_requests
    if requests is None:
        return is_connected
    with _raise_on_missing_streamlit_part("ScriptRequests._state"):
        begun = requests._state
        return lambda: is_connected() and requests._state is begun


class PageRun:
    """Runs of one page without a browser; `session` is what its session holds at first. Raises InternalsError."""

    def __init__(self, script: Path, session: Mapping[str, Any]) -> None:
        self._script = str(script)
        state = _find_streamlit_object("streamlit.runtime.state.session_state", "SessionState")()
        self._session = _find_streamlit_object("streamlit.runtime.state.safe_session_state", "SafeSessionState")(
            state, lambda: None
        )
        for name, value in session.items():
            self._session[name] = value

    def run(self, query: Mapping[str, str], timeout: float) -> Any:
        """The elements of the page at an address, after at most so many seconds.

        Raises RuntimeError when it does not come to an end.
        """
        runner = _find_streamlit_object("streamlit.testing.v1.local_script_runner", "LocalScriptRunner")
        manager = _find_streamlit_object("streamlit.runtime.pages_manager", "PagesManager")
        cache = _find_streamlit_object("streamlit.runtime.scriptrunner.script_cache", "ScriptCache")
        with _raise_on_missing_streamlit_part("LocalScriptRunner or PagesManager with these arguments", TypeError):
            made = runner(self._script, self._session, manager(self._script, cache(), setup_watcher=False))
        return made.run(query_params=dict(query), timeout=timeout)


def start_component_runtime(app: Path) -> None:
    """Make the runtime that components register with, where no server does; call it before any of them is used.

    Raises InternalsError.
    """
    files = _find_streamlit_object("streamlit.runtime.memory_media_file_storage", "MemoryMediaFileStorage")("/media")
    uploads = _find_streamlit_object("streamlit.runtime.memory_uploaded_file_manager", "MemoryUploadedFileManager")(
        "/upload"
    )
    runtime, config = (_find_streamlit_object("streamlit.runtime", name) for name in ("Runtime", "RuntimeConfig"))
    with _raise_on_missing_streamlit_part("Runtime or RuntimeConfig with these arguments", TypeError):
        runtime(config(str(app), files, uploads))


def read_browser_message_type(data: bytes) -> str | None:
    """Return what a message of the browser asks for, such as "rerun_script"; "" for nothing known.

    None for bytes that are no message. Raises InternalsError.
    """
    message = _find_streamlit_object("streamlit.proto.BackMsg_pb2", "BackMsg")()
    try:
        message.ParseFromString(data)
    except _find_streamlit_object("google.protobuf.message", "DecodeError"):
        return None
    with _raise_on_missing_streamlit_part("BackMsg with a type"):
        return message.WhichOneof("type") or ""


def is_allowed_host_header(host: str) -> bool:
    """Whether a Host header names this server, as ``server.allowedHosts`` has it. Raises InternalsError."""
    allowed = _find_streamlit_object("streamlit.web.server.starlette.starlette_websocket", "is_host_allowed")
    return bool(allowed(host))


class StreamlitOption(NamedTuple):
    """What Streamlit declares of one of its options."""

    variable: str
    """The environment variable that its command line reads instead."""
    kind: type
    """str, bool, int or float."""
    is_list: bool
    """Whether it takes a list of these."""


def list_streamlit_options() -> dict[str, StreamlitOption]:
    """The options that may be given to the server, by name, as "server.port". Raises InternalsError."""
    declared = _find_streamlit_object("streamlit.config", "_config_options_template")
    with _raise_on_missing_streamlit_part("ConfigOption.env_var, type, multiple or sensitive"):
        return {
            name: StreamlitOption(one.env_var, one.type, one.multiple)
            for name, one in declared.items()
            if not one.sensitive
        }


def count_uploaded_bytes() -> dict[str, int]:
    """How many bytes of uploaded files each session has in memory. Raises InternalsError."""
    runtime = _find_streamlit_object("streamlit.runtime", "Runtime")
    with _raise_on_missing_streamlit_part("Runtime.uploaded_file_mgr or MemoryUploadedFileManager.file_storage"):
        stored = runtime.instance().uploaded_file_mgr.file_storage
        return {
            session: sum(len(file.data) for file in list(files.values())) for session, files in list(stored.items())
        }


def end_absent_sessions(
    measure: Callable[[Mapping[str, Any]], int], choose: Callable[[Mapping[str, Callable[[], int]]], Iterable[str]]
) -> None:
    """End sessions whose visitors have gone, soon, in the thread of the server's loop; call it from another.

    Args:
        measure: Returns how many bytes a session holds in its state, by key; uploaded files are counted beside.
        choose: Returns which to end, of all whose visitors have gone, each with what measures it.

    Raises InternalsError.
    """
    runtime = _find_streamlit_object("streamlit.runtime", "Runtime")

    def end() -> None:
        def size(session: Any) -> int:
            return count_uploaded_bytes().get(session.id, 0) + measure(_read_session_state(session))

        absent = [one.session for one in server._session_mgr._session_storage.list()]
        for key in choose({one.id: partial(size, one) for one in absent}):
            server.close_session(key)

    parts = "Runtime.close_session, its loop, its session storage or the fragments of a session"
    with _raise_on_missing_streamlit_part(parts):
        if runtime.exists():
            server = runtime.instance()
            loop = server._get_async_objs().eventloop
            with suppress(RuntimeError):  # The server has ended, and its loop is closed.
                loop.call_soon_threadsafe(end)


def allow_caches_outside_of_runs() -> None:
    """Let caches be filled without a visitor and without a warning for each. Raises InternalsError."""
    logger: logging.Logger = _find_streamlit_object(
        "streamlit.runtime.scriptrunner_utils.script_run_context", "_LOGGER"
    )
    logger.addFilter(lambda record: "missing ScriptRunContext" not in record.getMessage())


def serve_folder(name: str, folder: Path) -> str:
    """Serve the files of `folder` under a `name`; their address, seen from any page. Raises InternalsError."""
    served, of = f"attenscope.{name}", "streamlit.components.v2"
    manager = _find_streamlit_object(f"{of}.get_bidi_component_manager", "get_bidi_component_manager")()
    manifest, config = (_find_streamlit_object(f"{of}.manifest_scanner", one) for one in MANIFEST_PARTS)
    with _raise_on_missing_streamlit_part("BidiComponentManager with these methods"):
        if manager.get_component_path(served) is None:
            own = manifest("attenscope", "", [config(name=name, asset_dir=folder.name)])
            manager.register_from_manifest(own, folder.parent)
    return f"./_stcore/bidi-components/{served}"


def find_font_file(*, italic: bool) -> Path:
    """The font of the pages, upright or italic, in all weights, as WOFF2. Raises InternalsError."""
    return _find_static_file(f"media/SourceSansVF-{'Italic' if italic else 'Upright'}*.woff2")


def find_chart_script() -> Path:
    """The script that a page loads once it has a chart of Plotly. Raises InternalsError."""
    return _find_static_file("js/PlotlyChart.*.js")


def _find_static_file(pattern: str) -> Path:
    found = next((Path(st.__file__).parent / "static" / "static").glob(pattern), None)
    if found is None:
        raise InternalsError(f"static/static/{pattern}")
    return found


def _read_session_state(session: Any) -> Mapping[str, Any]:
    """What a session holds by key, and its fragments, which hold what they were called with.

    Nothing while a run of it is still ending in its own thread, and changes it.
    """
    try:
        return {
            **session.session_state.filtered_state,
            "fragments": list(session._fragment_storage._fragments.values()),
        }
    except (KeyError, RuntimeError):
        return {}


def _get_run_context() -> Any:
    """The context of this run; None outside of a page."""
    return _find_streamlit_object("streamlit.runtime.scriptrunner", "get_script_run_ctx")(suppress_warning=True)


def _find_streamlit_object(module: str, name: str) -> Any:
    """An object of a module of Streamlit. Raises InternalsError."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InternalsError(f"{module}.{name}") from error


@contextmanager
def _raise_on_missing_streamlit_part(part: str, error: type[Exception] = AttributeError) -> Iterator[None]:
    """Say which part is missing, where a use of it raises `error`."""
    try:
        yield
    except error as cause:
        raise InternalsError(part) from cause
