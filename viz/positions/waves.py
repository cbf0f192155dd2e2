"""Chosen dimensions as waves over position, and the wavelengths of all pairs."""

from __future__ import annotations

from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.language.say import say, sentences

from ..components.curves import curves, packed
from ..export.parts import Columns, Component, Part, Words
from ..export.save import SavedView
from ..figures.curves import Curves
from ..figures.palette import Palette
from ..figures.positions.waves import wavelengths, waves
from ..ui import theme, widgets
from ..ui.addresses.positions import DIMS
from ..ui.captions import caption
from . import controls, texts
from .controls import TableChoice

MOST = 7


def show(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    width = choice.table.width
    chosen = _dimensions(width)
    if not chosen:
        st.info(say("Choose at least one dimension above."))
        return None
    lengths = choice.wavelengths

    def drawn(palette: Palette) -> Curves:
        return waves(choice.table.real, chosen, lengths if choice.sinusoidal else None, palette)

    def steps(palette: Palette) -> Curves:
        return wavelengths(lengths, chosen, choice.positions, choice.table.base, palette)

    says = texts.waves(choice, lengths)
    with st.container(key="picture"):
        left, right = st.columns([0.62, 0.38], gap="large")
        with left:
            curves(drawn(theme.palette()), key="waves", on_point=lambda wave, x: controls.choose_cell(x, chosen[wave]))
        with right:
            curves(steps(theme.palette()), key="lengths", on_point=lambda _, pair: _add(chosen, pair))
    caption(sentences(says, say("Click the line of wavelengths to add a pair.")))

    def parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                tuple([Component("curves", packed(one(palette)))] for one in (drawn, steps)),
                (0.62, 0.38),
            ),
            Words(says),
        ]

    return SavedView(
        "positions-waves", parts, partial(numbers, choice, chosen), say("Waves and wavelengths"), width=1280
    )


def numbers(choice: TableChoice, chosen: list[int]) -> pd.DataFrame:
    """The chosen dimensions, a row a position."""
    frame = pd.DataFrame(choice.table.real[:, chosen], columns=[f"dimension {dimension}" for dimension in chosen])
    return frame.rename_axis("position")


def spread(width: int) -> list[int]:
    """A few sines from fast to slow; the last quarter of a wide table hardly moves and is left out."""
    return sorted({2 * int(pair) for pair in (0, width / 32, width / 16, width / 8, width / 5)})


def _dimensions(width: int) -> list[int]:
    before = st.session_state.get(DIMS.key)
    if before is not None and any(dimension >= width for dimension in before):
        st.session_state[DIMS.key] = [dimension for dimension in before if dimension < width]
    every = range(width), spread(width)
    return widgets.offer(
        st.multiselect, say("Dimensions"), *every, max_selections=MOST, label_visibility="collapsed", **DIMS.binding
    )


def _add(chosen: list[int], pair: int) -> None:
    st.session_state[DIMS.key] = sorted({*chosen, 2 * pair})[-MOST:]
