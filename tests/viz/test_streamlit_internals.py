"""What is used of Streamlit beyond its public interface, and the sentence that says which part is missing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests

from attenscope.viz import streamlit_internals
from attenscope.viz.streamlit_internals import (
    InternalsError,
    PageRun,
    allow_caches_outside_of_runs,
    count_uploaded_bytes,
    create_connection_probe,
    create_run_probe,
    end_absent_sessions,
    find_chart_script,
    find_font_file,
    is_history_navigation,
    list_streamlit_options,
    read_browser_message_type,
    remove_query_parameters,
    restore_stripped_query_parameters,
    serve_folder,
    start_component_runtime,
    write_query_parameter,
)

VIZ = Path(streamlit_internals.__file__).parent


def page_run() -> None:
    PageRun(VIZ / "pages" / "masks.py", {}).run({}, 1.0)


def serve_scripts() -> None:
    serve_folder("scripts", VIZ / "web" / "dist")


USES: list[tuple[Callable[[], Any], str]] = [
    (is_history_navigation, "runtime.scriptrunner.get_script_run_ctx"),
    (lambda: remove_query_parameters(["a"]), "runtime.scriptrunner.get_script_run_ctx"),
    (page_run, "runtime.state.session_state.SessionState"),
    (page_run, "runtime.state.safe_session_state.SafeSessionState"),
    (page_run, "testing.v1.local_script_runner.LocalScriptRunner"),
    (page_run, "runtime.pages_manager.PagesManager"),
    (page_run, "runtime.scriptrunner.script_cache.ScriptCache"),
    (lambda: start_component_runtime(VIZ), "runtime.memory_media_file_storage.MemoryMediaFileStorage"),
    (lambda: start_component_runtime(VIZ), "runtime.Runtime"),
    (create_connection_probe, "runtime.Runtime"),
    (create_run_probe, "runtime.Runtime"),
    (lambda: read_browser_message_type(b""), "proto.BackMsg_pb2.BackMsg"),
    (count_uploaded_bytes, "runtime.Runtime"),
    (list_streamlit_options, "config._config_options_template"),
    (lambda: end_absent_sessions(len, list), "runtime.Runtime"),
    (allow_caches_outside_of_runs, "runtime.scriptrunner_utils.script_run_context._LOGGER"),
    (serve_scripts, "components.v2.get_bidi_component_manager.get_bidi_component_manager"),
    (serve_scripts, "components.v2.manifest_scanner.ComponentManifest"),
]


@pytest.mark.parametrize(("use", "gone"), USES)
def test_a_name_that_is_gone_is_named(use: Callable[[], Any], gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        return ModuleType(name) if f"streamlit.{gone}".rpartition(".")[0] == name else real(name)

    monkeypatch.setattr(streamlit_internals.importlib, "import_module", without)
    with pytest.raises(InternalsError, match=rf"has no streamlit\.{gone}; .*written for Streamlit 1\.67"):
        use()


@pytest.mark.parametrize(
    ("use", "part"),
    [
        (is_history_navigation, "is_history_navigation"),
        (lambda: remove_query_parameters(["a"]), "QueryParams.remove_param"),
        (restore_stripped_query_parameters, "QueryParams.populate_from_query_string"),
        (lambda: write_query_parameter("a", "b"), "QueryParams.set_corrected_value"),
    ],
)
def test_a_member_that_is_gone_is_named(use: Callable[[], Any], part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlit_internals, "_get_run_context", object)
    with pytest.raises(InternalsError, match=rf"{part}.*written for Streamlit 1\.67"):
        use()


def test_nothing_else_imports_what_is_not_public() -> None:
    public = (
        "streamlit.delta_generator",
        "streamlit.errors",
        "streamlit.runtime.uploaded_file_manager",
        "streamlit.web",
        "streamlit.testing",
    )
    private = [
        f"{path.relative_to(VIZ)}: {line.strip()}"
        for path in sorted(VIZ.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip().startswith(("from streamlit.", "import streamlit.")) and not line.split()[1].startswith(public)
    ]
    assert private == []


def test_a_file_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(streamlit_internals.st, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(InternalsError, match=r"has no static/static/media/SourceSansVF-Italic.*written for"):
        find_font_file(italic=True)
    with pytest.raises(InternalsError, match=r"has no static/static/js/PlotlyChart"):
        find_chart_script()


class Serving:
    """A runtime with one visitor, and others gone."""

    def __init__(self, *visitors: str) -> None:
        self.visitors = set(visitors)

    def exists(self) -> bool:
        return True

    def instance(self) -> Serving:
        return self

    def is_active_session(self, session: str) -> bool:
        return session in self.visitors


def test_a_connection_ends_with_its_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    serving = Serving("here")
    monkeypatch.setattr(streamlit_internals, "_find_streamlit_object", lambda module, name: serving)
    for session, stays in (("here", False), ("of no browser", True)):
        monkeypatch.setattr(
            streamlit_internals, "_get_run_context", lambda session=session: SimpleNamespace(session_id=session)
        )
        connected = create_connection_probe()
        assert connected()
        serving.visitors.discard(session)
        assert connected() == stays


def test_a_run_is_wanted_until_its_visitor_asks_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    requests, serving = ScriptRequests(), Serving("here")
    context = SimpleNamespace(session_id="here", script_requests=requests)
    monkeypatch.setattr(streamlit_internals, "_find_streamlit_object", lambda module, name: serving)
    monkeypatch.setattr(streamlit_internals, "_get_run_context", lambda: context)
    wanted = create_run_probe()
    assert wanted()
    requests.request_rerun(RerunData())
    assert not wanted()
    context.script_requests = ScriptRequests()
    wanted = create_run_probe()
    serving.visitors.discard("here")
    assert not wanted()
