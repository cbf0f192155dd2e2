"""The figures of Positions hold the numbers they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.language import format_number
from attenscope.network.layers import make_sinusoidal_table
from attenscope.positions.analysis import compute_distance_profile, compute_wavelengths, position_similarity
from attenscope.positions.table import TABLE_FORMS, measure_form_error
from attenscope.viz.figures import positions
from attenscope.viz.figures.curves import linear_axis, log_axis
from attenscope.viz.figures.figure_style import LIGHT
from attenscope.viz.positions import views
from attenscope.viz.web.charts import encode_curves as packed_curves
from tests.viz.web.test_packing import unpack


def test_waves_are_the_tables_columns() -> None:
    table = make_sinusoidal_table(50, 12).numpy()
    figure = positions.plot_encoding_dimension_waves(table, [0, 5], compute_wavelengths(12), LIGHT)
    for wave, dimension in zip(figure.marks[:2], (0, 5), strict=True):
        assert wave.values is not None
        np.testing.assert_allclose(wave.values[:, 0], table[:, dimension], atol=1e-6)
    assert "wavelength 6.3" in figure.notes[0].text
    assert "cos" in figure.notes[1].text


def test_wavelengths_are_drawn_from_2_pi_on() -> None:
    figure = positions.plot_wavelengths(compute_wavelengths(512), [0, 6], 512, 10000.0, LIGHT)
    chosen, line = figure.marks[:2]
    assert 10 ** line.points[0, 1] == pytest.approx(2 * np.pi)
    assert chosen.points[:, 0].tolist() == [0, 3]


def test_profile_holds_the_values() -> None:
    values = position_similarity(make_sinusoidal_table(30, 8).numpy())
    figure = positions.plot_position_similarity_by_distance(
        compute_distance_profile(values), compute_distance_profile(values), ("a", "b"), "Dot", LIGHT
    )
    line, band = figure.marks[:2]
    np.testing.assert_allclose(line.points[:, 1], [values[0, distance] for distance in range(30)], atol=1e-6)
    np.testing.assert_allclose(band.points[:30, 1], np.flip(band.points[30:, 1]), atol=1e-6)


def test_circles_show_both_positions() -> None:
    table = make_sinusoidal_table(30, 8).numpy().reshape(30, 4, 2)
    pairs = views.pick_evenly_spaced_dimension_pairs(4, 2)
    figure = positions.plot_position_shift_circles(
        table[3, pairs], table[8, pairs], pairs, compute_wavelengths(8), 5, LIGHT
    )
    ends, hands = figure.marks[0:4:2], figure.marks[1:4:2]
    for hand, dots, position in zip(hands, ends, (8, 3), strict=True):
        starts, tips = hand.points[::3], hand.points[1::3]
        np.testing.assert_allclose((tips - starts)[:, ::-1], table[position, pairs], atol=1e-6)
        np.testing.assert_allclose(tips, dots.points)


def test_an_arc_goes_from_one_hand_to_the_other() -> None:
    table = make_sinusoidal_table(30, 2).numpy()
    arc = (
        positions.plot_position_shift_circles(table[3:4], table[8:9], [0], compute_wavelengths(2), 5, LIGHT)
        .marks[4]
        .points[:-1]
    )
    for end, position in ((arc[0], 3), (arc[-1], 8)):
        np.testing.assert_allclose(end / np.linalg.norm(end), table[position, ::-1], atol=1e-5)


def test_curves_are_packed_as_they_are() -> None:
    table = make_sinusoidal_table(9, 4).numpy()
    figure = positions.plot_encoding_dimension_waves(table, [2], None, LIGHT)
    header, body = unpack(packed_curves(figure))
    numbers = np.frombuffer(body, "<f4")
    points, values = numbers[:18].reshape(9, 2), numbers[18:27]
    np.testing.assert_allclose(points, figure.marks[0].points, atol=1e-6)
    np.testing.assert_allclose(values, table[:, 2])
    first = header["marks"][0]
    assert (first["kind"], first["count"], first["columns"]) == ("line", 9, 1)
    assert len(numbers) == sum((2 + one["columns"]) * one["count"] for one in header["marks"])


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.013, 0.0871), (0, 511), (-0.5, 127.5), (3, 3), (0, 2e6)])
def test_an_axis_has_few_round_numbers_within_it(low: float, high: float) -> None:
    found = [at for at, _ in linear_axis(low, high, most=8).ticks]
    assert 1 <= len(found) <= 9
    assert all(low - 1e-9 <= at <= high + 1e-9 for at in found)
    steps = np.diff(found)
    if len(found) > 1:
        assert f"{steps[0]:e}"[0] in "125"
        np.testing.assert_allclose(steps, steps[0])


def test_the_names_on_an_axis_tell_its_numbers_apart() -> None:
    assert [name for _, name in linear_axis(0, 3, whole=True).ticks] == ["0", "1", "2", "3"]
    assert [name for _, name in linear_axis(-0.02, 0.02, most=4).ticks] == ["−0.02", "−0.01", "0.00", "0.01", "0.02"]
    assert [name for _, name in log_axis(-4, 3.5, step=2).ticks] == ["10⁻⁴", "10⁻²", "1", "100"]


def test_errors_stand_where_they_are() -> None:
    found = [measure_form_error(name, 32, 16) for name in TABLE_FORMS]
    titles = [one.title for one in TABLE_FORMS.values()]
    figure = positions.plot_encoding_form_errors(titles, found, "half", LIGHT)
    at = list(TABLE_FORMS).index("half")
    assert 10 ** figure.marks[at].points[0, 0] == pytest.approx(found[at].largest)
    assert [note.text for note in figure.notes if note.colour == LIGHT.accent] == [
        format_number(found[at].largest, ".1e"),
        "float16 throughout",
    ]
