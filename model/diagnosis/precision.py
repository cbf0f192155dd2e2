"""How finely weights were stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Precision:
    """How finely the weights were stored, judged by their values, since files often widen them."""

    relative: float
    """Half a unit in the last place."""
    smallest: float
    """Below this a weight becomes zero."""
    prior: float
    """Chance that an allowed cell became zero, before any is seen."""

    @property
    def limit(self) -> float:
        """Range of log weights that the format can hold below 1."""
        return float(-np.log(self.smallest))

    def row_tolerance(self, keys: int) -> float:
        """How far from 1 a correct row may sum."""
        rounding = self.smallest * keys if self.smallest > 1e-9 else 0.0
        return 2e-3 + 2 * self.relative + rounding


_HALF = Precision(2.0**-11, 6e-8, 0.2)
_BRAIN = Precision(2.0**-8, 1e-38, 0.005)
_SINGLE = Precision(2.0**-24, 1e-38, 0.005)
_DOUBLE = Precision(2.0**-53, 1e-308, 0.001)


def precision(weights: np.ndarray) -> Precision:
    """The most forgiving of all formats that hold every weight exactly."""
    values = np.unique(weights[np.isfinite(weights) & (weights > 0)])
    fits = [_DOUBLE, *_formats(values)]
    if weights.dtype == np.float16:
        fits.append(_HALF)
    if values.size > 3:
        fits += [
            Precision(unit / 2, unit / 2, 0.3) for unit in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6) if _rounded(values, unit)
        ]
    worst = (max(getattr(fit, name) for fit in fits) for name in ("relative", "smallest", "prior"))
    return Precision(*worst)


def _formats(values: np.ndarray) -> list[Precision]:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
        half = np.array_equal(values.astype(np.float16).astype(values.dtype), values)
    if not np.array_equal(single.astype(values.dtype), values):
        return []
    brain = not (single.view(np.uint32) & 0xFFFF).any()
    return [_SINGLE] + [_HALF] * half + [_BRAIN] * brain


def _rounded(values: np.ndarray, unit: float) -> bool:
    digits = round(-np.log10(unit))
    return np.array_equal(np.round(values.astype(np.float64), digits).astype(values.dtype), values)
