"""Which heads look at places rather than words, ranked, and one of them with the words shuffled."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from model.positional_heads import HeadScore, PositionalHeads
from model.translate import Translation, Translator

from .. import cache
from .. import controls as shared
from ..components.chart import chart
from ..figures.position_effects import compared, ranking
from ..remarks import caption
from ..save import Saved

SHOWN = 14


def show(model: Translator, result: Translation) -> Saved | None:
    found = cache.position_heads(model.name, result.source)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        kind = shared.kind()
        layer, head = shared.place(result.trace.maps[kind])
        look, rows = shared.look()
    top = found.scores[:SHOWN]
    bars = ranking(top, (kind, layer, head), look.palette)
    pair = [("the sentence", result.trace.maps[kind]), ("its words shuffled", found.shuffled.maps[kind])]
    figure = compared(pair, layer, head, look, rows, difference=False)
    with st.container(key="picture"):
        left, right = st.columns([0.37, 0.63], gap="large")
        with left:
            chart(
                bars, "Heads ranked by how positional they are", key="ranking", on_cell=lambda row, _: _take(top[row])
            )
        with right:
            chart(
                figure, "One head on the sentence and on its words shuffled", key="shuffled", on_cell=lambda _, __: None
            )
    one = next(score for score in found.scores if (score.kind, score.layer, score.head) == (kind, layer, head))
    caption(
        f"This head: {one.stays:.0%} of its attention stays at its place when the words are shuffled; {one.chance:.0%} "
        "would if it looked at random (black marks). A head that only knows places keeps its picture; one that follows "
        "words does not. Click a bar to open that head."
    )
    return Saved("positions-heads", lambda: figure, lambda: numbers(found))


def numbers(found: PositionalHeads) -> pd.DataFrame:
    """All heads, the most positional first, counted from 1."""
    rows = [(one.kind, one.layer + 1, one.head + 1, one.stays, one.chance, one.score) for one in found.scores]
    return pd.DataFrame(rows, columns=["attention", "layer", "head", "stays", "by chance", "score"])


def _take(one: HeadScore) -> None:
    st.session_state["kind"] = one.kind
    shared.choose(one.layer, one.head)
