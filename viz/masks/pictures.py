"""The four pictures of a judged mask: what was meant, given, took effect, and what outputs depend on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from attenscope.language import format_number, join_items, join_sentences, say, say_many, to_say
from attenscope.mask_tests.outcomes import compute_layer_reach
from attenscope.masks.arrays import Arrays
from attenscope.masks.evidence import gather_evidence
from attenscope.masks.softmax import softmax
from attenscope.masks.toy_attention import (
    MaskReader,
    compute_gradients_from_weights,
    compute_gradients_under_mask,
    draw_random_scores,
)
from attenscope.viz.figures.masks import MaskColours, mask_colours
from attenscope.viz.masks import verdict
from attenscope.viz.masks.mask_input import MaskInput, flip_cell, load_edits
from attenscope.viz.masks.verdict import Judgement
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.address import NumberParameter
from attenscope.viz.ui.addresses.masks import MASKS_DEPTH, MASKS_HEAD, MASKS_LAYER, MASKS_SAMPLE
from attenscope.viz.web.mask_editor import CellMark, CellState, LegendSign, MaskPanel, draw_mask_editor
from attenscope.viz.web.page_components import is_on_stage

LEGEND_STATES = (
    ("allowed", "", to_say("allowed")),
    ("blocked", "╱", to_say("blocked")),
    ("leak", "+", to_say("leak: open, should be blocked")),
    ("over", "−", to_say("over-blocked: should be open")),
    ("nan", "×", "NaN"),
    ("dim", "╱", to_say("row of a padding query")),
)
LEGEND_MARKS = (
    ("∞", "-inf"),
    ("•", to_say("finite fill")),
    ("=", to_say("uniform row")),
    ("▫", to_say("a 1 was added")),
    ("Σ", to_say("at the edges: sums of rows and columns")),
)


def choose_sample_layer_head_and_depth(mask_input: MaskInput, judgement: Judgement) -> tuple[int, int, int, int]:
    """Draw the choice of sample, layer and head (from 0), and of the layers through which dependence is followed."""
    samples, layers, heads, queries, keys = judgement.arrays.sizes
    worst = next((one for one in verdict.sort_findings(judgement.before) if one.severity != "info"), None)
    first = worst.first_map if worst is not None else (0, 0, 0)
    chosen = [
        _choose_index(label, of, size, index)
        for label, of, size, index in (
            (say("Sample"), MASKS_SAMPLE, samples, first[0]),
            (say("Layer"), MASKS_LAYER, layers, first[1]),
            (say("Head"), MASKS_HEAD, heads, first[2]),
        )
    ]
    depth = 1
    if queries == keys and judgement.arrays.mask is not None and queries <= MAX_GRADIENT_TOKENS:
        depth = controls.selectbox(say("Output after layers"), MASKS_DEPTH, width=240)
    return chosen[0], chosen[1], chosen[2], depth


def _choose_index(label: str, of: NumberParameter[int], size: int, first: int) -> int:
    """A choice from 1 on the page; until there is one, the place of the worst finding."""
    if size == 1:
        return 0
    if st.session_state.get(of.key) not in range(1, size + 1):
        st.session_state.pop(of.key, None)
    of.follow_default(first + 1)
    return (
        controls.draw_untranslated_choice(st.selectbox, label, range(1, size + 1), first, width=130, **of.binding) - 1
    )


def draw_mask_panels(mask_input: MaskInput, judgement: Judgement, at: tuple[int, int, int, int]) -> list[MaskPanel]:
    """Draw the four pictures with their legend; returns the panels."""
    sample, layer, head, depth = at
    one = slice_judgement(judgement, sample, layer, head)
    colours = mask_colours(style.get_palette())
    drawn = build_panels(mask_input, judgement, one, depth)

    def handle_turn(picture: str, row: int, column: int) -> None:
        flip_cell(mask_input.identity, picture, sample, row, column)

    marked = load_edits(mask_input.identity).marked
    with st.container(key="four"):
        draw_mask_editor(
            drawn,
            colours,
            key="mask-pictures",
            marked=marked,
            tokens=mask_input.tokens,
            legend=build_legend(colours),
            on_cell=handle_turn,
        )
    return drawn


def build_legend(colours: MaskColours) -> list[LegendSign]:
    """What the colours and signs in the pictures say."""
    shades = vars(colours)
    ink = {name: shades["sign" if name in ("leak", "over") else "ink"] for name, _, _ in LEGEND_STATES}
    keys = [LegendSign(sign, say(said), shades[name], ink[name]) for name, sign, said in LEGEND_STATES]
    return [*keys, *(LegendSign(sign, say(said)) for sign, said in LEGEND_MARKS)]


# The panels of one sample and head, as the component mask_editor draws them.


MAX_DRAWN_TOKENS = 128
"""Queries or keys that are drawn; of a larger map the first ones."""


def build_panels(mask_input: MaskInput, judgement: Judgement, one: HeadSlice, depth: int) -> list[MaskPanel]:
    """Return the four panels of one sample and head."""
    made = [
        _build_intended_mask_panel(mask_input, judgement, one),
        _build_given_mask_panel(mask_input, one),
        _build_effective_mask_panel(one),
        _build_dependence_panel(one, depth),
    ]
    return [crop_panel(panel) for panel in made]


def _build_intended_mask_panel(mask_input: MaskInput, judgement: Judgement, one: HeadSlice) -> MaskPanel:
    if one.meant is None:
        return MaskPanel("meant", say("Meant"), say("Cannot be told from this."))
    editable, diagnosis = "meant" in mask_input.editable, judgement.diagnosis
    meaning = mask_input.rule or diagnosis.meaning
    note = (
        say("{meaning} (as you said)", meaning=meaning)
        if diagnosis.stated
        else say("{meaning} (guessed, {sure:.0%} sure)", meaning=meaning, sure=diagnosis.sure)
    )
    return build_uncompared_mask_panel("meant", say("Meant"), note, one.meant, editable)


def _build_given_mask_panel(mask_input: MaskInput, one: HeadSlice) -> MaskPanel:
    if one.allowed is None:
        hint = "" if is_on_stage() else say("Add one as “mask = …”.")
        return MaskPanel("given", say("Given"), join_sentences(say("No mask was given."), hint))
    note = say("the mask, as True = may attend") if one.bias is None else say("the mask, added to the scores")
    editable = "given" in mask_input.editable
    states = classify_cells_by_intended_mask(one.allowed, one.meant)
    values = one.allowed.astype(np.float32) if one.bias is None else one.bias
    counts = {"row_sums": one.allowed.sum(1).tolist(), "column_sums": one.allowed.sum(0).tolist()}
    return MaskPanel(
        "given", say("Given"), note, states, mark_additive_fills(one.bias, one.allowed), values, editable, **counts
    )


def _build_effective_mask_panel(one: HeadSlice) -> MaskPanel:
    states, marks = classify_weights(one.weights, one.meant, one.rounded, one.idle, one.allowed)
    note = say("weights above zero, of random scores") if one.generated else say("weights above zero")
    with np.errstate(over="ignore"):
        weights = one.weights.astype(np.float64)
    sums = {"row_sums": weights.sum(1).tolist(), "column_sums": weights.sum(0).tolist()}
    return MaskPanel(
        "effect", say("Took effect"), _append_mismatch_count(note, states), states, marks, one.weights, **sums
    )


def _build_dependence_panel(one: HeadSlice, depth: int) -> MaskPanel:
    found = compute_output_dependence(one, depth)
    if found is None:
        note = say("Not run: more than {count} queries or keys.", count=MAX_GRADIENT_TOKENS)
        return MaskPanel("depends", say("Output depends on"), note)
    # One attention alone has no residual stream; through several layers every output also depends on its own input.
    meant = one.meant if one.meant is None or depth == 1 else compute_layer_reach(one.meant, depth)
    nothing = np.zeros(len(found), bool)
    states, marks = classify_weights(found, meant, nothing, one.idle)
    if depth > 1:
        note = say("gradients of {depth} layers, small attention run with this mask", depth=depth)
    elif one.allowed is None:
        note = say("gradients, through your weights")
    else:
        note = say("gradients, small attention run with this mask")
    return MaskPanel(
        "depends", say("Output depends on"), _append_mismatch_count(note, states), states, np.zeros_like(marks), found
    )


def build_uncompared_mask_panel(name: str, title: str, note: str, allowed: np.ndarray, editable: bool) -> MaskPanel:
    """Return the panel of a mask (Q, K) that is compared with nothing."""
    counts = {"row_sums": allowed.sum(1).tolist(), "column_sums": allowed.sum(0).tolist()}
    values = allowed.astype(np.float32)
    return MaskPanel(
        name, title, note, classify_cells_by_intended_mask(allowed, None), None, values, editable, **counts
    )


def _append_mismatch_count(note: str, states: np.ndarray) -> str:
    """The note, and how many cells are not as they were meant."""
    leaks, over, nan = (int((states == state).sum()) for state in (CellState.LEAK, CellState.OVER, CellState.NAN))
    found = [
        say_many("{count} leak", "{count} leaks", leaks) if leaks else "",
        say("{count} over-blocked", count=over) if over else "",
        say("{count} NaN", count=nan) if nan else "",
    ]
    counts = join_items(filter(None, found))
    return say("{note}: {counts}", note=note, counts=counts) if counts else note


def crop_panel(panel: MaskPanel) -> MaskPanel:
    """Return the first rows and columns of a large panel, a small one as it is."""
    if panel.states is None or max(panel.states.shape) <= MAX_DRAWN_TOKENS:
        return panel

    def crop(cells: np.ndarray | None) -> np.ndarray | None:
        """The corner alone: a view of it would keep all cells in memory."""
        return None if cells is None else cells[:MAX_DRAWN_TOKENS, :MAX_DRAWN_TOKENS].copy()

    whole = " × ".join(format_number(side) for side in panel.states.shape)
    note = say("{note} (the first {count} of {whole})", note=panel.note, count=MAX_DRAWN_TOKENS, whole=whole)
    return MaskPanel(
        panel.name, panel.title, note, crop(panel.states), crop(panel.marks), crop(panel.values), panel.editable
    )


# The state of each cell, and the mark that says by what it was blocked.


def classify_cells_by_intended_mask(open_cells: np.ndarray, meant: np.ndarray | None) -> np.ndarray:
    """Return the state of each cell of a boolean mask (Q, K); without `meant` no cell contradicts it."""
    if meant is None:
        return np.where(open_cells, CellState.ALLOWED, CellState.BLOCKED).astype(np.uint8)
    agreed = np.where(meant, CellState.ALLOWED, CellState.BLOCKED)
    return np.where(open_cells == meant, agreed, np.where(open_cells, CellState.LEAK, CellState.OVER)).astype(np.uint8)


def mark_additive_fills(bias: np.ndarray | None, allowed: np.ndarray) -> np.ndarray:
    """Return marks of the fill that blocks each cell of an additive mask; none for booleans, whose fill is unknown."""
    marks = np.zeros(allowed.shape, np.uint8)
    if bias is None:
        return marks
    soft = np.isin(bias, (0, 1)).all() and bool((bias == 1).any())
    marks[np.isneginf(bias)] = CellMark.INFINITE
    marks[np.isfinite(bias) & ~allowed & (bias < 0)] = CellMark.FINITE
    marks[(bias == 1) & soft] = CellMark.ADDED
    return marks


def classify_weights(
    weights: np.ndarray,
    meant: np.ndarray | None,
    rounded: np.ndarray,
    idle: np.ndarray,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States and marks of weights (Q, K).

    ``rounded`` (Q,) are rows in which a zero may be nothing but rounding, ``idle`` (Q,) those of padding queries,
    which nothing reads.
    """
    nan = np.isnan(weights)
    lit = np.where(nan, 0, weights) > 0
    states = classify_cells_by_intended_mask(lit, meant)
    states[(states == CellState.OVER) & rounded[:, None]] = CellState.ALLOWED
    states[idle[:, None] & lit] = CellState.DIM
    states[idle[:, None] & ~lit] = CellState.BLOCKED
    states[nan] = CellState.NAN
    marks = np.zeros(states.shape, np.uint8)
    marks[find_uniform_rows(weights, meant, allowed)] = CellMark.UNIFORM
    return states, marks


