"""All that a view of Explore needs to draw itself, and how it says what was clicked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from model.analysis.head_claims import head_claim
from viz.figures.heatmap import head_title
from viz.ui.addresses.pins import pin_of, toggle_pins

from .token_display import Display, TokenDisplay, display_tokens

if TYPE_CHECKING:
    from model.text.words import Label
    from model.trace import AttentionMap, AttentionTrace, Kind
    from viz.figures.palette import Look
    from viz.ui.addresses.pins import Place

    from .trace_source import TraceSource


@dataclass(frozen=True, eq=False)
class Scene:
    """One head of a trace, how it is displayed, and what is pinned in it."""

    source: TraceSource
    tokens: TokenDisplay
    layer: int
    """From 0, as is the head."""
    head: int
    display: Display
    side: Literal["first", "second"] = "first"
    """Of a comparison; the first side alone has controls of its own."""

    @property
    def trace(self) -> AttentionTrace:
        return self.source.trace

    @cached_property
    def summary(self) -> str:
        """What the chosen head does, in a sentence."""
        return head_claim(self.tokens.original, self.layer, self.head, self.rows).text

    @property
    def is_first_side(self) -> bool:
        """Whether it draws the controls of its view."""
        return self.side == "first"

    def element_key(self, name: str) -> str:
        """The key of a part of the page, which no other scene on it has."""
        return name if self.is_first_side else f"{name}-{self.side}"

    @property
    def look(self) -> Look:
        return self.display.look

    @property
    def rows(self) -> Label:
        return self.display.rows

    @property
    def attention(self) -> AttentionMap:
        """The map as it is displayed."""
        return self.tokens.attention

    @property
    def kind(self) -> Kind:
        return self.attention.kind

    @property
    def title(self) -> str:
        """The title of a saved picture."""
        run = self.source.run
        place = f"{head_title(self.kind, self.layer, self.head)} · {self.source.model}"
        return f"{place} · {run.changes}" if run and run.changes else place

    def display_tokens(self, attention: AttentionMap) -> TokenDisplay:
        """Another map with its tokens displayed as those of the chosen head are."""
        return display_tokens(attention, self.rows, merge=self.display.merge, hide=self.display.hide)

    def as_captured(self) -> Scene:
        """The same with pieces and special tokens as they are: for a map whose cells cannot be added up."""
        display = replace(self.display, merge=False, hide=False)
        return replace(
            self, tokens=display_tokens(self.tokens.original, self.rows, merge=False, hide=False), display=display
        )

    @property
    def captured_query(self) -> int | None:
        """The pinned row of the map as it was captured."""
        position = pin_of(self.source.identity, self._query_place)
        return position if position is not None and position < len(self.tokens.original.query_tokens) else None

    @property
    def captured_key(self) -> int | None:
        """The pinned column of the map as it was captured."""
        return pin_of(self.source.identity, self._key_place)

    @property
    def query(self) -> int | None:
        """The pinned row of the displayed map."""
        return self.tokens.row(self.captured_query)

    @property
    def key(self) -> int | None:
        """The pinned column of the displayed map."""
        return self.tokens.column(self.captured_key)

    def position(self, length: int) -> int | None:
        """The pinned step of the translation, which has `length` tokens."""
        position = pin_of(self.source.identity, "target")
        step = None if position is None else position - self.source.first_row
        return step if step is not None and 0 <= step < length else None

    def pin(self, *, query: int | None = None, key: int | None = None) -> None:
        """Pin a row of the displayed map, a column or both; for callbacks."""
        cell: dict[Place, int] = {}
        if query is not None:
            cell[self._query_place] = self.tokens.queries[query][0]
        if key is not None:
            cell[self._key_place] = self.tokens.keys[key][0]
        self.pin_places(cell)

    def pin_captured(self, query: int) -> None:
        """Pin a row of the map as it was captured; for callbacks."""
        self.pin_places({self._query_place: query})

    def pin_places(self, cell: dict[Place, int]) -> None:
        """Pin positions as they were captured, each by its place; for callbacks."""
        toggle_pins(self.source.identity, cell)

    @property
    def _query_place(self) -> Place:
        return "source" if self.kind == "encoder" else "target"

    @property
    def _key_place(self) -> Place:
        if self.kind == "cross":
            return "source"
        return "source_key" if self.kind == "encoder" else "target_key"
