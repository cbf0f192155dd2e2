"""What guards the app: headers of replies, limits of uploads, messages that are left out; without Streamlit."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.testing.v1 import AppTest
from uvicorn import Config

from attenscope import viz
from attenscope.viz.serving import server
from attenscope.viz.serving.middleware import (
    MEGABYTE,
    MessageGuard,
    PageBeginning,
    SafeHeaders,
    ServerSettings,
    UploadLimits,
)
from attenscope.viz.serving.server import (
    check_port_is_free,
    choose_allowed_hosts,
    read_option_variables,
    serve_app,
    split_streamlit_options,
)
from attenscope.viz.streamlit_internals import find_font_file, is_allowed_host_header, read_browser_message_type

R = TypeVar("R")
SMALL = ServerSettings(session_uploads=3 * MEGABYTE, server_uploads=5 * MEGABYTE)


class Files:
    """An app that keeps what is uploaded, as Streamlit does: by session, all in memory."""

    def __init__(self, settings: ServerSettings = SMALL) -> None:
        self.stored: dict[str, int] = {}
        routes = [Route("/_stcore/upload_file/{session}/{file}", self.put, methods=["PUT"])]
        limits = Middleware(UploadLimits, settings=settings, stored=lambda: self.stored)
        self.client = TestClient(Starlette(routes=routes, middleware=[limits]))

    async def put(self, request: Request) -> Response:
        try:
            body = await request.body()
        except ClientDisconnect:
            return Response(status_code=400)
        session = request.path_params["session"]
        self.stored[session] = self.stored.get(session, 0) + len(body)
        return Response(status_code=204)

    def upload(self, session: str, megabytes: float, chunked: bool = False) -> tuple[int, str]:
        data = b"x" * int(megabytes * MEGABYTE)
        parts = (data[i : i + 65536] for i in range(0, len(data), 65536))
        found = self.client.put(f"/_stcore/upload_file/{session}/f", content=parts if chunked else data)
        return found.status_code, found.text


def run_apart(
    work: Callable[[], Coroutine[Any, Any, R]], factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> R:
    """Run work in a loop and a thread of its own: this one may be that of a browser's loop."""

    def run() -> R:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(work())

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


@pytest.mark.parametrize("chunked", [False, True])
def test_files_of_a_visitor_and_of_all_have_a_limit(chunked: bool) -> None:
    files = Files()
    assert files.upload("a", 2, chunked) == (204, "")
    refused = files.upload("a", 2, chunked)
    assert refused == (413, "Your files may have 3 MB together: remove one, then try again.")
    assert files.stored == {"a": 2 * MEGABYTE}
    assert files.upload("a", 1, chunked)[0] == 204  # what was refused has left nothing behind
    assert files.upload("b", 2, chunked)[0] == 204
    status, said = files.upload("c", 1, chunked)
    assert (status, said[:29]) == (413, "The files of all visitors may")
    del files.stored["a"]
    assert files.upload("c", 1, chunked)[0] == 204


