"""Headers of every reply: where scripts may come from, who may frame the app; and what is not served at all."""

from __future__ import annotations

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
    """ASGI middleware that sets the headers, and answers for the server's figures with "not found"."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
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

        closed = scope["path"].endswith(METRICS) and not self._settings.metrics
        answer = PlainTextResponse("Not found", 404) if closed else self._app
        await answer(scope, receive, sending)
