"""What is left of a model as its heads are taken away: a line by cost, a band of random orders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..curves import Axis, Curves, Mark, Note, linear
from ..palette import Palette
from ..speech import say

HEIGHT = 380


def pruned(
    away: Sequence[int],
    by_cost: Sequence[float],
    random: np.ndarray,
    chosen: int,
    measure: str,
    title: str,
    palette: Palette,
) -> Curves:
    """`by_cost` (N,) and `random` (orders, N) over the heads taken `away` (N,); `chosen` is a point, from 0.

    The first mark is the line by cost, a point a number of heads.
    """
    heads, across = away[-1], np.array(away, dtype=float)
    cost = np.array(by_cost)
    mean, low, high = random.mean(0), random.min(0), random.max(0)
    left = np.array([heads - one for one in away])
    says = say("{{1:.0f}} heads left · {measure} {{0:.2f}} · random orders {{2:.2f}} to {{3:.2f}}", measure=measure)
    values = np.stack([cost, left, low, high], -1)
    there, back = (np.stack([across, edge], -1) for edge in (low, high))
    marks = [
        Mark("line", np.stack([across, cost], -1), palette.accent, 2.5, says, values),
        Mark("dots", np.array([[across[chosen], cost[chosen]]]), palette.accent, 6.0),
        Mark("line", np.stack([across, mean], -1), palette.soft, 1.5),
        Mark("area", np.concatenate([there, back[::-1]]), palette.soft),
    ]
    lowest, highest = float(min(low.min(), cost.min())), float(max(high.max(), cost.max()))
    room = 0.05 * (highest - lowest) or 1.0
    at = len(away) // 2
    notes = [
        Note(say("by cost, least first"), float(across[at]), float(cost[at]), palette.accent, "start", "bottom", 8),
        Note(say("random orders"), float(across[at]), float(low[at]), palette.soft, "end", "top", -8),
    ]
    ticks = [(heads - value, text) for value, text in linear(0, heads, whole=True).ticks]
    return Curves(
        title,
        Axis(0.0, float(heads), say("heads left"), ticks),
        linear(lowest - room, highest + room, measure, grid=True),
        marks,
        palette,
        notes,
        height=HEIGHT,
    )
