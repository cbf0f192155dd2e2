"""The views of more than one head: all three attentions of a layer, many heads as one, and the layers' predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from model.analysis.joint import Joint
from model.analysis.joint import joint as join
from model.analysis.rollout import EXPLAINED as ROLLOUT
from model.trace import TraceError
from viz.components.chart import chart
from viz.export.parts import Chart, Part, Words
from viz.figures.flow import flow_heatmap, flow_in_words, flow_weights
from viz.figures.joint import joint_heatmap, joint_in_words
from viz.figures.lens import lens_grid, lens_ranks
from viz.figures.words import lens_in_words
from viz.ui import cache, controls
from viz.ui.captions import caption, plain

from . import choices
from .flow import flow_of
from .saving import Shown, grid_table
from .token_display import Arranged, arrange
from .view_texts import ABOUT

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.experiments.logit_lens import Lens
    from model.trace import Kind
    from viz.figures.palette import Look

    from .scene import Scene


def joint(scene: Scene) -> Shown | None:
    """All three attentions of the chosen layer as one matrix."""
    head = None if choices.mean_of_heads() else scene.head
    sides = _Sides.of(scene)
    try:
        found = sides.joint(scene, head)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    drawn = partial(
        joint_heatmap,
        found,
        scene.layer,
        head,
        model=scene.model.name,
        rows=scene.rows,
        pinned=sides.pinned(scene, found.source_length),
    )
    said = joint_in_words(found, scene.rows)
    chart(drawn(look=scene.look), said, key="joint", on_cell=lambda row, column: sides.pin(scene, row, column))
    caption(f"{ABOUT['joint'].line} {said}")
    names = found.predicted_tokens if scene.rows == "predicted" else found.row_tokens
    return _chart(drawn, said, lambda: grid_table(found.weights, found.mask, names, found.column_tokens))


def flow(scene: Scene) -> Shown | None:
    """Attention rolled out, or the mean over heads, layers or both."""
    which, weighted = choices.flow()
    trace = scene.whole_trace if weighted else scene.result.trace
    try:
        found = flow_of(trace, scene.kind, which, weighted=weighted)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    shown = arrange(found, scene.rows, merge=scene.display.merge, hide=scene.display.hide).attention
    drawn = partial(
        flow_heatmap,
        shown,
        which,
        scene.layer,
        scene.head,
        weighted=weighted,
        model=scene.model.name,
        rows=scene.rows,
        pinned=(scene.query, scene.key),
    )
    said = flow_in_words(shown, scene.layer, scene.head, scene.rows)
    chart(drawn(look=scene.look), said, key="flow-map", on_cell=lambda query, key: scene.pin(query=query, key=key))
    caption(f"{ROLLOUT if which == 'rollout' else ABOUT['flow'].line} {said}")
    weights = flow_weights(shown, scene.layer, scene.head)
    return _chart(drawn, said, lambda: grid_table(weights, shown.mask, shown.rows(scene.rows), shown.key_tokens))


def layers(scene: Scene) -> Shown | None:
    """The logit lens, and the ranks of one position across the layers."""
    lens = cache.lens(*scene.reading)
    position = scene.position
    followed = position or 0
    said = lens_in_words(lens, followed)
    figure = lens_grid(lens, look=scene.look, pinned=position)
    chart(figure, f"{ABOUT['layers'].line} {said}", key="lens", on_cell=lambda _, column: scene.pin_position(column))
    caption(ABOUT["layers"].line)
    ranks = lens_ranks(lens, followed, look=scene.look)
    st.plotly_chart(ranks, theme=None, key="ranks", alt=said, config={"displayModeBar": False})
    caption(said + ("" if position is not None else " Click a column to follow another."))

    def parts(look: Look) -> list[Part]:
        grid, line = lens_grid(lens, look=look, pinned=position), ABOUT["layers"].line
        ranked = lens_ranks(lens, followed, look=look)
        return [Chart(grid, f"{line} {said}"), Words(line), Chart(ranked, said), Words(said)]

    return Shown(parts, lambda: lens_table(lens))


def lens_table(lens: Lens) -> pd.DataFrame:
    """Every place along the stream and every position: the best token there, and how the written one stood."""
    places, positions = lens.ranks.shape
    return pd.DataFrame(
        [
            {
                "place": lens.places[place],
                "position": position + 1,
                "written": lens.written[position],
                "rank": lens.ranks[place, position],
                "log-probability": lens.written_log_probs[place, position],
                "best": lens.tokens[place][position][0],
                "its log-probability": lens.log_probs[place, position, 0],
            }
            for place in range(places)
            for position in range(positions)
        ]
    ).set_index("place")


@dataclass(frozen=True, eq=False)
class _Sides:
    """The maps of a joint picture, each as it is shown, and the way from its cells to tokens."""

    maps: dict[Kind, Arranged]

    @classmethod
    def of(cls, scene: Scene) -> _Sides:
        merge, hide = scene.display.merge, scene.display.hide
        captured = scene.result.trace.maps
        maps = {kind: arrange(one, scene.rows, merge=merge, hide=hide) for kind, one in captured.items()}
        if not _fit({kind: one.attention.mask.shape for kind, one in maps.items()}):  # nothing but special tokens
            maps = {kind: arrange(one, scene.rows, merge=False, hide=False) for kind, one in captured.items()}
        return cls(maps)

    def joint(self, scene: Scene, head: int | None) -> Joint:
        maps: dict[str, Any] = {kind: one.attention for kind, one in self.maps.items()}
        return join(dataclasses.replace(scene.result.trace, **maps), scene.layer, head)

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
        cell: dict[controls.Place, int] = {}
        if row < rows:
            cell["source"] = encoder.queries[row][0]
        else:
            cell["target"] = decoder.queries[row - rows][0]
        if column >= columns:
            cell["target_key"] = decoder.keys[column - columns][0]
        else:
            cell["source_key" if row < rows else "source"] = encoder.keys[column][0]
        controls.pin(scene.text, cell)


def _fit(shapes: dict[Kind, tuple[int, ...]]) -> bool:
    """Whether the three maps can stand beside each other: the same columns of the source, rows of the target."""
    return len(shapes) < 3 or shapes["cross"] == (shapes["decoder"][0], shapes["encoder"][1])


def _chart(drawn: Callable[..., go.Figure], said: str, numbers: Callable[[], pd.DataFrame]) -> Shown:
    return Shown(lambda look: [Chart(drawn(look=look), said), Words(said)], numbers)
