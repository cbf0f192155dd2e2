"""Views of the page Positions for the table: its picture, waves, similarity, and rotation."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.language import join_sentences, say, to_say
from attenscope.positions.analysis import (
    compute_distance_profile,
    compute_pair_rotation_matrices,
    compute_shift_matrix,
    measure_shift_error,
)
from attenscope.positions.table import TABLE_FORMS, TableCell, compute_table_cell, make_formula_table, order_dimensions
from attenscope.viz.export.parts import Columns, Component, Formula, Part, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.curves import Curves
from attenscope.viz.figures.figure_style import LIGHT, Palette
from attenscope.viz.figures.heatmap import diverging_colours, sequential_colours
from attenscope.viz.figures.positions import (
    plot_encoding_dimension_waves,
    plot_position_shift_circles,
    plot_position_similarity_by_distance,
    plot_wavelengths,
)
from attenscope.viz.positions import cache, precision, texts
from attenscope.viz.positions import controls as positions_controls
from attenscope.viz.positions.controls import TableChoice
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.positions import (
    POSITIONS_DIMENSION,
    POSITIONS_DIMENSIONS,
    POSITIONS_MEASURE,
    POSITIONS_POSITION,
    POSITIONS_SHIFT,
    SimilarityMeasure,
)
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.charts import draw_curves, encode_curves
from attenscope.viz.web.maps import MatrixData, draw_matrix, encode_matrix

# The table as a picture, and one of its values worked out.


PICTURE_FORMULA_SHARES = (2 / 3, 1 / 3)
"""Widths of the picture and of the formula, as on the stage (talk/presented.css)."""


def draw_table_view(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        order = order_dimensions(choice.table.width, positions_controls.draw_dimension_order_control())
    shown = build_table_matrix(choice, order, style.get_palette())
    left, right = st.columns([0.74, 0.26], gap="large")
    with right:
        row, dimension = positions_controls.draw_cell_inputs(choice)
    with left, st.container(key="picture"):
        at = int(np.flatnonzero(order == dimension)[0])
        draw_matrix(
            shown, (row, at), key="table-picture", on_cell=lambda y, x: positions_controls.choose_cell(y, int(order[x]))
        )
    worked, said = explain_encoding_value(choice, row, dimension)
    with right:
        if worked:
            st.latex(precision.format_value_derivation_latex(worked, choice.table.width, choice.table.base))
        draw_caption(said)
    draw_caption(texts.describe_table_heatmap(choice))

    def build_parts(palette: Palette) -> list[Part]:
        drawn = Component("matrix", encode_matrix(build_table_matrix(choice, order, palette), (row, at)))
        beside = [Formula(precision.format_value_derivation_mathml(worked, choice.table))] if worked else []
        return [
            *([Words(choice.text, "sentence", "large")] if choice.text else []),
            Columns(([drawn], [*beside, Words(said)]), PICTURE_FORMULA_SHARES),
            Words(texts.describe_table_heatmap(choice)),
        ]

    return SavedView("positions-table", build_parts, partial(tabulate_encodings, choice), shown.title, width=1100)


def build_table_matrix(choice: TableChoice, order: np.ndarray, palette: Palette = LIGHT) -> MatrixData:
    """The table as it is drawn: its columns in the order of dimensions that was chosen."""
    values = choice.table.values[:, order]
    high = max(1.0, float(np.abs(values).max())) if choice.is_sinusoidal else float(np.abs(values).max()) or 1.0
    first = choice.table.first
    ends = [] if choice.sentence is None else [choice.sentence - 1 + first]
    return MatrixData(
        values,
        say("Positional encoding · {table}", table=choice.name),
        list_row_names(choice),
        order.tolist(),
        say("position"),
        say("dimension"),
        -high,
        high,
        diverging_colours(palette),
        marks=[end for end in ends if end < len(values) - 1],
    )


def list_row_names(choice: TableChoice) -> list[str | int]:
    return ["PAD" if row < choice.table.first else row for row in range(len(choice.table.values))]


def tabulate_encodings(choice: TableChoice) -> pd.DataFrame:
    """The table with a row a position and a column a dimension, all digits."""
    return pd.DataFrame(choice.table.values, index=pd.Index(list_row_names(choice), name="position"))


def explain_encoding_value(choice: TableChoice, row: int, dimension: int) -> tuple[TableCell | None, str]:
    """One value by the formula, None where there is none, and what is said of it."""
    stored = float(choice.table.values[row, dimension])
    position = row - choice.table.first
    if position < 0:
        return None, say("PAD's row is all zero: nothing is added to padding.")
    if not choice.is_sinusoidal:
        said = say("This table was learned, so there is no formula: its value here is {value:.6f}.", value=stored)
        return None, said
    if choice.form == "inclusive":
        return None, join_sentences(
            say(TABLE_FORMS[choice.form].note), say("Its value here is {value:.6f}.", value=stored)
        )
    worked = compute_table_cell(position, dimension, choice.table.width, choice.table.base)
    return worked, texts.describe_computed_and_stored_value(worked, stored, choice.table.first)


# Chosen dimensions as waves over position, and the wavelengths of all pairs.


MOST_WAVES = 7


def draw_waves_view(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    width = choice.table.width
    chosen = _draw_dimensions_control(width)
    if not chosen:
        st.info(say("Choose at least one dimension above."))
        return None
    lengths = choice.wavelengths

    def draw_figure(palette: Palette) -> Curves:
        return plot_encoding_dimension_waves(
            choice.table.real, chosen, lengths if choice.is_sinusoidal else None, palette
        )

    def steps(palette: Palette) -> Curves:
        return plot_wavelengths(lengths, chosen, choice.positions, choice.table.base, palette)

    says = texts.describe_wavelengths(choice, lengths)
    with st.container(key="picture"):
        left, right = st.columns([0.62, 0.38], gap="large")
        with left:
            draw_curves(
                draw_figure(style.get_palette()),
                key="waves",
                on_point=lambda wave, x: positions_controls.choose_cell(x, chosen[wave]),
            )
        with right:
            draw_curves(
                steps(style.get_palette()), key="wavelengths", on_point=lambda _, pair: _add_pair_wave(chosen, pair)
            )
    draw_caption(join_sentences(says, say("Click the line of wavelengths to add a pair.")))

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                tuple([Component("curves", encode_curves(one(palette)))] for one in (draw_figure, steps)),
                (0.62, 0.38),
            ),
            Words(says),
        ]

    return SavedView(
        "positions-waves",
        build_parts,
        partial(tabulate_waves, choice, chosen),
        say("Waves and wavelengths"),
        width=1280,
    )


def tabulate_waves(choice: TableChoice, chosen: list[int]) -> pd.DataFrame:
    """The chosen dimensions, a row a position."""
    frame = pd.DataFrame(choice.table.real[:, chosen], columns=[f"dimension {dimension}" for dimension in chosen])
    return frame.rename_axis("position")


def pick_default_wave_dimensions(width: int) -> list[int]:
    """A few sines from fast to slow; the last quarter of a wide table hardly moves and is left out."""
    return sorted({2 * int(pair) for pair in (0, width / 32, width / 16, width / 8, width / 5)})


def _draw_dimensions_control(width: int) -> list[int]:
    POSITIONS_DIMENSIONS.follow_default(pick_default_wave_dimensions(width))
    before = st.session_state.get(POSITIONS_DIMENSIONS.key)
    if before is not None and any(dimension >= width for dimension in before):
        st.session_state[POSITIONS_DIMENSIONS.key] = [dimension for dimension in before if dimension < width]
    every = range(width), pick_default_wave_dimensions(width)
    return ui_controls.draw_untranslated_choice(
        st.multiselect,
        say("Dimensions"),
        *every,
        max_selections=MOST_WAVES,
        label_visibility="collapsed",
        **POSITIONS_DIMENSIONS.binding,
    )


def _add_pair_wave(chosen: list[int], pair: int) -> None:
    st.session_state[POSITIONS_DIMENSIONS.key] = sorted({*chosen, 2 * pair})[-MOST_WAVES:]


# How alike two positions are, whether that depends on their distance alone, and whether all can be told apart.


DISTANCE_TITLES: dict[SimilarityMeasure, str] = {
    "cosine": to_say("Cosine by distance"),
    "dot product": to_say("Dot product by distance"),
}
SIMILARITY_TITLES: dict[SimilarityMeasure, str] = {
    "cosine": to_say("Cosine of two positions · {table}"),
    "dot product": to_say("Dot product of two positions · {table}"),
}


def draw_similarity_view(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        measure = ui_controls.segmented_control(say("Measure"), POSITIONS_MEASURE)
    cosine = measure == "cosine"
    first = choice.table.first
    values = cache.compute_position_similarities(choice.table.real, cosine)
    own = compute_distance_profile(values)
    other = None
    if not choice.is_sinusoidal:
        formula = make_formula_table(choice.positions, choice.table.width).values
        other = compute_distance_profile(cache.compute_position_similarities(formula, cosine))
    row, column = _hold_position_pair(choice)

    def build_curves(palette: Palette) -> Curves:
        return plot_position_similarity_by_distance(
            own, other, (say("learned"), say("sinusoidal")), say(DISTANCE_TITLES[measure]), palette
        )

    pairs = _build_similarity_matrix(values, measure, choice, style.get_palette())
    with st.container(key="picture"):
        left, right = st.columns([0.4, 0.6], gap="large")
        with left:
            draw_matrix(pairs, (row, column), key="similarity", on_cell=partial(_select_position_pair, first))
        with right:
            draw_curves(
                build_curves(style.get_palette()),
                key="profile",
                on_point=lambda _, distance: POSITIONS_SHIFT.set(distance),
            )
    names = row + first, column + first
    says = (
        texts.describe_position_similarity(choice, cosine, names, float(values[row, column]), own),
        texts.describe_position_uniqueness(cache.find_nearest_positions(choice.whole), len(choice.whole), first),
    )
    for sentence in says:
        draw_caption(sentence)

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                (
                    [
                        Component(
                            "matrix",
                            encode_matrix(_build_similarity_matrix(values, measure, choice, palette), (row, column)),
                        )
                    ],
                    [Component("curves", encode_curves(build_curves(palette)))],
                ),
                (0.4, 0.6),
            ),
            *map(Words, says),
        ]

    return SavedView(
        "positions-similarity", build_parts, lambda: tabulate_similarities(values, first), pairs.title, width=1280
    )


def tabulate_similarities(values: np.ndarray, first: int) -> pd.DataFrame:
    """All similarities, a row and a column a position."""
    names = pd.RangeIndex(first, first + len(values), name="position")
    return pd.DataFrame(values, index=names, columns=names)


def _build_similarity_matrix(
    values: np.ndarray, measure: SimilarityMeasure, choice: TableChoice, palette: Palette
) -> MatrixData:
    names = list(range(choice.table.first, choice.table.first + len(values)))
    low, high = _find_colour_limits(values)
    stops = sequential_colours(palette) if low >= 0 else diverging_colours(palette)
    title = say(SIMILARITY_TITLES[measure], table=choice.name)
    return MatrixData(values, title, names, names, say("position"), say("position"), low, high, stops, square=True)


def _find_colour_limits(values: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest value; limits symmetric around zero where a value is negative."""
    high = float(np.abs(values).max()) or 1.0
    low = float(values.min())
    return (low, high) if 0 <= low < high else (-high, high)


