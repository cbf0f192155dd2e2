"""Put a script before Streamlit's into every page: the rules of the browser's history (src/shell/history.js)."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attenscope.viz.web.bundle import read_script

HEAD_TAG = b"<head>"


class HeadScript:
    """ASGI middleware that puts the script into the head of every page.

    What the first run writes into the address belongs to the history entry that was opened. A component is mounted too
    late for that: by then Streamlit has made further entries.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._script = HEAD_TAG + f'<script type="module">{read_script("begin")}()</script>'.encode()

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

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                if message["status"] == 200 and kind.startswith("text/html"):
                    began.append(message)
                    return
            elif began:
                body.extend(message.get("body", b""))
                if message.get("more_body"):
                    return
                page = bytes(body).replace(HEAD_TAG, self._script, 1)
                headers = MutableHeaders(scope=began[0])
                headers["content-length"] = str(len(page))
                for name in ("etag", "last-modified", "accept-ranges"):  # These describe Streamlit's own file.
                    del headers[name]
                await send(began[0])
                message = {**message, "body": page}
            await send(message)

        await self._app(scope, receive, sending)
