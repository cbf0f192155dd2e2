"""The views of more than one head: rollout, flow and means of many heads, and the predictions after each layer."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.attention_flow import EXPLAINED as ATTENTION_FLOW
from model.analysis.rollout import EXPLAINED as ROLLOUT
from model.analysis.rollout import EXTENDED, averaged, rollout
from model.trace import TraceError
from viz.components.chart import chart
from viz.export.parts import Chart, Part, Words
from viz.figures.flow import flow_heatmap, flow_in_words, flow_weights
from viz.figures.lens import lens_grid, lens_ranks
from viz.figures.words import lens_in_words
from viz.ui.captions import caption, plain

from .. import choices
from ..saving import DrawnView, chart_view, grid_table
from ..view_texts import VIEW_TEXTS

if TYPE_CHECKING:
    from model.experiments.logit_lens import Lens
    from model.trace import AttentionMap, AttentionTrace, Kind
    from viz.figures.flow import Flow
    from viz.figures.palette import Look

    from ..scene import Scene


def flow(scene: Scene) -> DrawnView | None:
    """Draw attention rolled out, attention flow, or the mean over heads, layers or both."""
    which, weighted = choices.flow()
    explained = flow_explained(which, scene)
    try:
        trace = with_value_norms(scene.source.whole_trace) if weighted else scene.trace
        if which == "attention flow":
            scene = scene.as_captured()
            flows = scene.source.attention_flow(trace, scene.kind, scene.layer, weighted=weighted)
        else:
            flows = flow_of(trace, scene.kind, which)
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    tokens = scene.display_tokens(flows)
    attention = tokens.attention
    draw = partial(
        flow_heatmap,
        attention,
        which,
        scene.layer,
        scene.head,
        weighted=weighted,
        model=scene.source.model,
        rows=scene.rows,
        pinned=(scene.query, scene.key),
    )
    text = flow_in_words(attention, scene.layer, scene.head, scene.rows)
    chart(draw(look=scene.look), text, key="flow-map", on_cell=lambda query, key: scene.pin(query=query, key=key))
    caption(f"{explained} {text}")
    weights = flow_weights(attention, scene.layer, scene.head)
    names = attention.rows(scene.rows), attention.key_tokens
    return chart_view(draw, text, lambda: grid_table(weights, attention.mask, *names), {which: tokens})


def layers(scene: Scene) -> DrawnView | None:
    """Draw the logit lens, and the ranks of one position across the layers."""
    try:
        lens = scene.source.lens()
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    position = scene.position(len(lens.written))
    column, line = position or 0, VIEW_TEXTS["layers"].line
    text = lens_in_words(lens, column)

    def pin(row: int, column: int) -> None:
        scene.pin_places({"target": column})

    chart(lens_grid(lens, look=scene.look, pinned=position), f"{line} {text}", key="lens", on_cell=pin)
    caption(line)
    ranks = lens_ranks(lens, column, look=scene.look)
    st.plotly_chart(ranks, theme=None, key="ranks", alt=text, config={"displayModeBar": False})
    caption(text + ("" if position is not None else " Click a column to follow another."))

    def parts(look: Look) -> list[Part]:
        grid, ranks = lens_grid(lens, look=look, pinned=position), lens_ranks(lens, column, look=look)
        return [Chart(grid, f"{line} {text}"), Words(line), Chart(ranks, text), Words(text)]

    return DrawnView(parts, lambda: lens_table(lens))


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


def flow_explained(which: Flow, scene: Scene) -> str:
    """What the picture is, and where it is more than its paper defines or less than the menu Display asks for."""
    if which not in ("rollout", "attention flow"):
        return VIEW_TEXTS["flow"].line
    said = [ROLLOUT if which == "rollout" else ATTENTION_FLOW]
    if scene.kind != "encoder" and scene.trace.cross is not None:
        said.append(EXTENDED)
    if which == "attention flow" and (scene.display.merge or scene.display.hide):
        said.append("Pieces and special tokens stay as they are, since flows cannot be added up.")
    return " ".join(said)


def with_value_norms(trace: AttentionTrace) -> AttentionTrace:
    """A trace with its weights times the norms of the values. TraceError where it does not hold them."""
    maps: dict[str, Any] = {kind: times_value_norms(one) for kind, one in trace.maps.items()}
    return dataclasses.replace(trace, **maps)


def flow_of(trace: AttentionTrace, kind: Kind, which: Flow) -> AttentionMap:
    """The map of `kind` rolled out or averaged. Raises TraceError where a rollout is not defined."""
    if which == "rollout":
        return rollout(trace).maps[kind]
    over = {"mean of heads": "heads", "mean of layers": "layers", "mean of all": "all"}[which]
    return averaged(trace.maps[kind], over)  # type: ignore[arg-type]


def times_value_norms(attention: AttentionMap) -> AttentionMap:
    """Weights times ||v_k||, each row divided by its sum so that it sums to 1 again.

    Kobayashi et al. (2020), "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", without their
    output projection: a weight on a value vector of length 0 passes nothing on. TraceError where there are none.
    """
    if "v" not in attention.tensors:
        raise TraceError("This trace holds no value vectors; capture it with tensors=['v'].")
    norms = np.linalg.norm(attention.tensors["v"], axis=-1)[:, :, None, :]
    weights = attention.weights * norms
    total = weights.sum(-1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return dataclasses.replace(attention, weights=shares, tensors={})
