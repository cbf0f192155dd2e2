"""The parts of each view, as a saved page has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from attenscope.analysis.flow import join_attentions
from attenscope.analysis.steps import select_head
from attenscope.language import say, to_say
from attenscope.trace import AttentionMap, AttentionTrace, Kind, TraceError
from attenscope.viz.export.parts import Columns, Component, Part, Words
from attenscope.viz.figures.explore import joint_in_words, make_joint_grid
from attenscope.viz.figures.heatmap import RowLabel, make_head_grid, pooling_block_size
from attenscope.viz.figures.look import KIND_NAMES, Look
from attenscope.viz.figures.words import head_in_words, heatmap_in_words, overview_in_words, row_in_words
from attenscope.viz.web.maps import LinkOptions, encode_heatmap, encode_links, encode_overview
from attenscope.viz.web.players import PlayerStart, encode_decode_player
from attenscope.viz.web.texts import encode_shaded_text

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
