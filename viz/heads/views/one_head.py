"""One head: its measures among the other heads, its label, rows of every kind, parts of speech, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.atlas.measures import COST, SHARES
from model.heads.atlas import head_name

from ...components.chart import chart
from ...export.parts import Chart, Words
from ...export.save import SavedView
from ...figures.heads.bars import Strip, strips
from ...figures.labels import KIND_NAMES, readable
from ...ui import theme
from ...ui.addresses.heads import MEASURE_NAMES
from ...ui.captions import caption, plain
from ...ui.links import choose_head, open_on_explore
from ...ui.table import table
from .. import cache, controls, shaded, texts

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.trace import Head
    from model.translate import Translator

    from ...figures.palette import Palette

PAIRS = 10


def show(model: Translator, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    head = controls.chosen_head(atlas, bar)
    label = atlas.label(head)
    title = f"{KIND_NAMES[head[0]]}, layer {head[1] + 1}, head {head[2] + 1}: {label.text}"
    named = f"{head_name(head)} among the heads of its map"

    def drawn(palette: Palette) -> Chart:
        return Chart(strips(measures(atlas, head), named, palette), f"{title}. {texts.cost(atlas, head)}")

    st.markdown(f"**{plain(title)}**")
    with st.container(key="picture"):
        shown = drawn(theme.palette())
        chart(shown.figure, shown.alt, key="head-measures", on_cell=lambda _, __: None)
    caption(texts.cost(atlas, head))
    with st.container(key="like", horizontal=True, vertical_alignment="center"):
        caption("Most like it")
        for other, _ in atlas.most_like(head):
            name = head_name(other)
            st.button(plain(name), key=f"like-{name}", type="tertiary", on_click=choose_head, args=(other,))
        st.button("Open on Explore", key="on-explore", type="tertiary", on_click=open_on_explore, args=(head,))
    _rows(atlas, head)
    with st.container(key="of-speech"):
        _pairs(model, atlas, head)
    with st.container(key="missed"):
        _costs(atlas, head)
    facts = texts.facts(model, atlas) | {"head": head_name(head)}
    return SavedView(
        f"head-{head_name(head).replace(' ', '-')}",
        lambda palette: (Words(title, "picture", "heading"), drawn(palette), Words(texts.cost(atlas, head))),
        lambda: pd.DataFrame(measures(atlas, head)).drop(columns="others").set_index("name"),
        title,
        facts,
    )


def measures(atlas: Atlas, head: Head) -> list[Strip]:
    """The measures of a head among the heads of its map; the last is what it costs."""
    own, table = atlas.row(head), atlas.heads[atlas.heads["map"] == head[0]]
    names = [name for name in atlas.measures if not pd.isna(own[name])]
    ordered = sorted(names, key=lambda name: (name == COST, name in SHARES))
    return [Strip(MEASURE_NAMES[name], float(own[name]), tuple(table[name].dropna().tolist())) for name in ordered]


def _rows(atlas: Atlas, head: Head) -> None:
    found = cache.rows(cache.identity(atlas), head, atlas)
    caption(texts.SHADED)
    with st.container(key="tenths"):
        for column, (name, rows) in zip(st.columns(len(found), gap="large"), found.items(), strict=True):
            with column:
                caption(texts.TENTHS[name])
                st.html(shaded.rows_markup(rows, [head[0]] * len(rows), texts.TENTHS[name]))


def _pairs(model: Translator, atlas: Atlas, head: Head) -> None:
    found = cache.pairs(cache.identity(atlas), head, atlas)[:PAIRS]
    st.markdown("**From part of speech to part of speech**")
    languages = str(model.card.get("source_language", "")), str(model.card.get("target_language", ""))
    if missing := texts.untagged(languages):
        caption(missing)
    if found.empty:
        caption("No pair of parts of speech is common enough in this corpus.")
        return
    rows = [
        [f"{query} → {key}", f"{lift:.1f}", f"{share:.0%}", f"{even:.0%}", f"{count:,.0f}"]
        for query, key, count, share, even, lift in found.itertuples(index=False)
    ]
    table(["", "lift", "share", "evenly", "rows"], rows, "From part of speech to part of speech")
    caption(texts.PAIRS)


def _costs(atlas: Atlas, head: Head) -> None:
    found = cache.costs(cache.identity(atlas), head, atlas)
    if found.empty:
        return
    st.markdown("**Where switching it off costs most**")
    rows = [
        [f"{cost:.2f}", source, target, f"{readable(token)} ({most:.2f})"]
        for _, source, target, cost, token, most in found.itertuples(index=False)
    ]
    table(["nats", "sentence", "translation", "most at"], rows, "Where switching it off costs most")
