"""The data that a view of Explore draws: a trace source, one chosen head, its tokens and its pins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from attenscope.analysis.heads import HeadPlace, Measure, Sink, describe_head_pattern, find_sink
from attenscope.text.words import (
    RowLabel,
    find_text_tokens,
    get_special_tokens,
    group_tokens_into_words,
    list_chat_token_roles,
    merge_map_into_words,
    select_tokens,
)
from attenscope.trace import AttentionMap, AttentionTrace, Kind, cache_on_map
from attenscope.viz.export.parts import Part
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.figures.heatmap import head_title
from attenscope.viz.ui.addresses.shared import PinPlace, get_pin, toggle_pins

if TYPE_CHECKING:
    from attenscope.experiments.ablation import HeadEffects
    from attenscope.experiments.lens import LogitLens
    from attenscope.text.patches import Patches
    from attenscope.viz.ui.addresses.explore import SingleView
    from attenscope.viz.web.maps import AxisRoles, TileSwitches

# The scene: what a view needs to draw itself, and how it pins what was clicked.


@dataclass(frozen=True, eq=False)
class Scene:
    """One head of a trace, how it is displayed, and what is pinned in it."""

    source: TraceSource
    tokens: TokenDisplay
    layer: int
    """From 0, as is the head."""
    head: int
    display: DisplayOptions
    side: Literal["first", "second"] = "first"
    """The side of a comparison; only the first side draws controls."""

    @property
    def trace(self) -> AttentionTrace:
        return self.source.trace

    @cached_property
    def summary(self) -> str:
        """What the chosen head does, in a sentence."""
        return describe_head_pattern(self.tokens.original, self.layer, self.head, self.rows).text

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
    def rows(self) -> RowLabel:
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
        return self.display.make_token_display(attention)

    @cached_property
    def roles(self) -> AxisRoles:
        """Whose text the rows and the columns of the displayed map are, of the decoder of a chat alone."""
        own = self.tokens.original
        if own.kind != "decoder" or not (known := list_chat_token_roles(self.trace, len(own.key_tokens))):
            return (), ()
        ahead = 1 if own.rows(self.rows) is own.predicted_tokens else 0  # A row is named by the token after it.
        return (
            tuple(known[group[0] + ahead] for group in self.tokens.queries),
            tuple(known[group[0]] for group in self.tokens.keys),
        )

    @property
    def pinned_row_with_special_tokens(self) -> int | None:
        """The pinned row of the displayed map in the map with its special tokens."""
        return None if self.query is None else self.tokens.whole_rows[self.query]

    def copy_with_all_tokens(self) -> Scene:
        """The same with pieces and special tokens as they are: for a map whose cells cannot be added up."""
        display = replace(self.display, merge=False, hide=False, hide_first=False)
        return replace(
            self, tokens=display_tokens(self.tokens.original, self.rows, merge=False, hide=False), display=display
        )

    @property
    def captured_query(self) -> int | None:
        """The pinned row of the map as it was captured."""
        position = get_pin(self.source.identity, self._query_place)
        return position if position is not None and position < len(self.tokens.original.query_tokens) else None

    @property
    def captured_key(self) -> int | None:
        """The pinned column of the map as it was captured."""
        return get_pin(self.source.identity, self._key_place)

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
        position = get_pin(self.source.identity, "target")
        step = None if position is None else position - self.source.first_row
        return step if step is not None and 0 <= step < length else None

    def pin(self, *, query: int | None = None, key: int | None = None) -> None:
        """Pin a row of the displayed map, a column or both; for callbacks."""
        cell: dict[PinPlace, int] = {}
        if query is not None:
            cell[self._query_place] = self.tokens.queries[query][0]
        if key is not None:
            cell[self._key_place] = self.tokens.keys[key][0]
        self.pin_places(cell)

    def pin_captured(self, query: int) -> None:
        """Pin a row of the map as it was captured; for callbacks."""
        self.pin_places({self._query_place: query})

    def pin_captured_key(self, key: int) -> None:
        """Pin a column of the map as it was captured; for callbacks."""
        self.pin_places({self._key_place: key})

    def pin_places(self, cell: dict[PinPlace, int]) -> None:
        """Pin positions as they were captured, each by its place; for callbacks."""
        toggle_pins(self.source.identity, cell)

    @property
    def _query_place(self) -> PinPlace:
        return "source" if self.kind == "encoder" else "target"

    @property
    def _key_place(self) -> PinPlace:
        if self.kind == "cross":
            return "source"
        return "source_key" if self.kind == "encoder" else "target_key"


# A map for display: in pieces or words, with or without special tokens, with the way back to the captured tokens.


TokenGroups = tuple[tuple[int, ...], ...]
"""For each token of a display, the positions of the captured tokens that it stands for."""


@dataclass(frozen=True)
class DisplayOptions:
    """How maps are shown: the choices of the gear in the header."""

    look: Look
    rows: RowLabel
    merge: bool
    """Pieces are merged into words."""
    hide: bool
    """Special tokens are hidden."""
    hide_first: bool
    """The first token of a decoder's map is left out, where it is no special token."""
    numbers: bool
    """Weights are written into the cells."""

    def make_token_display(self, attention: AttentionMap) -> TokenDisplay:
        """Return a map with its tokens displayed as chosen."""
        return display_tokens(attention, self.rows, merge=self.merge, hide=self.hide, hide_first=self.hide_first)


