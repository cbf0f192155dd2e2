"""The ways in which the sinusoidal table is computed in the field, and how far each is from the formula.

All are PE(pos, 2i) = sin(pos / base^(2i/D)) on paper; they differ in the order of operations and in precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from ..language.say import to_say
from ..network.positional_encoding import sinusoidal_table
from .table import BASE


@dataclass(frozen=True)
class Form:
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


def _joined(angle: Tensor, d_model: int) -> Tensor:
    """angle (P, ceil(D / 2)) -> (P, D) sines and cosines interleaved; an odd D leaves out the last cosine."""
    table = angle.new_empty(len(angle), d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def _steps(count: int, dtype: torch.dtype, step: int = 1) -> Tensor:
    return torch.arange(0, count, step, dtype=torch.float64, device="cpu").to(dtype)


def _exp_of_log(dtype: torch.dtype) -> Callable[[int, int, float], Tensor]:
    def build(positions: int, d_model: int, base: float) -> Tensor:
        rate = (_steps(d_model, dtype, 2) * (-math.log(base) / d_model)).exp()
        return _joined(_steps(positions, dtype)[:, None] * rate, d_model)

    return build


def _power(positions: int, d_model: int, base: float) -> Tensor:
    exponent = _steps(d_model, torch.float32, 2) / d_model
    return _joined(_steps(positions, torch.float32)[:, None] / base**exponent, d_model)


def _per_cell(positions: int, d_model: int, base: float) -> Tensor:
    """pos / base^(2 (j // 2) / D) for every cell j in float64, then the sine or cosine of it, cast at the end."""
    column = np.arange(d_model)
    angle = np.arange(positions)[:, None] / np.power(base, 2 * (column // 2) / d_model)
    angle[:, 0::2], angle[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    return torch.from_numpy(angle).float()


def _inclusive(positions: int, d_model: int, base: float) -> Tensor:
    pairs = (d_model + 1) // 2
    rate = (_steps(pairs, torch.float32) * (-math.log(base) / max(pairs - 1, 1))).exp()
    return _joined(_steps(positions, torch.float32)[:, None] * rate, d_model)


def _cast(dtype: torch.dtype) -> Callable[[int, int, float], Tensor]:
    return lambda positions, d_model, base: sinusoidal_table(positions, d_model, base).to(dtype)


FORMS: dict[str, Form] = {
    "float64": Form(
        "float64, cast at the end",
        "sinusoidal_table(P, D)  # torch.float64\n.to(torch.float32)",
        to_say("As this project does."),
        _cast(torch.float32),
    ),
    "per_cell": Form(
        "per cell",
        "[[pos / np.power(10000, 2 * (j // 2) / D) for j in …] for pos in …]",
        to_say("NumPy computes in float64; only the result is cast."),
        _per_cell,
    ),
    "power": Form(
        "power, float32",
        "pos / 10000 ** (torch.arange(0, D, 2) / D)",
        to_say("The angle of a late position carries the rounding of the power, times the position."),
        _power,
    ),
    "exp_of_log": Form(
        "exp of log, float32",
        "torch.exp(torch.arange(0, D, 2) * (-math.log(10000.0) / D))",
        to_say("The commonest form; the exponential's rounding grows with the position."),
        _exp_of_log(torch.float32),
    ),
    "cast_half": Form(
        "stored as float16", "table.half()", to_say("Right, then rounded to 11 bits."), _cast(torch.float16)
    ),
    "cast_bfloat16": Form(
        "stored as bfloat16", "table.bfloat16()", to_say("Right, then rounded to 8 bits."), _cast(torch.bfloat16)
    ),
    "half": Form(
        "float16 throughout",
        "torch.arange(P, dtype=torch.float16) …",
        to_say("Angles themselves are rounded: late positions are wrong, and past 2048 some share a number."),
        _exp_of_log(torch.float16),
    ),
    "bfloat16": Form(
        "bfloat16 throughout",
        "torch.arange(P, dtype=torch.bfloat16) …",
        to_say("Whole numbers past 256 are rounded: neighbouring positions get the same row."),
        _exp_of_log(torch.bfloat16),
    ),
    "inclusive": Form(
        "exponents up to 1",
        "math.log(10000.0) / (D // 2 - 1)",
        to_say("Another progression, not a rounding: wavelengths reach 10000 · 2π itself (tensor2tensor, fairseq)."),
        _inclusive,
        inclusive=True,
    ),
}


def form_values(name: str, positions: int, d_model: int, base: float = BASE) -> np.ndarray:
    """The table as the form computes it, widened exactly: (positions, d_model) float64."""
    return FORMS[name].build(positions, d_model, base).double().numpy()


def form_difference(name: str, positions: int, d_model: int, base: float = BASE) -> np.ndarray:
    """|form - float64 formula|, (positions, d_model)."""
    return np.abs(form_values(name, positions, d_model, base) - _formula(positions, d_model, base))


@lru_cache(maxsize=2)
def _formula(positions: int, d_model: int, base: float) -> np.ndarray:
    """What every form is held against, in turn, once the sizes are chosen."""
    values = sinusoidal_table(positions, d_model, base).numpy()
    values.flags.writeable = False
    return values


def form_error(name: str, positions: int, d_model: int, base: float = BASE) -> FormError:
    difference = form_difference(name, positions, d_model, base)
    position, dimension = np.unravel_index(int(difference.argmax()), difference.shape)
    rms = float(np.sqrt(np.square(difference).mean()))
    return FormError(name, float(difference.max()), rms, int(position), int(dimension))
