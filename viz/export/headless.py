"""Chromium without a window, driven over a pipe (the Chrome DevTools Protocol)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attenscope.language import say

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Programs that are looked for, unless ``CHROMIUM`` names one."""
FLAGS = (
    *("--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-sync", "--hide-scrollbars"),
    *("--force-color-profile=srgb", "--disable-gpu"),
)
READ_FD, WRITE_FD = 3, 4
"""Where Chromium reads what it is to do, and writes what it has done."""
SPARE_FD = 10
"""The lowest number for our own ends of the pipes, so that none is one of Chromium's."""


class BrowserError(RuntimeError):
    """There is no browser, or it did not do what it was to do; the text says what helps."""


class HeadlessPage:
    """One page of a browser that nobody sees."""

    def __init__(self, commands: int, replies: int) -> None:
        self._commands, self._replies = commands, replies
        self._unread, self._sent, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result. Raises BrowserError."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        unwritten = json.dumps(message).encode() + b"\0"
        while unwritten:
            unwritten = unwritten[os.write(self._commands, unwritten) :]
        while (reply := self._read()).get("id") != self._sent:
            pass
        if "error" in reply:
            raise BrowserError(str(reply["error"].get("message")))
        result: dict[str, Any] = reply["result"]
        return result

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression of JavaScript, once it is there where it is a promise."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(str(found["exceptionDetails"].get("exception", {}).get("description", "")))
        return found["result"].get("value")

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            read = os.read(self._replies, 1 << 20)
            if not read:
                raise BrowserError(say("The browser has ended before it was done."))
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


def find_browser() -> str:
    """Return the path of Chromium or Chrome. Raises BrowserError where there is none."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None or shutil.which(path) is None:
        raise BrowserError(say("No Chromium or Chrome was found: install it, or name it in CHROMIUM."))
    return path


@contextmanager
def open_headless_page(width: int, height: int) -> Iterator[HeadlessPage]:
    """A page whose window is `width` x `height` pixels. Raises BrowserError."""
    path = find_browser()
    if os.name == "nt":
        raise BrowserError(say("A browser is driven on Linux and macOS alone."))
    import fcntl  # Windows has none.

    (commands_read, commands), (replies, replies_write) = os.pipe(), os.pipe()
    ends = [fcntl.fcntl(one, fcntl.F_DUPFD, SPARE_FD) for one in (commands_read, replies_write)]
    for one in (commands_read, replies_write):
        os.close(one)

    def take_ends() -> None:
        os.dup2(ends[0], READ_FD)
        os.dup2(ends[1], WRITE_FD)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # Root has no sandbox, and what is drawn is our own file, which asks the network for nothing.
        more = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = subprocess.Popen(
            [path, *FLAGS, *more, f"--user-data-dir={profile}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(READ_FD, WRITE_FD),
            preexec_fn=take_ends,
        )
        for one in ends:
            os.close(one)
        try:
            page = HeadlessPage(commands, replies)
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            page.call("Emulation.setDeviceMetricsOverride", **metrics)
            yield page
        finally:
            process.terminate()
            process.wait()
            os.close(commands)
            os.close(replies)
