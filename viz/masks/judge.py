"""The part Judge of the page Masks: draws a verdict, its pictures, and the steps of the attention call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.gallery.exhibits import PRINTED_EXAMPLES
from attenscope.language import join_items, join_sentences, say, say_many, to_say
from attenscope.masks.findings import Finding
from attenscope.masks.index_ranges import format_index_ranges
from attenscope.masks.read_files import PassedMasks
from attenscope.masks.softmax import is_blocked
from attenscope.masks.toy_attention import apply_dropout
from attenscope.untrusted_trace import clean_text
from attenscope.viz.export.parts import Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view, view_fragment
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.figures.figure_style import Look, Palette
from attenscope.viz.figures.masks import PipelineStage, mask_colours, plot_mask_pipeline
from attenscope.viz.masks import entry_controls, gallery, pictures, verdict
from attenscope.viz.masks.mask_input import (
    EDITS_KEY,
    MaskInput,
    load_edits,
    reset_flipped_cells,
    write_flipped_cells_to_address,
)
from attenscope.viz.masks.pictures import (
    HeadSlice,
    build_legend,
    build_uncompared_mask_panel,
    classify_cells_by_intended_mask,
    crop_panel,
    slice_judgement,
)
from attenscope.viz.masks.verdict import Judgement, judge_with_edits
from attenscope.viz.talk import attachments
from attenscope.viz.traces.session import CHANGED_MASK_KEY, StageValues
from attenscope.viz.traces.upload_store import UploadStoreError
from attenscope.viz.traces.verdict import LONGEST_ORIGIN, describe_attention_call_origin
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.addresses.masks import MASKS_DROPOUT, MASKS_PART, MASKS_SOURCE
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.mask_editor import MaskPanel, TokenNames, draw_mask_editor, encode_mask_editor
from attenscope.viz.web.page_components import is_on_stage, is_presenting

JUDGE_STYLE = Path(__file__).parent / "judge.css"
InputWay = Callable[[], MaskInput | None]
STAGE_MASK_KEY = "mask on stage"
"""Key in the session of the stage: the mask that the visitor judged before going there, None for no mask."""
INPUT_WAYS: dict[str, InputWay] = {
    "paste": entry_controls.draw_paste_input,
    "upload": entry_controls.draw_upload_input,
    "build": entry_controls.draw_rule_input,
}


@view_fragment
def draw_judge_view() -> None:
    """Draw one way to hand over a mask at a time. A fragment: its controls leave the rest of the page alone."""
    st.html(JUDGE_STYLE)
    opening = st.container()
    with st.container(key="lead"):
        st.markdown(say("Paste the mask or the weights you printed, or start from an example that is broken:"))
        with st.container(key="mask-examples", horizontal=True, gap="small"):
            for name in PRINTED_EXAMPLES:
                st.button(say(name), key=f"broken-{name}", on_click=entry_controls.load_broken_example, args=(name,))
    if is_presenting() and STAGE_MASK_KEY in st.session_state:
        _draw_presented_mask(st.session_state[STAGE_MASK_KEY])
        return
    ways = INPUT_WAYS | (
        {entry_controls.TRACE_SOURCE: entry_controls.draw_trace_input}
        if entry_controls.sync_mask_source_with_open_trace()
        else {}
    )
    way = controls.segmented_control(say("From"), MASKS_SOURCE, tuple(ways))
    left, right = st.columns([0.42, 0.58], gap="large")
    with left:
        mask_input = ways[way]()
    _share_mask_with_presenter(mask_input)
    if mask_input is None and way == "paste":
        with opening:
            gallery.draw_mask_introduction()
    if mask_input is not None:
        _draw_judgement(mask_input, right.container(key="verdict"), built=way == "build")


def _draw_presented_mask(mask_input: MaskInput | None) -> None:
    """Draw the mask that the visitor judged before going on the stage."""
    if mask_input is None:
        st.info(say("Nothing is judged yet: paste, upload or build a mask first."))
        return
    _draw_judgement(mask_input, st.container(key="verdict"), built=False)


def _share_mask_with_presenter(mask_input: MaskInput | None) -> None:
    """Let the stage show the same mask with the same edits; pasted arrays stand in no address."""
    if is_on_stage():
        return
    edits = load_edits(mask_input.identity) if mask_input else None
    st.session_state[CHANGED_MASK_KEY] = bool(
        mask_input and edits and (edits.cells or edits.fixes or mask_input.by_hand)
    )
    made = {EDITS_KEY: edits} if edits else {}
    size = sum(array.nbytes for array in mask_input.arrays.values()) if mask_input else 0
    try:
        attachments.share_with_stage(StageValues({STAGE_MASK_KEY: mask_input, **made}), size)
    except UploadStoreError as error:
        draw_caption(join_sentences(say("It cannot be shown full screen."), str(error)))


def _draw_judgement(mask_input: MaskInput, top: DeltaGenerator, *, built: bool) -> None:
    """Draw the headline in `top`, then the pictures, the other findings and the steps."""
    try:
        judgement = judge_with_edits(mask_input, load_edits(mask_input.identity))
    except (ValueError, BusyError) as error:
        st.error(escape_message(str(error)))
        return
    if built:
        write_flipped_cells_to_address(mask_input.identity, "given")
    with top:
        verdict.draw_headline(mask_input, judgement)
    with st.container(key="mask-bar", horizontal=True, vertical_alignment="center"):
        at = pictures.choose_sample_layer_head_and_depth(mask_input, judgement)
        if load_edits(mask_input.identity).cells:
            label = say("Turn all cells back")
            st.button(label, key="reset-cells", on_click=reset_flipped_cells, args=(mask_input.identity,))
    drawn = pictures.draw_mask_panels(mask_input, judgement, at)
    register_savable_view(build_saved_view(mask_input, judgement, drawn))
    verdict.draw_other_findings(mask_input, judgement)
    if mask_input.passed is not None:
        draw_passed_and_effective_masks(mask_input.passed, mask_input.tokens, at)
    with st.expander(say("Step by step: scores, mask, softmax, dropout")):
        draw_attention_steps(judgement, at)
    convert = lambda: MASKS_PART.set("convert")  # noqa: E731
    if st.button(say("Write a mask for another library"), key="to-convert", type="tertiary", on_click=convert):
        st.rerun()  # The parts stand outside of this fragment.


# The saved view: the verdict with the four pictures, and the findings as a table.


def build_saved_view(mask_input: MaskInput, judgement: Judgement, panels: Sequence[MaskPanel]) -> SavedView:
    """The panels as they stand on the page, under the verdict; no cell can be turned over."""
    still = [replace(panel, editable=False) for panel in panels]
    findings = verdict.sort_findings(judgement.diagnosis)
    headline = verdict.describe_headline(judgement)
    meaning = verdict.describe_intended_mask(mask_input, judgement.diagnosis)
    marked = load_edits(mask_input.identity).marked

    def build_parts(palette: Palette) -> list[Part]:
        colours = mask_colours(palette)
        picture = encode_mask_editor(still, colours, marked, mask_input.tokens, legend=build_legend(colours))
        return [
            Words(headline, "verdict", "heading"),
            Words(meaning, "verdict"),
            Component("mask_editor", picture),
            *(Words(_describe_finding(one), "verdict") for one in findings),
        ]

    return SavedView(
        "mask",
        build_parts,
        lambda: tabulate_findings(findings),
        say("A mask, judged"),
        {"verdict": headline},
        width=1280,
    )


def _describe_finding(one: Finding) -> str:
    found = say("{code}: {finding}", code=one.code, finding=one.message)
    fix = "" if one.severity == "info" else say("Fix: {line}", line=one.fix)
    return join_sentences(found, describe_attention_call_origin(one), fix)


def tabulate_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """Every finding with its place."""
    columns = ["code", "severity", "map", "sample", "layer", "head", "message", "fix", "level"]
    return pd.DataFrame([one.as_dict() for one in findings], columns=columns).set_index("code")


# The steps of the attention call: scores, mask, softmax and dropout.


MAX_STEP_TOKENS = 64


def draw_attention_steps(judgement: Judgement, at: tuple[int, int, int, int]) -> None:
    """Draw the steps of one sample and head."""
    one = slice_judgement(judgement, *at[:3])
    rate = controls.selectbox(say("Dropout"), MASKS_DROPOUT, width=190)
    steps = build_attention_stages(one, rate)
    draw_chart(
        plot_mask_pipeline(steps, "", Look(style.get_palette())),
        say("One attention call in steps: {steps}", steps=join_items(stage.title for stage in steps)),
        key="mask-steps",
        on_cell=lambda _, __: None,
    )
    draw_caption(_describe_attention_steps(one, rate))


def build_attention_stages(one: HeadSlice, rate: float) -> list[PipelineStage]:
    """Return the stages whose numbers are known, at most ``MAX_STEP_TOKENS`` queries and keys of each."""
    part = (slice(MAX_STEP_TOKENS), slice(MAX_STEP_TOKENS))
    known = [(say("Scores"), one.scores), (say("After the mask"), one.masked)]
    found = [
        PipelineStage(title, values[part], False, is_blocked(values[part]))
        for title, values in known
        if values is not None
    ]
    found.append(PipelineStage(say("After softmax"), one.weights[part], True))
    if rate:
        found.append(PipelineStage(say("After dropout"), apply_dropout(one.weights, rate)[part], True))
    return found


def _describe_attention_steps(one: HeadSlice, rate: float) -> str:
    if one.generated:
        first = say("The scores are random ones, since none were given.")
    elif one.scores is None:
        first = say("Only what was given is shown; add scores = … to see the steps before.")
    else:
        first = say("Scores, then the mask, then softmax over the keys: each row sums to 1.")
    if not rate:
        return first
    after = say(
        "Dropout zeroes {rate:.0%} of the weights in training and scales the others by {factor:.3g}.",
        rate=rate,
        factor=1 / (1 - rate),
    )
    return join_sentences(first, after)


# The mask that a call of attention was given beside the one in force; an opened trace knows both.


PASSED_STATE_NAMES = (
    to_say("blocked"),
    to_say("open"),
    to_say("open, but passed as blocked"),
    to_say("blocked, but passed as open"),
    "NaN",
    to_say("padding query"),
)
"""Names of the states of a cell where the mask in force is compared with the one passed."""


def draw_passed_and_effective_masks(masks: PassedMasks, tokens: TokenNames, at: tuple[int, int, int, int]) -> None:
    """Draw both masks of the layer and head that are looked at, open from the start where any layer's differ."""
    with st.expander(make_passed_and_effective_masks_title(masks), expanded=bool(masks.find_differing_layers())):
        for layers, sentence in masks.sentences():
            where = f"**{_format_layers(layers)}**" if len(masks.calls) > 1 else ""
            st.markdown(join_sentences(where, escape_markdown(clean_text(sentence, LONGEST_ORIGIN))))
        layer, head = min(at[1], len(masks.calls) - 1), at[2]
        if not masks.calls[layer].passed_cells:
            return
        with st.container(key="passed-pair"):
            drawn = build_passed_and_effective_mask_panels(masks, layer, head)
            words = [say(one) for one in PASSED_STATE_NAMES]
            draw_mask_editor(drawn, mask_colours(style.get_palette()), key="passed-masks", tokens=tokens, words=words)
        draw_caption(say("A sign marks a cell in force that is not as it was passed: + open, − blocked."))


