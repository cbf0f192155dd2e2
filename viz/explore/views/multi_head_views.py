"""The views of more than one head: rollout, flow and means of many heads, and the predictions after each layer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.analysis.attention_flow import EXPLAINED as ATTENTION_FLOW
from model.analysis.rollout import EXPLAINED as ROLLOUT
from model.analysis.rollout import EXTENDED, mean_map, rollout
from model.analysis.value_norm import VALUES_ALONE, WITH_PROJECTION
from model.language.say import say, sentences
from model.trace import TraceError
from viz.components.chart import chart, plot
from viz.export.parts import Chart, Part, Words
from viz.figures.explore.flow import flow_heatmap, flow_in_words, flow_weights
from viz.figures.explore.lens import lens_grid, lens_ranks
from viz.figures.words import lens_in_words
from viz.ui.addresses.explore import FLOW
from viz.ui.captions import caption, plain

from .. import choices
from ..saving import DrawnView, chart_view, grid_table
from ..view_texts import VIEW_TEXTS

if TYPE_CHECKING:
    from model.experiments.logit_lens import Lens
    from model.trace import AttentionMap, AttentionTrace, Kind
    from viz.figures.explore.flow import Flow
    from viz.figures.palette import Look

    from ..scene import Scene


def flow(scene: Scene) -> DrawnView | None:
    """Draw attention rolled out, attention flow, or the mean over heads, layers or both."""
    which, layer, weighted = choices.flow(scene)
    explained = flow_explained(which, scene)
    try:
        trace = scene.source.value_weighted() if weighted else scene.trace
        if which == "attention flow":
            scene = scene.as_captured()
            flows = scene.source.attention_flow(trace, scene.kind, layer, weighted=weighted)
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
        layer,
        scene.head,
        weighted=weighted,
        model=scene.source.model,
        rows=scene.rows,
        pinned=(scene.query, scene.key),
    )
    text = flow_in_words(attention, layer, scene.head, scene.rows)
    if weighted:
        text = sentences(text, say(VALUES_ALONE if scene.source.run is None else WITH_PROJECTION))
    name = scene.element_key("flow-map")
    chart(draw(look=scene.look), text, key=name, on_cell=lambda query, key: scene.pin(query=query, key=key))
    caption(sentences(explained, text))
    weights = flow_weights(attention, layer, scene.head)
    names = attention.rows(scene.rows), attention.key_tokens
    return chart_view(draw, text, lambda: grid_table(weights, attention.mask, *names), {FLOW.label(which): tokens})


def layers(scene: Scene) -> DrawnView | None:
    """Draw the logit lens, and the ranks of one position across the layers."""
    try:
        lens = scene.source.lens()
    except TraceError as error:
        st.info(plain(str(error)))
        return None
    position = scene.position(len(lens.target_tokens))
    column, line = position or 0, say(VIEW_TEXTS["layers"].line)
    text = lens_in_words(lens, column)

    def pin(row: int, column: int) -> None:
        scene.pin_places({"target": column + scene.source.first_row})

    chart(
        lens_grid(lens, look=scene.look, pinned=position),
        sentences(line, text),
        key=scene.element_key("lens"),
        on_cell=pin,
    )
    caption(line)
    ranks = lens_ranks(lens, column, look=scene.look)
    plot(ranks, text, key=scene.element_key("ranks"))
    caption(sentences(text, "" if position is not None else say("Click a column to follow another.")))

    def parts(look: Look) -> list[Part]:
        grid, ranks = lens_grid(lens, look=look, pinned=position), lens_ranks(lens, column, look=look)
        return [Chart(grid, sentences(line, text)), Words(line), Chart(ranks, text), Words(text)]

    return DrawnView(parts, lambda: lens_table(lens))


def lens_table(lens: Lens) -> pd.DataFrame:
    """Every place along the stream and every position: the best token there, and how the written one stood."""
    places, positions = lens.ranks.shape
    return pd.DataFrame(
        [
            {
                "place": lens.places[place],
                "position": position + 1,
                "written": lens.target_tokens[position],
                "rank": lens.ranks[place, position],
                "log-probability": lens.target_log_probs[place, position],
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
        return say(VIEW_TEXTS["flow"].line)
    said = [say(ROLLOUT if which == "rollout" else ATTENTION_FLOW)]
    if scene.kind != "encoder" and scene.trace.cross is not None:
        said.append(say(EXTENDED))
    if which == "attention flow" and (scene.display.merge or scene.display.hide):
        said.append(say("Pieces and special tokens stay as they are, since flows cannot be added up."))
    return sentences(*said)


def flow_of(trace: AttentionTrace, kind: Kind, which: Flow) -> AttentionMap:
    """Return the map of `kind` that a flow is of. Raises TraceError where a rollout is not defined."""
    if which == "rollout":
        return rollout(trace).maps[kind]
    over = {"mean of heads": "heads", "mean of layers": "layers", "mean of all": "all"}[which]
    return mean_map(trace.maps[kind], over)  # type: ignore[arg-type]
