"""The notebook widget ``attenscope.show``: the views of a trace in Jupyter, VS Code, Colab and marimo."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from attenscope.analysis.flow import join_attentions
from attenscope.analysis.steps import select_head
from attenscope.language import current_language, join_items, say, to_say
from attenscope.trace import AttentionMap, AttentionTrace, Head, Kind, TraceError
from attenscope.viz.export.parts import Columns, Component, Part, Slide, View, Words, flatten_parts
from attenscope.viz.export.slides import build_component_code, bundle_as_expression, encode_slides
from attenscope.viz.figures.explore import joint_in_words, make_joint_grid
from attenscope.viz.figures.heatmap import RowLabel, make_head_grid, pooling_block_size
from attenscope.viz.figures.look import DARK, KIND_NAMES, LIGHT, Look, RampName, Scale
from attenscope.viz.figures.words import head_in_words, heatmap_in_words, overview_in_words, row_in_words
from attenscope.viz.notebook.static import static_html
from attenscope.viz.web.bundle import component_style, pack_arrays
from attenscope.viz.web.maps import LinkOptions, encode_heatmap, encode_links, encode_overview
from attenscope.viz.web.players import PlayerStart, encode_decode_player
from attenscope.viz.web.texts import encode_shaded_text

if TYPE_CHECKING:
    from attenscope.runnable_model import Translation

# A view as it is sent to a notebook: the script that draws it, its bytes, and what differs on a dark page.


NOTEBOOK_FOLDER = Path(__file__).parent
WIDGET_COMPONENTS = ("overview", "heatmap", "links", "text", "decode_player")
WIDGET_THEMES = {"light": LIGHT, "dark": DARK}


def build_widget_script() -> str:
    """Return the module that anywidget runs: the components, their styles, and what mounts them."""
    return _build_script_in_language(current_language())


@functools.cache
def _build_script_in_language(_language: str) -> str:
    styles = json.dumps({name: component_style(name) for name in WIDGET_COMPONENTS})
    css = json.dumps((NOTEBOOK_FOLDER / "widget.css").read_text(encoding="utf-8"))
    renderer = bundle_as_expression(NOTEBOOK_FOLDER / "widget.js")
    return (
        f"{build_component_code(WIDGET_COMPONENTS)}const renderer = {renderer};\n"
        f"export default {{ render: renderer(components, {styles}, {css}) }};\n"
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


# The widget, by anywidget.
#
# It mounts the components of the pages; its JavaScript, styles and data come from this package, and nothing is fetched
# from elsewhere. What is chosen in it can be read and set from Python.


try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    raise ImportError(
        say("The notebook widget needs anywidget, which is not installed here: pip install 'attenscope[notebook]'.")
    ) from error

KIND_PREFERENCE: tuple[Kind, ...] = ("cross", "decoder", "encoder")
"""The first of these maps that a trace has is shown, unless another is asked for."""


def show(
    what: Any,
    view: NotebookView = "overview",
    *,
    kind: Kind | None = None,
    layer: int = 0,
    head: int = 0,
    rows: RowLabel = "predicted",
    scale: Scale = "sqrt",
    ramp: RampName = "indigo",
) -> AttentionWidget:
    """Return a widget of an AttentionTrace, of a capture, or of the Translation of a model of this project.

    Layer and head count from 0, here and in the widget's attributes `layer`, `head`, `kind`, `view` and `pinned` (row
    and column), which follow what is chosen in it and may be set; `selected` is (kind, layer, head). Raises TraceError
    for what cannot be shown, and traitlets.TraitError for a kind, a layer or a head that the trace has not.
    """
    trace = what if isinstance(what, AttentionTrace) else getattr(what, "trace", None)
    if not isinstance(trace, AttentionTrace):
        raise TraceError(
            say("A {type} cannot be shown: give a trace, a capture or a Translation.", type=type(what).__name__)
        )
    if not trace.maps:
        raise TraceError(say("This trace has no map, so there is nothing to show."))
    chosen = kind or next(one for one in KIND_PREFERENCE if one in trace.maps)
    translation = what if hasattr(what, "steps") else None
    look = Look(ramp=ramp, scale=scale)
    return AttentionWidget(trace, translation, look, rows, view=view, kind=chosen, layer=layer, head=head)


class AttentionWidget(anywidget.AnyWidget):
    """A trace in a notebook. Its trace, look and rows are those that it was made with."""

    _esm = build_widget_script()
    content = traitlets.Bytes().tag(sync=True)
    view = traitlets.Unicode().tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    layer = traitlets.Int().tag(sync=True)
    head = traitlets.Int().tag(sync=True)
    pinned: Any = traitlets.List(traitlets.Any(), [None, None], minlen=2, maxlen=2).tag(sync=True)

    def __init__(
        self, trace: AttentionTrace, translation: Any, look: Look, rows: RowLabel, *, view: str, **chosen: Any
    ) -> None:
        self._trace, self._translation, self._look, self._rows = trace, translation, look, rows
        super().__init__(view=view, **chosen)
        self._draw()
        self.observe(self._draw, ["view", "layer", "head"])
        self.observe(self._switch_map, "kind")

    @property
    def selected_head(self) -> Head:
        """Kind, layer and head that are chosen; layer and head count from 0."""
        return self._shown.kind, self.layer, self.head

    @property
    def _read_state(self) -> NotebookState:
        chosen: Any = {"view": self.view, "kind": self.kind, "pinned": tuple(self.pinned)}
        return NotebookState(
            self._trace, layer=self.layer, head=self.head, rows=self._rows, translation=self._translation, **chosen
        )

    def _draw(self, _change: object = None) -> None:
        self.content = encode_widget_content(self._shown, self._look)

    def _switch_map(self, _change: object) -> None:
        """Another map may have fewer layers and heads, and has other rows and columns."""
        attention = self._trace.maps[self._shown.kind]
        with self.hold_trait_notifications():
            self.pinned = [None, None]
            self.layer, self.head = min(self.layer, attention.layers - 1), min(self.head, attention.heads - 1)
        self._draw()

    @traitlets.validate("view")
    def _validate_view(self, proposal: Mapping[str, Any]) -> str:
        view = str(proposal["value"])
        if view not in NOTEBOOK_VIEWS:
            raise traitlets.TraitError(
                say("There is no view {view!r}: choose one of {views}.", view=view, views=join_items(NOTEBOOK_VIEWS))
            )
        if view == "decode" and self._translation is None:
            raise traitlets.TraitError(say(NO_STEPS_TEXT))
        return view

    @traitlets.validate("kind")
    def _validate_kind(self, proposal: Mapping[str, Any]) -> str:
        kind = str(proposal["value"])
        if kind not in self._trace.maps:
            raise traitlets.TraitError(
                say("This trace has no {kind!r} map: it has {kinds}.", kind=kind, kinds=join_items(self._trace.maps))
            )
        return kind

    @traitlets.validate("layer", "head")
    def _validate_place(self, proposal: Mapping[str, Any]) -> int:
        name, value = proposal["trait"].name, int(proposal["value"])
        attention = self._trace.maps.get(self._shown.kind)
        last = (attention.layers if name == "layer" else attention.heads) - 1 if attention else value
        if not 0 <= value <= last:
            said = {"kind": self.kind, "last": last, "value": value}
            raise traitlets.TraitError(
                say("The {kind} map has layers 0 to {last}: {value} is none of them.", **said)
                if name == "layer"
                else say("The {kind} map has heads 0 to {last}: {value} is none of them.", **said)
            )
        return value

    def _repr_mimebundle_(self, **arguments: Any) -> Any:
        """Return the widget, and a picture for a converted or saved notebook, where no widget is shown."""
        found = super()._repr_mimebundle_(**arguments)
        picture = {"text/html": static_html(self._trace, (self._shown.kind, self.layer, self.head), self._look)}
        if isinstance(found, tuple):
            return found[0] | picture, *found[1:]
        return None if found is None else found | picture


# The parts of each view, as a saved page has them.


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
        """The views that this trace can be shown in."""
        able = {"joint": len(self.trace.maps) == 3, "decode": self.translation is not None}
        return [view for view in NOTEBOOK_VIEWS if able.get(view, True)]


def build_notebook_parts(shown: NotebookState, look: Look) -> Sequence[Part]:
    """Return what a view is made of. TraceError where the trace has not what it needs."""
    return _VIEW_BUILDERS[shown.view](shown, look)


def _build_overview_parts(shown: NotebookState, look: Look) -> list[Part]:
    tiles = encode_overview(shown.attention, shown.layer, shown.head, look)
    return [Component("overview", tiles, "heads"), Words(overview_in_words(shown.attention))]


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
        "heatmap", encode_heatmap(grid, look, _build_alt_text(shown), **options), follows=_can_follow_tiles(shown)
    )
    line = heatmap_in_words(select_head(attention, layer, head), shown.rows, look.scale)
    return _add_head_tiles(shown, look, [picture, Words(line)])


def _build_links_parts(shown: NotebookState, look: Look) -> list[Part]:
    lines = LinkOptions(shown.layer, shown.head)
    data = encode_links(shown.attention, lines, look, shown.rows, shown.pinned, _build_alt_text(shown))
    return _add_head_tiles(shown, look, [Component("links", data, follows=_can_follow_tiles(shown))])


def _build_text_parts(shown: NotebookState, look: Look) -> list[Part]:
    place = shown.attention, shown.layer, shown.head
    data = encode_shaded_text(*place, look, shown.rows, shown.pinned, _build_alt_text(shown))
    return _add_head_tiles(shown, look, [Component("text", data, follows=_can_follow_tiles(shown))])


def _build_joint_parts(shown: NotebookState, look: Look) -> list[Part]:
    matrix = join_attentions(shown.trace, shown.layer, shown.head)
    line = joint_in_words(matrix, shown.rows)
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
    tiles = encode_overview(attention, shown.layer, shown.head, look)
    return [
        Columns(
            ([Component("overview", tiles, "heads", follows=_can_follow_tiles(shown))], picture),
            OVERVIEW_PICTURE_SHARES,
        )
    ]


def _can_follow_tiles(shown: NotebookState) -> bool:
    """Return whether the tiles are fine enough to draw another head from them before Python has answered."""
    return pooling_block_size(*shown.attention.mask.shape) == 1


def _build_alt_text(shown: NotebookState) -> str:
    """What a screen reader is told: where the pinned row looks, or else the head's strongest link."""
    place, row = (shown.attention, shown.layer, shown.head), shown.pinned[0]
    return head_in_words(*place, shown.rows) if row is None else row_in_words(*place, row, shown.rows)


_VIEW_BUILDERS = {
    "overview": _build_overview_parts,
    "heatmap": _build_heatmap_parts,
    "links": _build_links_parts,
    "text": _build_text_parts,
    "joint": _build_joint_parts,
    "decode": _build_decode_parts,
}
