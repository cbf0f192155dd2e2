"""Views of a sentence on the page Positions: what is added to its tokens, and heads that look at places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from attenscope.language import join_sentences, say
from attenscope.positions.analysis import HeadScore, PositionalHeads
from attenscope.positions.table import EmbeddingParts, read_embedding_parts
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.translate import Translator
from attenscope.viz.export.parts import Chart, Columns, Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts
from attenscope.viz.figures.figure_style import Palette, readable_token
from attenscope.viz.figures.heatmap import diverging_colours
from attenscope.viz.figures.positions import plot_embedding_lengths, plot_head_in_two_maps, plot_positional_head_ranking
from attenscope.viz.positions import cache, texts
from attenscope.viz.positions import controls as positions_controls
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.positions import POSITIONS_PIECE, POSITIONS_SIDE
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.maps import MatrixData, draw_matrix, encode_matrix
from attenscope.viz.web.page_components import is_on_stage

# The sentence: what is added to what, and how long either is.


def draw_embedding_sum_view(model: RunnableModel, result: Translation) -> SavedView | None:
    with st.container(horizontal=True, vertical_alignment="center"):
        side = ui_controls.segmented_control(say("Side"), POSITIONS_SIDE) if model.can("translate") else "target"
        parts = read_embedding_parts(model, result, side)
        last = len(parts.pieces)
        piece = int(positions_controls.draw_number_input(say("Piece"), POSITIONS_PIECE, 1, last, min(2, last))) - 1
    alt = say("Length of embeddings and encodings")
    staged = is_on_stage()  # There the pictures stand beside each other: each has all the height.
    with st.container(key="picture"):
        left, right = (
            st.columns(2, gap="large", vertical_alignment="center") if staged else (st.container(), st.container())
        )
        with left:
            bars = plot_embedding_lengths(parts, piece, style.get_palette())
            draw_chart(bars, alt, key="lengths-bars", on_cell=lambda _, x: _choose_piece(round(x), last))
        with right:
            draw_matrix(_build_embedding_sum_matrix(parts, piece, style.get_palette()), key="sum")
    draw_caption(texts.describe_embedding_norms(parts))
    draw_caption(texts.describe_piece_vectors(parts))

    def draw_figure(palette: Palette) -> list[Part]:
        bars = Chart(plot_embedding_lengths(parts, piece, palette), alt)
        matrix = Component("matrix", encode_matrix(_build_embedding_sum_matrix(parts, piece, palette)))
        return [
            Words(result.trace.source, "sentence", "large"),
            *([Columns(([bars], [matrix]), (0.5, 0.5))] if staged else [bars, matrix]),
            Words(texts.describe_embedding_norms(parts)),
        ]

    return SavedView(
        "positions-sentence",
        draw_figure,
        lambda: tabulate_token_vector_norms(parts),
        alt,
        collect_trace_facts(result.trace),
    )


def tabulate_token_vector_norms(parts: EmbeddingParts) -> pd.DataFrame:
    """Every piece with its lengths."""
    columns = {
        "embedding": np.linalg.norm(parts.tokens, axis=1),
        "embedding before scaling": np.linalg.norm(parts.tokens, axis=1) / parts.scale,
        "encoding": np.linalg.norm(parts.encoding, axis=1),
        "sum": np.linalg.norm(parts.total, axis=1),
    }
    return pd.DataFrame({"piece": [readable_token(piece) for piece in parts.pieces]} | columns).rename_axis("position")


def _build_embedding_sum_matrix(parts: EmbeddingParts, piece: int, palette: Palette) -> MatrixData:
    values = np.stack([parts.tokens[piece], parts.encoding[piece], parts.total[piece]])
    high = float(np.abs(values).max())
    title = say("What “{piece}” is made of", piece=readable_token(parts.pieces[piece]))
    rows, columns = [say("embedding"), say("encoding"), say("sum")], list(range(values.shape[1]))
    return MatrixData(
        values, title, rows, columns, "", say("dimension"), -high, high, diverging_colours(palette), height=96
    )


def _choose_piece(at: int, last: int) -> None:
    st.session_state[POSITIONS_PIECE.key] = min(max(at, 0), last - 1) + 1


# Positional heads: which heads look at places rather than words, and one of them with the words shuffled.


MOST_RANKED_HEADS = 14


def draw_positional_heads_view(model: Translator, result: Translation) -> SavedView | None:
    found = cache.compute_positional_heads(model.name, result.source)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        kind, layer, head = ui_controls.draw_attention_head_selector(result.trace.sizes)
    look, rows = ui_controls.sync_look_settings()
    top = found.scores[:MOST_RANKED_HEADS]
    pair = [(say("the sentence"), result.trace.maps[kind]), (say("its words shuffled"), found.shuffled.maps[kind])]

    def bars(palette: Palette) -> Chart:
        return Chart(
            plot_positional_head_ranking(top, (kind, layer, head), palette),
            say("Heads ranked by how positional they are"),
        )

    def maps(palette: Palette) -> Chart:
        figure = plot_head_in_two_maps(pair, layer, head, replace(look, palette=palette), rows, difference=False)
        return Chart(figure, say("One head on the sentence and on its words shuffled"))

    ranked, shuffled = bars(look.palette), maps(look.palette)
    with st.container(key="picture"):
        left, right = st.columns([0.37, 0.63], gap="large")
        with left:
            draw_chart(ranked.figure, ranked.alt, key="ranking", on_cell=lambda row, _: _choose_head(top[row]))
        with right:
            draw_chart(shuffled.figure, shuffled.alt, key="shuffled", on_cell=lambda _, __: None)
    one = next(score for score in found.scores if (score.kind, score.layer, score.head) == (kind, layer, head))
    says = say(
        "This head: {stays:.0%} of its attention stays at its place when the words are shuffled (mean of {orders} "
        "orders); {chance:.0%} would be expected if it looked at random (the mark in each bar). A head that only knows "
        "places keeps its picture; one that follows words does not.",
        stays=one.stays,
        orders=found.shuffles,
        chance=one.chance,
    )
    draw_caption(join_sentences(says, say("Click a bar to open that head.")))

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Words(result.trace.source, "sentence", "large"),
            Columns(([bars(palette)], [maps(palette)]), (0.37, 0.63)),
            Words(says),
        ]

    title = say("Heads that look at places")
    return SavedView(
        "positions-heads",
        build_parts,
        lambda: tabulate_positional_heads(found),
        title,
        collect_trace_facts(result.trace),
        width=1280,
    )


def tabulate_positional_heads(found: PositionalHeads) -> pd.DataFrame:
    """All heads, the most positional first, counted from 1."""
    rows = [(one.kind, one.layer + 1, one.head + 1, one.stays, one.chance, one.score) for one in found.scores]
    return pd.DataFrame(rows, columns=["attention", "layer", "head", "stays", "by chance", "score"])


def _choose_head(one: HeadScore) -> None:
    st.session_state[KIND.key] = one.kind
    ui_controls.set_layer_and_head(one.layer, one.head)
