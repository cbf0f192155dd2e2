"""Heatmaps compared: the chosen head beside another head, another sentence or another model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from model.analysis.difference import Difference, Pairs, difference, shared_axes, single_head
from model.language.say import say, sentences
from model.trace import TraceError
from viz.components.chart import chart
from viz.components.presenter import on_stage
from viz.export.parts import Chart, Words
from viz.figures.explore.comparison import CHANGE, ROW, SECOND, Pins, Side, clicked, comparison, comparison_in_words
from viz.ui.captions import caption

from ..saving import DrawnView
from ..token_display import TokenDisplay, display_tokens
from ..view_texts import VIEW_TEXTS

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from ..scene import Scene
    from .second_side import SecondSide


@dataclass(frozen=True, eq=False)
class HeadComparison:
    """Two heads, and what they share."""

    scene: Scene
    """The first side; its map is in words where the second cuts words into other pieces."""
    tokens: TokenDisplay
    """The second side's map."""
    first: AttentionMap
    """The first head as a map of its own."""
    second: AttentionMap
    """The second head as a map of its own."""
    queries: Pairs
    keys: Pairs
    difference: Difference | None
    """None where the two share no rows or no columns."""

    @property
    def pinned(self) -> tuple[Pins, Pins, Pins]:
        """The pinned pair in the first map, in the second and in the difference."""
        own = self.scene.query, self.scene.key
        pairs = self.queries, self.keys
        return own, across(own, pairs, 1), _among(own, pairs)

    def pin(self, row: int, column: int) -> None:
        """Pin what was clicked in any of the panels, as far as the first map has it; for callbacks."""
        panel, row, column = clicked(row, column)
        query: int | None = row
        key: int | None = column
        if panel == SECOND:
            query, key = across((row, column), (self.queries, self.keys), 0)
        elif panel == CHANGE:
            query, key = self.queries[row][0], self.keys[column][0]
        elif panel == ROW:
            query, key = None, self.keys[row][0]
        if (query, key) != (None, None):
            self.scene.pin(query=query, key=key)


def heatmaps(scene: Scene, second: SecondSide) -> DrawnView:
    """Draw both heads, and what the second has more or less where they share tokens."""
    pair = compare_heads(scene, second)
    own, across, among = pair.pinned
    draw = partial(
        comparison,
        Side(pair.first, second.first_name, own),
        Side(pair.second, second.name, across),
        pair.difference,
        among,
        rows=scene.rows,
        on_stage=on_stage(),
    )
    said = in_words(pair, among)
    text = sentences(*said)
    chart(draw(look=scene.look), text, key="compare", on_cell=pair.pin)
    for sentence in said:
        caption(sentence)
    caption(say(VIEW_TEXTS["compare"].line))
    change = pair.difference
    numbers = (lambda: table(change, scene)) if change else None
    displays = {say("first map"): pair.scene.tokens, say("second map"): pair.tokens}
    return DrawnView(lambda look: [Chart(draw(look=look), text), *map(Words, said)], numbers, displays=displays)


def compare_heads(scene: Scene, second: SecondSide) -> HeadComparison:
    """Both sides with their tokens displayed in the same way, and what they share by the labels of their rows."""
    display = scene.display
    merge = display.merge or second.in_words
    if merge and not display.merge:
        words = display_tokens(scene.tokens.original, scene.rows, merge=True, hide=display.hide)
        scene = dataclasses.replace(scene, tokens=words)
    tokens = display_tokens(second.attention, scene.rows, merge=merge, hide=display.hide)
    one = single_head(scene.attention, scene.layer, scene.head)
    two = single_head(tokens.attention, second.layer, second.head)
    try:
        change = difference(one, two, scene.rows)
    except TraceError:
        change = None
    return HeadComparison(scene, tokens, one, two, *shared_axes(one, two, scene.rows), change)


def in_words(pair: HeadComparison, pinned: Pins) -> list[str]:
    """What the comparison shows, a sentence each."""
    if pair.difference is None:
        return [_nothing_shared(pair)]
    said = [comparison_in_words(pair.difference, pinned, pair.scene.rows)]
    if shared := _shared(pair):
        said.append(shared)
    if pair.tokens.merged and not pair.scene.display.merge:
        said.append(say("The two models cut words into other pieces, so both are shown in words."))
    return said


def _shared(pair: HeadComparison) -> str:
    """On how many rows and columns the difference is taken, where these are not all."""
    rows, first_rows, second_rows = len(pair.queries), len(pair.first.query_tokens), len(pair.second.query_tokens)
    columns, first_columns, second_columns = len(pair.keys), len(pair.first.key_tokens), len(pair.second.key_tokens)
    of_rows = {"rows": rows, "first_rows": first_rows, "second_rows": second_rows}
    of_columns = {"columns": columns, "first_columns": first_columns, "second_columns": second_columns}
    all_rows, all_columns = rows == first_rows == second_rows, columns == first_columns == second_columns
    if all_rows and all_columns:
        return ""
    if all_columns:
        return say(
            "Both share {rows} of {first_rows} and {second_rows} rows; the difference is taken on these.", **of_rows
        )
    if all_rows:
        return say(
            "Both share {columns} of {first_columns} and {second_columns} columns; the difference is taken on these.",
            **of_columns,
        )
    return say(
        "Both share {rows} of {first_rows} and {second_rows} rows and {columns} of {first_columns} and "
        "{second_columns} columns; the difference is taken on these.",
        **of_rows,
        **of_columns,
    )


def table(change: Difference, scene: Scene) -> pd.DataFrame:
    """Every shared pair of tokens that is allowed: its weight in both maps and the difference."""
    rows, columns = change.mask.nonzero()
    first, second = (one.weights[0, 0][rows, columns] for one in (change.first, change.second))
    queries, keys = change.first.rows(scene.rows), change.first.key_tokens
    return pd.DataFrame(
        {
            "query": [queries[row] for row in rows],
            "key": [keys[column] for column in columns],
            "first": first,
            "second": second,
            "difference": second - first,
        }
    ).rename_axis("pair")


def _nothing_shared(pair: HeadComparison) -> str:
    if pair.queries:
        return say(
            "Both have the same rows but other columns, so there is no difference; a pinned row is marked twice."
        )
    if pair.keys:
        return say(
            "Both have the same columns but other rows, so there is no difference; a pinned column is marked in both."
        )
    return say("The two share no token, so there is nothing to take the difference of.")


def across(place: Pins, pairs: tuple[Pairs, Pairs], to: int) -> Pins:
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
