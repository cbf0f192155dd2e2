"""A view on its way to a notebook: the script that draws it, its bytes, and what differs on a dark page."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from model.language.current import current_language
from model.language.say import say

from ..components.bundle import style
from ..components.packing import pack
from ..export.parts import Component, Part, Slide, View, leaves
from ..export.scripts import component_code, scoped
from ..export.slides import described
from ..figures.palette import DARK, LIGHT, Look
from .views import Shown, parts

HERE = Path(__file__).parent
COMPONENTS = ("overview", "heatmap", "links", "text", "decode_player")
THEMES = {"light": LIGHT, "dark": DARK}


def script() -> str:
    """Return the module that anywidget runs: the components, their styles, and what mounts them."""
    return _script(current_language())


@functools.cache
def _script(_language: str) -> str:
    styles = json.dumps({name: style(name) for name in COMPONENTS})
    css = json.dumps((HERE / "widget.css").read_text(encoding="utf-8"))
    return (
        f"{component_code(COMPONENTS)}const renderer = {scoped(HERE / 'widget.js')};\n"
        f"export default {{ render: renderer(components, {styles}, {css}) }};\n"
    )


def packed(shown: Shown, look: Look) -> bytes:
    """What widget.js reads: the slide of a saved page, the colours of both themes, what can be chosen, and the bytes.

    Each component is packed in light; `dark` holds the fields of its header that are others in the dark.
    """
    light, dark = (parts(shown, replace(look, palette=palette)) for palette in THEMES.values())
    (slide,), body = described([Slide("", View("", light))])
    header = {
        "slide": slide,
        "dark": _differences(light, dark),
        "themes": {name: asdict(palette) for name, palette in THEMES.items()},
        "kind": shown.kind,
        "kinds": list(shown.trace.maps),
        "view": shown.view,
        "views": shown.views,
        "of": " · ".join(filter(None, [_place(shown), shown.trace.model])),
    }
    return pack(header, body)


def _place(shown: Shown) -> str:
    """Which head is shown, where its picture does not say so itself."""
    if shown.view not in ("links", "text"):
        return ""
    return say("layer {layer}, head {head}", layer=shown.layer + 1, head=shown.head + 1)


def _differences(light: Sequence[Part], dark: Sequence[Part]) -> list[dict[str, Any]]:
    """For each part, columns apart, the fields of the second's header that the first has otherwise."""
    return [_changed(one, other) for one, other in zip(leaves(light), leaves(dark), strict=True)]


def _changed(one: Part, other: Part) -> dict[str, Any]:
    if not isinstance(one, Component) or not isinstance(other, Component):
        return {}
    first, second = _header(one), _header(other)
    return {name: value for name, value in second.items() if first[name] != value}


def _header(part: Component) -> dict[str, Any]:
    """The header of what :func:`viz.components.packing.pack` has packed."""
    assert isinstance(part.data, bytes)
    (length,) = struct.unpack_from("<I", part.data)
    header: dict[str, Any] = json.loads(part.data[4 : 4 + length])
    return header