@dataclass(frozen=True, eq=False)
class TokenDisplay:
    """A map for display, and which captured positions its rows and columns stand for."""

    attention: AttentionMap
    original: AttentionMap
    """The map as it was captured."""
    queries: TokenGroups
    keys: TokenGroups
    merged: bool
    """Whether pieces were merged into words."""
    whole: AttentionMap
    """The map with its special tokens, a row of which is the whole distribution of its query."""
    whole_rows: tuple[int, ...]
    """The row of `whole` that each row is."""
    hides_first: bool
    """Whether the first column of `whole`, a token of text, was taken out."""

    @property
    def joins_pieces(self) -> bool:
        """Whether a row or a column is a word of several pieces."""
        return any(len(group) > 1 for group in (*self.queries, *self.keys))

    @property
    def hides_keys(self) -> bool:
        """Whether special tokens were taken out of the columns, so that rows sum to less than 1."""
        return len(self.attention.key_tokens) < len(self.whole.key_tokens)

    @cached_property
    def hidden_attention_share(self) -> float:
        """The share of the weight of the displayed rows, 0 to 1, that lies on hidden columns; over layers and heads."""
        rows = self.whole.weights[:, :, list(self.whole_rows)].sum(dtype=np.float64)
        return float(1 - self.attention.weights.sum(dtype=np.float64) / rows) if rows else 0.0

    def sum_whole_rows(self, layer: int, head: int) -> np.ndarray:
        """The sum of the weights of each displayed row (Q,) of a head, from 0, with those on hidden columns."""
        return self.whole.weights[layer, head, list(self.whole_rows)].sum(axis=-1, dtype=np.float64)

    @cached_property
    def hidden_first_token_share(self) -> float:
        """Of that, the share on the first token, where it was left out."""
        rows = self.whole.weights[:, :, list(self.whole_rows)]
        total = rows.sum(dtype=np.float64)
        return float(rows[..., 0].sum(dtype=np.float64) / total) if total and self.hides_first else 0.0

    @property
    def has_hidden_special_keys(self) -> bool:
        """Whether special tokens were taken out of the columns."""
        return len(self.attention.key_tokens) + self.hides_first < len(self.whole.key_tokens)

    def find_head_sink(self, layer: int, head: int) -> tuple[Sink, bool] | None:
        """Return the sink of a head, from 0, among the columns of `whole`, and whether it is displayed; None for none.

        It is looked for in the rows displayed.
        """
        sink = find_sink(self.whole, layer, head, self.whole_rows)
        if sink is None:
            return None
        first = sink.key == 0 and self.hides_first
        special = self.has_hidden_special_keys and self.whole.key_tokens[sink.key] in get_special_tokens(self.whole)
        return sink, not (first or special)

    def row(self, position: int | None) -> int | None:
        """The row of a captured query; None where it is hidden."""
        return _find_group(self.queries, position)

    def column(self, position: int | None) -> int | None:
        """The column of a captured key; None where it is hidden."""
        return _find_group(self.keys, position)


@cache_on_map
def display_tokens(
    original: AttentionMap, rows: RowLabel, *, merge: bool, hide: bool, hide_first: bool = False
) -> TokenDisplay:
    """Hide special tokens and merge pieces into words; the `rows` label tells which rows are special or one word.

    With `hide_first`, the first token of a decoder's own attention is taken out too, or the word that it begins: the
    sink of a model that puts no special token there. A choice that would leave nothing is not followed.
    """
    whole, special = merge_map_into_words(original, rows) if merge else original, get_special_tokens(original)
    queries, keys = (
        tuple(map(tuple, group_tokens_into_words(tokens, special)))
        if merge
        else tuple((position,) for position in range(len(tokens)))
        for tokens in (original.rows(rows), original.key_tokens)
    )
    axes = (whole.rows(rows), whole.key_tokens)
    shown = [list(range(len(tokens))) for tokens in axes]
    text = [find_text_tokens(tokens, special) for tokens in axes]
    if hide and all(text):
        shown = text
    first = whole.key_tokens[0] not in special and whole.kind == "decoder" and hide_first
    # Of a row that is named by what was fed in the first token goes too: it may attend to itself alone.
    rest = [[at for at in shown[0] if at or axes[0] is not whole.query_tokens], [at for at in shown[1] if at]]
    hides_first = first and all(rest)
    if hides_first:
        shown = rest
    shown_rows, shown_columns = shown
    attention = whole if shown == [list(range(len(tokens))) for tokens in axes] else select_tokens(whole, *shown)
    return TokenDisplay(
        attention,
        original,
        tuple(queries[row] for row in shown_rows),
        tuple(keys[column] for column in shown_columns),
        merge,
        whole,
        tuple(shown_rows),
        hides_first,
    )


