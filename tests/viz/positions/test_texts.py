"""What Positions says of a table or an experiment holds for the numbers that it stands beside."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attenscope.language import PSEUDO_LANGUAGE, format_number, use_language
from attenscope.positions.analysis import (
    compute_distance_profile,
    find_nearest_other_positions,
    measure_shift_error,
    position_similarity,
)
from attenscope.positions.experiments import POSITION_MOVES, ExperimentSides, PositionExperiment
from attenscope.positions.table import (
    TABLE_FORMS,
    PositionTable,
    compute_table_by_form,
    compute_table_cell,
    make_formula_table,
)
from attenscope.viz.positions import experiments, precision, texts
from attenscope.viz.positions.controls import TableChoice

SIDES: tuple[ExperimentSides, ...] = ("source", "target", "both")
WORD = re.compile(r"[A-Za-z]{4,}")
SHAPES = [(64, 512), (512, 64), (64, 7), (64, 2), (40, 1)]


def choice(form: str, positions: int, width: int) -> TableChoice:
    made = make_formula_table(positions, width, values=compute_table_by_form(form, positions, width))
    return TableChoice(made, "by formula", False, form, made.real, None)


def described(experiment: PositionExperiment, table_length: int = 512) -> str:
    return experiments.describe_experiment(experiment, {"source": 9, "target": 5}, table_length)


@pytest.mark.parametrize("form", TABLE_FORMS)
@pytest.mark.parametrize(("positions", "width"), SHAPES)
@pytest.mark.parametrize("cosine", [True, False])
def test_distance_alone_is_said_where_every_diagonal_is_constant(
    form: str, positions: int, width: int, cosine: bool
) -> None:
    made = choice(form, positions, width)
    values = position_similarity(made.table.real, cosine=cosine)
    said = texts.describe_position_similarity(
        made, cosine, (3, 9), float(values[3, 9]), compute_distance_profile(values)
    )
    spread = max(np.ptp(np.diagonal(values, distance)) for distance in range(positions))
    if "the distance alone decides it" in said:
        assert spread < 1e-4 * max(1.0, np.abs(values).max())
        assert width % 2 == 0
    else:
        assert width % 2 or spread > 1e-5 * np.abs(values).max()
        printed = re.search(r"differ by up to ([\d.e−]+):", said)
        assert printed is not None
        assert float(printed[1].replace("−", "-")) == pytest.approx(spread, rel=0.05)


def test_a_width_of_one_is_not_decided_by_distance() -> None:
    made = choice("float64", 40, 1)
    values = position_similarity(made.table.real, cosine=True)
    said = texts.describe_position_similarity(made, True, (0, 1), float(values[0, 1]), compute_distance_profile(values))
    assert "the width is odd, so the last sine has no cosine beside it" in said


@pytest.mark.parametrize("form", TABLE_FORMS)
@pytest.mark.parametrize(("positions", "width"), [shape for shape in SHAPES if shape[1] > 1])
def test_one_matrix_is_said_to_shift_where_it_does(form: str, positions: int, width: int) -> None:
    made = choice(form, positions, width)
    error = measure_shift_error(made.table.real, 8, inclusive=TABLE_FORMS[form].inclusive).max()
    said = texts.describe_shift_rotation(made, 8, float(error))
    assert ("wherever it stands" in said) == (error <= 1e-4)
    assert format_number(error, ".1e") in said
    if form in ("float64", "per_cell", "inclusive"):
        assert "wherever it stands" in said


def test_exponents_up_to_1_have_wavelengths_of_their_own() -> None:
    """Half a turn of the slowest pair lies where its own wavelength says, which is not that of the formula."""
    made = choice("inclusive", 64, 16)
    assert made.wavelengths[-1] == pytest.approx(2 * np.pi * 10000)
    assert choice("float64", 64, 16).wavelengths[-1] == pytest.approx(2 * np.pi * 10000 ** (14 / 16))
    assert "10,000 · 2π" in texts.describe_wavelengths(made, made.wavelengths)
    for dimension in range(16):
        one = compute_table_cell(5, dimension, 16, inclusive=True)
        assert made.table.values[5, dimension] == pytest.approx(one.value, abs=1e-6)
    assert "^{\\,1/7}" in precision.format_value_derivation_latex(
        compute_table_cell(5, 2, 16, inclusive=True), 16, 10000.0, inclusive=True
    )
    assert "^{\\,2/16}" in precision.format_value_derivation_latex(compute_table_cell(5, 2, 16), 16, 10000.0)


def test_a_learned_table_is_not_called_a_rotation() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 8))
    made = TableChoice(PositionTable(rows, "learned"), "small", True, "float64", rows, None)
    assert "a learned table knows more than distance" in texts.describe_position_similarity(
        made, True, (0, 1), 0.0, compute_distance_profile(position_similarity(rows, cosine=True))
    )
    assert texts.describe_shift_rotation(made, 3, 1.7).startswith("A learned table does not turn")


def test_a_bag_of_words_is_said_of_the_encoder_alone() -> None:
    """The decoder's causal mask keeps the order: test_experiments shows both on a running model."""
    of = {sides: described(PositionExperiment("remove", sides=sides)) for sides in SIDES}
    assert "bag of words" in of["source"]
    assert "bag of words" not in of["target"]
    assert "causal mask" in of["target"]
    keeps = " The sentence keeps its positions: the order of its words still counts."
    assert of["target"].endswith(keeps)
    assert of["both"] == f"{of['source']} {of['target'].removesuffix(keeps)}"


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        (0, "The sentence begins at position 0: all its positions are inside the table."),
        (503, "The sentence begins at position 503: all its positions are inside the table."),
        (504, "The sentence begins at position 504 and runs past the 512 positions of the table."),
        (512, "The sentence begins at position 512, past the 512 positions of the model's table."),
    ],
)
def test_where_a_sentence_and_its_translation_begin(begin: int, said: str) -> None:
    """Of the sides whose positions are moved, each by its own length: 9 and 5 pieces."""
    of = {sides: described(PositionExperiment("beyond", amount=begin, sides=sides)) for sides in SIDES}
    assert of["source"] == said
    translation = said.replace("sentence", "translation")
    if begin == 504:
        translation = "The translation begins at position 504: all its positions are inside the table."
    assert of["target"] == translation
    assert of["both"] == f"{said} {translation}"
    assert experiments.describe_experiment(PositionExperiment("beyond", begin), {"target": 9}, 512) == said