def find_uniform_rows(weights: np.ndarray, meant: np.ndarray | None, allowed: np.ndarray | None = None) -> np.ndarray:
    """Return (Q,) bool: rows of equal weights, although not every key was meant to be seen, or none was allowed."""
    clean = np.nan_to_num(weights, nan=-1.0)
    level = (clean.max(-1) - clean.min(-1) <= 1e-6) & (clean.max(-1) > 0) & (weights.shape[-1] > 1)
    empty = np.zeros(len(weights), bool) if allowed is None else ~allowed.any(-1)
    return level & (empty | ~meant.all(-1)) if meant is not None else level


# One sample, layer and head of the judged arrays, and what its outputs depend on.


MAX_GRADIENT_TOKENS = 96
"""Queries or keys of the largest map on which gradients are taken."""


@dataclass(frozen=True, eq=False)
class HeadSlice:
    """One sample, layer and head. All (Q, K)."""

    meant: np.ndarray | None
    allowed: np.ndarray | None
    bias: np.ndarray | None
    scores: np.ndarray | None
    masked: np.ndarray | None
    weights: np.ndarray
    rounded: np.ndarray
    """(Q,): rows in which a zero may be rounding."""
    idle: np.ndarray
    """(Q,): padding queries."""
    generated: bool
    """Whether the scores are random ones."""
    raw_mask: np.ndarray | None
    reader: MaskReader


