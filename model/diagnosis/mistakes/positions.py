"""Positions that count the padding in front of a sentence, read off the position ids."""

from __future__ import annotations

import numpy as np

from ..inputs.arrays import Arrays


def counted_padding(arrays: Arrays) -> np.ndarray | None:
    """Return (B, K) bool: real tokens whose positions count the padding at their left; None where there are none.

    A sample is compared with those that have less padding: the first real token of each should have the same position,
    whatever the model counts from. Without another sample two pads or more must be counted one by one, since a single
    pad may be the position kept for padding.
    """
    positions, keep = arrays.position_ids, arrays.key_keep
    if positions is None or keep is None:
        return None
    pads = np.argmax(keep, -1)
    first = np.take_along_axis(positions, pads[:, None], 1)[:, 0]
    counted = np.array([_counts_up(row, count) for row, count in zip(positions, pads, strict=True)])
    fewer = pads[None, :] < pads[:, None]
    late = first[:, None] - first[None, :] == pads[:, None] - pads[None, :]
    same = first[:, None] == first[None, :]
    wrong = counted & np.where(fewer.any(1), (fewer & late).any(1) & ~(fewer & same).any(1), pads > 1)
    return keep & wrong[:, None] if wrong.any() else None


def _counts_up(positions: np.ndarray, pads: int) -> bool:
    """Whether ``pads`` positions in front of the first real one lead up to it in steps of one."""
    return pads > 0 and bool((np.diff(positions[: pads + 1]) == 1).all())
