"""What a browser may say to the app: nothing that takes from other visitors, and no bytes that mean nothing."""

from __future__ import annotations

from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

FORBIDDEN = frozenset({"clear_cache", "set_run_on_save", "debug_disconnect_websocket", "debug_shutdown_runtime"})
"""Kinds of messages that change the server for everybody."""
UNSUPPORTED_DATA = 1003  # RFC 6455, section 7.4.1


class MessageGuard:
    """ASGI middleware of the connection: it leaves out forbidden messages, and ends at one that is none."""

    def __init__(self, app: ASGIApp, kind: Callable[[bytes], str | None]) -> None:
        """`kind` names what a message asks for; None for bytes that are no message."""
        self._app, self._kind = app, kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def receiving() -> Message:
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                data = message.get("bytes")  # None where the browser sent a text, which no message is.
                kind = None if data is None else self._kind(data)
                if kind is None:
                    await send({"type": "websocket.close", "code": UNSUPPORTED_DATA})
                    return {"type": "websocket.disconnect", "code": UNSUPPORTED_DATA}
                if kind not in FORBIDDEN:
                    return message

        await self._app(scope, receiving, send)
