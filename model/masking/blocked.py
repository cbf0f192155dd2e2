"""When a number blocks, in a mask that is added to the scores or in scores after the mask: the one threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

BLOCKED = -1e3
"""The largest value that blocks. Fills lie below it (-1e4, -1e9, the lowest number of a format, -inf), position biases
and scores above."""

Values = TypeVar("Values", np.ndarray, "Tensor")


def is_blocked(values: Values) -> Values:
    """Return True where a value blocks, for an array of numpy or a tensor of torch of any shape.

    NaN does not block: it is a fault of the scores, not the work of a mask.
    """
    return values <= BLOCKED
