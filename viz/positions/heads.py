"""Which heads look at places rather than words, ranked, and one of them with the words shuffled."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from model.language.say import say, sentences
from model.positions.head_scores import HeadScore, PositionalHeads
from model.translate import Translation, Translator

from ..components.chart import chart
from ..export.parts import Chart, Columns, Part, Words
from ..export.save import SavedView, facts_of
from ..figures.palette import Palette
from ..figures.positions.effects import compared, ranking
from ..ui import cache
from ..ui import controls as shared
from ..ui.addresses.shared import KIND
from ..ui.captions import caption

SHOWN = 14


def show(model: Translator, result: Translation) -> SavedView | None:
    found = cache.position_heads(model.name, result.source)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        kind = shared.kind()
        layer, head = shared.place(result.trace.maps[kind])
        look, rows = shared.look()
    top = found.scores[:SHOWN]
    pair = [(say("the sentence"), result.trace.maps[kind]), (say("its words shuffled"), found.shuffled.maps[kind])]

    def bars(palette: Palette) -> Chart:
        return Chart(ranking(top, (kind, layer, head), palette), say("Heads ranked by how positional they are"))

    def maps(palette: Palette) -> Chart:
        figure = compared(pair, layer, head, replace(look, palette=palette), rows, difference=False)
        return Chart(figure, say("One head on the sentence and on its words shuffled"))

    ranked, shuffled = bars(look.palette), maps(look.palette)
    with st.container(key="picture"):
        left, right = st.columns([0.37, 0.63], gap="large")
        with left:
            chart(ranked.figure, ranked.alt, key="ranking", on_cell=lambda row, _: _take(top[row]))
        with right:
            chart(shuffled.figure, shuffled.alt, key="shuffled", on_cell=lambda _, __: None)
    one = next(score for score in found.scores if (score.kind, score.layer, score.head) == (kind, layer, head))
    says = say(
        "This head: {stays:.0%} of its attention stays at its place when the words are shuffled (mean of {orders} "
        "orders); {chance:.0%} would be expected if it looked at random (the mark in each bar). A head that only knows "
        "places keeps its picture; one that follows words does not.",
        stays=one.stays,
        orders=found.shuffles,
        chance=one.chance,
    )
    caption(sentences(says, say("Click a bar to open that head.")))

    def parts(palette: Palette) -> list[Part]:
        return [
            Words(result.trace.source, "sentence", "large"),
            Columns(([bars(palette)], [maps(palette)]), (0.37, 0.63)),
            Words(says),
        ]

    title = say("Heads that look at places")
    return SavedView("positions-heads", parts, lambda: numbers(found), title, facts_of(result.trace), width=1280)


def numbers(found: PositionalHeads) -> pd.DataFrame:
    """All heads, the most positional first, counted from 1."""
    rows = [(one.kind, one.layer + 1, one.head + 1, one.stays, one.chance, one.score) for one in found.scores]
    return pd.DataFrame(rows, columns=["attention", "layer", "head", "stays", "by chance", "score"])


def _take(one: HeadScore) -> None:
    st.session_state[KIND.key] = one.kind
    shared.choose(one.layer, one.head)
