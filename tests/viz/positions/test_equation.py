"""One value of the table worked out, for a page and for a file."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from attenscope.language import use_language
from attenscope.positions.table import compute_table_cell, make_formula_table
from attenscope.viz.export.parts import MathML
from attenscope.viz.positions import precision


def inside(one: MathML) -> tuple[MathML, ...]:
    assert not isinstance(one[1], str)
    return one[1]


def rows_of(math: MathML) -> tuple[MathML, ...]:
    (table,) = inside(math)
    assert (math[0], table[0]) == ("math", "mtable")
    return inside(table)


def leaf_texts(one: MathML) -> Iterator[str]:
    if isinstance(one[1], str):
        yield one[1]
    else:
        for part in one[1]:
            yield from leaf_texts(part)


def test_latex_has_the_numbers() -> None:
    text = precision.format_value_derivation_latex(compute_table_cell(12, 5, 512), 512, 10000.0)
    assert "PE_{12,\\,5}" in text
    assert re.search(r"10000\^\{\\,4/512\}", text)
    assert f"{np.cos(12 / 10000 ** (4 / 512)):.6f}" in text


def test_mathml_has_the_same_steps_a_row_each() -> None:
    rows = rows_of(
        precision.format_value_derivation_mathml(compute_table_cell(12, 5, 512), make_formula_table(64, 512))
    )
    angle = 12 / 10000 ** (4 / 512)
    assert ["".join(leaf_texts(row)) for row in rows] == [
        "PE12,5=cos(12100004/512)",
        f"=cos(12{10000 ** (4 / 512):.6g})",
        f"=cos({angle:.6g})",
        f"={np.cos(angle):.6f}".replace("-", "\N{MINUS SIGN}"),
    ]
    fraction = ("mfrac", (("mrow", (("mn", "12"),)), ("mrow", (("mn", f"{10000 ** (4 / 512):.6g}"),))))
    assert str(fraction) in str(rows[1])
    assert "msup" in str(rows[0])
    assert "msup" not in str(rows[1:])


@pytest.mark.parametrize(("position", "dimension"), [(12, 4), (0, 0), (3, 1)])
def test_numbers_are_those_of_the_page_in_each_language(position: int, dimension: int) -> None:
    one, table = compute_table_cell(position, dimension, 256), make_formula_table(64, 256)
    for language in ("en", "de"):
        with use_language(language):
            latex = (
                precision.format_value_derivation_latex(one, 256, 10000.0)
                .replace("{,}", ",")
                .replace("-", "\N{MINUS SIGN}")
            )
            rows = rows_of(precision.format_value_derivation_mathml(one, table))
            for row in rows[1:]:
                for number in re.findall(r"[\d.,]+", " ".join(leaf_texts(row))):
                    assert number in latex
            value = "".join(leaf_texts(rows[-1]))[1:]
            assert f"mathbf{{{value}}}" in latex
