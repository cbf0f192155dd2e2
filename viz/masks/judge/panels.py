"""The four pictures of one sample and head, as the component draws them. No Streamlit."""

from __future__ import annotations

import numpy as np

from model.behaviour.dependencies import reach
from model.language.say import listed, number, say, say_many

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
    if one.meant is None:
        return Panel("meant", say("Meant"), say("Cannot be told from this."))
    editable, diagnosis = "meant" in mask_input.editable, judgement.diagnosis
    meaning = mask_input.rule or diagnosis.meaning
    note = (
        say("{meaning} (as you said)", meaning=meaning)
        if diagnosis.stated
        else say("{meaning} (guessed, {sure:.0%} sure)", meaning=meaning, sure=diagnosis.sure)
    )
    return plain_panel("meant", say("Meant"), note, one.meant, editable)


def _given(mask_input: MaskInput, one: Slice) -> Panel:
    if one.allowed is None:
        return Panel("given", say("Given"), say("No mask was given. Add one as “mask = …”."))
    note = say("the mask, as True = may attend") if one.bias is None else say("the mask, added to the scores")
    editable = "given" in mask_input.editable
    states = compared(one.allowed, one.meant)
    values = one.allowed.astype(np.float32) if one.bias is None else one.bias
    counts = {"row_sums": one.allowed.sum(1).tolist(), "column_sums": one.allowed.sum(0).tolist()}
    return Panel("given", say("Given"), note, states, given_marks(one.bias, one.allowed), values, editable, **counts)


def _effect(one: Slice) -> Panel:
    states, marks = effect(one.weights, one.meant, one.rounded, one.idle, one.allowed)
    note = say("weights above zero, of random scores") if one.generated else say("weights above zero")
    with np.errstate(over="ignore"):
        weights = one.weights.astype(np.float64)
    sums = {"row_sums": weights.sum(1).tolist(), "column_sums": weights.sum(0).tolist()}
    return Panel("effect", say("Took effect"), _counted(note, states), states, marks, one.weights, **sums)


def _depends(one: Slice, depth: int) -> Panel:
    found = dependence(one, depth)
    if found is None:
        note = say("Not run: more than {count} queries or keys.", count=LARGEST_RUN)
        return Panel("depends", say("Output depends on"), note)
    # One attention alone has no residual stream; through several layers every output also depends on its own input.
    meant = one.meant if one.meant is None or depth == 1 else reach(one.meant, depth)
    nothing = np.zeros(len(found), bool)
    states, marks = effect(found, meant, nothing, one.idle)
    if depth > 1:
        note = say("gradients of {depth} layers, small attention run with this mask", depth=depth)
    elif one.allowed is None:
        note = say("gradients, through your weights")
    else:
        note = say("gradients, small attention run with this mask")
    return Panel("depends", say("Output depends on"), _counted(note, states), states, np.zeros_like(marks), found)


def plain_panel(name: str, title: str, note: str, allowed: np.ndarray, editable: bool) -> Panel:
    """Return a mask (Q, K) that is compared with nothing."""
    counts = {"row_sums": allowed.sum(1).tolist(), "column_sums": allowed.sum(0).tolist()}
    values = allowed.astype(np.float32)
    return Panel(name, title, note, compared(allowed, None), None, values, editable, **counts)


def _counted(note: str, states: np.ndarray) -> str:
    """The note, and how many cells are not as they were meant."""
    leaks, over, nan = (int((states == state).sum()) for state in (State.LEAK, State.OVER, State.NAN))
    found = [
        say_many("{count} leak", "{count} leaks", leaks) if leaks else "",
        say("{count} over-blocked", count=over) if over else "",
        say("{count} NaN", count=nan) if nan else "",
    ]
    counts = listed(filter(None, found))
    return say("{note}: {counts}", note=note, counts=counts) if counts else note


def cut(panel: Panel) -> Panel:
    """Return what is drawn of a large mask: its first rows and columns."""
    if panel.states is None or max(panel.states.shape) <= MOST_DRAWN:
        return panel
    part = (slice(MOST_DRAWN), slice(MOST_DRAWN))
    marks = None if panel.marks is None else panel.marks[part]
    values = None if panel.values is None else panel.values[part]
    whole = " × ".join(number(side) for side in panel.states.shape)
    note = say("{note} (the first {count} of {whole})", note=panel.note, count=MOST_DRAWN, whole=whole)
    return Panel(panel.name, panel.title, note, panel.states[part], marks, values, panel.editable)
