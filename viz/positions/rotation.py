"""A shift of positions as a rotation: every pair of dimensions turns by its own angle."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.language.say import say, sentences
from model.positions.forms import FORMS
from model.positions.geometry import shift_blocks, shift_error, shift_matrix

from ..components.curves import curves
from ..components.curves import packed as packed_curves
from ..components.matrix import Matrix, matrix, packed
from ..export.parts import Columns, Component, Part, Words
from ..export.save import SavedView
from ..figures.curves import Curves
from ..figures.diverging import diverging
from ..figures.palette import Palette
from ..figures.positions.geometry import circles
from ..ui import theme
from ..ui.addresses.positions import DIM, POS, SHIFT
from ..ui.captions import caption
from . import controls, equation, texts
from .controls import TableChoice

CIRCLES = 8
CORNER = 16
"""Dimensions of the matrix that are drawn."""


def show(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    if choice.table.width < 2:
        st.info(say("A single dimension has no pair to turn. Choose at least two dimensions above."))
        return None
    most = choice.positions - 1
    first, width, base = choice.table.first, choice.table.width, choice.table.base
    with bar:
        position = int(controls.number(say("Position"), POS, first, most + first, min(12, most))) - first
        low, high = -position, most - position
        shift = int(controls.number(say("Shift k"), SHIFT, low, high, min(8, high))) if low < high else 0
    pairs = spread(width // 2, _chosen_pair())
    inclusive = FORMS[choice.form].inclusive
    blocks, lengths = shift_blocks(width, shift, base, inclusive=inclusive), choice.wavelengths
    paired = choice.table.real[:, : width // 2 * 2].reshape(choice.positions, -1, 2)
    before, after = paired[position, pairs], paired[position + shift, pairs]

    def turned(palette: Palette) -> Curves:
        return circles(before, after, pairs, lengths, shift, palette)

    corner = shift_matrix(width, shift, base, inclusive=inclusive)[:CORNER, :CORNER]
    errors = shift_error(choice.table.real, shift, base, inclusive=inclusive)
    with st.container(key="picture"):
        left, right = st.columns([0.66, 0.34], gap="large")
        with left:
            curves(turned(theme.palette()), key="circles", on_point=lambda _, at: _take(pairs[at]))
        with right:
            matrix(_picture(corner, shift, width, theme.palette()), key="shift-matrix")
            shown = min(_chosen_pair(), width // 2 - 1)
            with st.container(key="block"):
                for line in equation.block(
                    shown, blocks[shown], paired[position, shown], blocks[shown] @ paired[position, shown]
                ):
                    st.latex(line)
    says = (
        texts.rotation(choice, shift, float(errors.max())),
        say(
            "Grey: position {position}; coloured: position {shifted}. Cosine across, sine up.",
            position=position + first,
            shifted=position + shift + first,
        ),
    )
    caption(says[0])
    caption(sentences(says[1], say("Click a circle to see its block of the matrix.")))

    def parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                (
                    [Component("curves", packed_curves(turned(palette)))],
                    [Component("matrix", packed(_picture(corner, shift, width, palette)))],
                ),
                (0.66, 0.34),
            ),
            *map(Words, says),
        ]

    title = say("A shift by {shift} as a rotation", shift=shift)
    return SavedView("positions-rotation", parts, lambda: numbers(lengths, shift, errors), title, width=1280)


def numbers(lengths: np.ndarray, shift: int, errors: np.ndarray) -> pd.DataFrame:
    """Wavelength, angle and error of every pair."""
    turn = np.degrees(shift * 2 * np.pi / lengths[: len(errors)])
    frame = pd.DataFrame({"wavelength": lengths[: len(errors)], "turn in degrees": turn, "largest error": errors})
    return frame.rename_axis("pair")


def spread(pairs: int, chosen: int) -> list[int]:
    """At most CIRCLES pairs, evenly spaced from fast to slow, the chosen one among them."""
    found = sorted({round(at) for at in np.linspace(0, pairs - 1, min(CIRCLES, pairs))})
    if chosen < pairs and chosen not in found:
        found[int(np.abs(np.array(found) - chosen).argmin())] = chosen
    return sorted(found)


def _picture(corner: np.ndarray, shift: int, width: int, palette: Palette) -> Matrix:
    names = list(range(len(corner)))
    title = (
        say("M for k = {shift}", shift=shift)
        if width <= CORNER
        else say("M for k = {shift}, first {shown} of {width} dimensions", shift=shift, shown=CORNER, width=width)
    )
    ends = say("to"), say("from")
    return Matrix(corner, title, names, names, *ends, -1, 1, diverging(palette), square=True, height=240)


def _chosen_pair() -> int:
    """The pair of the dimension that is looked at, as far as one is chosen."""
    return st.session_state.get(DIM.key, 4) // 2


def _take(pair: int) -> None:
    st.session_state[DIM.key] = 2 * pair
