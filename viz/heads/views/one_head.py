"""One head: its measures among the other heads, its label, rows of every kind, parts of speech, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.atlas.measures import COST, SHARES
from model.heads.atlas import head_name
from model.language.say import number, say

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
    from model.live.live_model import LiveModel
    from model.trace import Head

    from ...figures.palette import Palette

PAIRS = 10


def show(model: LiveModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    head = controls.chosen_head(atlas, bar)
    label = atlas.label(head)
    kind, layer, place = head
    title = say(
        "{kind}, layer {layer}, head {head}: {label}",
        kind=say(KIND_NAMES[kind]),
        layer=layer + 1,
        head=place + 1,
        label=label.text,
    )
    named = say("{head} among the heads of its map", head=head_name(head))

    def drawn(palette: Palette) -> Chart:
        return Chart(
            strips(measures(atlas, head), named, palette),
            say("{title}. {text}", title=title, text=texts.cost(atlas, head)),
        )

    st.markdown(f"**{plain(title)}**")
    with st.container(key="picture"):
        shown = drawn(theme.palette())
        chart(shown.figure, shown.alt, key="head-measures", on_cell=lambda _, __: None)
    caption(texts.cost(atlas, head))
    with st.container(key="like", horizontal=True, vertical_alignment="center"):
        caption(say("Most like it"))
        for other, _ in atlas.most_like(head):
            name = head_name(other)
            st.button(plain(name), key=f"like-{name}", type="tertiary", on_click=choose_head, args=(other,))
        st.button(say("Open on Explore"), key="on-explore", type="tertiary", on_click=open_on_explore, args=(head,))
    _rows(atlas, head)
    with st.container(key="of-speech"):
        _pairs(model, atlas, head)
    with st.container(key="missed"):
        _costs(atlas, head)
    facts = texts.facts(model, atlas) | {"head": head_name(head)}
    return SavedView(
        f"head-{kind}-{layer + 1}.{place + 1}",
        lambda palette: (Words(title, "picture", "heading"), drawn(palette), Words(texts.cost(atlas, head))),
        lambda: numbers(atlas, head),
        title,
        facts,
    )


def measures(atlas: Atlas, head: Head) -> list[Strip]:
    """The measures of a head among the heads of its map; the last is what it costs."""
    own, table = atlas.row(head), atlas.heads[atlas.heads["map"] == head[0]]
    ordered = measured(atlas, head)
    return [Strip(say(MEASURE_NAMES[name]), float(own[name]), tuple(table[name].dropna().tolist())) for name in ordered]


def measured(atlas: Atlas, head: Head) -> list[str]:
    """The measures that a head has, in the order of the figure."""
    own = atlas.row(head)
    names = [name for name in atlas.measures if not pd.isna(own[name])]
    return sorted(names, key=lambda name: (name == COST, name in SHARES))


def numbers(atlas: Atlas, head: Head) -> pd.DataFrame:
    """The measures of a head, a row each, by their names in the address."""
    own, names = atlas.row(head), measured(atlas, head)
    rows = {"name": [MEASURE_NAMES[name] for name in names], "own": [float(own[name]) for name in names]}
    return pd.DataFrame(rows).set_index("name")


def _rows(atlas: Atlas, head: Head) -> None:
    found = cache.rows(cache.identity(atlas), head, atlas)
    caption(say(texts.SHADED))
    with st.container(key="tenths"):
        for column, (name, rows) in zip(st.columns(len(found), gap="large"), found.items(), strict=True):
            with column:
                said = say(texts.TENTHS[name])
                caption(said)
                st.html(shaded.rows_markup(rows, [head[0]] * len(rows), said))


def _pairs(model: LiveModel, atlas: Atlas, head: Head) -> None:
    found = cache.pairs(cache.identity(atlas), head, atlas)[:PAIRS]
    title = say("From part of speech to part of speech")
    st.markdown(f"**{plain(title)}**")
    languages = str(model.card.get("source_language", "")), str(model.card.get("target_language", ""))
    if missing := texts.untagged(languages):
        caption(missing)
    if found.empty:
        caption(say("No pair of parts of speech is common enough in this corpus."))
        return
    rows = [
        [f"{query} → {key}", number(lift, ".1f"), number(share, ".0%"), number(even, ".0%"), number(count, ",.0f")]
        for query, key, count, share, even, lift in found.itertuples(index=False)
    ]
    table(["", say("lift"), say("share"), say("evenly"), say("rows")], rows, title)
    caption(say(texts.PAIRS))


def _costs(atlas: Atlas, head: Head) -> None:
    found = cache.costs(cache.identity(atlas), head, atlas)
    if found.empty:
        return
    title = say("Where switching it off costs most")
    st.markdown(f"**{plain(title)}**")
    rows = [
        [number(cost, ".2f"), source, target, f"{readable(token)} ({number(most, '.2f')})"]
        for _, source, target, cost, token, most in found.itertuples(index=False)
    ]
    table([say("nats"), say("sentence"), say("translation"), say("most at")], rows, title)
