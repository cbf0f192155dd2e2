"""What was brought, with a visitor's changes and fixes, judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.diagnosis import Arrays, Diagnosis, arrange, judge
from model.diagnosis.fixes import apply_fix, can_fix
from model.masking.toy_attention import Reader

from .edits import Edits
from .input import Brought


@dataclass(frozen=True, eq=False)
class Judged:
    """The verdict on what stands on the page now."""

    arrays: Arrays
    diagnosis: Diagnosis
    before: Diagnosis
    """Without the fixes."""
    done: tuple[str, ...]
    """What the fixes did, a sentence each."""
    handed: np.ndarray | None
    reader: Reader


def judged(brought: Brought, changed: Edits) -> Judged:
    """Turn cells over, judge, apply the fixes one after the other and judge again. Raises ValueError."""
    arrays = _turned(brought, changed)
    first = found = judge(arrays, brought.named)
    done: list[str] = []
    handed = brought.handed
    for code in changed.fixes:
        if not can_fix(code, arrays, found):
            break
        fixed = apply_fix(code, arrays, found)
        arrays = arrange(fixed.arrays, brought.map)
        found = judge(arrays, brought.named)
        handed = None
        count = fixed.invented_scores
        made_up = f" ({count} cells had no weight, so their scores are made up)" if count else ""
        done.append(f"{code}: {fixed.description}{made_up}.")
    return Judged(arrays, found, first, tuple(done), handed, brought.reader if handed is not None else "sdpa")


def _turned(brought: Brought, changed: Edits) -> Arrays:
    arrays = arrange(brought.arrays, brought.map)
    raw = dict(brought.arrays)
    if meant := _cells(changed, "meant"):
        base = arrays.meant if arrays.meant is not None else judge(arrays, brought.named).meant
        if base is not None:
            raw["meant"] = _flip(base, arrays, meant)
    given = _cells(changed, "given")
    if given and brought.handed is None and arrays.mask is not None:
        allowed = _flip(arrays.mask, arrays, given)
        raw["mask"] = allowed if arrays.bias is None else _added(arrays.bias, allowed)
    return arrange(raw, brought.map) if meant or given else arrays


def _cells(changed: Edits, picture: str) -> list[tuple[int, int, int]]:
    return [cell[1:] for cell in changed.cells if cell[0] == picture]


def _flip(mask: np.ndarray, arrays: Arrays, cells: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """(B, L, H, Q, K) with these cells turned over in every layer and head."""
    samples, _, _, queries, keys = arrays.sizes
    whole = np.broadcast_to(mask, (samples, *mask.shape[1:3], queries, keys)).copy()
    for sample, query, key in cells:
        if sample < samples and query < queries and key < keys:
            whole[sample, :, :, query, key] ^= True
    return whole


def _added(bias: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """A float mask that blocks as ``allowed`` says, with the fill it had."""
    low = bias.min()
    fill = low if low < 0 else -np.inf
    soft = bool(np.isin(bias, (0, 1)).all())
    return np.where(allowed, 1.0 if soft else 0.0, 0.0 if soft else fill).astype(bias.dtype)
