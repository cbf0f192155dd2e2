"""The greatest numbers of a long row, quicker than by sorting through all of it."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

LONG = 2048
"""Numbers of a row from which looking at the greatest of each part first pays."""
NARROWEST, WIDEST = 32, 256
"""Numbers of a part."""


def top(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """values (B, N) -> the `count` greatest of each row, greatest first, and where they stand: (B, count) each.

    The same numbers as `topk` gives; of equal ones another may be taken. They lie in the `count` parts with the
    greatest maxima, so on a CPU only these are sorted through, which takes a third to a half of the time.
    """
    width = _width(values.shape[1], count) if values.device.type == "cpu" else 0
    if not width:
        return torch.topk(values, count)
    parts = values.view(len(values), -1, width)
    best = parts.amax(-1).topk(count).indices
    found, at = parts.gather(1, best[:, :, None].expand(-1, -1, width)).flatten(1).topk(count)
    return found, best.gather(1, at // width) * width + at % width


@cache
def _width(length: int, count: int) -> int:
    """How wide the parts of a row are, a divisor of its length; 0 where there is none that pays."""
    if length < LONG:
        return 0
    wanted = (length / count) ** 0.5  # as many maxima as numbers in the chosen parts
    widths = [one for one in range(NARROWEST, WIDEST + 1) if length % one == 0 and length // one >= count]
    return min(widths, key=lambda one: abs(one - wanted), default=0)
