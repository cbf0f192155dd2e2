"""Numbers of the table on the page Positions: how precise each way to compute them is, and their formulas."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.language import format_number, say
from attenscope.positions.table import TABLE_FORMS, PositionTable, TableCell
from attenscope.viz.export.parts import Columns, Component, MathML, Part, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.curves import Curves
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.figures.heatmap import sequential_colours
from attenscope.viz.figures.positions import plot_encoding_form_errors
from attenscope.viz.positions import cache, texts
from attenscope.viz.positions.controls import TableChoice
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.positions import POSITIONS_FORM
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.charts import draw_curves, encode_curves
from attenscope.viz.web.maps import MatrixData, draw_matrix, encode_matrix

# Precision: the ways in which code computes the table, and how far each is from the formula.


LOWEST_ERROR_EXPONENT, HIGHEST_ERROR_EXPONENT = -9.0, 0.0
"""Powers of ten between which errors are coloured; smaller and larger ones have the colours of the ends."""


def draw_precision_view(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    size = choice.positions, choice.table.width, choice.table.base
    found = cache.compute_encoding_form_errors(*size)
    names = list(found)
    difference = np.abs(
        cache.compute_sinusoidal_table(choice.form, *size) - cache.compute_sinusoidal_table("reference", *size)
    )
    says = texts.describe_form_error(found[choice.form], say(TABLE_FORMS[choice.form].note))

    def dots(palette: Palette) -> Curves:
        titles, values = [POSITIONS_FORM.label(name) for name in names], [found[name] for name in names]
        return plot_encoding_form_errors(titles, values, choice.form, palette)

    with st.container(key="picture"):
        left, right = st.columns([0.56, 0.44], gap="large")
        with left:
            draw_matrix(_build_error_matrix(difference, choice, style.get_palette()), key="error")
        with right:
            draw_curves(
                dots(style.get_palette()), key="forms", on_point=lambda form, _: _select_encoding_formula(names[form])
            )
            st.code(TABLE_FORMS[choice.form].code, language="python", wrap_lines=True)
    draw_caption(says)

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                (
                    [Component("matrix", encode_matrix(_build_error_matrix(difference, choice, palette)))],
                    [Component("curves", encode_curves(dots(palette)))],
                ),
                (0.5, 0.5),
            ),
            Words(says),
        ]

    return SavedView(
        "positions-precision",
        build_parts,
        partial(tabulate_formula_errors, found),
        say("How exact each form is"),
        width=1280,
    )


def tabulate_formula_errors(found: dict) -> pd.DataFrame:
    """Every form with its errors."""
    rows = {TABLE_FORMS[name].title: (one.largest, one.rms, one.position, one.dimension) for name, one in found.items()}
    columns = ["largest error", "root mean square", "at position", "at dimension"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("form")


def _build_error_matrix(difference: np.ndarray, choice: TableChoice, palette: Palette) -> MatrixData:
    positions, dimensions = (list(range(count)) for count in difference.shape)
    title = say("Error of {form}, logarithmic", form=POSITIONS_FORM.label(choice.form))
    names = (say("position"), say("dimension"))
    return MatrixData(
        difference,
        title,
        positions,
        dimensions,
        *names,
        LOWEST_ERROR_EXPONENT,
        HIGHEST_ERROR_EXPONENT,
        sequential_colours(palette),
        height=440,
        exponent=True,
    )


def _select_encoding_formula(name: str) -> None:
    st.session_state[POSITIONS_FORM.key] = name


# Formulas with numbers: one value of the table, a line a step, and the rotation of one pair.


def format_value_derivation_latex(cell: TableCell, d_model: int, base: float, *, inclusive: bool = False) -> str:
    """The steps in LaTeX, as a page sets them."""
    above, below = (cell.pair, max((d_model + 1) // 2 - 1, 1)) if inclusive else (2 * cell.pair, d_model)
    function = f"\\{cell.function}"
    divisor, angle = _format_number_latex(cell.divisor, ".6g"), _format_number_latex(cell.angle, ".6g")
    steps = (
        f"PE_{{{cell.position},\\,{cell.dimension}}} &= "
        f"{function}\\!\\left(\\frac{{{cell.position}}}{{{base:g}^{{\\,{above}/{below}}}}}\\right)",
        f"&= {function}\\!\\left(\\frac{{{cell.position}}}{{{divisor}}}\\right)",
        f"&= {function}({angle})",
        "&= \\mathbf{" + _format_number_latex(cell.value, ".6f") + "}",
    )
    return "\\begin{aligned} " + " \\\\ ".join(steps) + " \\end{aligned}"


def format_rotation_block_latex(
    pair: int, matrix: np.ndarray, before: np.ndarray, after: np.ndarray
) -> tuple[str, ...]:
    """The 2 by 2 block of one pair in LaTeX, and what it does to one position."""
    rows = " \\\\ ".join(" & ".join(_format_number_latex(value, ".3f") for value in row) for row in matrix)
    vectors = [" \\\\ ".join(_format_number_latex(value, ".3f") for value in vector) for vector in (before, after)]
    return (
        f"M_k^{{({pair})}} = \\begin{{pmatrix}} \\cos k\\omega & \\sin k\\omega \\\\ "
        "-\\sin k\\omega & \\cos k\\omega \\end{pmatrix}",
        f"\\begin{{pmatrix}} {rows} \\end{{pmatrix}} \\begin{{pmatrix}} {vectors[0]} \\end{{pmatrix}} = "
        f"\\begin{{pmatrix}} {vectors[1]} \\end{{pmatrix}}",
    )


def format_value_derivation_mathml(cell: TableCell, table: PositionTable) -> MathML:
    """The same steps in MathML, as a saved file sets them."""
    position, function = _build_number_mathml(cell.position, "d"), ("mi", cell.function)
    exponent = ("mrow", (_build_number_mathml(2 * cell.pair, "d"), ("mo", "/"), _build_number_mathml(table.width, "d")))
    power = ("msup", (_build_number_mathml(table.base, "g"), exponent))
    indices = ("mrow", (position, ("mo", ","), _build_number_mathml(cell.dimension, "d")))
    steps: tuple[MathML, ...] = (
        _build_function_mathml(function, ("mfrac", (position, power))),
        _build_function_mathml(function, ("mfrac", (position, _build_number_mathml(cell.divisor, ".6g")))),
        _build_function_mathml(function, _build_number_mathml(cell.angle, ".6g")),
        ("mrow", (_build_number_mathml(cell.value, ".6f"),)),
    )
    name: MathML = ("msub", (("mrow", (("mi", "P"), ("mi", "E"))), indices))
    left = (name, *[("mrow", ())] * (len(steps) - 1))
    rows = [("mtr", (("mtd", (a,)), ("mtd", (("mo", "="), b)))) for a, b in zip(left, steps, strict=True)]
    return ("math", (("mtable", tuple(rows)),))


def _build_function_mathml(function: MathML, argument: MathML) -> MathML:
    return ("mrow", (function, ("mo", "("), argument, ("mo", ")")))


def _build_number_mathml(value: float, form: str) -> MathML:
    sign: tuple[MathML, ...] = (("mo", "\N{MINUS SIGN}"),) if value < 0 else ()
    return ("mrow", (*sign, ("mn", format_number(abs(value), form))))


def _format_number_latex(value: float, form: str) -> str:
    """A number in LaTeX, which would put a space after a comma."""
    return format_number(value, form).replace(",", "{,}")
