"""What is sent in one or two bytes is printed as the number it was made of, whatever the number is."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attenscope.viz.figures.figure_style import Look
from attenscope.viz.ui.addresses.explore import EXPLORE_LINE_THRESHOLD
from attenscope.viz.web.component_scripts import (
    FULL_BYTE,
    FULL_UINT16,
    MASKED_BYTE,
    quantise_weights,
    quantise_weights_to_uint16,
)
from attenscope.viz.web.maps import LEAST_POWER, LinkOptions, MatrixData
from attenscope.viz.web.maps import encode_attention_links as packed_links
from attenscope.viz.web.maps import encode_matrix as packed_matrix
from attenscope.viz.web.text_components import encode_shaded_text as packed_text
from tests.viz.fakes import attention
from tests.viz.web.test_packing import unpack

WEIGHTS = arrays(np.float32, (4, 6), elements=st.floats(0, 1, width=32))
EVERY = np.ones((4, 6), dtype=bool)


NUMBERS = [one for one in EXPLORE_LINE_THRESHOLD.options if one != "strongest"]


def printed(values: np.ndarray, decimals: int) -> list[str]:
    """As JavaScript's toFixed prints them: exactly, halves away from zero. A zero has no sign here."""
    unit = Decimal(1).scaleb(-decimals)
    found = (Decimal(float(value)).quantize(unit, ROUND_HALF_UP) for value in values.ravel())
    return [str(abs(one) if one == 0 else one) for one in found]


@given(WEIGHTS)
def test_a_byte_is_printed_as_its_weight(weights: np.ndarray) -> None:
    decoded = quantise_weights(weights, EVERY) / FULL_BYTE
    for decimals in (0, 1, 2):
        assert printed(decoded, decimals) == printed(weights, decimals)
    assert np.abs(decoded - weights).max() <= 1 / FULL_BYTE
    for threshold in NUMBERS:  # Decimal, so that 0.1 as float32 is not less than the 0.1 that a person reads.
        for byte, weight in zip(decoded.ravel(), weights.ravel(), strict=True):
            assert (byte >= threshold) == (Decimal(float(weight)) >= Decimal(str(threshold)))


@given(WEIGHTS, st.sampled_from([1.0, 0.5, 0.3, 0.2]))
def test_two_bytes_are_printed_as_their_weight(shares: np.ndarray, top: float) -> None:
    weights = shares * np.float32(top)
    decoded = top * quantise_weights_to_uint16(weights, EVERY, top) / FULL_UINT16
    for decimals in (2, 3):
        assert printed(decoded, decimals) == printed(weights, decimals)
    assert np.abs(decoded - weights).max() <= 1.001 * top / FULL_UINT16


def test_what_lies_outside_is_held_at_the_ends_and_what_is_masked_may_be_anything() -> None:
    weights, mask = np.array([[-9.0, 1e30, np.nan]]), np.array([[True, True, False]])
    assert quantise_weights(weights, mask).tolist() == [[0, FULL_BYTE, MASKED_BYTE]]
    assert quantise_weights_to_uint16(weights, mask).tolist() == [[0, FULL_UINT16, FULL_UINT16 + 1]]


def matrix(values: np.ndarray, low: float, high: float, *, exponent: bool = False) -> MatrixData:
    rows, columns = (range(side) for side in values.shape)
    return MatrixData(values, "", rows, columns, "", "", low, high, ("#000000", "#ffffff"), exponent=exponent)


def decoded(shown: MatrixData) -> tuple[np.ndarray, int]:
    """The values as matrix.js reads them, and with how many decimals it prints them."""
    header, body = unpack(packed_matrix(shown))
    sent = np.frombuffer(body, np.uint8 if header["full"] == FULL_BYTE else "<u2").reshape(shown.values.shape)
    return header["low"] + (header["high"] - header["low"]) * sent / header["full"], header["decimals"]


@given(WEIGHTS, st.sampled_from([0.04, 1.0, 1.26, 1.3, 40.0, 256.0, 1000.0, 3e6]), st.booleans())
def test_a_table_is_printed_as_it_is(shares: np.ndarray, high: float, signed: bool) -> None:
    low = -high if signed else 0.0
    values = (low + (high - low) * shares.astype(float)).astype(np.float32).clip(low, high)
    found, decimals = decoded(matrix(values, low, high))
    assert decimals == (2 if high <= 256 else 1 if high <= 1000 else 0)
    if high <= 1000:
        assert printed(found, decimals) == printed(values, decimals)


def exponential(value: float) -> str:
    """As toExponential(1) prints it, an exact zero as 0."""
    exact = Decimal(value)
    power = exact.adjusted()
    digits = exact.scaleb(-power).quantize(Decimal("0.1"), ROUND_HALF_UP)
    if digits == 10:
        digits, power = Decimal("1.0"), power + 1
    return f"{digits}e{power:+d}" if value else "0"


def sizes(shown: MatrixData) -> Iterable[str]:
    """As matrix.js reads them."""
    for (code,) in struct.iter_unpack("<H", unpack(packed_matrix(shown))[1]):
        digits, power = 10 + (code - 1) % 90, LEAST_POWER + (code - 1) // 90
        yield f"{digits / 10}e{power + 1:+d}" if code else "0"


@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-90, 1e90)), min_size=1, max_size=20))
def test_errors_are_printed_with_two_digits_and_zero_as_zero(values: list[float]) -> None:
    for value in values:  # No double lies between two digits but by its own rounding, as 1.25e-7 does.
        tenths = value / 10.0 ** (Decimal(value).adjusted() - 1) if value else 0
        assume(abs(tenths % 1 - 0.5) > 1e-9)
    shown = matrix(np.array([values]), -9, 0, exponent=True)
    assert list(sizes(shown)) == [exponential(value) for value in values]


def test_errors_by_hand() -> None:
    values = np.array([[0.0, 1e-7, 9.96e-8, 2.34e-12, 1.0, 1.26]])
    assert list(sizes(matrix(values, -9, 0, exponent=True))) == ["0", "1.0e-7", "1.0e-7", "2.3e-12", "1.0e+0", "1.3e+0"]


@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_the_mean_over_all_queries_is_that_of_the_weights(kind: str) -> None:
    words = tuple(f" word{i}" for i in range(12))
    one = attention(kind, words, words, words)  # type: ignore[arg-type]
    sent = np.frombuffer(unpack(packed_text(one, 1, 2, Look(), "fed", (None, None), ""))[1], np.uint8)
    assert len(sent) == one.mask.size + 12
    means = [one.weights[1, 2, one.mask[:, key], key].astype(float).mean() for key in range(12)]
    assert printed(sent[-12:] / FULL_BYTE, 2) == printed(np.array(means), 2)


def test_a_line_is_drawn_where_the_weight_is_large_enough() -> None:
    words = tuple(f" word{i}" for i in range(40))
    one = attention("encoder", words, words, words)
    for threshold in NUMBERS:
        header, body = unpack(packed_links(one, LinkOptions(1, 0, (), threshold), Look(), "fed", (None, None), ""))
        drawn = np.frombuffer(body, np.uint8) >= header["threshold"] * FULL_BYTE
        np.testing.assert_array_equal(drawn, one.weights[1].ravel() >= threshold)
