"""The search: which heads do what is asked for more often than the others, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.heads.atlas import head_name
from model.heads.question import read_question
from model.language.say import say, say_many, sentences

from ...components.chart import chart
from ...export.parts import Chart, Words
from ...export.save import SavedView
from ...figures.heads.bars import Lift, lifts
from ...ui import theme, widgets
from ...ui.addresses.heads import ASKED
from ...ui.captions import caption, plain
from .. import cache, shaded, texts
from .all_heads import open_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.heads.search import Found
    from model.live.live_model import LiveModel

    from ...figures.palette import Palette

SHOWN = 16
"""Bars of heads."""


def show(model: LiveModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    asked = widgets.text_input(say("Search"), ASKED, label_visibility="collapsed", placeholder=ASKED.default)
    caption(say(texts.HOW))
    question = read_question(asked or ASKED.default)
    found, rows, links = cache.answer(cache.identity(atlas), question.text, atlas)
    st.markdown(f"**{plain(question.words)}**")
    caption(sentences(found.sentence, texts.links(atlas)))
    bars = bars_of(found)
    title = say("How often, beside all heads of the map")

    def drawn(palette: Palette) -> Chart:
        return Chart(lifts(bars, title, palette), sentences(question.words, found.sentence))

    if bars:
        with st.container(key="picture"):
            shown = drawn(theme.palette())
            places = list(zip(found.heads["map"], found.heads["layer"], found.heads["head"], strict=True))
            nodes = [(at, 0, one.name) for at, one in enumerate(bars)]
            chart(
                shown.figure,
                shown.alt,
                key="lifts",
                on_cell=lambda row, _: open_head((places[row][0], int(places[row][1]), int(places[row][2]))),
                nodes=nodes,
            )
        drawn_from = say_many(
            "{count} link, drawn from all that are as asked whatever their weight.",
            "{count} links, drawn from all that are as asked whatever their weight.",
            len(rows),
        )
        caption(sentences(say(texts.SHADED), drawn_from))
        columns = (links[name].tolist() for name in ("map", "layer", "head"))
        names = [head_name(one) for one in zip(*columns, strict=True)]
        with st.container(key="found"):
            st.html(shaded.rows_markup(rows, links["map"].tolist(), question.words, names))
    facts = texts.facts(model, atlas) | {"question": question.text}
    asked_for, said = Words(question.words, "picture", "heading"), Words(sentences(found.sentence, texts.links(atlas)))
    return SavedView(
        "heads-search",
        lambda palette: (asked_for, drawn(palette), said) if bars else (asked_for, said),
        lambda: numbers(found),
        question.words,
        facts,
    )


def bars_of(found: Found) -> list[Lift]:
    """The heads that do it, those that do it most beyond chance first; none whose rows are too few to tell."""
    known = found.heads[found.heads["lift"].notna()][:SHOWN]
    return [
        Lift(head_name((kind, int(layer), int(head))), int(hits), int(links), float(lift))
        for kind, layer, head, hits, links, lift in zip(
            *(known[name] for name in ("map", "layer", "head", "hits", "links", "lift")), strict=True
        )
    ]


def numbers(found: Found) -> pd.DataFrame:
    """Counts and lift of every head, layers and heads from 1."""
    table = found.heads.assign(layer=found.heads["layer"] + 1, head=found.heads["head"] + 1)
    return table.set_index(["map", "layer", "head"])