def _hold_position_pair(choice: TableChoice) -> tuple[int, int]:
    """The two positions looked at, from 0: the chosen one and the one a shift further, where there is one."""
    first, last = choice.table.first, choice.positions - 1
    row = POSITIONS_POSITION.hold((min(12, last) + first, *range(first, last + first + 1))) - first
    return row, row + POSITIONS_SHIFT.hold((min(8, last - row), *range(-row, last - row + 1)))


def _select_position_pair(first: int, row: int, column: int) -> None:
    POSITIONS_POSITION.set(row + first)
    POSITIONS_SHIFT.set(column - row)


# A shift of positions as a rotation: every pair of dimensions turns by its own angle.


MOST_CIRCLES = 8
CORNER_SIZE = 16
"""Dimensions of the matrix that are drawn."""


def draw_rotation_view(choice: TableChoice, bar: DeltaGenerator) -> SavedView | None:
    if choice.table.width < 2:
        st.info(say("A single dimension has no pair to turn. Choose at least two dimensions above."))
        return None
    most = choice.positions - 1
    first, width, base = choice.table.first, choice.table.width, choice.table.base
    with bar:
        position = (
            int(
                positions_controls.draw_number_input(
                    say("Position"), POSITIONS_POSITION, first, most + first, min(12, most)
                )
            )
            - first
        )
        low, high = -position, most - position
        shift = (
            int(positions_controls.draw_number_input(say("Shift k"), POSITIONS_SHIFT, low, high, min(8, high)))
            if low < high
            else 0
        )
    chosen_pair = min(POSITIONS_DIMENSION.hold((min(4, width - 1), *range(width))), width - 2) // 2
    pairs = pick_evenly_spaced_dimension_pairs(width // 2, chosen_pair)
    inclusive = TABLE_FORMS[choice.form].inclusive
    blocks, lengths = compute_pair_rotation_matrices(width, shift, base, inclusive=inclusive), choice.wavelengths
    paired = choice.table.real[:, : width // 2 * 2].reshape(choice.positions, -1, 2)
    before, after = paired[position, pairs], paired[position + shift, pairs]

    def handle_turn(palette: Palette) -> Curves:
        return plot_position_shift_circles(before, after, pairs, lengths, shift, palette)

    corner = compute_shift_matrix(width, shift, base, inclusive=inclusive)[:CORNER_SIZE, :CORNER_SIZE]
    errors = measure_shift_error(choice.table.real, shift, base, inclusive=inclusive)
    with st.container(key="picture"):
        left, right = st.columns([0.66, 0.34], gap="large")
        with left:
            draw_curves(
                handle_turn(style.get_palette()),
                key="circles",
                on_point=lambda _, at: POSITIONS_DIMENSION.set(2 * pairs[at]),
            )
        with right:
            draw_matrix(_build_shift_matrix(corner, shift, width, style.get_palette()), key="shift-matrix")
            with st.container(key="block"):
                for line in precision.format_rotation_block_latex(
                    chosen_pair,
                    blocks[chosen_pair],
                    paired[position, chosen_pair],
                    blocks[chosen_pair] @ paired[position, chosen_pair],
                ):
                    st.latex(line)
    says = (
        texts.describe_shift_rotation(choice, shift, float(errors.max())),
        say(
            "Grey: position {position}; coloured: position {shifted}. Cosine across, sine up.",
            position=position + first,
            shifted=position + shift + first,
        ),
    )
    draw_caption(says[0])
    draw_caption(join_sentences(says[1], say("Click a circle to see its block of the matrix.")))

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Columns(
                (
                    [Component("curves", encode_curves(handle_turn(palette)))],
                    [Component("matrix", encode_matrix(_build_shift_matrix(corner, shift, width, palette)))],
                ),
                (0.66, 0.34),
            ),
            *map(Words, says),
        ]

    title = say("A shift by {shift} as a rotation", shift=shift)
    return SavedView(
        "positions-rotation", build_parts, lambda: tabulate_rotation(lengths, shift, errors), title, width=1280
    )


def tabulate_rotation(lengths: np.ndarray, shift: int, errors: np.ndarray) -> pd.DataFrame:
    """Wavelength, angle and error of every pair."""
    turn = np.degrees(shift * 2 * np.pi / lengths[: len(errors)])
    frame = pd.DataFrame({"wavelength": lengths[: len(errors)], "turn in degrees": turn, "largest error": errors})
    return frame.rename_axis("pair")


def pick_evenly_spaced_dimension_pairs(pairs: int, chosen: int) -> list[int]:
    """Return at most ``MOST_CIRCLES`` pairs, evenly spaced from fast to slow, the chosen one among them."""
    found = sorted({round(at) for at in np.linspace(0, pairs - 1, min(MOST_CIRCLES, pairs))})
    if chosen < pairs and chosen not in found:
        found[int(np.abs(np.array(found) - chosen).argmin())] = chosen
    return sorted(found)


def _build_shift_matrix(corner: np.ndarray, shift: int, width: int, palette: Palette) -> MatrixData:
    names = list(range(len(corner)))
    title = (
        say("M for k = {shift}", shift=shift)
        if width <= CORNER_SIZE
        else say("M for k = {shift}, first {shown} of {width} dimensions", shift=shift, shown=CORNER_SIZE, width=width)
    )
    ends = say("to"), say("from")
    return MatrixData(corner, title, names, names, *ends, -1, 1, diverging_colours(palette), square=True, height=240)
