"""Headers of every reply: where scripts may come from, who may frame the app; and what is not served at all."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import Settings

POLICY = {
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
"""Content-Security-Policy: nothing but what this server gives."""
METRICS = "/_stcore/metrics"


class SafeHeaders:
    """ASGI middleware that sets the headers, refuses a foreign Host, and answers for the server's figures with "not
    found"."""

    def __init__(self, app: ASGIApp, settings: Settings, is_own: Callable[[str], bool]) -> None:
        """`is_own` says whether a Host header names this server: else a page of another site has reached it by a name
        of its own (DNS rebinding)."""
        self._app, self._settings, self._is_own = app, settings, is_own
        self._headers = {
            "Content-Security-Policy": "; ".join(
                f"{name} {sources}" for name, sources in (POLICY | {"frame-ancestors": settings.embedded_in}).items()
            ),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
        }
        if settings.embedded_in == Settings.embedded_in:  # The older header cannot name other sites.
            self._headers["X-Frame-Options"] = "SAMEORIGIN"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
            await send(message)

        await self._answer(scope)(scope, receive, sending)

    def _answer(self, scope: Scope) -> ASGIApp:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if not self._is_own(host):
            return PlainTextResponse("Forbidden", 403)
        if scope["path"].endswith(METRICS) and not self._settings.metrics:
            return PlainTextResponse("Not found", 404)
        return self._app