def test_files_that_come_at_once_count_together() -> None:
    """Two halves of the place are taken before either has come; a third finds none, though nothing is stored."""

    async def three() -> list[int]:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            arrived.set()
            await go_on.wait()
            await Response(status_code=204)(scope, receive, send)

        limits = UploadLimits(app, SMALL, dict)
        statuses: list[int] = []

        async def one(size: int) -> None:
            async def receive() -> dict[str, Any]:
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])

            headers = [(b"content-length", str(size).encode())]
            scope = {"type": "http", "method": "PUT", "path": "/app/_stcore/upload_file/a/f", "headers": headers}
            await limits(scope, receive, send)

        first = [asyncio.create_task(one(3 * MEGABYTE // 2)) for _ in range(2)]
        await arrived.wait()
        await asyncio.sleep(0)
        await one(1)
        go_on.set()
        await asyncio.gather(*first)
        await one(3 * MEGABYTE)
        return statuses

    assert run_apart(three) == [413, 204, 204, 204]


def test_a_public_server_takes_no_files() -> None:
    status, said = Files(ServerSettings(read_only=True)).upload("a", 0.1)
    assert status == 403
    assert "takes no files" in said


def ok(request: Request) -> Response:
    return PlainTextResponse("ok", headers={"X-Frame-Options": "ALLOWALL"})


def headers_of(settings: ServerSettings, path: str = "/") -> tuple[int, Any]:
    app = Starlette(routes=[Route("/", ok), Route("/_stcore/metrics", ok)])
    found = TestClient(SafeHeaders(app, settings, lambda host: host == "testserver")).get(path)
    return found.status_code, found.headers


def test_every_reply_says_what_a_browser_may_do_with_it() -> None:
    status, headers = headers_of(ServerSettings())
    assert status == 200
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
    assert "object-src 'none'" in headers["Content-Security-Policy"]
    _, headers = headers_of(ServerSettings(embedded_in="'self' https://school.example"))
    assert "frame-ancestors 'self' https://school.example" in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "ALLOWALL"  # not ours


def test_a_page_begins_with_the_rule_of_the_history_and_where_its_address_says_nothing_with_the_welcome() -> None:
    async def page(_: Request) -> Response:
        text = "<html><head><script>late</script></head><body><p>late</p>" + "<p>" * 2000
        return HTMLResponse(text, headers={"etag": '"theirs"'})

    async def text(_: Request) -> Response:
        return PlainTextResponse("<head><body>")

    routes = [Route("/", page), Route("/why", page), Route("/file", text)]
    beginning = Middleware(PageBeginning, welcome=lambda language: f"<b>{language}</b>")
    client = TestClient(Starlette(routes=routes, middleware=[beginning, Middleware(GZipMiddleware)]))
    asked = {"accept": "text/html,*/*", "accept-encoding": "gzip", "accept-language": "de-AT,en"}
    found = client.get("/why", headers=asked)
    begin = found.text.index("Attenscope"), found.text.index("attenscope.history"), found.text.index("late</script>")
    assert begin == tuple(sorted(begin))
    assert find_font_file(italic=False).name in found.text
    assert found.text.endswith("<p>" * 2000)
    assert int(found.headers["content-length"]) == len(found.content)
    assert "etag" not in found.headers
    assert client.get("/file", headers={"accept": "text/html"}).text == "<head><body>"
    assert "<body><b>de</b><p>late" in client.get("/", headers=asked).text
    assert "<body><p>late" in client.get("/?lang=de", headers=asked).text
    assert "<body><p>late" in found.text


def test_figures_of_the_server_are_closed_unless_asked_for() -> None:
    assert headers_of(ServerSettings(), "/_stcore/metrics")[0] == 404
    assert headers_of(ServerSettings(metrics=True), "/_stcore/metrics")[0] == 200


def test_a_script_is_kept_by_the_browser_where_its_address_names_its_version() -> None:
    scripts = Mount("/_stcore/bidi-components", routes=[Route("/{path:path}", ok)])
    served = TestClient(SafeHeaders(Starlette(routes=[scripts]), ServerSettings(), lambda _host: True))

    def read_caching(path: str) -> str | None:
        return served.get(f"/_stcore/bidi-components/{path}").headers.get("Cache-Control")

    assert read_caching("attenscope.scripts/shared.js?1f") == "public, max-age=31536000, immutable"
    assert read_caching("attenscope.scripts/shared.js") is None
    assert read_caching("another/shared.js?1f") is None


def test_a_page_is_not_served_under_a_name_of_another_site() -> None:
    guarded = TestClient(
        SafeHeaders(Starlette(routes=[Route("/", ok)]), ServerSettings(), lambda host: host == "testserver")
    )
    assert guarded.get("/").status_code == 200
    for host in ("evil.example", "testserver.evil.example", ""):
        refused = guarded.get("/", headers={"Host": host})
        assert (refused.status_code, refused.text) == (403, "Forbidden")
        assert refused.headers["X-Content-Type-Options"] == "nosniff"


def test_own_names_are_those_that_the_connection_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.config.get_option", {"server.allowedHosts": ["localhost", "127.0.0.1"]}.get)
    assert is_allowed_host_header("localhost:8501")
    assert is_allowed_host_header("127.0.0.1")
    for host in ("evil.example", "", "localhost@evil.example", "localhost:99999", "[", "\xff"):
        assert not is_allowed_host_header(host)


def test_a_frame_of_text_ends_its_connection_quietly() -> None:
    guarded = TestClient(
        Starlette(
            routes=[WebSocketRoute("/", echo)], middleware=[Middleware(MessageGuard, kind=read_browser_message_type)]
        )
    )
    with guarded.websocket_connect("/") as socket:
        socket.send_text("hello")
        with pytest.raises(WebSocketDisconnect) as ended:
            socket.receive_bytes()
        assert ended.value.code == 1003


def message(**fields: Any) -> bytes:
    return BackMsg(**fields).SerializeToString()


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    with suppress(WebSocketDisconnect):
        while True:
            await socket.send_bytes(await socket.receive_bytes())


def test_messages_that_change_the_server_for_everybody_are_left_out() -> None:
    guard = Middleware(MessageGuard, kind=read_browser_message_type)
    guarded = TestClient(Starlette(routes=[WebSocketRoute("/", echo)], middleware=[guard]))
    kept = message(stop_script=True)
    with guarded.websocket_connect("/") as socket:
        for fields in ({"clear_cache": True}, {"set_run_on_save": True}, {"debug_shutdown_runtime": True}):
            socket.send_bytes(message(**fields))
        socket.send_bytes(kept)
        assert socket.receive_bytes() == kept
        socket.send_bytes(b"\xff\xff\xff garbage")
        with pytest.raises(WebSocketDisconnect) as ended:
            socket.receive_bytes()
        assert ended.value.code == 1003


def test_the_settings_are_those_of_the_environment() -> None:
    assert ServerSettings.from_environment({}) == ServerSettings()
    found = ServerSettings.from_environment(
        {
            "ATTENSCOPE_READ_ONLY": "1",
            "ATTENSCOPE_METRICS": "true",
            "ATTENSCOPE_EMBEDDED_IN": "'self'  https://a.example",
            "ATTENSCOPE_SESSION_UPLOADS": "10",
            "ATTENSCOPE_SERVER_UPLOADS": "20",
        }
    )
    assert found == ServerSettings(True, True, "'self' https://a.example", 10 * MEGABYTE, 20 * MEGABYTE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ATTENSCOPE_READ_ONLY": "perhaps"},
        {"ATTENSCOPE_EMBEDDED_IN": "*; script-src *"},
        {"ATTENSCOPE_SESSION_UPLOADS": "-1"},
        {"ATTENSCOPE_SERVER_UPLOADS": "\u0661"},
    ],
)
def test_a_setting_that_means_nothing_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ServerSettings.from_environment(wrong)


def test_the_command_line_parts_options_of_the_server_from_those_of_the_app() -> None:
    own = ["--server.port", "8600", "--server.headless=true", "--browser.serverAddress", "a.example"]
    options = {"server.port": 8600, "server.headless": True, "browser.serverAddress": "a.example"}
    assert split_streamlit_options([*own, "--", "--model", "hf:folder"]) == (options, ["--model", "hf:folder"])
    assert split_streamlit_options(["--model", "hf:folder"]) == ({}, ["--model", "hf:folder"])
    assert split_streamlit_options([]) == ({}, [])
    assert split_streamlit_options(["--", "--model=package.module:factory"]) == ({}, ["--model=package.module:factory"])
    for late in (["--models", "folder", "--server.port", "8600"], ["--", "--open", "a.b", "--server.port=8600"]):
        with pytest.raises(ValueError, match=r"^--server\.port(=8600)? must stand first, as in: python -m viz"):
            split_streamlit_options(late)
    with pytest.raises(ValueError, match=r"--server\.port needs a value"):
        split_streamlit_options(["--server.port", "--", "x"])


@pytest.mark.parametrize(
    "given",
    [
        ["--server.allowedHosts", "a.example,*.b.example"],
        ["--server.allowedHosts=a.example, *.b.example"],
        ["--server.allowedHosts", "a.example", "--server.allowedHosts", "*.b.example"],
        ["--server.allowedHosts", '["a.example", "*.b.example"]'],
    ],
    ids=" ".join,
)
def test_the_names_of_a_server_are_a_list(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    options, _ = split_streamlit_options(given)
    assert options == {"server.allowedHosts": ["a.example", "*.b.example"]}
    monkeypatch.setattr("streamlit.config.get_option", options.get)
    for host, own in (("a.example:8501", True), ("c.b.example", True), ("evil.example", False), ("a", False)):
        assert is_allowed_host_header(host) == own


@pytest.mark.parametrize("nothing", ["", " , ", "[]"])
def test_a_list_of_no_names_does_not_let_all_in(nothing: str) -> None:
    with pytest.raises(ValueError, match=r"--server\.allowedHosts needs a value"):
        split_streamlit_options(["--server.allowedHosts", nothing])


def test_an_option_has_the_kind_that_the_server_takes() -> None:
    options = {
        "server.baseUrlPath": "2026",
        "server.maxUploadSize": 64,
        "server.headless": True,
        "server.enableStaticServing": False,
        "server.unknown": "3",
    }
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    assert split_streamlit_options(given) == (options, [])


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--server.headless=perhaps", "--server.headless is 'perhaps'; it must be 1 or 0."),
        ("--server.maxUploadSize=64MB", "--server.maxUploadSize is '64MB'; it must be a number."),
        ("--server.port=true", "--server.port is 'true'; it must be a number."),
    ],
)
def test_an_option_that_means_nothing_is_named(option: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        serve_app([option])


def test_the_variables_of_the_server_are_read_as_its_command_line_is() -> None:
    found = read_option_variables(
        {
            "STREAMLIT_SERVER_ADDRESS": "0.0.0.0",
            "STREAMLIT_SERVER_PORT": "8600",
            "STREAMLIT_SERVER_ALLOWED_HOSTS": "a.example b.example,c.example",
            "STREAMLIT_SERVER_BASE_URL_PATH": "",
            "STREAMLIT_SERVER_ENABLE_STATIC_SERVING": "False",
            "STREAMLIT_SERVER_COOKIE_SECRET": "read by Streamlit itself",
            "STREAMLIT_SERVER_NONSENSE": "1",
            "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS": "full",
        }
    )
    hosts = ["a.example", "b.example", "c.example"]
    assert found == {
        "server.address": "0.0.0.0",
        "server.port": 8600,
        "server.allowedHosts": hosts,
        "server.enableStaticServing": False,
    }


class Served:
    """What a command line would serve: its options, and what answers beside the pages."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *arguments: str, **environment: str) -> None:
        def build_app(_settings: object, routes: list[Route], _welcome: object) -> Served:
            self.client = TestClient(Starlette(routes=routes))
            return self

        monkeypatch.setattr(server, "build_app", build_app)
        monkeypatch.setattr(sys, "argv", sys.argv)
        monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
        for name, value in environment.items():
            monkeypatch.setenv(f"STREAMLIT_SERVER_{name}", value)

        async def answer(_: Request) -> Response:
            return PlainTextResponse("ok")

        serve_app(arguments, {"own-route": answer})

    def run(self, config: dict[str, Any]) -> None:
        self.config = config


def test_a_variable_opens_the_server_as_an_option_does(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = {"server.address": "0.0.0.0", "server.allowedHosts": ["*"]}
    assert Served(monkeypatch, ADDRESS="0.0.0.0").config == opened
    assert Served(monkeypatch, "--server.address", "127.0.0.1").config == {"server.address": "127.0.0.1"}
    named = Served(monkeypatch, ALLOWED_HOSTS="a.example").config
    assert named == opened | {"server.allowedHosts": ["a.example", "localhost", "127.0.0.1", "::1"]}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ([], "/own-route"),
        (["--server.baseUrlPath", "/attenscope/"], "/attenscope/own-route"),
        (["--server.baseUrlPath", "a/b"], "/a/b/own-route"),
    ],
)
def test_what_answers_beside_the_pages_is_below_the_path_of_the_server(
    arguments: list[str], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Served(monkeypatch, *arguments).client
    assert client.get(path).text == "ok"
    assert arguments == [] or client.get("/own-route").status_code == 404


def test_a_path_of_a_variable_is_that_of_what_answers_beside_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(monkeypatch, BASE_URL_PATH="attenscope")
    assert served.config == {"server.baseUrlPath": "attenscope"}
    assert served.client.get("/attenscope/own-route").text == "ok"


def test_a_path_of_the_configuration_file_is_that_of_what_answers_beside_the_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server.st, "get_option", {"server.baseUrlPath": "/below/"}.get)
    assert Served(monkeypatch).client.get("/below/own-route").text == "ok"
    assert Served(monkeypatch, "--server.baseUrlPath", "above").client.get("/above/own-route").text == "ok"


def test_a_port_in_use_is_said_with_another_to_take() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = f"Port {port} is used by another program. Choose another: make run PORT={port + 99}"
        for address in ([], ["--server.address", "127.0.0.1"]):
            with pytest.raises(ValueError, match=said):
                serve_app(["--server.port", str(port), *address])


def test_another_host_of_the_same_port_is_no_hindrance() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.2", 0))
        other.listen()
        check_port_is_free({"server.port": other.getsockname()[1]})


def test_a_port_out_of_range_is_said() -> None:
    with pytest.raises(ValueError, match="from 0 to 65535"):
        serve_app(["--server.port", "70000"])


def test_other_machines_are_let_in_by_any_name_only_where_they_are_let_in() -> None:
    everywhere = {"server.address": "0.0.0.0"}
    for options in ({}, {"server.address": "127.0.0.1"}):
        assert choose_allowed_hosts(options) == options
    assert choose_allowed_hosts(everywhere)["server.allowedHosts"] == ["*"]
    given = everywhere | {"server.allowedHosts": ["a.example"]}
    names = ["a.example", "localhost", "127.0.0.1", "::1"]  # a health check asks this machine by its own
    assert choose_allowed_hosts(given) == everywhere | {"server.allowedHosts": names}


def test_a_public_server_shows_the_released_models_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTENSCOPE_READ_ONLY", "1")
    with pytest.raises(ValueError, match="leave --model out"):
        serve_app(["--server.port", "1", "--", "--model=hf:folder"])


@pytest.mark.parametrize(
    ("page", "says"),
    [("masks.py", "from=upload"), ("masks.py", "part=from a configuration"), ("explore.py", ""), ("talk.py", "")],
    ids=lambda one: str(one),
)
def test_a_public_server_shows_no_place_for_files(page: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened() -> AppTest:
        app = AppTest.from_file(str(Path(viz.__file__).parent / "pages" / page), default_timeout=150)
        name, _, value = says.partition("=")
        if name:
            app.query_params[name] = value
        app.session_state["settings"] = True
        return app.run()

    app = opened()
    assert not app.exception
    assert len(app.file_uploader) == 1
    monkeypatch.setenv("ATTENSCOPE_READ_ONLY", "1")
    app = opened()
    assert not app.exception
    assert not app.file_uploader
    assert any("takes no files" in one.value for one in app.caption)


def test_every_place_for_files_is_one_that_a_public_server_leaves_out() -> None:
    folder = Path(viz.__file__).parent
    files = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.py")}
    assert [name for name, code in files.items() if "st.file_uploader(" in code] == ["ui/controls.py"]


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not there")
def test_no_answer_waits_for_the_receipt_of_the_one_before() -> None:
    """Nagle's algorithm is off on a socket that was bound as Streamlit binds it; with it each rerun took 40 ms more."""

    async def nodelay() -> int:
        loop, found = asyncio.get_running_loop(), asyncio.Queue[int]()

        def told(_: object, writer: asyncio.StreamWriter) -> None:
            found.put_nowait(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.bind(("127.0.0.1", 0))
        async with await asyncio.start_server(told, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            option = await found.get()
            writer.close()
        assert "uvloop" in type(loop).__module__
        return option

    assert run_apart(nodelay, Config("served:app", loop="auto").get_loop_factory())
