"""An empty page that mounts components of viz/web as Streamlit does, and keeps what they send."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from playwright.sync_api import Locator, Page, Route

from attenscope.viz.export.offline_html import COLOURS_TEMPLATE
from attenscope.viz.figures.figure_style import DARK, LIGHT
from attenscope.viz.web.component_scripts import build_standalone_module, read_component_style_sheet

ADDRESS = "http://components.test/"
"""Where the page finds the built scripts; no request for it leaves the browser."""
SECURE_ADDRESS = ADDRESS.replace("http:", "https:")
"""The same page, which the browser trusts with more."""
_COLOURS = "".join(
    COLOURS_TEMPLATE.substitute(vars(palette), scheme=scheme) for scheme, palette in (("light", LIGHT), ("dark", DARK))
)
PAGE = f"""<!doctype html><html lang="en" data-scheme="light"><meta charset="utf-8"><title>Bare page</title>
<style>:root {{ --st-font: sans-serif; --st-button-radius: 0.6rem; background: var(--st-background-color); }}
body {{ margin: 0; padding: 20px; }}
{_COLOURS}</style><body></body></html>"""
_MOUNT = """async ([address, key, name, style, data]) => {
  // Streamlit hands over a window into a larger buffer.
  const windowOf = (bytes) => Uint8Array.from(atob(`AAAA${bytes}`), (one) => one.charCodeAt(0)).subarray(3);
  const handed = data.bytes === undefined ? data.plain : windowOf(data.bytes);
  const { default: component } = await import(`${address}${name}.js`);
  window.views ??= {};
  window.sent ??= [];
  const view = (window.views[key] ??= { host: document.body.appendChild(document.createElement("section")) });
  if (!view.parent) {
    view.host.className = `st-key-${key}`;
    const root = view.host.attachShadow({ mode: "open" });
    root.append(Object.assign(document.createElement("style"), { textContent: style }));
    view.parent = root.appendChild(document.createElement("div"));
  }
  const setTriggerValue = (what, value) => window.sent.push([what, structuredClone(value ?? null)]);
  view.leave = component({ data: handed, parentElement: view.parent, setTriggerValue });
}"""


class BarePage:
    """The page, and what was sent in it since it was last asked."""

    def __init__(self, page: Page, address: str = ADDRESS) -> None:
        self.page = page
        self._scripts = address if address.startswith("http") else ADDRESS
        page.route("*://components.test/**", _answer)
        page.goto(address)

    def set_scheme(self, scheme: str) -> None:
        """Take on the colours of ``light`` or ``dark``."""
        self.page.evaluate("(scheme) => { document.documentElement.dataset.scheme = scheme; }", scheme)

    def mount(self, name: str, data: bytes | Mapping[str, Any], key: str = "view") -> Locator:
        """Mount a component, or again with other data, and return what is drawn of it."""
        handed = {"bytes": base64.b64encode(data).decode()} if isinstance(data, bytes) else {"plain": dict(data)}
        self.page.evaluate(_MOUNT, [self._scripts, key, name, read_component_style_sheet(name), handed])
        return self.page.locator(f".st-key-{key} > div > *")

    def unmount(self, key: str = "view") -> None:
        """Take a component out as Streamlit does: it is told, then its element goes."""
        self.page.evaluate("(key) => { views[key].leave(); views[key].host.remove(); delete views[key]; }", key)

    def pop_sent_values(self) -> list[Any]:
        """What components have sent since this was last asked: pairs of a name and a value."""
        found: list[Any] = json.loads(self.page.evaluate("JSON.stringify((window.sent ??= []).splice(0))"))
        return found

    def pixel(self, canvas: Locator, across: float, down: float) -> np.ndarray:
        """Red, green, blue and alpha of a canvas at a place in shares of its width and height."""
        return self.pixels(canvas, [(across, down)])[0]

    def pixels(self, canvas: Locator, places: Sequence[tuple[float, float]]) -> np.ndarray:
        """(N, 4) the same of N places."""
        return np.array(canvas.evaluate(_PIXELS, [list(one) for one in places]))


_PIXELS = """(canvas, places) => {
  const pen = canvas.getContext("2d");
  const at = ([across, down]) => [across * canvas.width, down * canvas.height].map(Math.floor);
  return places.map((place) => [...pen.getImageData(...at(place), 1, 1).data]);
}"""


def _answer(route: Route) -> None:
    name = urlsplit(route.request.url).path.removeprefix("/")
    if name.endswith(".js"):
        code, headers = build_standalone_module(name.removesuffix(".js")), {"Access-Control-Allow-Origin": "*"}
        route.fulfill(body=code, content_type="text/javascript", headers=headers)
    else:
        route.fulfill(body=PAGE, content_type="text/html")


def rgb(colour: str) -> tuple[int, ...]:
    """A colour #rrggbb as its red, green and blue."""
    return tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
