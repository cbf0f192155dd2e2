"""Tables of positional encodings as numbers to look at: a model's own, or one made from the formula of section 3.5."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np

from ..network.positional_encoding import PositionalEncoding, sinusoidal_table

TableKind = Literal["sinusoidal", "sinusoidal_pad_row", "learned"]
Order = Literal["interleaved", "halves"]
ORDERS: tuple[Order, ...] = get_args(Order)
BASE = 10000.0


@dataclass(frozen=True, eq=False)
class PositionTable:
    """The rows that are added to token embeddings."""

    values: np.ndarray
    """(R, D): row r is the encoding of position r; with a PAD row, row 0 is PAD's and positions count from 1."""
    kind: TableKind
    base: float = BASE
    """The 10000 of the formula; of no meaning for a learned table."""

    @property
    def first(self) -> int:
        """The row of the first real position: 1 where row 0 belongs to PAD."""
        return 1 if self.kind == "sinusoidal_pad_row" else 0

    @property
    def real(self) -> np.ndarray:
        """(P, D) the rows of real positions."""
        return self.values[self.first :]

    @property
    def width(self) -> int:
        return self.values.shape[1]

    def cut(self, positions: int) -> PositionTable:
        """The same table with its first `positions` real positions only."""
        return PositionTable(self.values[: positions + self.first], self.kind, self.base)


@dataclass(frozen=True)
class Cell:
    """One value of a sinusoidal table, worked out: PE = function(position / base^exponent)."""

    position: int
    """The number the angle is made of; 0 for the first real position, also where a PAD row stands before it."""
    dimension: int
    pair: int
    """i: dimension 2i is its sine, 2i + 1 its cosine."""
    exponent: float
    divisor: float
    angle: float
    """Radians."""
    function: Literal["sin", "cos"]
    value: float


def table_of(encoding: PositionalEncoding) -> PositionTable:
    """The tensor that a loaded model really uses, as it is: a copy in its own precision."""
    return PositionTable(encoding.table.detach().float().cpu().numpy().copy(), encoding.kind)


def formula_table(
    positions: int, d_model: int, base: float = BASE, kind: TableKind = "sinusoidal", values: np.ndarray | None = None
) -> PositionTable:
    """A table of (positions, d_model) by the formula, float64; `values` are given where another form computed them."""
    rows = sinusoidal_table(positions, d_model, base).numpy() if values is None else values
    if kind == "sinusoidal_pad_row":
        rows = np.concatenate([np.zeros((1, d_model), dtype=rows.dtype), rows])
    return PositionTable(rows, kind, base)


def dimension_order(d_model: int, order: Order) -> np.ndarray:
    """(D,) which dimension stands at each column: as stored, or all sines before all cosines."""
    dimensions = np.arange(d_model)
    return dimensions if order == "interleaved" else np.concatenate([dimensions[0::2], dimensions[1::2]])


def pair_exponent(pair: int, d_model: int, *, inclusive: bool = False) -> Fraction:
    """The exponent of the base for a pair, from 0: 2i/D as in section 3.5, or `inclusive` i/(pairs - 1), 0 to 1."""
    return Fraction(pair, max((d_model + 1) // 2 - 1, 1)) if inclusive else Fraction(2 * pair, d_model)


def cell(position: int, dimension: int, d_model: int, base: float = BASE, *, inclusive: bool = False) -> Cell:
    """Section 3.5, one value: PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i + 1) = cos of the same angle.

    With `inclusive` the exponent of pair i is i/(pairs - 1).
    """
    pair = dimension // 2
    exponent = float(pair_exponent(pair, d_model, inclusive=inclusive))
    divisor = base**exponent
    angle = position / divisor
    function: Literal["sin", "cos"] = "cos" if dimension % 2 else "sin"
    return Cell(position, dimension, pair, exponent, divisor, angle, function, getattr(math, function)(angle))
