"""Views of the page Positions: numerical precision, the sentence's vectors, positional heads, and formulas."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.language import format_number, join_sentences, say
from attenscope.positions.analysis import HeadScore, PositionalHeads
from attenscope.positions.table import TABLE_FORMS, EmbeddingParts, PositionTable, TableCell, read_embedding_parts
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.translate import Translator
from attenscope.viz.export.parts import Chart, Columns, Component, MathML, Part, Words
from attenscope.viz.export.save import SavedView, collect_trace_facts
from attenscope.viz.figures.curves import Curves
from attenscope.viz.figures.heatmap import diverging_colours, sequential_colours
from attenscope.viz.figures.look import Palette, readable_token
from attenscope.viz.figures.positions import (
    plot_compared_heads,
    plot_embedding_lengths,
    plot_form_errors,
    plot_head_ranking,
)
from attenscope.viz.positions import cache, texts
from attenscope.viz.positions import controls as positions_controls
from attenscope.viz.positions.controls import TableChoice
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.positions import POSITIONS_FORM, POSITIONS_PIECE, POSITIONS_SIDE
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.words import draw_caption
from attenscope.viz.web.charts import draw_chart, draw_curves, encode_curves
from attenscope.viz.web.maps import MatrixData, draw_matrix, encode_matrix

# Precision: the ways in which code computes the table, and how far each is from the formula.


LOWEST_ERROR_EXPONENT, HIGHEST_ERROR_EXPONENT = -9.0, 0.0
"""Powers of ten between which errors are coloured; smaller and larger ones have the colours of the ends."""


def draw_precision_view(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    size = choice.positions, choice.table.width, choice.table.base
    found = cache.compute_position_errors(*size)
    names = list(found)
    difference = np.abs(
        cache.compute_position_values(choice.form, *size) - cache.compute_position_values("reference", *size)
    )
    says = texts.precision_text(found[choice.form], say(TABLE_FORMS[choice.form].note))

    def dots(palette: Palette) -> Curves:
        titles, values = [POSITIONS_FORM.label(name) for name in names], [found[name] for name in names]
        return plot_form_errors(titles, values, choice.form, palette)

    with st.container(key="picture"):
        left, right = st.columns([0.56, 0.44], gap="large")
        with left:
            draw_matrix(_build_error_matrix(difference, choice, style.get_palette()), key="error")
        with right:
            draw_curves(dots(style.get_palette()), key="forms", on_point=lambda form, _: _choose_form(names[form]))
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
        partial(tabulate_form_errors, found),
        say("How exact each form is"),
        width=1280,
    )


def tabulate_form_errors(found: dict) -> pd.DataFrame:
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


def _choose_form(name: str) -> None:
    st.session_state[POSITIONS_FORM.key] = name


# The sentence: what is added to what, and how long either is.


def draw_sentence_view(model: RunnableModel, result: Translation) -> SavedView | None:
    with st.container(horizontal=True, vertical_alignment="center"):
        side = ui_controls.segmented_control(say("Side"), POSITIONS_SIDE) if model.can("translate") else "target"
        parts = read_embedding_parts(model, result, side)
        last = len(parts.pieces)
        piece = int(positions_controls.draw_number_input(say("Piece"), POSITIONS_PIECE, 1, last, min(2, last))) - 1
    alt = say("Length of embeddings and encodings")
    with st.container(key="picture"):
        bars = plot_embedding_lengths(parts, piece, style.get_palette())
        draw_chart(bars, alt, key="lengths-bars", on_cell=lambda _, x: _choose_piece(round(x), last))
        draw_matrix(_build_sum_matrix(parts, piece, style.get_palette()), key="sum")
    draw_caption(texts.embedding_lengths_text(parts))
    draw_caption(texts.three_vectors_text(parts))

    def draw_figure(palette: Palette) -> list[Part]:
        return [
            Words(result.trace.source, "sentence", "large"),
            Chart(plot_embedding_lengths(parts, piece, palette), alt),
            Component("matrix", encode_matrix(_build_sum_matrix(parts, piece, palette))),
            Words(texts.embedding_lengths_text(parts)),
        ]

    return SavedView(
        "positions-sentence", draw_figure, lambda: tabulate_piece_lengths(parts), alt, collect_trace_facts(result.trace)
    )


def tabulate_piece_lengths(parts: EmbeddingParts) -> pd.DataFrame:
    """Every piece with its lengths."""
    columns = {
        "embedding": np.linalg.norm(parts.tokens, axis=1),
        "embedding before scaling": np.linalg.norm(parts.tokens, axis=1) / parts.scale,
        "encoding": np.linalg.norm(parts.encoding, axis=1),
        "sum": np.linalg.norm(parts.total, axis=1),
    }
    return pd.DataFrame({"piece": [readable_token(piece) for piece in parts.pieces]} | columns).rename_axis("position")


def _build_sum_matrix(parts: EmbeddingParts, piece: int, palette: Palette) -> MatrixData:
    values = np.stack([parts.tokens[piece], parts.encoding[piece], parts.total[piece]])
    high = float(np.abs(values).max())
    title = say("What “{piece}” is made of", piece=readable_token(parts.pieces[piece]))
    rows, columns = [say("embedding"), say("encoding"), say("sum")], list(range(values.shape[1]))
    return MatrixData(
        values, title, rows, columns, "", say("dimension"), -high, high, diverging_colours(palette), height=96
    )


def _choose_piece(at: int, last: int) -> None:
    st.session_state[POSITIONS_PIECE.key] = min(max(at, 0), last - 1) + 1


# Positional heads: which heads look at places rather than words, and one of them with the words shuffled.


MOST_RANKED_HEADS = 14


def draw_positional_heads_view(model: Translator, result: Translation) -> SavedView | None:
    found = cache.compute_positional_heads(model.name, result.source)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        kind, layer, head = ui_controls.draw_place_choice(result.trace.sizes)
    look, rows = ui_controls.hold_look()
    top = found.scores[:MOST_RANKED_HEADS]
    pair = [(say("the sentence"), result.trace.maps[kind]), (say("its words shuffled"), found.shuffled.maps[kind])]

    def bars(palette: Palette) -> Chart:
        return Chart(
            plot_head_ranking(top, (kind, layer, head), palette), say("Heads ranked by how positional they are")
        )

    def maps(palette: Palette) -> Chart:
        figure = plot_compared_heads(pair, layer, head, replace(look, palette=palette), rows, difference=False)
        return Chart(figure, say("One head on the sentence and on its words shuffled"))

    ranked, shuffled = bars(look.palette), maps(look.palette)
    with st.container(key="picture"):
        left, right = st.columns([0.37, 0.63], gap="large")
        with left:
            draw_chart(ranked.figure, ranked.alt, key="ranking", on_cell=lambda row, _: _choose_head(top[row]))
        with right:
            draw_chart(shuffled.figure, shuffled.alt, key="shuffled", on_cell=lambda _, __: None)
    one = next(score for score in found.scores if (score.kind, score.layer, score.head) == (kind, layer, head))
    says = say(
        "This head: {stays:.0%} of its attention stays at its place when the words are shuffled (mean of {orders} "
        "orders); {chance:.0%} would be expected if it looked at random (the mark in each bar). A head that only knows "
        "places keeps its picture; one that follows words does not.",
        stays=one.stays,
        orders=found.shuffles,
        chance=one.chance,
    )
    draw_caption(join_sentences(says, say("Click a bar to open that head.")))

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Words(result.trace.source, "sentence", "large"),
            Columns(([bars(palette)], [maps(palette)]), (0.37, 0.63)),
            Words(says),
        ]

    title = say("Heads that look at places")
    return SavedView(
        "positions-heads",
        build_parts,
        lambda: tabulate_positional_heads(found),
        title,
        collect_trace_facts(result.trace),
        width=1280,
    )


def tabulate_positional_heads(found: PositionalHeads) -> pd.DataFrame:
    """All heads, the most positional first, counted from 1."""
    rows = [(one.kind, one.layer + 1, one.head + 1, one.stays, one.chance, one.score) for one in found.scores]
    return pd.DataFrame(rows, columns=["attention", "layer", "head", "stays", "by chance", "score"])


def _choose_head(one: HeadScore) -> None:
    st.session_state[KIND.key] = one.kind
    ui_controls.set_layer_and_head(one.layer, one.head)


# Formulas with numbers: one value of the table, a line a step, and the rotation of one pair.


def format_value_latex(cell: TableCell, d_model: int, base: float, *, inclusive: bool = False) -> str:
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


def format_block_latex(pair: int, matrix: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple[str, ...]:
    """The 2 by 2 block of one pair in LaTeX, and what it does to one position."""
    rows = " \\\\ ".join(" & ".join(_format_number_latex(value, ".3f") for value in row) for row in matrix)
    vectors = [" \\\\ ".join(_format_number_latex(value, ".3f") for value in vector) for vector in (before, after)]
    return (
        f"M_k^{{({pair})}} = \\begin{{pmatrix}} \\cos k\\omega & \\sin k\\omega \\\\ "
        "-\\sin k\\omega & \\cos k\\omega \\end{pmatrix}",
        f"\\begin{{pmatrix}} {rows} \\end{{pmatrix}} \\begin{{pmatrix}} {vectors[0]} \\end{{pmatrix}} = "
        f"\\begin{{pmatrix}} {vectors[1]} \\end{{pmatrix}}",
    )


def format_value_mathml(cell: TableCell, table: PositionTable) -> MathML:
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
