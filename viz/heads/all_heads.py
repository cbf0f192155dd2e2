"""The map: every head as a dot over any two measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from model.heads.atlas import head_name

from ..components.curves import curves, packed
from ..export.parts import Component, Words
from ..export.save import SavedView
from ..figures.heads.scatter import Dot, scatter
from ..figures.labels import KIND_NAMES
from ..ui import theme, widgets
from ..ui.addresses.heads import ACROSS, HEADS, MEASURE_NAMES, UP
from ..ui.captions import caption
from ..ui.links import choose_head
from . import texts

if TYPE_CHECKING:
    import pandas as pd
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.trace import Head, Kind
    from model.translate import Translator

    from ..figures.curves import Curves
    from ..figures.palette import Palette


def show(model: Translator, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        across = widgets.selectbox("Across", ACROSS, atlas.measures, label_visibility="collapsed", width=210)
        up = widgets.selectbox("Up", UP, atlas.measures, label_visibility="collapsed", width=220)
    shown = [head for head in atlas.names if atlas.row(head)[[across, up]].notna().all()]
    title = f"Heads of {model.name}: {MEASURE_NAMES[up]} over {MEASURE_NAMES[across]}"

    def drawn(palette: Palette) -> Curves:
        names = MEASURE_NAMES[across], MEASURE_NAMES[up]
        return scatter(dots(atlas, shown, across, up), *names, title, palette)

    with st.container(key="picture"):
        st.html(legend(atlas.maps))
        curves(drawn(theme.palette()), key="head-map", on_point=lambda mark, _: open_head(shown[mark]))
    left_out = len(atlas.names) - len(shown)
    note = f" {left_out} heads have none of one of them and are left out." if left_out else ""
    said = f"{texts.measures(across, up)}{note}"
    caption(said)
    caption(texts.CLICK)
    facts = texts.facts(model, atlas)
    return SavedView(
        f"heads-{model.name}",
        lambda palette: (Component("curves", packed(drawn(palette))), Words(said)),
        lambda: numbers(atlas),
        title,
        facts,
        width=1100,
    )


def dots(atlas: Atlas, heads: list[Head], across: str, up: str) -> list[Dot]:
    """The heads as dots."""
    found = []
    for head in heads:
        row = atlas.row(head)
        cost = float(row["cost"]) if "cost" in row else 0.0
        found.append(Dot(head_name(head), head[0], float(row[across]), float(row[up]), cost, atlas.label(head).text))
    return found


def numbers(atlas: Atlas) -> pd.DataFrame:
    """All measures, a row a head, with its label; layers and heads from 1."""
    labels = [atlas.label(head).text for head in atlas.names]
    table = atlas.heads.assign(layer=atlas.heads["layer"] + 1, head=atlas.heads["head"] + 1)
    table.insert(3, "label", labels)
    return table.set_index(["map", "layer", "head"])


def legend(maps: Sequence[Kind]) -> str:
    """Which colour is which map."""
    kinds = "".join(f'<span class="{kind}">{KIND_NAMES[kind]}</span>' for kind in maps)
    return f'<p class="kinds">{kinds}</p>'


def open_head(head: Head) -> None:
    """Look at one head; for callbacks."""
    choose_head(head)
    st.session_state[HEADS.key] = "head"
