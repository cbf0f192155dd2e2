"""The page Explore for a text that is too long for whole maps: pooled maps of all heads, and one row as it is."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import streamlit as st

from attenscope.capture.pooled import PooledAttention
from attenscope.language import join_sentences, say
from attenscope.runnable_model import EncodedText, RunnableModel
from attenscope.trace import AttentionMap
from attenscope.viz.explore.saving import COLUMN_SHARES
from attenscope.viz.export.share_menu import unregister_savable_view
from attenscope.viz.figures.figure_style import KIND_NAMES, format_number, format_percent
from attenscope.viz.figures.heatmap import make_head_grid
from attenscope.viz.figures.long_text import find_strongest_keys, plot_attention_row, split_passage
from attenscope.viz.figures.text_alternatives import describe_head_overview
from attenscope.viz.ui import cache, controls, style
from attenscope.viz.ui.addresses.shared import PIN, add_pins, get_pin
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.charts import draw_curves
from attenscope.viz.web.maps import draw_heads_overview, heatmap

QUERY_KEY = "long-text-query"
"""Of the field of the query whose row is shown."""


class HeadRow(NamedTuple):
    """The row of one query in one head, all from 0."""

    layer: int
    head: int
    query: int


def draw_long_text(model: RunnableModel, text: str, encoded: EncodedText) -> None:
    """Draw the attention of a model that reads a long text, and writes nothing."""
    unregister_savable_view()
    PIN.hold(of=text)
    with st.container(key="reading"):  # where the spinner stands
        pooled = cache.compute_pooled_attention(model.name, text)
    draw_caption(
        join_sentences(
            say(
                "This text has {count:,} tokens, too many for whole maps: each point is the largest weight of "
                "{block} × {block} tokens. Below, the row of one query is shown whole.",
                count=pooled.tokens,
                block=pooled.block,
            ),
            say("The unchanged model reads it and writes nothing."),
        )
    )
    st.fragment(_draw_pictures)(model, text, encoded, pooled)


def make_pooled_map(pooled: PooledAttention) -> AttentionMap:
    """Return the pooled maps as one whose tokens are blocks, named by their positions."""
    starts = range(1, pooled.tokens + 1, pooled.block)
    names = tuple(f"{first}–{min(first + pooled.block - 1, pooled.tokens)}" for first in starts)
    allowed, same = np.logical_or.reduce(pooled.mask), (pooled.mask == pooled.mask[0]).all()
    masks = None if same else pooled.mask[:, None]
    return AttentionMap("decoder", pooled.maps, names, names, allowed, layer_masks=masks)


def _draw_pictures(model: RunnableModel, text: str, encoded: EncodedText, pooled: PooledAttention) -> None:
    """Draw all heads, the chosen one, and the row of the chosen query. A fragment: a click here reads nothing again."""
    attention = make_pooled_map(pooled)
    look, _ = controls.sync_look_settings()
    with st.container(key="viewbar", horizontal=True, vertical_alignment="center"):
        _, layer, head = controls.draw_attention_head_selector(
            {"decoder": (attention.layers, attention.heads)}, heads=False, shows_default=True
        )
    query = get_pin(text, "target")
    query = pooled.tokens - 1 if query is None or query >= pooled.tokens else query
    block = query // pooled.block

    def choose_block(row: int, column: int) -> None:
        add_pins(text, {"target": row * pooled.block})

    left, right = st.columns(COLUMN_SHARES, gap="large")
    with left:
        with st.container(key="tiles"):
            draw_heads_overview(attention, layer, head, look, key="overview", on_pick=controls.set_layer_and_head)
        draw_caption(describe_head_overview(attention))
    with right, st.container(key="head-picture"):
        grid, follows = make_head_grid(attention, layer, head, "fed"), say(KIND_NAMES["decoder"])
        heatmap(
            grid,
            look,
            grid.title,
            model=model.name,
            pinned=(block, None),
            follows=follows,
            key="heatmap",
            on_cell=choose_block,
        )
        draw_caption(say("Click a row to choose the first query of its block."))
    _draw_row(model, text, encoded, pooled, HeadRow(layer, head, query))


def _draw_row(model: RunnableModel, text: str, encoded: EncodedText, pooled: PooledAttention, of: HeadRow) -> None:
    """Draw what the chosen query attends to, key by key, and the passages that it attends to most."""

    def choose() -> None:
        add_pins(text, {"target": int(st.session_state[QUERY_KEY]) - 1})

    def follow(_: int, key: int) -> None:
        add_pins(text, {"target": key})

    st.session_state[QUERY_KEY] = of.query + 1
    with st.container(key="query-of-row", horizontal=True, vertical_alignment="bottom"):
        st.number_input(say("Query, by its position"), 1, pooled.tokens, key=QUERY_KEY, width=215, on_change=choose)
        st.html(render_passage(encoded.tokens, of.query))
    found = pooled if of.query in pooled.rows else cache.compute_attention_row(model.name, text, of.query)
    weights = np.where(found.allowed[of.query][of.layer], found.rows[of.query][of.layer, of.head], np.nan)
    figure = plot_attention_row(weights, encoded.tokens, of.query, of.layer, of.head, style.get_palette())
    draw_curves(figure, key="row", on_point=follow)
    draw_caption(say("Click a point to read the row of its token."))
    st.html(render_strongest_keys(weights, encoded.tokens))


def render_strongest_keys(weights: np.ndarray, tokens: Sequence[str]) -> str:
    """Return the keys with the largest weights (K,), each with weight, position and passage, as HTML."""
    rows = "".join(
        f"<tr><td>{format_percent(weights[key])}</td><td>{format_number(key + 1, ',d')}</td>"
        f"<td>{render_passage(tokens, key)}</td></tr>"
        for key in find_strongest_keys(weights)
    )
    head = "".join(f"<th>{html.escape(name)}</th>" for name in (say("weight"), say("key"), say("passage")))
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def render_passage(tokens: Sequence[str], at: int) -> str:
    """Return a token and the text around it, as HTML."""
    before, token, after = map(html.escape, split_passage(tokens, at))
    return f'<span dir="auto">{before}<b>{token}</b>{after}</span>'
