"""A view as it is sent to a notebook: the script that draws it, its bytes, and what differs on a dark page."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from attenscope.language import current_language, say
from attenscope.viz.export.parts import Component, Part, Slide, View, flatten_parts
from attenscope.viz.export.slides import encode_slides
from attenscope.viz.figures.look import DARK, LIGHT, Look
from attenscope.viz.notebook.views import NotebookState, build_notebook_parts
from attenscope.viz.web.bundle import link_scripts, pack_arrays, read_component_sheet, read_sheet

WIDGET_COMPONENTS = ("overview", "heatmap", "links", "text", "decode_player")
WIDGET_THEMES = {"light": LIGHT, "dark": DARK}


def build_widget_script() -> str:
    """Return the module that anywidget runs: the components, their styles, and what mounts them."""
    return _build_script_in_language(current_language())


@functools.cache
def _build_script_in_language(_language: str) -> str:
    styles = json.dumps({name: read_component_sheet(name) for name in WIDGET_COMPONENTS})
    css = json.dumps(read_sheet("widget"))
    return (
        f"{link_scripts([*WIDGET_COMPONENTS, 'widget'])}"
        f"export default {{ render: scripts.widget(scripts, {styles}, {css}) }};\n"
    )


def encode_widget_content(shown: NotebookState, look: Look) -> bytes:
    """Return what widget.js reads: the slide of a saved page, the colours of both themes, the choices, and the bytes.

    Each component is packed in light; `dark` holds the fields of its header that differ in the dark.
    """
    light, dark = (build_notebook_parts(shown, replace(look, palette=palette)) for palette in WIDGET_THEMES.values())
    (slide,), body = encode_slides([Slide("", View("", light))])
    header = {
        "slide": slide,
        "dark": _find_dark_differences(light, dark),
        "themes": {name: asdict(palette) for name, palette in WIDGET_THEMES.items()},
        "kind": shown.kind,
        "kinds": list(shown.trace.maps),
        "view": shown.view,
        "views": shown.views,
        "of": " · ".join(filter(None, [_describe_place(shown), shown.trace.model])),
    }
    return pack_arrays(header, body)


def _describe_place(shown: NotebookState) -> str:
    """Which head is shown, where its picture does not say so itself."""
    if shown.view not in ("links", "text"):
        return ""
    return say("layer {layer}, head {head}", layer=shown.layer + 1, head=shown.head + 1)


def _find_dark_differences(light: Sequence[Part], dark: Sequence[Part]) -> list[dict[str, Any]]:
    """Return, for each part without the columns, the fields of its dark header that differ from the light one."""
    return [
        _find_changed_fields(one, other) for one, other in zip(flatten_parts(light), flatten_parts(dark), strict=True)
    ]


def _find_changed_fields(one: Part, other: Part) -> dict[str, Any]:
    if not isinstance(one, Component) or not isinstance(other, Component):
        return {}
    first, second = _read_packed_header(one), _read_packed_header(other)
    return {name: value for name, value in second.items() if first[name] != value}


def _read_packed_header(part: Component) -> dict[str, Any]:
    """The header of what :func:`viz.web.bundle.pack_arrays` has packed."""
    assert isinstance(part.data, bytes)
    (length,) = struct.unpack_from("<I", part.data)
    header: dict[str, Any] = json.loads(part.data[4 : 4 + length])
    return header
