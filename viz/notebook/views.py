"""The parts of each view, as a saved page has them, and how they are sent to a notebook."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from attenscope.analysis.flow import build_joint_attention
from attenscope.language import current_language, say, to_say
from attenscope.trace import AttentionMap, AttentionTrace, Kind, TraceError, select_head
from attenscope.viz.export.parts import Columns, Component, Part, Slide, View, Words, encode_slides, flatten_parts
from attenscope.viz.figures.explore import describe_joint_strongest_links, make_joint_grid
from attenscope.viz.figures.figure_style import DARK, KIND_NAMES, LIGHT, Look
from attenscope.viz.figures.heatmap import RowLabel, make_head_grid, pooling_block_size
from attenscope.viz.figures.text_alternatives import (
    describe_head_overview,
    describe_pinned_row,
    describe_strongest_head_link,
    explain_heatmap_reading,
)
from attenscope.viz.web.component_scripts import (
    build_scripts_constant,
    pack_arrays,
    read_component_style_sheet,
    read_style_sheet,
)
from attenscope.viz.web.maps import LinkOptions, encode_attention_links, encode_heads_overview, encode_heatmap
from attenscope.viz.web.players import PlayerStart, encode_decode_player
from attenscope.viz.web.text_components import encode_shaded_text

if TYPE_CHECKING:
    from attenscope.runnable_model import Translation


NotebookView = Literal["overview", "heatmap", "links", "text", "joint", "decode"]
NOTEBOOK_VIEWS: tuple[NotebookView, ...] = get_args(NotebookView)
OVERVIEW_PICTURE_SHARES = (0.42, 0.58)
"""Widths of the overview and of the picture beside it, as on Explore."""
NO_STEPS_TEXT = to_say(
    "The view decode needs the steps of a decoding, which a trace does not hold: show the Translation that "
    "Translator.translate(...) returns."
)
PinnedRowColumn = tuple[int | None, int | None]


@dataclass(frozen=True, eq=False)
class NotebookState:
    """What is shown: a trace, a view of it, and the chosen head; layer and head count from 0."""

    trace: AttentionTrace
    view: NotebookView
    kind: Kind
    layer: int
    head: int
    pinned: PinnedRowColumn = (None, None)
    """Row and column of the map."""
    rows: RowLabel = "predicted"
    translation: Translation | None = None

    @property
    def attention(self) -> AttentionMap:
        return self.trace.maps[self.kind]

    @property
    def views(self) -> list[NotebookView]:
        """The views that this trace, and this layer and head of it, can be shown in."""
        maps = self.trace.maps.values()
        in_all = all(self.layer < one.layers and self.head < one.heads for one in maps)
        able = {"joint": len(maps) == 3 and in_all, "decode": self.translation is not None}
        return [view for view in NOTEBOOK_VIEWS if able.get(view, True)]


def build_notebook_parts(shown: NotebookState, look: Look) -> Sequence[Part]:
    """Return what a view is made of. TraceError where the trace has not what it needs."""
    return _VIEW_BUILDERS[shown.view](shown, look)


def _build_overview_parts(shown: NotebookState, look: Look) -> list[Part]:
    tiles = encode_heads_overview(shown.attention, shown.layer, shown.head, look)
    return [Component("overview", tiles, "heads"), Words(describe_head_overview(shown.attention))]


def _build_heatmap_parts(shown: NotebookState, look: Look) -> list[Part]:
    attention, layer, head = shown.attention, shown.layer, shown.head
    grid = make_head_grid(attention, layer, head, shown.rows)
    options: dict[str, Any] = {
        "model": "",
        "pinned": shown.pinned,
        "follows": say(KIND_NAMES[shown.kind]),
        "pins": True,
    }
    picture = Component(
        "heatmap",
        encode_heatmap(grid, look, _build_alt_text(shown), **options),
        follows=_can_draw_head_from_tiles(shown),
    )
    line = explain_heatmap_reading(select_head(attention, layer, head), shown.rows, look.scale)
    return _add_head_tiles(shown, look, [picture, Words(line)])


def _build_links_parts(shown: NotebookState, look: Look) -> list[Part]:
    lines = LinkOptions(shown.layer, shown.head)
    data = encode_attention_links(shown.attention, lines, look, shown.rows, shown.pinned, _build_alt_text(shown))
    return _add_head_tiles(shown, look, [Component("links", data, follows=_can_draw_head_from_tiles(shown))])


def _build_shaded_text_parts(shown: NotebookState, look: Look) -> list[Part]:
    place = shown.attention, shown.layer, shown.head
    options = (shown.rows, shown.pinned, _build_alt_text(shown))
    data = encode_shaded_text(*place, look, *options, alone=shown.trace.cross is None)
    return _add_head_tiles(shown, look, [Component("text", data, follows=_can_draw_head_from_tiles(shown))])


def _build_joint_attention_parts(shown: NotebookState, look: Look) -> list[Part]:
    matrix = build_joint_attention(shown.trace, shown.layer, shown.head)
    line = describe_joint_strongest_links(matrix, shown.rows)
    grid = make_joint_grid(matrix, shown.layer, shown.head, shown.rows)
    return [Component("heatmap", encode_heatmap(grid, look, line, model="")), Words(line)]


def _build_decode_parts(shown: NotebookState, look: Look) -> list[Part]:
    if shown.translation is None:
        raise TraceError(say(NO_STEPS_TEXT))
    maps = shown.translation.to_source, shown.translation.to_target
    places = [(min(shown.layer, one.layers - 1) + 1, min(shown.head, one.heads - 1) + 1) for one in maps]
    to_source, to_target = (f"{layer}.{head}" for layer, head in places)
    start = PlayerStart(0, to_source, to_target, None)
    return [Component("decode_player", encode_decode_player(shown.translation, start, look, "notebook"), "decoding")]


def _add_head_tiles(shown: NotebookState, look: Look, picture: Sequence[Part]) -> list[Part]:
    """The picture of one head, and all heads to choose another from; of a map of one head the picture alone."""
    attention = shown.attention
    if attention.layers * attention.heads == 1:
        return list(picture)
    tiles = encode_heads_overview(attention, shown.layer, shown.head, look)
    return [
        Columns(
            ([Component("overview", tiles, "heads", follows=_can_draw_head_from_tiles(shown))], picture),
            OVERVIEW_PICTURE_SHARES,
        )
    ]


def _can_draw_head_from_tiles(shown: NotebookState) -> bool:
    """Return whether the tiles are fine enough to draw another head from them before Python has answered."""
    return pooling_block_size(*shown.attention.mask.shape) == 1


def _build_alt_text(shown: NotebookState) -> str:
    """What a screen reader is told: where the pinned row looks, or else the head's strongest link."""
    place, row = (shown.attention, shown.layer, shown.head), shown.pinned[0]
    return (
        describe_strongest_head_link(*place, shown.rows)
        if row is None
        else describe_pinned_row(*place, row, shown.rows)
    )


