"""Tables of positional encodings, the forms that compute them, and the parts of an embedding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ..language import to_say
from ..network.abstract_model import Side, make_decoder_inputs
from ..network.hooks import hook_outputs
from ..network.layers import PositionalEncoding, make_sinusoidal_table
from ..runnable_model import RunnableModel, Translation

# Tables of positional encodings as numbers to look at: a model's own, or one made from the formula of section 3.5.


TableKind = Literal["sinusoidal", "sinusoidal_pad_row", "learned"]
DimensionOrder = Literal["interleaved", "halves"]
DIMENSION_ORDERS: tuple[DimensionOrder, ...] = get_args(DimensionOrder)
SINUSOID_BASE = 10000.0


@dataclass(frozen=True, eq=False)
class PositionTable:
    """The rows that are added to token embeddings."""

    values: np.ndarray
    """(R, D): row r is the encoding of position r; with a PAD row, row 0 is PAD's and positions count from 1."""
    kind: TableKind
    base: float = SINUSOID_BASE
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
class TableCell:
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


def extract_table(encoding: PositionalEncoding) -> PositionTable:
    """Return a copy of the table that a loaded model really uses."""
    return PositionTable(encoding.table.detach().float().cpu().numpy().copy(), encoding.kind)


def make_formula_table(
    positions: int,
    d_model: int,
    base: float = SINUSOID_BASE,
    kind: TableKind = "sinusoidal",
    values: np.ndarray | None = None,
) -> PositionTable:
    """Return a table (positions, d_model) by the formula in float64, or of `values` that another form computed."""
    rows = make_sinusoidal_table(positions, d_model, base).numpy() if values is None else values
    if kind == "sinusoidal_pad_row":
        rows = np.concatenate([np.zeros((1, d_model), dtype=rows.dtype), rows])
    return PositionTable(rows, kind, base)


def order_dimensions(d_model: int, order: DimensionOrder) -> np.ndarray:
    """Return the dimension (D,) that stands at each column: as stored, or all sines before all cosines."""
    dimensions = np.arange(d_model)
    return dimensions if order == "interleaved" else np.concatenate([dimensions[0::2], dimensions[1::2]])


