"""A headless Firefox without a network, driven by WebDriver BiDi (W3C), which it speaks by itself."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from websockets.sync.client import ClientConnection, connect

VIZ = Path(__file__).parents[2] / "viz"
NAMES = ("firefox-esr", "firefox")
LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")
PREFERENCES = """user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
"""
"""A proxy that nobody serves: what asks the network is refused."""
PATIENCE = 60
"""Seconds that Firefox may take for an answer."""


class FirefoxPage:
    """A page of it, as far as the tests need one: what playwright's page calls `goto` and `evaluate`."""

    def __init__(self, socket: ClientConnection, scripts: str) -> None:
        self.scripts = scripts
        """Where it finds `viz/`, whose requests it cannot be made to answer by itself as Chromium can."""
        self._socket, self._numbers = socket, itertools.count(1)
        self._ask("session.new", capabilities={})
        self._context = self._ask("browsingContext.create", type="tab")["context"]

    def goto(self, url: str) -> None:
        self._ask("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, function: str, argument: Any = None) -> Any:
        """What a JavaScript function, or the promise it returns, says to `argument`; both as JSON."""
        call = f"(async () => JSON.stringify(await ({function})({json.dumps(argument)})) ?? 'null')()"
        target = {"context": self._context}
        found = self._ask("script.evaluate", expression=call, target=target, awaitPromise=True)
        assert found["type"] == "success", found["exceptionDetails"]["text"]
        return json.loads(found["result"]["value"])

    def _ask(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv(PATIENCE))).get("id") != number:
            pass  # an event
        assert answer["type"] == "success", answer
        return answer["result"]


class _Scripts(SimpleHTTPRequestHandler):
    """Files of `viz/` for a page from the disk, whose origin is another."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing beside the tests."""


@contextmanager
def serving_scripts() -> Iterator[str]:
    """The address of `viz/`, on this machine alone."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Scripts, directory=str(VIZ))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def firefox(program: str, profile: Path) -> Iterator[FirefoxPage]:
    """Start Firefox with a new profile in the folder `profile`, and end it."""
    (profile / "user.js").write_text(PREFERENCES)
    command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            said = next(filter(None, map(LISTENS.search, process.stderr)))
            with serving_scripts() as scripts, connect(f"{said[1]}/session", max_size=None) as socket:
                yield FirefoxPage(socket, scripts)
        finally:
            process.kill()