def find_special_tokens(attention: AttentionMap, rows: RowLabel) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows and the columns of a map that are special tokens: what hiding these takes away."""
    special = get_special_tokens(attention)
    queries, keys = (
        tuple(position for position, token in enumerate(tokens) if token in special)
        for tokens in (attention.rows(rows), attention.key_tokens)
    )
    return queries, keys


def _find_group(groups: TokenGroups, position: int | None) -> int | None:
    return next((index for index, group in enumerate(groups) if position in group), None)


class RunKey(NamedTuple):
    """What a run depends on, in the order in which :mod:`attenscope.viz.ui.cache` takes it.

    Equal keys give equal traces.
    """

    model: str
    sentence: str
    given: str = ""
    """The translation that was typed; "" for the model's own."""
    changes: str = ""
    """In the form of :mod:`attenscope.interventions.changes`; "" for the unchanged model."""


class TraceSource(Protocol):
    """What the screen of Explore shows: a trace, and what can be computed from it.

    Implemented by :class:`.live.ExploreRun` and :class:`.opened.StaticTrace`.
    """

    @property
    def trace(self) -> AttentionTrace:
        """The maps; at least one."""

    @property
    def whole_trace(self) -> AttentionTrace:
        """The maps with queries, keys, values and scores, as far as these are known."""

    def value_weighted(self) -> AttentionTrace:
        """Return the maps weighted by value norms: with the output projection where there is a model that holds it.

        Raises TraceError for a trace without value vectors.
        """

    @property
    def model(self) -> str:
        """The name of the model."""

    @property
    def identity(self) -> str:
        """What pinned positions belong to: the sentence, or the identity of a saved trace."""

    @property
    def run(self) -> RunKey | None:
        """The run, which can be made again with something changed; None where there is no model to run."""

    @property
    def changes(self) -> str:
        """The changes made to the model, in the form of :mod:`attenscope.interventions.changes`."""

    @property
    def first_row(self) -> int:
        """The row of the decoder's maps that predicts the first token written: 0 but after a prompt."""

    @property
    def view_errors(self) -> tuple[type[Exception], ...]:
        """Exceptions a view may raise because foreign arrays do not fit each other; () for a model of this project."""

    def statistics(self, kind: Kind) -> Mapping[Measure, np.ndarray]:
        """Return every measure of every head of a map, each (L, H); alignment is read as the rows are named."""

    def display_tokens(self, kind: Kind, display: DisplayOptions) -> TokenDisplay:
        """Return a map in pieces or words, with or without special tokens."""

    def tiles(self, attention: AttentionMap) -> AttentionMap:
        """Return a map with few enough cells for the overview of all heads."""

    def lens(self) -> LogitLens:
        """Return what each layer would write. Raises TraceError where there is no model to run."""

    def attention_flow(self, trace: AttentionTrace, kind: Kind, layer: int, *, weighted: bool) -> AttentionMap:
        """Return the attention flow of `trace` through `layer`: this trace, `weighted` by values or not."""

    def changed_heads(self, kind: Kind) -> Collection[HeadPlace]:
        """Return the heads of a map that the visitor has changed."""

    def what_to_see(self, kind: Kind, layer: int, head: int) -> str:
        """Return what an example wants seen at this head, from 0, and the pinned row; "" where nothing is known."""

    def tile_switches(self, kind: Kind) -> TileSwitches | None:
        """Return what lets the tiles of a map switch its heads off; None without a model to change."""

    def draw_trials(self, attention: AttentionMap, layer: int, head: int) -> None:
        """Draw, in a menu, what can be tried: with a head, counted from 0, and with the translation."""

    @property
    def impossible_views(self) -> tuple[SingleView, ...]:
        """The views that this source has nothing to show in."""

    @property
    def patches(self) -> Patches | None:
        """The keys of one of the maps, where these are the patches of a picture."""

    def measure_effects(self) -> HeadEffects | None:
        """Return what switching off each head of the unchanged model changes; None without a model to run."""

    def open_run(self, run: RunKey) -> TraceSource:
        """Return the same of another run. Raises TraceError where there is no model to run."""

    def word_card(self) -> None:
        """Draw the card of the pinned word of the translation, if there is one and a model to ask."""

    def saved_texts(self) -> list[Part]:
        """Return what stands above the pictures in a saved file: the sentence and its translation."""
