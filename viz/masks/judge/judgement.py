"""The verdict on a mask with the cells that a visitor turned over and the fixes that were applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.diagnosis import Arrays, Diagnosis, arrange, judge
from model.diagnosis.fixes import FixResult, apply_fix, can_fix
from model.diagnosis.rules.findings import with_origins
from model.language.say import say, say_many
from model.masking.toy_attention import Reader

from .input.edits import Edits
from .input.mask_input import MaskInput


@dataclass(frozen=True, eq=False)
class Judgement:
    """The verdict on what stands on the page now."""

    arrays: Arrays
    diagnosis: Diagnosis
    before: Diagnosis
    """Without the fixes."""
    done: tuple[str, ...]
    """What the fixes did, a sentence each."""
    raw_mask: np.ndarray | None
    reader: Reader


def judge_with_edits(mask_input: MaskInput, edits: Edits) -> Judgement:
    """Turn cells over, judge, apply the fixes one after the other and judge again. Raises ValueError."""
    arrays = _with_turned_cells(mask_input, edits)
    calls = () if edits.cells else mask_input.calls  # what was changed here no code has called
    before = diagnosis = with_origins(judge(arrays, mask_input.named), calls)
    done: list[str] = []
    raw_mask = mask_input.raw_mask
    for code in edits.fixes:
        if not can_fix(code, arrays, diagnosis):
            break
        fixed = apply_fix(code, arrays, diagnosis)
        arrays = arrange(fixed.arrays, mask_input.map, mask_input.blocks)
        diagnosis = judge(arrays, mask_input.named)
        raw_mask = None
        done.append(_in_words(code, fixed))
    reader = mask_input.reader if raw_mask is not None else "sdpa"
    return Judgement(arrays, diagnosis, before, tuple(done), raw_mask, reader)


def _in_words(code: str, fixed: FixResult) -> str:
    said = {"code": code, "done": fixed.description}
    if not fixed.invented_scores:
        return say("{code}: {done}.", **said)
    return say_many(
        "{code}: {done} ({count} cell had no weight, so its score is made up).",
        "{code}: {done} ({count} cells had no weight, so their scores are made up).",
        fixed.invented_scores,
        **said,
    )


def _with_turned_cells(mask_input: MaskInput, edits: Edits) -> Arrays:
    arrays = arrange(mask_input.arrays, mask_input.map, mask_input.blocks)
    raw = dict(mask_input.arrays)
    if meant := _cells(edits, "meant"):
        base = arrays.meant if arrays.meant is not None else judge(arrays, mask_input.named).meant
        if base is not None:
            raw["meant"] = _flip(base, arrays, meant)
    given = _cells(edits, "given")
    if given and mask_input.raw_mask is None and arrays.mask is not None:
        allowed = _flip(arrays.mask, arrays, given)
        raw["mask"] = allowed if arrays.bias is None else _additive(arrays.bias, allowed)
    return arrange(raw, mask_input.map, mask_input.blocks) if meant or given else arrays


def _cells(edits: Edits, picture: str) -> list[tuple[int, int, int]]:
    return [cell[1:] for cell in edits.cells if cell[0] == picture]


def _flip(mask: np.ndarray, arrays: Arrays, cells: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """(B, L, H, Q, K) with these cells turned over in every layer and head."""
    samples, _, _, queries, keys = arrays.sizes
    whole = np.broadcast_to(mask, (samples, *mask.shape[1:3], queries, keys)).copy()
    for sample, query, key in cells:
        if sample < samples and query < queries and key < keys:
            whole[sample, :, :, query, key] ^= True
    return whole


def _additive(bias: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """A float mask that blocks as ``allowed`` says, with the fill it had."""
    low = bias.min()
    fill = low if low < 0 else -np.inf
    soft = bool(np.isin(bias, (0, 1)).all())
    return np.where(allowed, 1.0 if soft else 0.0, 0.0 if soft else fill).astype(bias.dtype)