def make_passed_and_effective_masks_title(masks: PassedMasks) -> str:
    """What the pictures say, in the line that opens them."""
    differing, count = masks.find_differing_layers(), len(masks.calls)
    if unknown := sum(not call.passed_cells for call in masks.calls):
        return say("Passed and in force: not comparable in {unknown} of {count} layers", unknown=unknown, count=count)
    if not differing:
        same = say("Passed and in force: the same in all {count} layers", count=count)
        return same if count > 1 else say("Passed and in force: the same")
    if count == 1:
        return say("Passed and in force: they differ")
    return say_many(
        "Passed and in force: they differ in layer {layers} of {all}",
        "Passed and in force: they differ in layers {layers} of {all}",
        len(differing),
        layers=format_index_ranges(differing),
        all=count,
    )


def _format_layers(layers: list[int]) -> str:
    return say_many("Layer {layers}.", "Layers {layers}.", len(layers), layers=format_index_ranges(layers))


def build_passed_and_effective_mask_panels(masks: PassedMasks, layer: int, head: int) -> list[MaskPanel]:
    """Both masks of one layer and head, from 0."""
    passed, in_force = (one[layer, head if one.shape[1] > 1 else 0] for one in (masks.passed, masks.in_force))
    given = say("as the call was given it") if masks.calls[layer].passed else say("no mask arrived")
    effect = say("what took effect")
    if len(masks.calls) > 1:
        given, effect = (say("layer {layer}, {what}", layer=layer + 1, what=one) for one in (given, effect))
    counts = {"row_sums": in_force.sum(1).tolist(), "column_sums": in_force.sum(0).tolist()}
    values = in_force.astype(np.float32)
    found = MaskPanel(
        "in-force", say("In force"), effect, classify_cells_by_intended_mask(in_force, passed), None, values, **counts
    )
    return [
        crop_panel(build_uncompared_mask_panel("passed", say("Passed"), given, passed, editable=False)),
        crop_panel(found),
    ]
