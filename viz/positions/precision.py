"""The ways in which the table is computed in the field, and how far each is from the formula."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.language.say import say
from model.positions.forms import FORMS

from ..components.curves import curves
from ..components.curves import packed as packed_curves
from ..components.matrix import Matrix, matrix, packed
from ..export.parts import Columns, Component, Part, Words
from ..export.save import SavedView
from ..figures.curves import Curves
from ..figures.diverging import ramp
from ..figures.palette import Palette
from ..figures.positions.forms import errors
from ..ui import cache, theme
from ..ui.addresses.positions import FORM
from ..ui.captions import caption
from . import texts
from .controls import TableChoice

FLOOR, CEILING = -9.0, 0.0
"""Powers of ten between which errors are coloured; smaller and larger ones have the colours of the ends."""


def show(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    size = choice.positions, choice.table.width, choice.table.base
    found = cache.position_errors(*size)
    names = list(found)
    difference = np.abs(cache.position_values(choice.form, *size) - cache.position_values("reference", *size))
    says = texts.precision(found[choice.form], say(FORMS[choice.form].note))

    def dots(palette: Palette) -> Curves:
        titles, values = [FORM.label(name) for name in names], [found[name] for name in names]
        return errors(titles, values, choice.form, palette)

    with st.container(key="picture"):
        left, right = st.columns([0.56, 0.44], gap="large")
        with left:
            matrix(_picture(difference, choice, theme.palette()), key="error")
        with right:
            curves(dots(theme.palette()), key="forms", on_point=lambda form, _: _take(names[form]))
            st.code(FORMS[choice.form].code, language="python", wrap_lines=True)
    caption(says)

    def parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                (
                    [Component("matrix", packed(_picture(difference, choice, palette)))],
                    [Component("curves", packed_curves(dots(palette)))],
                ),
                (0.5, 0.5),
            ),
            Words(says),
        ]

    return SavedView("positions-precision", parts, partial(numbers, found), say("How exact each form is"), width=1280)


def numbers(found: dict) -> pd.DataFrame:
    """Every form with its errors."""
    rows = {FORMS[name].title: (one.largest, one.rms, one.position, one.dimension) for name, one in found.items()}
    columns = ["largest error", "root mean square", "at position", "at dimension"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("form")


def _picture(difference: np.ndarray, choice: TableChoice, palette: Palette) -> Matrix:
    positions, dimensions = (list(range(count)) for count in difference.shape)
    title = say("Error of {form}, logarithmic", form=FORM.label(choice.form))
    names = (say("position"), say("dimension"))
    return Matrix(
        difference, title, positions, dimensions, *names, FLOOR, CEILING, ramp(palette), height=440, exponent=True
    )


def _take(name: str) -> None:
    st.session_state[FORM.key] = name
