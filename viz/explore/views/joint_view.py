"""The view Joint: all three attentions of a layer as one matrix."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.analysis.joint import Joint
from model.analysis.joint import joint as join
from model.language.say import say, sentences
from model.trace import TraceError
from viz.components.chart import chart
from viz.figures.explore.joint import joint_heatmap, joint_in_words
from viz.ui.addresses.shared import KIND
from viz.ui.captions import caption, plain

from .. import choices
from ..saving import DrawnView, chart_view, grid_table
from ..token_display import TokenDisplay, display_tokens
from ..view_texts import VIEW_TEXTS

if TYPE_CHECKING:
    from model.trace import Kind
    from viz.ui.addresses.pins import Place

    from ..scene import Scene


def joint(scene: Scene) -> DrawnView | None:
    """Draw all three attentions of the chosen layer as one matrix."""
    head = None if choices.mean_of_heads(scene) else scene.head
    blocks = _Blocks.of(scene)
    try:
        matrix = blocks.join(scene, head)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    draw = partial(
        joint_heatmap,
        matrix,
        scene.layer,
        head,
        model=scene.source.model,
        rows=scene.rows,
        pinned=blocks.pinned(scene, matrix.source_length),
    )
    text = joint_in_words(matrix, scene.rows)
    key = scene.element_key("joint")
    pin = lambda row, column: blocks.pin(scene, row, column)  # noqa: E731
    chart(draw(look=scene.look), text, key=key, on_cell=pin)
    caption(sentences(say(VIEW_TEXTS["joint"].line), text))
    displays = {KIND.label(kind): tokens for kind, tokens in blocks.maps.items()}
    names = matrix.predicted_tokens if scene.rows == "predicted" else matrix.row_tokens
    return chart_view(
        draw, text, lambda: grid_table(matrix.weights, matrix.mask, names, matrix.column_tokens), displays
    )


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The maps of a joint picture, each as it is displayed, and the way from its cells to tokens."""

    maps: dict[Kind, TokenDisplay]

    @classmethod
    def of(cls, scene: Scene) -> _Blocks:
        maps = {kind: scene.display_tokens(one) for kind, one in scene.trace.maps.items()}
        if not _fit({kind: one.attention.mask.shape for kind, one in maps.items()}):  # nothing but special tokens
            maps = {
                kind: display_tokens(one, scene.rows, merge=False, hide=False) for kind, one in scene.trace.maps.items()
            }
        return cls(maps)

    def join(self, scene: Scene, head: int | None) -> Joint:
        maps: dict[str, Any] = {kind: one.attention for kind, one in self.maps.items()}
        return join(dataclasses.replace(scene.trace, **maps), scene.layer, head)

    def pinned(self, scene: Scene, source: int) -> tuple[int | None, int | None]:
        """Row and column of the matrix that are pinned in the chosen kind of attention."""
        own = self.maps[scene.kind]
        row = own.row(scene.captured_query)
        column = own.column(scene.captured_key)
        if row is not None and scene.kind != "encoder":
            row += source
        if column is not None and scene.kind == "decoder":
            column += source
        return row, column

    def pin(self, scene: Scene, row: int, column: int) -> None:
        """Pin the two tokens of a cell of the matrix; for callbacks."""
        encoder, decoder = self.maps["encoder"], self.maps["decoder"]
        rows, columns = len(encoder.queries), len(encoder.keys)
        cell: dict[Place, int] = {}
        if row < rows:
            cell["source"] = encoder.queries[row][0]
        else:
            cell["target"] = decoder.queries[row - rows][0]
        if column >= columns:
            cell["target_key"] = decoder.keys[column - columns][0]
        else:
            cell["source_key" if row < rows else "source"] = encoder.keys[column][0]
        scene.pin_places(cell)


def _fit(shapes: dict[Kind, tuple[int, ...]]) -> bool:
    """Whether the three maps can stand beside each other: the same columns of the source, rows of the target."""
    return len(shapes) < 3 or shapes["cross"] == (shapes["decoder"][0], shapes["encoder"][1])
