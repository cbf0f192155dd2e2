"""Middleware of the server: security headers, allowed messages, upload limits, their settings, how a page begins."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attenscope.language import find_closest_language, say, to_say, use_language
from attenscope.viz.streamlit_internals import find_font_file
from attenscope.viz.web.component_scripts import read_standalone_script, read_style_sheet

# Headers of every reply: where scripts may come from and who may frame the app; and paths that are not served.


CONTENT_SECURITY_POLICY = {
    "default-src": "'self'",
    # Streamlit's page has one script in it, and a component's module is a blob.
    "script-src": "'self' 'unsafe-inline' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
"""Content-Security-Policy: nothing from any other server."""
METRICS_PATH = "/_stcore/metrics"
SCRIPTS_PATH = "/_stcore/bidi-components/attenscope.scripts/"
"""Where the scripts of dist/ are served (viz/web/component_scripts.py)."""


class SafeHeaders:
    """ASGI middleware that sets the headers, refuses a foreign Host, and hides the server's metrics."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, is_own: Callable[[str], bool]) -> None:
        """`is_own` says whether a Host header names this server.

        Otherwise a page of another site has reached it by a name of its own (DNS rebinding).
        """
        self._app, self._settings, self._is_own = app, settings, is_own
        self._headers = {
            "Content-Security-Policy": "; ".join(
                f"{name} {sources}"
                for name, sources in (CONTENT_SECURITY_POLICY | {"frame-ancestors": settings.embedded_in}).items()
            ),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }
        if settings.embedded_in == ServerSettings.embedded_in:  # The older header cannot name other sites.
            self._headers["X-Frame-Options"] = "SAMEORIGIN"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                if SCRIPTS_PATH in scope["path"] and scope["query_string"] and message["status"] == 200:
                    headers["Cache-Control"] = "public, max-age=31536000, immutable"  # Its address has its version.
            await send(message)

        await self._select_response_app(scope)(scope, receive, send_on)

    def _select_response_app(self, scope: Scope) -> ASGIApp:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if not self._is_own(host):
            return PlainTextResponse("Forbidden", 403)
        if scope["path"].endswith(METRICS_PATH) and not self._settings.metrics:
            return PlainTextResponse("Not found", 404)
        return self._app


# Messages of the browser: none that changes the server for other visitors, and no bytes that are no message.


FORBIDDEN_MESSAGES = frozenset(
    {"clear_cache", "set_run_on_save", "debug_disconnect_websocket", "debug_shutdown_runtime"}
)
"""Kinds of messages that change the server for everybody."""
UNSUPPORTED_DATA_CODE = 1003  # RFC 6455, section 7.4.1


class MessageGuard:
    """ASGI middleware that drops forbidden messages, and closes the connection at bytes that are no message."""

    def __init__(self, app: ASGIApp, kind: Callable[[bytes], str | None]) -> None:
        """`kind` names what a message asks for; None for bytes that are no message."""
        self._app, self._kind = app, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def receive_checked() -> Message:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                data = message.get("bytes")  # None where the browser sent a text, which no message is.
                kind = None if data is None else self._kind(data)
                if kind is None:
                    await send({"type": "websocket.close", "code": UNSUPPORTED_DATA_CODE})
                    return {"type": "websocket.disconnect", "code": UNSUPPORTED_DATA_CODE}
                if kind not in FORBIDDEN_MESSAGES:
                    return message

        await self._app(scope, receive_checked, send)


# Limits on all uploads together: Streamlit limits each file alone, and keeps all files in memory.


FIRST_LANGUAGE_PATTERN = re.compile(rb"[\w-]*")
"""The first language of an Accept-Language header."""
UPLOAD_PATH_PATTERN = re.compile(r".*/_stcore/upload_file/(?P<session>[^/]+)/[^/]+")


class UploadTooLargeError(Exception):
    """More bytes came than there is place for; the message says so."""


