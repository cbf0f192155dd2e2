"""Tables, the forms met in the field, and their geometry, against references written another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from attenscope.network.layers import PositionalEncoding, compute_sinusoidal_rows, make_sinusoidal_table
from attenscope.positions.analysis import (
    compute_distance_profile,
    compute_pair_rotation_matrices,
    compute_shift_matrix,
    find_nearest_other_positions,
    measure_shift_error,
    position_similarity,
)
from attenscope.positions.analysis import compute_wavelengths as wavelengths_of
from attenscope.positions.table import (
    TABLE_FORMS,
    compute_form_formula_difference,
    compute_table_by_form,
    compute_table_cell,
    extract_table,
    make_formula_table,
    measure_form_error,
    order_dimensions,
)
from tests.toy import config

EXACT = ("float64", "per_cell")


def looped(positions: int, d_model: int, base: float = 10000.0) -> np.ndarray:
    """Section 3.5 in loops over float64."""
    table = np.zeros((positions, d_model))
    for position in range(positions):
        for dimension in range(d_model):
            angle = position / base ** (2 * (dimension // 2) / d_model)
            table[position, dimension] = math.cos(angle) if dimension % 2 else math.sin(angle)
    return table


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_pad_row"])
@pytest.mark.parametrize("d_model", [7, 64])
def test_a_models_own_table_is_the_formula_within_1e_6(kind: str, d_model: int) -> None:
    table = extract_table(PositionalEncoding(config(d_model=d_model, heads=1, positions=kind)))
    assert np.abs(table.real - looped(64, d_model)).max() < 1e-6
    if kind == "sinusoidal_pad_row":
        assert table.first == 1
        assert not table.values[0].any()
    assert len(table.cut(10).real) == 10
    np.testing.assert_array_equal(table.cut(10).real, table.real[:10])


def test_a_tables_copy_does_not_touch_the_model() -> None:
    encoding = PositionalEncoding(config(positions="learned"))
    table = extract_table(encoding)
    table.values[:] = 0
    assert encoding.table.any()


@given(st.integers(1, 600), st.integers(1, 65), st.sampled_from([100.0, 10000.0]), st.data())
def test_a_worked_cell_is_the_tables_value(positions: int, d_model: int, base: float, data: st.DataObject) -> None:
    position, dimension = data.draw(st.integers(0, positions - 1)), data.draw(st.integers(0, d_model - 1))
    worked = compute_table_cell(position, dimension, d_model, base)
    assert worked.value == pytest.approx(
        make_formula_table(positions, d_model, base).values[position, dimension], abs=1e-9
    )
    assert worked.angle == pytest.approx(position * 2 * math.pi / wavelengths_of(d_model, base)[worked.pair], abs=1e-9)


def test_dimension_orders() -> None:
    assert order_dimensions(5, "interleaved").tolist() == [0, 1, 2, 3, 4]
    assert order_dimensions(5, "halves").tolist() == [0, 2, 4, 1, 3]


def test_halves_are_the_order_of_hugging_faces_marian() -> None:
    theirs = MarianSinusoidalPositionalEmbedding(40, 32)
    theirs.weight = torch.nn.Parameter(theirs.create_weight() if hasattr(theirs, "create_weight") else theirs.weight)
    ours = make_formula_table(40, 32).values[:, order_dimensions(32, "halves")]
    np.testing.assert_allclose(theirs.weight.detach().numpy(), ours, atol=1e-6)


def test_rows_of_any_position() -> None:
    """Negative positions turn the sines around; whole ones are the table's rows."""
    rows = compute_sinusoidal_rows(torch.tensor([-3.0, 2.5, 3.0], dtype=torch.float64), 6)
    table = make_sinusoidal_table(4, 6)
    torch.testing.assert_close(rows[2], table[3])
    torch.testing.assert_close(rows[0, 0::2], -table[3, 0::2])
    torch.testing.assert_close(rows[0, 1::2], table[3, 1::2])
    assert rows[1, 0].item() == pytest.approx(math.sin(2.5))


@pytest.mark.parametrize("name", TABLE_FORMS)
@pytest.mark.parametrize("d_model", [1, 2, 7, 64])
def test_every_form_has_the_tables_shape_and_is_finite(name: str, d_model: int) -> None:
    values = compute_table_by_form(name, 50, d_model)
    assert values.shape == (50, d_model)
    assert np.isfinite(values).all()


@pytest.mark.parametrize("name", EXACT)
def test_exact_forms_are_within_half_a_unit_of_float32(name: str) -> None:
    assert np.abs(compute_table_by_form(name, 90, 33) - looped(90, 33)).max() <= 2**-25 * 1.01


