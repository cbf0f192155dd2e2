"""How far outputs change, and how far they may without meaning anything: rounding, and another batch size."""

from __future__ import annotations

import torch
from torch import Tensor

from .subject import Subject

_ROUNDING, _MOST_NOISE = 64, 256
"""Units of rounding of the largest output: those that are always granted, and those that a model may need."""


def largest_change(change: Tensor, rows: Tensor) -> float:
    """Return the largest absolute change (B, T, ...) at the rows (B, T) that count; NaN if there is one."""
    return float(change[rows].abs().max()) if bool(rows.any()) else 0.0


def worse(one: float, other: float) -> float:
    """Return the larger of two changes, NaN being the largest."""
    return other if other != other or other > one else one


def tolerated(outputs: Tensor, rows: Tensor, tolerance: float) -> float:
    """Return how far two computations may differ: ``tolerance`` of the largest output (B, T, ...), or of 1."""
    return tolerance * max(1.0, largest_change(outputs, rows))


def granted_rounding(outputs: Tensor, rows: Tensor) -> float:
    """Return what rounding alone may change in outputs (B, T, ...), as in a Fourier transform."""
    return tolerated(outputs, rows, _ROUNDING * torch.finfo(outputs.dtype).eps)


def granted_noise(subject: Subject, outputs: Tensor) -> float:
    """Return the largest change of (B, T', ...) outputs that is no more than the noise of this model.

    That is rounding, as of a softmax before the mask, and within bounds what another batch size changes.
    """
    rows = subject.outputs_real
    granted = granted_rounding(outputs, rows)
    if subject.output_keep is not None:
        return granted
    alone = subject.run(subject.embeddings[:1], subject.keep[:1])
    return max(granted, min(largest_change(outputs[:1] - alone, rows[:1]), granted * _MOST_NOISE / _ROUNDING))


def is_more_than_rounding(depends: Tensor) -> Tensor:
    """Return where (B, T, T) gradients are more than rounding beside the largest of their row; NaN is."""
    row = depends.nan_to_num().amax(-1, keepdim=True)
    return ~(depends <= _ROUNDING * torch.finfo(depends.dtype).eps * row)
