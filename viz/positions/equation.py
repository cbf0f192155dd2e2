"""Formulas with numbers: one value of the table, a line a step, and the rotation of one pair."""

from __future__ import annotations

import numpy as np

from model.language.say import number
from model.positions.table import Cell, PositionTable

from ..export.parts import MathML


def latex(cell: Cell, d_model: int, base: float, *, inclusive: bool = False) -> str:
    """The steps in LaTeX, as a page sets them."""
    above, below = (cell.pair, max((d_model + 1) // 2 - 1, 1)) if inclusive else (2 * cell.pair, d_model)
    function = f"\\{cell.function}"
    divisor, angle = _tex(cell.divisor, ".6g"), _tex(cell.angle, ".6g")
    steps = (
        f"PE_{{{cell.position},\\,{cell.dimension}}} &= "
        f"{function}\\!\\left(\\frac{{{cell.position}}}{{{base:g}^{{\\,{above}/{below}}}}}\\right)",
        f"&= {function}\\!\\left(\\frac{{{cell.position}}}{{{divisor}}}\\right)",
        f"&= {function}({angle})",
        "&= \\mathbf{" + _tex(cell.value, ".6f") + "}",
    )
    return "\\begin{aligned} " + " \\\\ ".join(steps) + " \\end{aligned}"


def block(pair: int, matrix: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple[str, ...]:
    """The 2 by 2 block of one pair in LaTeX, and what it does to one position."""
    rows = " \\\\ ".join(" & ".join(_tex(value, ".3f") for value in row) for row in matrix)
    vectors = [" \\\\ ".join(_tex(value, ".3f") for value in vector) for vector in (before, after)]
    return (
        f"M_k^{{({pair})}} = \\begin{{pmatrix}} \\cos k\\omega & \\sin k\\omega \\\\ "
        "-\\sin k\\omega & \\cos k\\omega \\end{pmatrix}",
        f"\\begin{{pmatrix}} {rows} \\end{{pmatrix}} \\begin{{pmatrix}} {vectors[0]} \\end{{pmatrix}} = "
        f"\\begin{{pmatrix}} {vectors[1]} \\end{{pmatrix}}",
    )


def mathml(cell: Cell, table: PositionTable) -> MathML:
    """The same steps in MathML, as a saved file sets them."""
    position, function = _number(cell.position, "d"), ("mi", cell.function)
    exponent = ("mrow", (_number(2 * cell.pair, "d"), ("mo", "/"), _number(table.width, "d")))
    power = ("msup", (_number(table.base, "g"), exponent))
    indices = ("mrow", (position, ("mo", ","), _number(cell.dimension, "d")))
    steps: tuple[MathML, ...] = (
        _of(function, ("mfrac", (position, power))),
        _of(function, ("mfrac", (position, _number(cell.divisor, ".6g")))),
        _of(function, _number(cell.angle, ".6g")),
        ("mrow", (_number(cell.value, ".6f"),)),
    )
    name: MathML = ("msub", (("mrow", (("mi", "P"), ("mi", "E"))), indices))
    left = (name, *[("mrow", ())] * (len(steps) - 1))
    rows = [("mtr", (("mtd", (a,)), ("mtd", (("mo", "="), b)))) for a, b in zip(left, steps, strict=True)]
    return ("math", (("mtable", tuple(rows)),))


def _of(function: MathML, argument: MathML) -> MathML:
    return ("mrow", (function, ("mo", "("), argument, ("mo", ")")))


def _number(value: float, form: str) -> MathML:
    sign: tuple[MathML, ...] = (("mo", "\N{MINUS SIGN}"),) if value < 0 else ()
    return ("mrow", (*sign, ("mn", number(abs(value), form))))


def _tex(value: float, form: str) -> str:
    """A number in LaTeX, which would put a space after a comma."""
    return number(value, form).replace(",", "{,}")
