"""The sinusoidal table against its formula in loops, the PAD row, and what is stored."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attenscope.network.layers import PositionalEncoding, make_sinusoidal_table
from tests.toy import config, random_model


@given(st.integers(1, 600), st.integers(1, 33), st.sampled_from([10000.0, 100.0]))
def test_table_equals_the_formula_in_loops(positions: int, d_model: int, base: float) -> None:
    """Section 3.5: PE(pos, 2i) = sin(pos / base^(2i / D)), PE(pos, 2i + 1) = cos of the same; odd widths too."""
    table = make_sinusoidal_table(positions, d_model, base)
    assert table.shape == (positions, d_model)
    assert table.dtype == torch.float64
    for position in {0, 1, positions // 2, positions - 1}:
        if position >= positions:
            continue
        for column in range(d_model):
            angle = position / base ** ((column - column % 2) / d_model)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert abs(table[position, column].item() - expected) < 1e-12


def test_table_by_hand() -> None:
    """D = 4: the angles of position 1 are 1 and 1 / 100."""
    expected = [[0.0, 1.0, 0.0, 1.0], [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004]]
    torch.testing.assert_close(
        make_sinusoidal_table(2, 4), torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=0
    )


def test_a_step_is_a_rotation() -> None:
    """PE(pos + k) is the same rotation of PE(pos) wherever pos is (section 3.5), so products depend on k alone."""
    table = make_sinusoidal_table(50, 16)
    products = table @ table.T
    for distance in range(10):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))


def test_rows_are_those_of_the_positions_with_and_without_offset() -> None:
    encoding = PositionalEncoding(config(d_model=6, heads=1))
    whole = encoding(torch.ones(1, 10, dtype=torch.bool))
    torch.testing.assert_close(whole[0].double(), make_sinusoidal_table(10, 6), atol=1e-6, rtol=0)
    assert torch.equal(encoding(torch.ones(3, 2, dtype=torch.bool), offset=4), whole[:, 4:6])


def test_pad_row_is_zero_and_positions_count_from_one() -> None:
    encoding = PositionalEncoding(config(d_model=6, heads=1, max_length=8, positions="sinusoidal_pad_row"))
    assert encoding.table.shape == (9, 6)
    assert encoding.table[0].eq(0).all()
    keep = torch.tensor([[True, True, True, False], [True, False, False, False]])
    rows = encoding(keep)
    table = make_sinusoidal_table(8, 6).float()
    torch.testing.assert_close(rows[0, :3], table[:3])
    torch.testing.assert_close(rows[1, 0], table[0])
    assert rows[~keep].eq(0).all()
    # Decoding goes on where the cache ends.
    torch.testing.assert_close(encoding(torch.ones(1, 1, dtype=torch.bool), offset=7)[0, 0], table[7])


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_pad_row"])
def test_sinusoidal_tables_are_not_in_the_state_dict(positions: str) -> None:
    model = random_model(positions=positions)
    assert not [name for name in model.state_dict() if "positional" in name]


def test_learned_tables_are_parameters_of_each_side() -> None:
    model = random_model(positions="learned")
    names = [name for name, _ in model.named_parameters() if "positional" in name]
    assert names == [f"{side}_embedding.positional_encoding.table" for side in ("source", "target")]
    model(torch.tensor([[5, 6, 3]]), torch.tensor([[2, 5]])).sum().backward()
    grown = model.source_embedding.positional_encoding.table.grad
    assert grown is not None
    assert grown[:3].ne(0).any()
    assert grown[3:].eq(0).all()


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_pad_row", "learned"])
def test_past_the_last_position_is_refused_with_a_sentence(positions: str) -> None:
    encoding = PositionalEncoding(config(max_length=5, positions=positions))
    assert encoding(torch.ones(1, 5, dtype=torch.bool)).shape[1] == 5
    for length, offset in ((6, 0), (1, 5)):
        with pytest.raises(ValueError, match="The text has 6 tokens, but this model has positions for 5 at most"):
            encoding(torch.ones(1, length, dtype=torch.bool), offset)
