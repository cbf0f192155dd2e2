"""The views of several heads: all attentions joined, rollout, flow and means, and the logit lens."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from attenscope.analysis.attention_steps import PROJECTION_NORM_EXPLANATION, VALUE_NORM_EXPLANATION
from attenscope.analysis.flow import (
    FLOW_EXPLANATION,
    ROLLOUT_EXPLANATION,
    ROLLOUT_EXTENSION,
    JointAttention,
    build_joint_attention,
    compute_rollout,
    mean_map,
)
from attenscope.experiments.lens import LogitLens
from attenscope.language import join_sentences, say, to_say
from attenscope.trace import AttentionMap, AttentionTrace, Kind, TraceError
from attenscope.viz.explore import controls
from attenscope.viz.explore.saving import DrawnView, build_chart_view, build_weight_matrix_table
from attenscope.viz.explore.texts import ViewText
from attenscope.viz.explore.view_data import Scene, TokenDisplay, display_tokens
from attenscope.viz.export.parts import Chart, Columns, Part, Words
from attenscope.viz.figures.explore import (
    FlowKind,
    describe_joint_strongest_links,
    describe_strongest_flow_link,
    plot_attention_flow,
    plot_cumulative_flow_by_layer,
    plot_joint_attention,
    select_flow_weights,
)
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.figures.lens import plot_lens_grid, plot_lens_ranks
from attenscope.viz.figures.text_alternatives import describe_lens_settling_place
from attenscope.viz.ui.addresses.explore import EXPLORE_FLOW
from attenscope.viz.ui.addresses.shared import KIND, PinPlace
from attenscope.viz.ui.captions import draw_caption, escape_message
from attenscope.viz.web.charts import draw_chart, draw_plotly_figure
from attenscope.viz.web.page_components import is_on_stage

if TYPE_CHECKING:
    import plotly.graph_objects as go

# All attentions of a layer as one matrix.


JOINT_TEXT = ViewText(
    to_say("All three attentions of a layer in one matrix: the sentence attends to itself, the translation to both."),
    (
        to_say(
            "Upper left: the encoder. Lower left: cross-attention, from the translation to the sentence. Lower "
            "right: the decoder's own. Upper right is empty, since the encoder never sees the translation. A row "
            "of the translation sums to 2 with the special tokens, for it is two attentions beside each other. The "
            "picture is that of Tensor2Tensor."
        ),
    ),
)


def draw_joint_view(scene: Scene) -> DrawnView | None:
    """Draw all three attentions of the chosen layer as one matrix."""
    head = None if controls.draw_joint_controls(scene) else scene.head
    blocks, whole = (_JointMaps.from_scene(scene, hide=hide) for hide in (scene.display.hide, False))
    try:
        matrix = blocks.join(scene, head)
    except TraceError as error:
        st.info(escape_message(str(error)))
        return None
    draw = partial(
        plot_joint_attention,
        matrix,
        scene.layer,
        head,
        model=scene.source.model,
        rows=scene.rows,
        pinned=blocks.find_pinned_cell(scene, matrix.source_length),
    )
    text = describe_joint_strongest_links(whole.join(scene, head), scene.rows)
    key = scene.element_key("joint")
    pin = lambda row, column: blocks.pin(scene, row, column)  # noqa: E731
    draw_chart(draw(look=scene.look), text, key=key, on_cell=pin)
    draw_caption(join_sentences(say(JOINT_TEXT.line), text))
    displays = {KIND.label(kind): tokens for kind, tokens in blocks.maps.items()}
    names = matrix.predicted_tokens if scene.rows == "predicted" else matrix.row_tokens
    return build_chart_view(
        draw,
        text,
        lambda: build_weight_matrix_table(matrix.weights, matrix.mask, names, matrix.column_tokens),
        displays,
    )


@dataclass(frozen=True, eq=False)
class _JointMaps:
    """The maps of a joint picture, each as it is displayed, and the way from its cells to tokens."""

    maps: dict[Kind, TokenDisplay]

    @classmethod
    def from_scene(cls, scene: Scene, *, hide: bool) -> _JointMaps:
        maps = {
            kind: display_tokens(one, scene.rows, merge=scene.display.merge, hide=hide)
            for kind, one in scene.trace.maps.items()
        }
        if not _can_join({kind: one.attention.mask.shape for kind, one in maps.items()}):  # nothing but special tokens
            maps = {
                kind: display_tokens(one, scene.rows, merge=False, hide=False) for kind, one in scene.trace.maps.items()
            }
        return cls(maps)

    def join(self, scene: Scene, head: int | None) -> JointAttention:
        maps: dict[str, Any] = {kind: one.attention for kind, one in self.maps.items()}
        return build_joint_attention(dataclasses.replace(scene.trace, **maps), scene.layer, head)

    def find_pinned_cell(self, scene: Scene, source: int) -> tuple[int | None, int | None]:
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
        cell: dict[PinPlace, int] = {}
        if row < rows:
            cell["source"] = encoder.queries[row][0]
        else:
            cell["target"] = decoder.queries[row - rows][0]
        if column >= columns:
            cell["target_key"] = decoder.keys[column - columns][0]
        else:
            cell["source_key" if row < rows else "source"] = encoder.keys[column][0]
        scene.pin_places(cell)


def _can_join(shapes: dict[Kind, tuple[int, ...]]) -> bool:
    """Whether the three maps can stand beside each other: the same columns of the source, rows of the target."""
    return len(shapes) < 3 or shapes["cross"] == (shapes["decoder"][0], shapes["encoder"][1])


# Rollout, attention flow and means, and the predictions after each layer.


FLOW_TEXT = ViewText(
    to_say("Many heads as one picture: their mean, attention rolled out through the layers, or attention flow."),
    (
        to_say(
            "Rollout: {rollout}, where {mean} is the mean over the heads of layer $l$ and the identity is the "
            "residual connection (Abnar and Zuidema 2020)."
        ),
        ROLLOUT_EXPLANATION,
        (FLOW_EXPLANATION, to_say("(Section 3 of the same paper.)"), ROLLOUT_EXTENSION),
        to_say(
            "With value norms, a weight is multiplied by the length of the vector that it adds to the residual "
            "stream, {with_norm}, where $W_O$ are the head's rows of the output projection, and each row of the "
            "map is divided by its sum: a large weight on a value of almost nothing passes almost nothing on "
            "(Kobayashi et al. 2020). A saved trace does not hold $W_O$: there it is {with_value}."
        ),
    ),
    {
        "rollout": r"$\tilde A_l = \left(\tfrac12 \bar A_l + \tfrac12 I\right) \tilde A_{l-1}$",
        "mean": r"$\bar A_l$",
        "with_norm": r"$A_{qk} \lVert v_k W_O \rVert$",
        "with_value": r"$A_{qk} \lVert v_k \rVert$",
    },
)


def draw_flow_view(scene: Scene) -> DrawnView | None:
    """Draw attention rolled out, attention flow, or the mean over heads, layers or both."""
    which, layer, weighted = controls.draw_flow_controls(scene)
    explained = describe_flow(which, scene)
    try:
        trace = scene.source.value_weighted() if weighted else scene.trace
        if which == "attention flow":
            scene = scene.copy_with_all_tokens()
            flows = scene.source.attention_flow(trace, scene.kind, layer, weighted=weighted)
        else:
            flows = compute_flow_map(trace, scene.kind, which)
    except TraceError as error:
        st.info(escape_message(str(error)))
        return None
    tokens = scene.display_tokens(flows)
    attention = tokens.attention
    options: dict[str, Any] = {
        "weighted": weighted,
        "model": scene.source.model,
        "rows": scene.rows,
        "pinned": (scene.query, scene.key),
    }
    draw = partial(plot_attention_flow, attention, which, layer, scene.head, **options)

    def draw_moments(look: Look) -> Sequence[go.Figure]:
        """The film: through one layer more at each picture, as far as the page goes."""
        if which in controls.LAYER_MEANS or layer == 0:
            return ()
        through = [attention] * (layer + 1)
        if which == "attention flow":
            source = scene.source
            before = [source.attention_flow(trace, scene.kind, one, weighted=weighted) for one in range(layer)]
            through[:-1] = [scene.display_tokens(one).attention for one in before]
        return plot_cumulative_flow_by_layer(through, which, scene.head, look=look, **options)

    text = describe_strongest_flow_link(tokens.whole, layer, scene.head, scene.rows)
    if weighted:
        text = join_sentences(
            text, say(VALUE_NORM_EXPLANATION if scene.source.run is None else PROJECTION_NORM_EXPLANATION)
        )
    name = scene.element_key("flow-map")
    draw_chart(draw(look=scene.look), text, key=name, on_cell=lambda query, key: scene.pin(query=query, key=key))
    draw_caption(join_sentences(explained, text))
    weights = select_flow_weights(attention, layer, scene.head)
    names = attention.rows(scene.rows), attention.key_tokens
    return build_chart_view(
        draw,
        text,
        lambda: build_weight_matrix_table(weights, attention.mask, *names),
        {EXPLORE_FLOW.label(which): tokens},
        draw_moments,
    )


LAYERS_TEXT = ViewText(
    to_say("What the decoder would write if it stopped after each layer (logit lens); colour is how sure it would be."),
    (
        to_say(
            "The residual stream after each layer is sent through the last norm and the generator as if it were "
            "the end: {prediction} (nostalgebraist 2020). Early layers were never trained to be read in this way: "
            "a token far down the list does not mean that the model does not know it yet. Click a column to "
            "follow one position."
        ),
    ),
    {
        "prediction": r"$p_l = \mathrm{softmax}(W\, \mathrm{norm}(x_l))$",
    },
)


LENS_SHARES = (0.6, 0.4)
"""Widths of the words and of their ranks, where they stand beside each other."""


def draw_layers_view(scene: Scene) -> DrawnView | None:
    """Draw the logit lens, and the ranks of one position across the layers."""
    try:
        lens = scene.source.lens()
    except TraceError as error:
        st.info(escape_message(str(error)))
        return None
    position = scene.position(len(lens.target_tokens))
    column, line = position or 0, say(LAYERS_TEXT.line)
    text = describe_lens_settling_place(lens, column)

    def pin(row: int, column: int) -> None:
        scene.pin_places({"target": column + scene.source.first_row})

    staged = is_on_stage()  # There the charts stand beside each other: each has all the height.
    left, right = st.columns(LENS_SHARES, gap="large") if staged else (st.container(), st.container())
    with left:
        draw_chart(
            plot_lens_grid(lens, look=scene.look, pinned=position),
            join_sentences(line, text),
            key=scene.element_key("lens"),
            on_cell=pin,
        )
        draw_caption(line)
    with right:
        ranks = plot_lens_ranks(lens, column, look=scene.look)
        draw_plotly_figure(ranks, text, key=scene.element_key("ranks"))
        draw_caption(join_sentences(text, "" if position is not None else say("Click a column to follow another.")))

    def build_parts(look: Look) -> list[Part]:
        grid = Chart(plot_lens_grid(lens, look=look, pinned=position), join_sentences(line, text))
        ranks = Chart(plot_lens_ranks(lens, column, look=look), text)
        if staged:
            return [Columns(([grid], [ranks]), LENS_SHARES), Words(text)]
        return [grid, Words(line), ranks, Words(text)]

    return DrawnView(build_parts, lambda: lens_table(lens))


def lens_table(lens: LogitLens) -> pd.DataFrame:
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


def describe_flow(which: FlowKind, scene: Scene) -> str:
    """What the picture shows, and where it extends its paper's definition or ignores how tokens are shown."""
    if which not in ("rollout", "attention flow"):
        return say(FLOW_TEXT.line)
    said = [say(ROLLOUT_EXPLANATION if which == "rollout" else FLOW_EXPLANATION)]
    if scene.kind != "encoder" and scene.trace.cross is not None:
        said.append(say(ROLLOUT_EXTENSION))
    if which == "attention flow" and (scene.display.merge or scene.display.hide):
        said.append(say("Pieces and special tokens stay as they are, since flows cannot be added up."))
    return join_sentences(*said)


def compute_flow_map(trace: AttentionTrace, kind: Kind, which: FlowKind) -> AttentionMap:
    """Return the map of `kind` that a flow is of. Raises TraceError where a rollout is not defined."""
    if which == "rollout":
        return compute_rollout(trace).maps[kind]
    over = {"mean of heads": "heads", "mean of layers": "layers", "mean of all": "all"}[which]
    return mean_map(trace.maps[kind], over)  # type: ignore[arg-type]
