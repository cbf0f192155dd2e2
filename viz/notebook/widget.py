"""The notebook widget ``attenscope.show``: the views of a trace in Jupyter, VS Code, Colab and marimo, by anywidget.

It mounts the components of the pages; its JavaScript, styles and data come from this package, and nothing is fetched
from elsewhere. What is chosen in it can be read and set from Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attenscope.language import join_items, say
from attenscope.trace import AttentionTrace, Head, Kind, TraceError
from attenscope.viz.figures.figure_style import Look, RampName, Scale
from attenscope.viz.figures.heatmap import RowLabel
from attenscope.viz.notebook.static_html import static_html
from attenscope.viz.notebook.views import (
    NO_STEPS_TEXT,
    NotebookState,
    NotebookView,
    build_widget_script,
    encode_widget_content,
)

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
    and column), which follow what is chosen in it and may be set; `selected_head` is (kind, layer, head). Raises
    TraceError for what cannot be shown, and traitlets.TraitError, as setting does, for a view, a kind, a layer, a head,
    a row or a column that the trace has not.
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
    pinned: Any = traitlets.List[Any](traitlets.Int(allow_none=True), [None, None], minlen=2, maxlen=2).tag(sync=True)

    def __init__(
        self, trace: AttentionTrace, translation: Any, look: Look, rows: RowLabel, *, view: str, **chosen: Any
    ) -> None:
        self._trace, self._translation, self._look, self._rows = trace, translation, look, rows
        super().__init__(view=view, **chosen)
        self._draw()
        self.observe(self._draw, ["view", "layer", "head", "pinned"])
        self.observe(self._adapt_selection_to_map, "kind")

    @property
    def selected_head(self) -> Head:
        """Kind, layer and head that are chosen; layer and head count from 0."""
        return self._notebook_state.kind, self.layer, self.head

    @property
    def _notebook_state(self) -> NotebookState:
        chosen: Any = {"view": self.view, "kind": self.kind, "pinned": tuple(self.pinned)}
        return NotebookState(
            self._trace, layer=self.layer, head=self.head, rows=self._rows, translation=self._translation, **chosen
        )

    def _draw(self, _change: object = None) -> None:
        self.content = encode_widget_content(self._notebook_state, self._look)

    def _adapt_selection_to_map(self, _change: object) -> None:
        """Another map may have fewer layers and heads, and has other rows and columns."""
        attention = self._trace.maps[self._notebook_state.kind]
        with self.hold_trait_notifications():
            self.pinned = [None, None]
            self.layer, self.head = min(self.layer, attention.layers - 1), min(self.head, attention.heads - 1)
        self._draw()

    @traitlets.validate("view")
    def _validate_view(self, proposal: Mapping[str, Any]) -> str:
        view, views = str(proposal["value"]), self._notebook_state.views
        if view == "decode" and view not in views:
            raise traitlets.TraitError(say(NO_STEPS_TEXT))
        if view not in views:
            raise traitlets.TraitError(
                say("There is no view {view!r}: choose one of {views}.", view=view, views=join_items(views))
            )
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
    def _validate_layer_or_head(self, proposal: Mapping[str, Any]) -> int:
        name, value = proposal["trait"].name, int(proposal["value"])
        drawn = [one for kind, one in self._trace.maps.items() if self.view == "joint" or kind == self.kind]
        sizes: dict[str, int] = {one.kind: one.layers if name == "layer" else one.heads for one in drawn}
        kind = min(sizes, key=sizes.__getitem__, default=self.kind)
        last = sizes.get(kind, value + 1) - 1  # A kind that the trace has not is refused by itself.
        if not 0 <= value <= last:
            said = {"kind": kind, "last": last, "value": value}
            raise traitlets.TraitError(
                say("The {kind} map has layers 0 to {last}: {value} is none of them.", **said)
                if name == "layer"
                else say("The {kind} map has heads 0 to {last}: {value} is none of them.", **said)
            )
        return value

    @traitlets.validate("pinned")
    def _validate_pinned(self, proposal: Mapping[str, Any]) -> list[int | None]:
        row, column = proposal["value"]
        rows, columns = self._notebook_state.attention.mask.shape
        if row is not None and not 0 <= row < rows:
            said = {"kind": self.kind, "last": rows - 1, "value": row}
            raise traitlets.TraitError(say("The {kind} map has rows 0 to {last}: {value} is none of them.", **said))
        if column is not None and not 0 <= column < columns:
            said = {"kind": self.kind, "last": columns - 1, "value": column}
            raise traitlets.TraitError(say("The {kind} map has columns 0 to {last}: {value} is none of them.", **said))
        return [row, column]

    def _repr_mimebundle_(self, **arguments: Any) -> Any:
        """Return the widget, and a picture for a converted or saved notebook, where no widget is shown."""
        found = super()._repr_mimebundle_(**arguments)
        picture = {
            "text/html": static_html(self._trace, (self._notebook_state.kind, self.layer, self.head), self._look)
        }
        if isinstance(found, tuple):
            return found[0] | picture, *found[1:]
        return None if found is None else found | picture