_VIEW_BUILDERS = {
    "overview": _build_overview_parts,
    "heatmap": _build_heatmap_parts,
    "links": _build_links_parts,
    "text": _build_shaded_text_parts,
    "joint": _build_joint_attention_parts,
    "decode": _build_decode_parts,
}


# What is sent to a notebook: the script that draws a view, its bytes, and what differs on a dark page.


WIDGET_COMPONENTS = ("overview", "heatmap", "links", "text", "decode_player")
WIDGET_THEMES = {"light": LIGHT, "dark": DARK}


def build_widget_script() -> str:
    """Return the module that anywidget runs: the components, their styles, and what mounts them."""
    return _build_script_in_language(current_language())


@functools.cache
def _build_script_in_language(_language: str) -> str:
    styles = json.dumps({name: read_component_style_sheet(name) for name in WIDGET_COMPONENTS})
    css = json.dumps(read_style_sheet("widget"))
    return (
        f"{build_scripts_constant([*WIDGET_COMPONENTS, 'widget'])}"
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
        "dark": _find_dark_header_differences(light, dark),
        "themes": {name: asdict(palette) for name, palette in WIDGET_THEMES.items()},
        "kind": shown.kind,
        "kinds": list(shown.trace.maps),
        "view": shown.view,
        "views": shown.views,
        "of": " · ".join(filter(None, [_describe_shown_head(shown), shown.trace.model])),
    }
    return pack_arrays(header, body)


def _describe_shown_head(shown: NotebookState) -> str:
    """Which head is shown, where its picture does not say so itself."""
    if shown.view not in ("links", "text"):
        return ""
    return say("layer {layer}, head {head}", layer=shown.layer + 1, head=shown.head + 1)


def _find_dark_header_differences(light: Sequence[Part], dark: Sequence[Part]) -> list[dict[str, Any]]:
    """Return, for each part without the columns, the fields of its dark header that differ from the light one."""
    return [
        _find_changed_header_fields(one, other)
        for one, other in zip(flatten_parts(light), flatten_parts(dark), strict=True)
    ]


def _find_changed_header_fields(one: Part, other: Part) -> dict[str, Any]:
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