def slice_judgement(judgement: Judgement, sample: int, layer: int, head: int) -> HeadSlice:
    """One sample, layer and head, from 0."""
    arrays = judgement.arrays

    def one(array: np.ndarray | None) -> np.ndarray | None:
        if array is None:
            return None
        whole = np.broadcast_to(array, (*_broadcast_shape(array.shape[:3], arrays.sizes[:3]), *arrays.sizes[3:]))
        return whole[sample, layer, head]

    allowed, bias = one(arrays.mask), one(arrays.bias)
    scores, masked, generated = _fill_missing_scores(
        one(arrays.scores), one(arrays.masked_scores), allowed, bias, arrays
    )
    weights = arrays.weights[sample, layer, head]
    if "weights" not in arrays.given and masked is not None:
        weights = softmax(masked.astype(np.float32), nan_rows=arrays.bias is not None)
    raw_mask = None
    if judgement.raw_mask is not None:
        shape = (arrays.sizes[0], arrays.sizes[2], *arrays.sizes[3:])
        raw_mask = np.broadcast_to(judgement.raw_mask, shape)[sample, head]
    # Where the verdict names a fault, a zero is taken for what it looks like.
    evidence = gather_evidence(arrays.weights, arrays.real_queries)
    maybe_underflow = evidence.maybe_underflow[sample, layer, head].any(-1)
    rounded = maybe_underflow & judgement.diagnosis.sound
    meant = one(judgement.diagnosis.meant)
    return HeadSlice(
        meant,
        allowed,
        bias,
        scores,
        masked,
        weights,
        rounded,
        _find_padding_queries(judgement, sample),
        generated,
        raw_mask,
        judgement.reader,
    )