def pair_exponent(pair: int, d_model: int, *, inclusive: bool = False) -> Fraction:
    """Return the exponent of the base for pair i, from 0: 2i/D as in section 3.5; `inclusive`: i/(pairs - 1)."""
    return Fraction(pair, max((d_model + 1) // 2 - 1, 1)) if inclusive else Fraction(2 * pair, d_model)


def compute_table_cell(
    position: int, dimension: int, d_model: int, base: float = SINUSOID_BASE, *, inclusive: bool = False
) -> TableCell:
    """Section 3.5, one value: PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i + 1) = cos of the same angle.

    With `inclusive` the exponent of pair i is i/(pairs - 1).
    """
    pair = dimension // 2
    exponent = float(pair_exponent(pair, d_model, inclusive=inclusive))
    divisor = base**exponent
    angle = position / divisor
    function: Literal["sin", "cos"] = "cos" if dimension % 2 else "sin"
    return TableCell(position, dimension, pair, exponent, divisor, angle, function, getattr(math, function)(angle))


# Forms: the ways in which other code computes the sinusoidal table, and how far each is from the formula.
#
# All are PE(pos, 2i) = sin(pos / base^(2i/D)) on paper; they differ in the order of operations and in precision.


@dataclass(frozen=True)
class TableForm:
    """One way of computing the table."""

    title: str
    code: str
    """The line that gives it its character."""
    note: str
    build: Callable[[int, int, float], Tensor]
    """(positions, d_model, base) -> (positions, d_model), sines and cosines interleaved, in the form's own type."""
    inclusive: bool = False
    """Whether the exponents reach 1, which makes other wavelengths than those of section 3.5."""


@dataclass(frozen=True)
class FormError:
    """How far a form is from the float64 formula."""

    name: str
    largest: float
    """Largest absolute difference."""
    rms: float
    """Root of the mean square difference."""
    position: int
    dimension: int
    """Where the largest stands."""


def _interleave_sines(angle: Tensor, d_model: int) -> Tensor:
    """angle (P, ceil(D / 2)) -> (P, D) sines and cosines interleaved; an odd D leaves out the last cosine."""
    table = angle.new_empty(len(angle), d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def _make_float_range(count: int, dtype: torch.dtype, step: int = 1) -> Tensor:
    return torch.arange(0, count, step, dtype=torch.float64, device="cpu").to(dtype)


def _make_exp_log_table_builder(dtype: torch.dtype) -> Callable[[int, int, float], Tensor]:
    def build(positions: int, d_model: int, base: float) -> Tensor:
        rate = (_make_float_range(d_model, dtype, 2) * (-math.log(base) / d_model)).exp()
        return _interleave_sines(_make_float_range(positions, dtype)[:, None] * rate, d_model)

    return build


def _build_table_by_power(positions: int, d_model: int, base: float) -> Tensor:
    exponent = _make_float_range(d_model, torch.float32, 2) / d_model
    return _interleave_sines(_make_float_range(positions, torch.float32)[:, None] / base**exponent, d_model)


def _build_table_per_cell(positions: int, d_model: int, base: float) -> Tensor:
    """pos / base^(2 (j // 2) / D) for every cell j in float64, then the sine or cosine of it, cast at the end."""
    column = np.arange(d_model)
    angle = np.arange(positions)[:, None] / np.power(base, 2 * (column // 2) / d_model)
    angle[:, 0::2], angle[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    return torch.from_numpy(angle).float()


def _build_table_inclusive_exponents(positions: int, d_model: int, base: float) -> Tensor:
    pairs = (d_model + 1) // 2
    rate = (_make_float_range(pairs, torch.float32) * (-math.log(base) / max(pairs - 1, 1))).exp()
    return _interleave_sines(_make_float_range(positions, torch.float32)[:, None] * rate, d_model)


def _make_cast_table_builder(dtype: torch.dtype) -> Callable[[int, int, float], Tensor]:
    return lambda positions, d_model, base: make_sinusoidal_table(positions, d_model, base).to(dtype)


TABLE_FORMS: dict[str, TableForm] = {
    "float64": TableForm(
        "float64, cast at the end",
        "sinusoidal_table(P, D)  # torch.float64\n.to(torch.float32)",
        to_say("As this project does."),
        _make_cast_table_builder(torch.float32),
    ),
    "per_cell": TableForm(
        "per cell",
        "[[pos / np.power(10000, 2 * (j // 2) / D) for j in …] for pos in …]",
        to_say("NumPy computes in float64; only the result is cast."),
        _build_table_per_cell,
    ),
    "power": TableForm(
        "power, float32",
        "pos / 10000 ** (torch.arange(0, D, 2) / D)",
        to_say("The angle of a late position carries the rounding of the power, times the position."),
        _build_table_by_power,
    ),
    "exp_of_log": TableForm(
        "exp of log, float32",
        "torch.exp(torch.arange(0, D, 2) * (-math.log(10000.0) / D))",
        to_say("The commonest form; the exponential's rounding grows with the position."),
        _make_exp_log_table_builder(torch.float32),
    ),
    "cast_half": TableForm(
        "stored as float16",
        "table.half()",
        to_say("Right, then rounded to 11 bits."),
        _make_cast_table_builder(torch.float16),
    ),
    "cast_bfloat16": TableForm(
        "stored as bfloat16",
        "table.bfloat16()",
        to_say("Right, then rounded to 8 bits."),
        _make_cast_table_builder(torch.bfloat16),
    ),
    "half": TableForm(
        "float16 throughout",
        "torch.arange(P, dtype=torch.float16) …",
        to_say("Angles themselves are rounded: late positions are wrong, and past 2048 some share a number."),
        _make_exp_log_table_builder(torch.float16),
    ),
    "bfloat16": TableForm(
        "bfloat16 throughout",
        "torch.arange(P, dtype=torch.bfloat16) …",
        to_say("Whole numbers past 256 are rounded: neighbouring positions get the same row."),
        _make_exp_log_table_builder(torch.bfloat16),
    ),
    "inclusive": TableForm(
        "exponents up to 1",
        "math.log(10000.0) / (D // 2 - 1)",
        to_say("Another progression, not a rounding: wavelengths reach 10000 · 2π itself (tensor2tensor, fairseq)."),
        _build_table_inclusive_exponents,
        inclusive=True,
    ),
}


def compute_table_by_form(name: str, positions: int, d_model: int, base: float = SINUSOID_BASE) -> np.ndarray:
    """Return the table as the form computes it, widened exactly to float64: (positions, d_model)."""
    return TABLE_FORMS[name].build(positions, d_model, base).double().numpy()


def compute_form_formula_difference(name: str, positions: int, d_model: int, base: float = SINUSOID_BASE) -> np.ndarray:
    """Return |form - float64 formula|: (positions, d_model)."""
    return np.abs(
        compute_table_by_form(name, positions, d_model, base)
        - _compute_reference_formula_table(positions, d_model, base)
    )


@lru_cache(maxsize=2)
def _compute_reference_formula_table(positions: int, d_model: int, base: float) -> np.ndarray:
    """Return the table that every form is compared with, cached for the sizes chosen last."""
    values = make_sinusoidal_table(positions, d_model, base).numpy()
    values.flags.writeable = False
    return values


def measure_form_error(name: str, positions: int, d_model: int, base: float = SINUSOID_BASE) -> FormError:
    difference = compute_form_formula_difference(name, positions, d_model, base)
    position, dimension = np.unravel_index(int(difference.argmax()), difference.shape)
    rms = float(np.sqrt(np.square(difference).mean()))
    return FormError(name, float(difference.max()), rms, int(position), int(dimension))


# The input of the first layer: token embedding, positional encoding and their sum, as the model adds them.


@dataclass(frozen=True, eq=False)
class EmbeddingParts:
    """The embedding of one side of one sentence, (T, D) each."""

    pieces: tuple[str, ...]
    tokens: np.ndarray
    """Token embeddings, times `scale`."""
    encoding: np.ndarray
    """Positional encodings."""
    total: np.ndarray
    """Their sum, which the first layer reads, or a norm before it."""
    scale: float
    """sqrt(D) where the model scales its embeddings (section 3.4), else 1."""
    normalised: bool = False
    """Whether a norm of its own stands between the sum and the first layer."""

    @property
    def share(self) -> np.ndarray:
        """(T,) length of the encoding as a share of both lengths together."""
        tokens, encoding = np.linalg.norm(self.tokens, axis=1), np.linalg.norm(self.encoding, axis=1)
        both = tokens + encoding
        return np.divide(encoding, both, out=np.zeros_like(encoding), where=both > 0)


@torch.inference_mode()
def read_embedding_parts(model: RunnableModel, translation: Translation, side: Side) -> EmbeddingParts:
    """Read the parts through hooks while the sentence runs; `target` is what the decoder was fed.

    Of a decoder alone that is the prompt too, and there is no other side. Raises ValueError for a side that adds no
    positions.
    """
    network = model.model
    added = network.added_positions(side)
    if added is None:
        raise ValueError(f"{model.name} adds no positions to its {side}.")
    source = torch.tensor([translation.source_ids], device=model.device)
    target = torch.tensor([make_decoder_inputs(translation.target_ids, network.start_id)], device=model.device)
    tokens: list[Tensor] = []
    encodings: list[Tensor] = []
    with hook_outputs({network.token_embedding(side): tokens.append, added.module: encodings.append}):
        memory = network.encode(source)
        if side == "target":
            network.decode(target, memory, network.source_mask(source))
    embedded = tokens[-1][0] * added.factor
    encoding = encodings[-1].expand(1, *embedded.shape)[0]
    maps = translation.trace.maps
    pieces = translation.source_tokens if side == "source" else maps["decoder"].query_tokens
    own, place, total = (one.float().cpu().numpy() for one in (embedded, encoding, embedded + encoding))
    return EmbeddingParts(pieces, own, place, total, added.scale, added.normalised)
