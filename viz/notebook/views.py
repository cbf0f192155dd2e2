"""What a notebook shows of a trace: the parts of each view, as a saved page has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from model.analysis.difference import single_head
from model.analysis.joint import joint
from model.language.say import say, to_say
from model.trace import AttentionMap, AttentionTrace, Kind, TraceError

from ..components.decode_player import PlayerStart
from ..components.decode_player import packed as packed_player
from ..components.heatmap import packed as packed_heatmap
from ..components.links import Lines
from ..components.links import packed as packed_links
from ..components.overview import packed as packed_overview
from ..components.text import packed as packed_text
from ..export.parts import Columns, Component, Part, Words
from ..figures.explore.joint import joint_grid, joint_in_words
from ..figures.heatmap import Rows, head_grid
from ..figures.labels import KIND_NAMES
from ..figures.palette import Look
from ..figures.pooled import block
from ..figures.words import head_in_words, heatmap_in_words, overview_in_words, row_in_words

if TYPE_CHECKING:
    from model.live.translation import Translation

NotebookView = Literal["overview", "heatmap", "links", "text", "joint", "decode"]
VIEWS: tuple[NotebookView, ...] = get_args(NotebookView)
SHARES = (0.42, 0.58)
"""Widths of the overview and of the picture beside it, as on Explore."""
NO_STEPS = to_say(
    "The view decode needs the steps of a decoding, which a trace does not hold: show the Translation that "
    "Translator.translate(...) returns."
)
Pinned = tuple[int | None, int | None]


@dataclass(frozen=True, eq=False)
class Shown:
    """What is shown: a trace, a view of it, and the chosen head; layer and head count from 0."""

    trace: AttentionTrace
    view: NotebookView
    kind: Kind
    layer: int
    head: int
    pinned: Pinned = (None, None)
    """Row and column of the map."""
    rows: Rows = "predicted"
    translation: Translation | None = None

    @property
    def attention(self) -> AttentionMap:
        return self.trace.maps[self.kind]

    @property
    def views(self) -> list[NotebookView]:
        """The views that this trace can be shown in."""
        able = {"joint": len(self.trace.maps) == 3, "decode": self.translation is not None}
        return [view for view in VIEWS if able.get(view, True)]


def parts(shown: Shown, look: Look) -> Sequence[Part]:
    """Return what a view is made of. TraceError where the trace has not what it needs."""
    return _PARTS[shown.view](shown, look)


def _overview(shown: Shown, look: Look) -> list[Part]:
    tiles = packed_overview(shown.attention, shown.layer, shown.head, look)
    return [Component("overview", tiles, "heads"), Words(overview_in_words(shown.attention))]


def _heatmap(shown: Shown, look: Look) -> list[Part]:
    attention, layer, head = shown.attention, shown.layer, shown.head
    grid = head_grid(attention, layer, head, shown.rows)
    options: dict[str, Any] = {
        "model": "",
        "pinned": shown.pinned,
        "follows": say(KIND_NAMES[shown.kind]),
        "pins": True,
    }
    picture = Component("heatmap", packed_heatmap(grid, look, _alt(shown), **options), follows=_follows(shown))
    line = heatmap_in_words(single_head(attention, layer, head), shown.rows, look.scale)
    return _beside_the_heads(shown, look, [picture, Words(line)])


def _links(shown: Shown, look: Look) -> list[Part]:
    lines = Lines(shown.layer, shown.head)
    data = packed_links(shown.attention, lines, look, shown.rows, shown.pinned, _alt(shown))
    return _beside_the_heads(shown, look, [Component("links", data, follows=_follows(shown))])


def _text(shown: Shown, look: Look) -> list[Part]:
    place = shown.attention, shown.layer, shown.head
    data = packed_text(*place, look, shown.rows, shown.pinned, _alt(shown))
    return _beside_the_heads(shown, look, [Component("text", data, follows=_follows(shown))])


def _joint(shown: Shown, look: Look) -> list[Part]:
    matrix = joint(shown.trace, shown.layer, shown.head)
    line = joint_in_words(matrix, shown.rows)
    grid = joint_grid(matrix, shown.layer, shown.head, shown.rows)
    return [Component("heatmap", packed_heatmap(grid, look, line, model="")), Words(line)]


def _decode(shown: Shown, look: Look) -> list[Part]:
    if shown.translation is None:
        raise TraceError(say(NO_STEPS))
    maps = shown.translation.to_source, shown.translation.to_target
    places = [(min(shown.layer, one.layers - 1) + 1, min(shown.head, one.heads - 1) + 1) for one in maps]
    to_source, to_target = (f"{layer}.{head}" for layer, head in places)
    start = PlayerStart(0, to_source, to_target, None)
    return [Component("decode_player", packed_player(shown.translation, start, look, "notebook"), "decoding")]


def _beside_the_heads(shown: Shown, look: Look, picture: Sequence[Part]) -> list[Part]:
    """The picture of one head, and all heads to choose another from; of a map of one head the picture alone."""
    attention = shown.attention
    if attention.layers * attention.heads == 1:
        return list(picture)
    tiles = packed_overview(attention, shown.layer, shown.head, look)
    return [Columns(([Component("overview", tiles, "heads", follows=_follows(shown))], picture), SHARES)]


def _follows(shown: Shown) -> bool:
    """Whether the tiles are fine enough for another head to be drawn from them, before Python has answered."""
    return block(*shown.attention.mask.shape) == 1


def _alt(shown: Shown) -> str:
    """What a screen reader is told: where the pinned row looks, or else the head's strongest link."""
    place, row = (shown.attention, shown.layer, shown.head), shown.pinned[0]
    return head_in_words(*place, shown.rows) if row is None else row_in_words(*place, row, shown.rows)


_PARTS = {
    "overview": _overview,
    "heatmap": _heatmap,
    "links": _links,
    "text": _text,
    "joint": _joint,
    "decode": _decode,
}