def _find_padding_queries(judgement: Judgement, sample: int) -> np.ndarray:
    """(Q,): padding queries, as far as is said; in self-attention the padding keys where the verdict took them so."""
    arrays = judgement.arrays
    keep = arrays.query_keep
    if keep is None and any(one.code == "pad-query" for one in judgement.diagnosis.findings):
        keep = arrays.key_keep
    return np.zeros(arrays.sizes[3], bool) if keep is None else ~keep[sample]


def _broadcast_shape(own: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(a, b) for a, b in zip(own, want, strict=True))


def _fill_missing_scores(
    scores: np.ndarray | None,
    masked: np.ndarray | None,
    allowed: np.ndarray | None,
    bias: np.ndarray | None,
    arrays: Arrays,
) -> tuple[np.ndarray | None, np.ndarray | None, bool]:
    """Scores before and after the mask; random ones where there is a mask and no weights."""
    generated = scores is None and masked is None and "weights" not in arrays.given
    if generated:
        queries, keys = arrays.sizes[3:]
        scores = draw_random_scores(1, 1, queries, keys)[0, 0]
    if masked is None and scores is not None and allowed is not None:
        masked = scores + bias if bias is not None else np.where(allowed, scores, -np.inf)
    return scores, masked, generated


def compute_output_dependence(one: HeadSlice, layers: int = 1) -> np.ndarray | None:
    """What each output depends on (Q, K), or None where the map is too large to run."""
    sizes = (1, 1, *one.weights.shape)
    if max(one.weights.shape) > MAX_GRADIENT_TOKENS:
        return None
    mask = one.raw_mask if one.raw_mask is not None else one.bias if one.bias is not None else one.allowed
    if mask is None:
        return compute_gradients_from_weights(one.weights[None, None])[0, 0]
    return compute_gradients_under_mask(mask[None, None], (sizes[0], sizes[1], sizes[2], sizes[3]), one.reader, layers)[
        0, 0
    ]