@pytest.mark.parametrize(
    ("experiment", "said"),
    [
        (PositionExperiment("shift", 5), "Every piece is given a position further on."),
        (PositionExperiment("shift", -5), "Every piece is given a position further back."),
        (PositionExperiment("shift", 0), "Every piece keeps its position."),
        (PositionExperiment("stretch", 1), "Every piece keeps its position."),
        (PositionExperiment("swap", pair=(2, 2)), "Every piece keeps its position."),
    ],
)
def test_which_way_pieces_are_moved(experiment: PositionExperiment, said: str) -> None:
    assert described(experiment).startswith(said)


@pytest.mark.parametrize(
    ("positions", "width", "said"),
    [
        (64, 2, "The pair completes a turn within the 64 positions shown."),
        (1000, 4, "All 2 pairs complete a turn within the 1000 positions shown."),
        (64, 4, "1 of 2 pairs complete a turn within the 64 positions shown; the others only tell near from far."),
        (3, 4, "No pair completes a turn within the 3 positions shown: each only tells near from far."),
    ],
)
def test_how_many_pairs_complete_a_turn(positions: int, width: int, said: str) -> None:
    made = choice("float64", positions, width)
    assert texts.describe_wavelengths(made, made.wavelengths).endswith(said)


@pytest.mark.parametrize(("form", "width"), [("float64", 64), ("half", 7), ("inclusive", 1)])
def test_all_that_is_said_of_a_table_is_in_the_readers_language(form: str, width: int) -> None:
    made = choice(form, 64, width)
    values = position_similarity(made.table.real)
    with use_language(PSEUDO_LANGUAGE):
        said = [
            texts.describe_table_heatmap(made),
            texts.describe_wavelengths(made, made.wavelengths),
            texts.describe_position_similarity(
                made, False, (3, 9), float(values[3, 9]), compute_distance_profile(values)
            ),
            texts.describe_position_uniqueness(find_nearest_other_positions(made.whole), 64, 0),
            texts.describe_shift_rotation(made, 8, 1.0),
            texts.describe_computed_and_stored_value(compute_table_cell(12, 0, width), 0.5, 1),
            *(described(PositionExperiment(move, 60.0), 64) for move in POSITION_MOVES),
        ]
    assert [WORD.findall(one) for one in said] == [[]] * len(said)


def test_numbers_in_latex_have_the_signs_of_the_language() -> None:
    with use_language("de"):
        assert "10{,}3916" in precision.format_value_derivation_latex(compute_table_cell(12, 4, 256), 256, 10000.0)
    assert "10.3916" in precision.format_value_derivation_latex(compute_table_cell(12, 4, 256), 256, 10000.0)