def test_errors_of_forms_at_512_by_512() -> None:
    errors = {name: measure_form_error(name, 512, 512) for name in TABLE_FORMS}
    # Angles up to 511 in float32 have a spacing of 3.05e-5: half of it, and the rounding of the rate times 511.
    assert 1e-5 < errors["exp_of_log"].largest < 6e-5
    assert 1e-5 < errors["power"].largest < 6e-5
    assert errors["cast_half"].largest == pytest.approx(2**-12, rel=0.01)
    assert errors["cast_bfloat16"].largest == pytest.approx(2**-9, rel=0.01)
    assert errors["half"].largest > 0.1
    assert errors["bfloat16"].largest > 1
    assert errors["inclusive"].largest > 0.1
    worst = errors["half"]
    assert compute_form_formula_difference("half", 512, 512)[worst.position, worst.dimension] == worst.largest
    assert worst.rms < worst.largest


def test_bfloat16_throughout_gives_two_positions_one_row() -> None:
    values = compute_table_by_form("bfloat16", 300, 16)
    assert np.array_equal(values[256], values[257])
    assert find_nearest_other_positions(values).smallest == 0


def test_similarity_depends_on_distance_alone() -> None:
    table = looped(80, 24)
    dots = position_similarity(table)
    np.testing.assert_allclose(dots, [[float(np.dot(a, b)) for b in table] for a in table], atol=1e-12)
    profile = compute_distance_profile(dots)
    assert profile.spread < 1e-10
    rates = 2 * np.pi / wavelengths_of(24)
    np.testing.assert_allclose(profile.mean[7], np.cos(7 * rates).sum(), atol=1e-12)
    cosines = position_similarity(table, cosine=True)
    np.testing.assert_allclose(np.diag(cosines), 1)
    np.testing.assert_allclose(cosines, dots / 12, atol=1e-12)


def test_a_pad_row_is_like_nothing() -> None:
    table = make_formula_table(5, 8, kind="sinusoidal_pad_row").values
    assert not position_similarity(table, cosine=True)[0].any()


def test_learned_rows_depend_on_more_than_distance() -> None:
    table = np.random.default_rng(0).normal(size=(40, 16))
    assert compute_distance_profile(position_similarity(table)).spread > 1


@pytest.mark.parametrize("shift", [-9, 0, 1, 30])
@pytest.mark.parametrize("d_model", [8, 9])
def test_a_shift_is_one_matrix(shift: int, d_model: int) -> None:
    table, matrix = looped(60, d_model), compute_shift_matrix(d_model, shift)
    start = np.arange(max(0, -shift), 60 - max(0, shift))
    paired = d_model // 2 * 2
    np.testing.assert_allclose((table[start] @ matrix.T)[:, :paired], table[start + shift][:, :paired], atol=1e-12)
    np.testing.assert_allclose(matrix[:paired, :paired] @ matrix[:paired, :paired].T, np.eye(paired), atol=1e-12)
    if d_model % 2:
        assert not matrix[-1].any()
        assert not matrix[:, -1].any()
    assert measure_shift_error(table, shift).max() < 1e-12
    assert measure_shift_error(table.astype(np.float32), shift).max() < 2e-7
    assert len(compute_pair_rotation_matrices(d_model, shift)) == d_model // 2


def test_a_table_too_short_for_the_shift_is_refused() -> None:
    for shift in (5, -5, 50):
        with pytest.raises(ValueError, match="holds no two that are"):
            measure_shift_error(looped(5, 4), shift)


def test_wavelengths_are_geometric() -> None:
    lengths = wavelengths_of(512)
    assert lengths[0] == pytest.approx(2 * math.pi)
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], 10000 ** (2 / 512))
    assert lengths[-1] < 10000 * 2 * math.pi
    assert len(wavelengths_of(7)) == 4


def test_the_closest_positions_by_brute_force() -> None:
    table = looped(700, 6)
    found = find_nearest_other_positions(table)
    distances = np.linalg.norm(table[:, None] - table[None], axis=-1) + 1e9 * np.eye(700)
    np.testing.assert_allclose(found.distance, distances.min(1), atol=1e-9)
    assert found.smallest == pytest.approx(distances.min())
    assert np.linalg.norm(table[found.pair[0]] - table[found.pair[1]]) == pytest.approx(found.smallest)
    with pytest.raises(ValueError, match="at least two"):
        find_nearest_other_positions(table[:1])
