"""A page that asks for anything outside this machine fails its test, in whatever way it asks."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import watch
from tests.components.bare_page import ADDRESS

ELSEWHERE = "https://elsewhere.example/"
WAYS = {
    "fetch": f"fetch('{ELSEWHERE}', {{ mode: 'no-cors' }}).catch(() => 0)",
    "image": f"void (new Image().src = '{ELSEWHERE}')",
    "number": "void (new Image().src = 'http://192.0.2.1/')",
    "beacon": f"navigator.sendBeacon('{ELSEWHERE}')",
    "socket": f"void new WebSocket('{ELSEWHERE.replace('https', 'wss')}')",
    "worker": f"void new Worker(URL.createObjectURL(new Blob([\"fetch('{ELSEWHERE}').catch(() => 0)\"])))",
    "frame": f"document.body.insertAdjacentHTML('beforeend', '<iframe src={ELSEWHERE}></iframe>')",
    "font": f"new FontFace('one', 'url({ELSEWHERE})').load().catch(() => 0)",
}


def ask(room: BrowserContext, script: str) -> None:
    """Run a script in a page that is watched."""
    with watch(room, ADDRESS) as page:
        page.set_content("<p>A page</p>")
        page.evaluate(script)
        page.wait_for_timeout(200)
        page.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_request_for_elsewhere_is_found(room: BrowserContext, way: str) -> None:
    with pytest.raises(AssertionError, match=r"elsewhere\.example|192\.0\.2\.1"):
        ask(room, WAYS[way])