class UploadLimits:
    """ASGI middleware that refuses a file before it is read, or while it arrives, once a limit is reached."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, stored: Callable[[], Mapping[str, int]]) -> None:
        """`stored` says how many bytes each session has in memory."""
        self._app, self._settings, self._stored = app, settings, stored
        self._coming: defaultdict[str, int] = defaultdict(int)
        """Session -> bytes of uploads that are on their way. Only the event loop uses it, so it needs no lock."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = scope["type"] == "http" and scope["method"] == "PUT" and UPLOAD_PATH_PATTERN.fullmatch(scope["path"])
        if not found:
            await self._app(scope, receive, send)
        elif self._settings.read_only:
            with use_language(_read_request_language(scope)):
                refused = PlainTextResponse(say(NO_FILES_TEXT), 403)
            await refused(scope, receive, send)
        else:
            await self._limit_upload_request(found["session"], scope, receive, send)

    async def _limit_upload_request(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"")
        held = expected = int(length) if length.isdigit() else 0
        language = _read_request_language(scope)
        if refusal := self._explain_upload_refusal(session, expected, language):
            await PlainTextResponse(refusal, 413)(scope, receive, send)
            return
        came = 0
        begun = False

        async def receive_checked() -> Message:
            nonlocal came, held
            message = await receive()
            came += len(message.get("body", b""))
            if came > held:  # More than was said, or nothing was said.
                if refusal := self._explain_upload_refusal(session, came - held, language):
                    raise UploadTooLargeError(refusal)
                self._coming[session] += came - held
                held = came
            return message

        async def send_on(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        self._coming[session] += held
        try:
            await self._app(scope, receive_checked, send_on)
        except UploadTooLargeError as refusal:
            if not begun:
                await PlainTextResponse(str(refusal), 413)(scope, receive, send)
        finally:
            self._coming[session] -= held
            if not self._coming[session]:
                del self._coming[session]

    def _explain_upload_refusal(self, session: str, more: int, language: str) -> str:
        """Return why so many bytes more are refused, in a language; "" where they are not."""
        stored = self._stored()
        own = stored.get(session, 0) + self._coming[session]
        everybody = sum(stored.values()) + sum(self._coming.values())
        for used, limit, message in (
            (
                own,
                self._settings.session_uploads,
                to_say("Your files may have {most} MB together: remove one, then try again."),
            ),
            (
                everybody,
                self._settings.server_uploads,
                to_say("The files of all visitors may have {most} MB together: remove one, then try again."),
            ),
        ):
            if used + more > limit:
                with use_language(language):
                    return say(message, most=limit // MEGABYTE)
        return ""


def _read_request_language(scope: Scope) -> str:
    """The language that the request's browser asks for first, as far as the interface has it."""
    asked = FIRST_LANGUAGE_PATTERN.match(dict(scope["headers"]).get(b"accept-language", b""))
    return find_closest_language(asked[0].decode() if asked else "")


# Settings of the server, from the environment.


MEGABYTE = 1024 * 1024
NO_FILES_TEXT = to_say("This server takes no files. Run Attenscope on your own machine to open one.")
"""Shown to a visitor of a read-only server who wants to open a file."""
YES_VALUES, NO_VALUES = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class ServerSettings:
    """The limits of one server; sizes in bytes."""

    read_only: bool = False
    """No visitor can upload a file: for a server that everybody can reach."""
    metrics: bool = False
    """Whether Streamlit's metrics are served (``_stcore/metrics``)."""
    embedded_in: str = "'self'"
    """The sites that may show the app in a frame, as ``frame-ancestors`` of a Content-Security-Policy names them."""
    session_uploads: int = 256 * MEGABYTE
    """The files of one visitor together."""
    server_uploads: int = 1024 * MEGABYTE
    """The files of all visitors together."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read ATTENSCOPE_READ_ONLY, _METRICS, _EMBEDDED_IN, _SESSION_UPLOADS and _SERVER_UPLOADS (in MB).

        ValueError with a sentence for a value that means nothing.
        """
        return cls(
            read_only=_read_boolean_variable(environment, "ATTENSCOPE_READ_ONLY"),
            metrics=_read_boolean_variable(environment, "ATTENSCOPE_METRICS"),
            embedded_in=_read_frame_ancestors(environment, "ATTENSCOPE_EMBEDDED_IN", cls.embedded_in),
            session_uploads=_read_megabytes(environment, "ATTENSCOPE_SESSION_UPLOADS", cls.session_uploads),
            server_uploads=_read_megabytes(environment, "ATTENSCOPE_SERVER_UPLOADS", cls.server_uploads),
        )

    @classmethod
    def from_process_environment(cls) -> Self:
        """Read the settings from this process's environment."""
        return cls.from_environment(os.environ)


def _read_boolean_variable(environment: Mapping[str, str], name: str) -> bool:
    return parse_boolean_setting(name, environment.get(name, ""))


def parse_boolean_setting(name: str, text: str) -> bool:
    """Return what a text says of the setting `name`. Raises ValueError for one that means nothing."""
    text = text.strip().lower()
    if text not in (*YES_VALUES, *NO_VALUES):
        raise ValueError(say("{name} is {text!r}; it must be 1 or 0.", name=name, text=text))
    return text in YES_VALUES


def _read_frame_ancestors(environment: Mapping[str, str], name: str, default: str) -> str:
    text = " ".join(environment.get(name, "").split()) or default
    if not text.isascii() or ";" in text or "," in text:
        raise ValueError(
            say(
                "{name} is {text!r}; it must name sites with spaces between, such as https://school.example.",
                name=name,
                text=text,
            )
        )
    return text


def _read_megabytes(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(say("{name} is {text!r}; it must be a number of megabytes.", name=name, text=text))
    return int(text) * MEGABYTE if text else default


# What stands in every page before Streamlit: the rules of the browser's history (src/shell/history.js), and the shape
# of what comes (src/shell/begin.css), or the welcome itself.


HEAD_TAG, BODY_TAG = b"<head>", b"<body>"
FONT_FACE = (
    '@font-face {{ font-family: "Source Sans"; font-weight: 200 900; '
    'src: url("./static/media/{name}") format("woff2"); }}'
)
"""Streamlit's own, which its page fetches early and names late."""


class PageBeginning:
    """ASGI middleware that puts a script and its sheet into the head of every page, and the welcome into its body.

    What the first run writes into the address belongs to the history entry that was opened. A component is mounted too
    late for that: by then Streamlit has made further entries.
    """

    def __init__(self, app: ASGIApp, welcome: Callable[[str], str]) -> None:
        """`welcome` builds what a page opens with that has nothing in its address, in a language."""
        self._app, self._welcome = app, welcome
        font = FONT_FACE.format(name=find_font_file(italic=False).name)
        script = f'<script type="module">{read_standalone_script("begin")}()</script>'
        self._head = HEAD_TAG + f"<style>{font}{read_style_sheet('begin')}</style>{script}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or "text/html" not in Headers(scope=scope).get("accept", "")
        ):
            await self._app(scope, receive, send)
            return
        # A compressed page could not be read here.
        scope = {**scope, "headers": [one for one in scope["headers"] if one[0] != b"accept-encoding"]}
        began: list[Message] = []
        body = bytearray()

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                if message["status"] == 200 and kind.startswith("text/html"):
                    began.append(message)
                    return
            elif began:
                body.extend(message.get("body", b""))
                if message.get("more_body"):
                    return
                page = bytes(body).replace(HEAD_TAG, self._head, 1)
                if scope["path"].endswith("/") and not scope["query_string"]:
                    welcome = self._welcome(_read_request_language(scope)).encode()
                    page = page.replace(BODY_TAG, BODY_TAG + welcome, 1)
                headers = MutableHeaders(scope=began[0])
                headers["content-length"] = str(len(page))
                for name in ("etag", "last-modified", "accept-ranges"):  # These describe Streamlit's own file.
                    del headers[name]
                await send(began[0])
                message = {**message, "body": page}
            await send(message)

        await self._app(scope, receive, send_on)
