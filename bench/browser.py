"""A headless Chromium, a server on this machine, and the time until a page served there is painted."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")

# Both views draw in one go, so once a frame sees one element all are there; two frames later they are painted.
PAINTED = """([selector, deadline]) => new Promise((resolve, reject) => {
  const nextFrame = requestAnimationFrame;
  const look = (now) => {
    if (document.querySelector(selector)) nextFrame(() => nextFrame(() => resolve(performance.now())));
    else if (now > deadline) reject(`There is no ${selector} after ${deadline} ms.`);
    else nextFrame(look);
  };
  look(0);
})"""
DEADLINE = 120_000  # milliseconds


def painted_after(browser: Browser, address: str, selector: str) -> float:
    """Milliseconds from the start of the navigation until `selector` stands in the page and has been painted."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address, wait_until="commit")
    elapsed = float(page.evaluate(PAINTED, [selector, DEADLINE]))
    page.close()
    return elapsed


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, headless."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        raise SystemExit("The overview is measured in Chromium, and there is none: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextlib.contextmanager
def served(files: dict[str, bytes]) -> Iterator[str]:
    """Serve `files` (path -> body; more may be added meanwhile) to this machine alone -> the server's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
