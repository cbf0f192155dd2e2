"""All that a view of Explore needs to draw itself, and how it says what was clicked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from model.analysis.head_statistics import summary
from viz.figures.labels import KIND_NAMES
from viz.ui import cache, controls

from .choices import Display
from .token_display import Arranged

if TYPE_CHECKING:
    from model.trace import AttentionMap, AttentionTrace, Kind
    from model.translate import Translation, Translator
    from viz.figures.heatmap import Rows
    from viz.figures.palette import Look

    from .run import Reading


@dataclass(frozen=True, eq=False)
class Scene:
    """One sentence, one head, and what is pinned."""

    model: Translator
    reading: Reading
    result: Translation
    """What was read: the translation that the pictures are of."""
    arranged: Arranged
    layer: int
    """From 0, as is the head."""
    head: int
    display: Display

    @property
    def text(self) -> str:
        """The sentence; what is pinned is pinned in it."""
        return self.reading.sentence

    @property
    def whole_trace(self) -> AttentionTrace:
        """With queries, keys, values and scores."""
        return cache.whole_trace(*self.reading)

    @cached_property
    def summary(self) -> str:
        """What the chosen head does, in a sentence."""
        return summary(self.arranged.captured, self.layer, self.head)

    @property
    def look(self) -> Look:
        return self.display.look

    @property
    def rows(self) -> Rows:
        return self.display.rows

    @property
    def attention(self) -> AttentionMap:
        """The map as it is to be shown."""
        return self.arranged.attention

    @property
    def kind(self) -> Kind:
        return self.attention.kind

    @property
    def title(self) -> str:
        """What a saved picture is of."""
        place = f"{KIND_NAMES[self.kind]} · layer {self.layer + 1}, head {self.head + 1} · {self.model.name}"
        return f"{place} · {self.reading.changes}" if self.reading.changes else place

    @property
    def captured_query(self) -> int | None:
        """The pinned row of the map as it was captured."""
        found = controls.pinned(self.text, self._query_place)
        return found if found is not None and found < len(self.arranged.captured.query_tokens) else None

    @property
    def position(self) -> int | None:
        """The pinned position of the translation."""
        found = controls.pinned(self.text, "target")
        return found if found is not None and found < len(self.result.steps) else None

    @property
    def query(self) -> int | None:
        """The pinned row of the map shown."""
        return self.arranged.row(self.captured_query)

    @property
    def key(self) -> int | None:
        """The pinned column of the map shown."""
        return self.arranged.column(self.captured_key)

    @property
    def captured_key(self) -> int | None:
        """The pinned column of the map as it was captured."""
        return controls.pinned(self.text, self._key_place)

    def pin(self, *, query: int | None = None, key: int | None = None) -> None:
        """Pin a row, a column or both; for callbacks."""
        cell: dict[controls.Place, int] = {}
        if query is not None:
            cell[self._query_place] = self.arranged.queries[query][0]
        if key is not None:
            cell[self._key_place] = self.arranged.keys[key][0]
        controls.pin(self.text, cell)

    def pin_captured(self, query: int) -> None:
        """Pin a row of the map as it was captured; for callbacks."""
        controls.pin(self.text, {self._query_place: query})

    def pin_position(self, position: int) -> None:
        """Pin a position of the translation; for callbacks."""
        controls.pin(self.text, {"target": position})

    @property
    def _query_place(self) -> controls.Place:
        return "source" if self.kind == "encoder" else "target"

    @property
    def _key_place(self) -> controls.Place:
        if self.kind == "cross":
            return "source"
        return "source_key" if self.kind == "encoder" else "target_key"
