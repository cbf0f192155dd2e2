"""The four pictures of one sample and head, as the component draws them. No Streamlit."""

from __future__ import annotations

import numpy as np

from model.behaviour.dependencies import reach

from ...components.mask_editor import Panel, State
from .cells import compared, effect, given_marks
from .input.mask_input import MaskInput
from .judgement import Judgement
from .slices import LARGEST_RUN, Slice, dependence

MOST_DRAWN = 128
"""Queries or keys that are drawn; of a larger map the first ones."""


def panels(mask_input: MaskInput, judgement: Judgement, one: Slice, depth: int) -> list[Panel]:
    """The four of one sample and head."""
    made = [
        _meant(mask_input, judgement, one),
        _given(mask_input, one),
        _effect(one),
        _depends(one, depth),
    ]
    return [cut(panel) for panel in made]


def _meant(mask_input: MaskInput, judgement: Judgement, one: Slice) -> Panel:
    said = judgement.diagnosis.stated
    how = "as you said" if said else f"guessed, {judgement.diagnosis.sure:.0%} sure"
    if one.meant is None:
        return Panel("meant", "Meant", "Cannot be told from this.")
    editable = "meant" in mask_input.editable
    note = f"{mask_input.rule or judgement.diagnosis.meaning} ({how})"
    return plain_panel("meant", "Meant", note, one.meant, editable)


def _given(mask_input: MaskInput, one: Slice) -> Panel:
    if one.allowed is None:
        return Panel("given", "Given", "No mask was given. Add one as “mask = …”.")
    note = "the mask, " + ("as True = may attend" if one.bias is None else "added to the scores")
    editable = "given" in mask_input.editable
    states = compared(one.allowed, one.meant)
    values = one.allowed.astype(np.float32) if one.bias is None else one.bias
    counts = {"row_sums": one.allowed.sum(1).tolist(), "column_sums": one.allowed.sum(0).tolist()}
    return Panel("given", "Given", note, states, given_marks(one.bias, one.allowed), values, editable, **counts)


def _effect(one: Slice) -> Panel:
    states, marks = effect(one.weights, one.meant, one.rounded, one.idle, one.allowed)
    note = "weights above zero, of random scores" if one.generated else "weights above zero"
    with np.errstate(over="ignore"):
        weights = one.weights.astype(np.float64)
    sums = {"row_sums": weights.sum(1).tolist(), "column_sums": weights.sum(0).tolist()}
    return Panel("effect", "Took effect", f"{note}{_counts(states)}", states, marks, one.weights, **sums)


def _depends(one: Slice, depth: int) -> Panel:
    found = dependence(one, depth)
    if found is None:
        return Panel("depends", "Output depends on", f"Not run: more than {LARGEST_RUN} queries or keys.")
    # One attention alone has no residual stream; through several layers every output also depends on its own input.
    meant = one.meant if one.meant is None or depth == 1 else reach(one.meant, depth)
    nothing = np.zeros(len(found), bool)
    states, marks = effect(found, meant, nothing, one.idle)
    by = "through your weights" if one.allowed is None else "small attention run with this mask"
    after = f" of {depth} layers" if depth > 1 else ""
    note = f"gradients{after}, {by}{_counts(states)}"
    return Panel("depends", "Output depends on", note, states, np.zeros_like(marks), found)


def plain_panel(name: str, title: str, note: str, allowed: np.ndarray, editable: bool) -> Panel:
    """Return a mask (Q, K) that is compared with nothing."""
    counts = {"row_sums": allowed.sum(1).tolist(), "column_sums": allowed.sum(0).tolist()}
    values = allowed.astype(np.float32)
    return Panel(name, title, note, compared(allowed, None), None, values, editable, **counts)


def _counts(states: np.ndarray) -> str:
    kinds = ((State.LEAK, "leak"), (State.OVER, "over-blocked"), (State.NAN, "NaN"))
    counts = [(int((states == state).sum()), word) for state, word in kinds]
    found = [f"{count} {word}{'s' * (word == 'leak' and count > 1)}" for count, word in counts if count]
    return f": {', '.join(found)}" if found else ""


def cut(panel: Panel) -> Panel:
    """Return what is drawn of a large mask: its first rows and columns."""
    if panel.states is None or max(panel.states.shape) <= MOST_DRAWN:
        return panel
    part = (slice(MOST_DRAWN), slice(MOST_DRAWN))
    marks = None if panel.marks is None else panel.marks[part]
    values = None if panel.values is None else panel.values[part]
    note = f"{panel.note} (the first {MOST_DRAWN} of {' × '.join(map(str, panel.states.shape))})"
    return Panel(panel.name, panel.title, note, panel.states[part], marks, values, panel.editable)
