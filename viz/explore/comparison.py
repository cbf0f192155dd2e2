"""The view Compare: the chosen head beside another head, another sentence or another model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.analysis.difference import Difference, Pairs, difference, only, shared_axes
from model.checkpoint.load import CheckpointError
from model.trace import TraceError
from model.translate import InputError
from viz.components.chart import chart
from viz.export.parts import Chart, Words
from viz.figures.comparison import CHANGE, ROW, SECOND, Pins, Side, clicked, comparison, comparison_in_words
from viz.ui.captions import caption, plain

from . import second_side
from .saving import Shown
from .token_display import Arranged, arrange
from .view_texts import ABOUT

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from .scene import Scene
    from .second_side import Other


@dataclass(frozen=True, eq=False)
class Compared:
    """Two heads, and what they share."""

    scene: Scene
    """The first side; its map is in words where the second cuts words into other pieces."""
    arranged: Arranged
    """The second side's map."""
    first: AttentionMap
    """Of one head, as is the second."""
    second: AttentionMap
    queries: Pairs
    keys: Pairs
    difference: Difference | None
    """None where the two share no rows or no columns."""

    @property
    def pinned(self) -> tuple[Pins, Pins, Pins]:
        """The pinned pair in the first map, in the second and in the difference."""
        own = self.scene.query, self.scene.key
        pairs = self.queries, self.keys
        return own, _across(own, pairs, 1), _among(own, pairs)

    def pin(self, row: int, column: int) -> None:
        """Pin what was clicked in any of the panels, as far as the first map has it; for callbacks."""
        panel, row, column = clicked(row, column)
        query: int | None = row
        key: int | None = column
        if panel == SECOND:
            query, key = _across((row, column), (self.queries, self.keys), 0)
        elif panel == CHANGE:
            query, key = self.queries[row][0], self.keys[column][0]
        elif panel == ROW:
            query, key = None, self.keys[row][0]
        if (query, key) != (None, None):
            self.scene.pin(query=query, key=key)


def draw(scene: Scene) -> Shown | None:
    """The view, with the controls that say what the second side is."""
    try:
        second = second_side.choose(scene)
    except (InputError, CheckpointError) as error:
        st.info(plain(str(error)))
        return None
    if second is None:
        return None
    found = compared(scene, second)
    own, across, among = found.pinned
    drawn = partial(
        comparison,
        Side(found.first, second.first_name, own),
        Side(found.second, second.name, across),
        found.difference,
        among,
        rows=scene.rows,
    )
    said = in_words(found, among)
    chart(drawn(look=scene.look), " ".join(said), key="compare", on_cell=found.pin)
    for line in said:
        caption(line)
    caption(ABOUT["compare"].line)
    change = found.difference
    numbers = (lambda: table(change, scene)) if change else None
    return Shown(lambda look: [Chart(drawn(look=look), " ".join(said)), *map(Words, said)], numbers)


def compared(scene: Scene, second: Other) -> Compared:
    """Both sides arranged alike, and what they share by the labels that the rows have."""
    display = scene.display
    if second.in_words and not display.merge:
        scene = dataclasses.replace(
            scene, arranged=arrange(scene.arranged.captured, scene.rows, merge=True, hide=display.hide)
        )
    merge = display.merge or second.in_words
    arranged = arrange(second.captured, scene.rows, merge=merge, hide=display.hide)
    one = only(scene.attention, scene.layer, scene.head)
    two = only(arranged.attention, second.layer, second.head)
    try:
        found = difference(one, two, scene.rows)
    except TraceError:
        found = None
    return Compared(scene, arranged, one, two, *shared_axes(one, two, scene.rows), found)


def in_words(found: Compared, pinned: Pins) -> list[str]:
    """What the comparison shows, a sentence each."""
    if found.difference is None:
        return [_nothing_shared(found)]
    said = [comparison_in_words(found.difference, pinned, found.scene.rows)]
    counts = [
        f"{len(pairs)} of {one} and {two} {name}"
        for pairs, one, two, name in (
            (found.queries, len(found.first.query_tokens), len(found.second.query_tokens), "rows"),
            (found.keys, len(found.first.key_tokens), len(found.second.key_tokens), "columns"),
        )
        if not len(pairs) == one == two
    ]
    if counts:
        said.append(f"Both share {' and '.join(counts)}; the difference is taken on these.")
    if found.arranged.merged and not found.scene.display.merge:
        said.append("The two models cut words into other pieces, so both are shown in words.")
    return said


def table(found: Difference, scene: Scene) -> pd.DataFrame:
    """Every shared pair of tokens that is allowed: its weight in both maps and the difference."""
    rows, columns = found.mask.nonzero()
    first, second = (one.weights[0, 0][rows, columns] for one in (found.first, found.second))
    queries, keys = found.first.rows(scene.rows), found.first.key_tokens
    return pd.DataFrame(
        {
            "query": [queries[row] for row in rows],
            "key": [keys[column] for column in columns],
            "first": first,
            "second": second,
            "difference": second - first,
        }
    ).rename_axis("pair")


def _nothing_shared(found: Compared) -> str:
    if found.queries:
        return "Both have the same rows but other columns, so there is no difference; a pinned row is marked twice."
    if found.keys:
        return (
            "Both have the same columns but other rows, so there is no difference; a pinned column is marked in both."
        )
    return "The two share no token, so there is nothing to take the difference of."


def _across(place: Pins, pairs: tuple[Pairs, Pairs], to: int) -> Pins:
    """Row and column of one side on the other (0 the first, 1 the second); None for what it does not have."""
    row, column = (
        next((pair[to] for pair in axis if pair[1 - to] == at), None) for at, axis in zip(place, pairs, strict=True)
    )
    return row, column


def _among(place: Pins, pairs: tuple[Pairs, Pairs]) -> Pins:
    """Row and column of the first side among what is shared."""
    row, column = (
        next((index for index, pair in enumerate(axis) if pair[0] == at), None)
        for at, axis in zip(place, pairs, strict=True)
    )
    return row, column
