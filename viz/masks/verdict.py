"""The verdict on a mask with a visitor's edits, its findings in words with their fixes, and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
import streamlit as st

from attenscope.atomic_write import format_csv
from attenscope.language import join_items, join_sentences, say, say_many, to_say
from attenscope.masks.array_normalisation import normalise_arrays
from attenscope.masks.arrays import Arrays
from attenscope.masks.findings import Diagnosis, Finding, FindingRank, add_attention_calls
from attenscope.masks.fixes import (
    API_NAMES,
    APIS,
    CODES_FIXED_BY_CALL,
    Api,
    FixResult,
    apply_fix,
    can_fix,
    write_meant_mask_call,
)
from attenscope.masks.index_ranges import format_key_ranges, format_query_ranges
from attenscope.masks.rule import simpler_meanings_text
from attenscope.masks.toy_attention import MaskReader
from attenscope.viz.masks.mask_input import Edits, MaskInput, apply_finding_fix, toggle_marked_cells, undo_last_fix
from attenscope.viz.traces.verdict import describe_attention_call_origin, diagnose_arrays_maybe_in_worker
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.masks import MASKS_HEAD, MASKS_LAYER, MASKS_MEANT, MASKS_SAMPLE
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.web.page_components import is_on_stage

# The findings in words, the worst first, each with its place and its fix.


RANKS: tuple[FindingRank, ...] = get_args(FindingRank)
RANK_SIGNS: dict[FindingRank, str] = {"error": "●", "warning": "▲", "likely": "?", "info": "○"}
RANK_NAMES: dict[FindingRank, str] = {
    "error": to_say("Error"),
    "warning": to_say("Warning"),
    "likely": to_say("Question"),
    "info": to_say("Note"),
}
AXIS_NAMES = (to_say("sample {number}"), to_say("layer {number}"), to_say("head {number}"))
"""The axes of a place."""
FIX_API_KEY = "mask_fix_for"
"""The state of the choice of the interface in which fixes are written."""
USUAL_MEANINGS = {
    to_say("causal"): "causal",
    to_say("padding"): "padding",
    to_say("window"): "causal+window:4",
    to_say("packed"): "packed:3,3",
}
"""Meanings to choose from while nobody has said one, by their labels; sizes are examples to change."""


def draw_headline(mask_input: MaskInput, judgement: Judgement) -> None:
    """Draw whether something is wrong, what it was judged against, and the worst finding with its fix."""
    ranked = sort_findings(judgement.diagnosis)
    with st.container(key="verdict-line"):
        st.markdown(f"### {escape_markdown(describe_headline(judgement))}")
        draw_caption(describe_intended_mask(mask_input, judgement.diagnosis))
    if not judgement.diagnosis.stated and not is_on_stage():
        _draw_intended_mask_choices(judgement.diagnosis)
    if judgement.done:
        with st.container(key="fixes-done", horizontal=True, vertical_alignment="center"):
            draw_caption(say("Applied: {fixes}", fixes=join_sentences(*judgement.done)))
            label = say("Undo the last fix")
            st.button(
                label,
                key="undo-fix",
                type="tertiary",
                on_click=undo_last_fix,
                args=(mask_input.identity,),
            )
    if _exclude_info_findings(judgement.diagnosis):
        _draw_finding(mask_input.identity, 0, ranked[0], judgement)
    if further := describe_further_findings(judgement):
        draw_caption(further)


def describe_further_findings(judgement: Judgement) -> str:
    """What stands below the pictures beside the worst finding, each by its code and place; empty where nothing does."""
    further = [one for one in sort_findings(judgement.diagnosis)[1:] if one.severity != "info"]
    named = [
        say("{code} ({place})", code=f"{RANK_SIGNS[one.rank]} {one.code}", place=place)
        if (place := describe_place(one, judgement.arrays.sizes))
        else f"{RANK_SIGNS[one.rank]} {one.code}"
        for one in further
    ]
    return say("Also, below the pictures: {findings}.", findings=join_items(named)) if named else ""


def describe_headline(judgement: Judgement) -> str:
    """Return ``Faulty: 1 error, 2 warnings``, that nothing is wrong, or the open question."""
    diagnosis, mended = judgement.diagnosis, bool(judgement.done)
    if diagnosis.verdict == "sound":
        return say("✓ Sound, once mended") if mended else say("✓ Nothing wrong found")
    if diagnosis.verdict == "open":
        if leaks := count_leaks_against_guess(judgement):
            return say_many(
                "What was meant? If it was {meaning}, {count} cell leaks.",
                "What was meant? If it was {meaning}, {count} cells leak.",
                leaks,
                meaning=diagnosis.meaning,
            )
        if diagnosis.padding_unknown:
            return say("No contradiction, but nothing says which keys are padding: add key_keep")
        return say("Mended: no contradiction left") if mended else say("What was meant? No contradiction so far.")
    errors, warnings, questions = (sum(one.rank == name for one in diagnosis.findings) for name in RANKS[:3])
    if diagnosis.verdict == "question":
        return say_many(
            "{count} question: was {meaning} meant?",
            "{count} questions: was {meaning} meant?",
            questions,
            meaning=diagnosis.meaning,
        )
    counted = (
        say_many("{count} error", "{count} errors", errors) if errors else "",
        say_many("{count} warning", "{count} warnings", warnings) if warnings else "",
        say_many("{count} question", "{count} questions", questions) if questions else "",
    )
    return say("Faulty: {counts}", counts=join_items(filter(None, counted)))


def count_leaks_against_guess(judgement: Judgement) -> int:
    """Pairs of a real query and a key with weight in some head, where what was guessed lets none lie."""
    diagnosis, arrays = judgement.diagnosis, judgement.arrays
    if diagnosis.stated or diagnosis.meant is None:
        return 0
    real = arrays.real_queries[:, None, None, :]
    if arrays.sizes[3] == arrays.sizes[4] and arrays.self_or_cross != "cross":  # a key that none may see is padding
        real = real & diagnosis.meant.any(-2)
    leaks = (arrays.weights > 0) & ~diagnosis.meant & real[..., None]
    return int(leaks.any((0, 1, 2)).sum())


def _draw_intended_mask_choices(diagnosis: Diagnosis) -> None:
    """Buttons that say what was meant: the guess, where it has a name, and the usual meanings."""
    others = {label: name for label, name in USUAL_MEANINGS.items() if name != diagnosis.guess}
    with st.container(key="meant-choices", horizontal=True, vertical_alignment="center", gap="small"):
        if guess := diagnosis.guess:
            st.button(
                say("Yes: {meaning}", meaning=diagnosis.meaning),
                key=f"meant-Yes: {guess}",
                on_click=_set_intended_mask,
                args=(guess,),
            )
        for label, name in others.items():
            st.button(say(label), key=f"meant-{label}", on_click=_set_intended_mask, args=(name,))


def _set_intended_mask(name: str) -> None:
    MASKS_MEANT.set(name)


def describe_intended_mask(mask_input: MaskInput, diagnosis: Diagnosis) -> str:
    """What the mask was taken to be meant as."""
    if diagnosis.meant is None:
        return say("What was meant cannot be told while this is wrong.")
    if diagnosis.stated:
        stated = mask_input.rule or mask_input.named
        return join_sentences(
            say("Judgement against what was meant: {meaning}.", meaning=mask_input.rule or diagnosis.meaning),
            simpler_meanings_text(stated, *diagnosis.meant.shape[-2:]) if stated else "",
        )
    guessed = say(
        "Nobody said what was meant, so it was guessed: {meaning} ({sure:.0%} sure).",
        meaning=diagnosis.meaning,
        sure=diagnosis.sure,
    )
    if is_on_stage():
        return guessed
    return join_sentences(
        guessed,
        say("Say it here, or under Meant, or click cells of the first picture.")
        if mask_input.map
        else say("Say it here, or under Meant or Attention, or click cells of the first picture."),
    )


def draw_other_findings(mask_input: MaskInput, judgement: Judgement) -> None:
    """Draw the other findings, the faults that cannot be ruled out, and the downloads."""
    ranked = sort_findings(judgement.diagnosis)
    first = 1 if ranked and ranked[0].severity != "info" else 0
    for at, one in enumerate(ranked[first:], first):
        _draw_finding(mask_input.identity, at, one, judgement)
    _draw_possible_faults(judgement.diagnosis)
    draw_download_buttons(judgement.diagnosis)


def sort_findings(diagnosis: Diagnosis) -> list[Finding]:
    """Return the findings, the worst first; equals stay as they came, the most likely cause first."""
    return sorted(diagnosis.findings, key=lambda one: RANKS.index(one.rank))


def _exclude_info_findings(diagnosis: Diagnosis) -> list[Finding]:
    return [one for one in diagnosis.findings if one.severity != "info"]


def describe_place(one: Finding, sizes: tuple[int, ...]) -> str:
    """The place in words, counted from 1; ``sizes`` are B, L, H: an axis of one is not named."""
    axes = zip(AXIS_NAMES, (one.sample, one.layer, one.head), sizes, strict=False)
    parts = [say(axis, number=index + 1) for axis, index, size in axes if index is not None and size > 1]
    return join_items([*parts, format_query_ranges(one.queries), format_key_ranges(one.keys)])


def _draw_finding(identity: str, at: int, one: Finding, judgement: Judgement) -> None:
    shown = one.rank
    with st.container(key=f"finding-{at}-{shown}"):
        st.markdown(
            f"**{RANK_SIGNS[shown]} {say(RANK_NAMES[shown])} · {escape_markdown(one.code)}** "
            f"{escape_markdown(one.message)}"
        )
        if one.severity == "info":
            return
        if place := describe_attention_call_origin(one):
            st.caption(escape_markdown(place))  # a path holds no terms of the glossary
        st.code(format_finding_fix(one, judgement), language="python", wrap_lines=True)
        with st.container(key=f"acts-{at}", horizontal=True, vertical_alignment="center"):
            show = say("Show {place}", place=describe_place(one, judgement.arrays.sizes))
            st.button(show, key=f"show-{at}", on_click=_select_finding_cells, args=(identity, one))
            if can_fix(one.code, judgement.arrays, judgement.diagnosis):
                label, cause = say("Apply this fix"), (identity, one.code)
                st.button(label, key=f"apply-{at}", type="primary", on_click=apply_finding_fix, args=cause)
            else:
                draw_caption(say("This fix has to be made in the model; these arrays do not hold what it needs."))
            if at == 0 and _has_call_fix(one, judgement.diagnosis):
                controls.draw_untranslated_choice(
                    st.selectbox,
                    say("The fix as a call of"),
                    ("", *APIS),
                    format_func=_describe_interface_call,
                    key=FIX_API_KEY,
                    label_visibility="collapsed",
                    width=330,
                )


def _describe_interface_call(api: Api | Literal[""]) -> str:
    if not api:
        return say("for the mask as it was given")
    return say("as a call of {interface}", interface=say(API_NAMES[api]))


def format_finding_fix(one: Finding, judgement: Judgement) -> str:
    """The line that fixes a finding, for the mask at hand or as a call of the interface that was chosen."""
    api = st.session_state.get(FIX_API_KEY, "")
    if not api or not _has_call_fix(one, judgement.diagnosis):
        return one.fix
    return write_meant_mask_call(judgement.diagnosis, api)


def _has_call_fix(one: Finding, diagnosis: Diagnosis) -> bool:
    return one.code in CODES_FIXED_BY_CALL and bool(diagnosis.guess)


def _select_finding_cells(identity: str, one: Finding) -> None:
    toggle_marked_cells(identity, one.queries, one.keys)
    for of, index in zip((MASKS_SAMPLE, MASKS_LAYER, MASKS_HEAD), one.first_map, strict=True):
        st.session_state[of.key] = index + 1


def _draw_possible_faults(diagnosis: Diagnosis) -> None:
    if not diagnosis.unknown:
        return
    title = say_many(
        "{count} fault that cannot be ruled out without more arrays",
        "{count} faults that cannot be ruled out without more arrays",
        len(diagnosis.unknown),
    )
    with st.expander(title):
        st.markdown("\n".join(f"- {escape_markdown(one.text)}" for one in diagnosis.unknown))


# The findings as files: JSON as the command line writes it, and CSV.


def draw_download_buttons(diagnosis: Diagnosis) -> None:
    """Draw a download button for each format."""
    with st.container(key="verdict-files", horizontal=True):
        for name, made in (("json", format_verdict_json), ("csv", format_findings_csv)):
            st.download_button(
                say("Findings ({format})", format=name.upper()),
                made(diagnosis),
                f"findings.{name}",
                on_click="ignore",
                type="tertiary",
                key=f"findings-{name}",
            )


def format_verdict_json(diagnosis: Diagnosis) -> str:
    """The verdict as the command line gives it, with what was assumed and what could not be told."""
    return json.dumps(
        {
            "verdict": diagnosis.verdict,
            "findings": [one.as_dict() for one in diagnosis.findings],
            "meant": {"words": diagnosis.meaning, "sure": diagnosis.sure},
            "unknown": [{"code": one.code, "missing": list(one.missing)} for one in diagnosis.unknown],
        },
        indent=1,
    )


def format_findings_csv(diagnosis: Diagnosis) -> str:
    """One finding a line; queries, keys and layers are joined by spaces, and count from 0 as in the JSON."""
    names = [one.name for one in fields(Finding)]
    rows = []
    for one in diagnosis.findings:
        row = one.as_dict()
        lists = {name: " ".join(map(str, row[name])) for name in ("queries", "keys", "layers")}
        rows.append([(row | lists)[name] for name in names])
    return format_csv(names, rows)


# The verdict on a mask with a visitor's edits.


@dataclass(frozen=True, eq=False)
class Judgement:
    """The verdict on what stands on the page now."""

    arrays: Arrays
    diagnosis: Diagnosis
    before: Diagnosis
    """The diagnosis without the fixes."""
    done: tuple[str, ...]
    """What the fixes did, a sentence each."""
    raw_mask: np.ndarray | None
    reader: MaskReader


def judge_with_edits(mask_input: MaskInput, edits: Edits) -> Judgement:
    """Turn cells over, judge, apply the fixes one after the other and judge again. Raises ValueError, BusyError."""
    arrays = _apply_flipped_cells(mask_input, edits)
    calls = () if edits.cells else mask_input.calls  # what was changed here no code has called
    before = diagnosis = add_attention_calls(diagnose_arrays_maybe_in_worker(arrays, mask_input.named), calls)
    done: list[str] = []
    raw_mask = mask_input.raw_mask
    for code in edits.fixes:
        if not can_fix(code, arrays, diagnosis):
            break
        fixed = apply_fix(code, arrays, diagnosis)
        arrays = normalise_arrays(fixed.arrays, mask_input.map, mask_input.blocks)
        diagnosis = diagnose_arrays_maybe_in_worker(arrays, mask_input.named)
        raw_mask = None
        done.append(_describe_applied_fix(code, fixed))
    reader = mask_input.reader if raw_mask is not None else "sdpa"
    return Judgement(arrays, diagnosis, before, tuple(done), raw_mask, reader)


def _describe_applied_fix(code: str, fixed: FixResult) -> str:
    said = {"code": code, "done": fixed.description}
    if not fixed.invented_scores:
        return say("{code}: {done}.", **said)
    return say_many(
        "{code}: {done} ({count} cell had no weight, so its score is made up).",
        "{code}: {done} ({count} cells had no weight, so their scores are made up).",
        fixed.invented_scores,
        **said,
    )


def _apply_flipped_cells(mask_input: MaskInput, edits: Edits) -> Arrays:
    arrays = normalise_arrays(mask_input.arrays, mask_input.map, mask_input.blocks)
    raw = dict(mask_input.arrays)
    if meant := _select_flipped_cells_of_picture(edits, "meant"):
        base = (
            arrays.meant
            if arrays.meant is not None
            else diagnose_arrays_maybe_in_worker(arrays, mask_input.named).meant
        )
        if base is not None:
            raw["meant"] = _flip_cells(base, arrays, meant)
    given = _select_flipped_cells_of_picture(edits, "given")
    if given and mask_input.raw_mask is None and arrays.mask is not None:
        allowed = _flip_cells(arrays.mask, arrays, given)
        raw["mask"] = allowed if arrays.bias is None else _make_additive_mask(arrays.bias, allowed)
    return normalise_arrays(raw, mask_input.map, mask_input.blocks) if meant or given else arrays


def _select_flipped_cells_of_picture(edits: Edits, picture: str) -> list[tuple[int, int, int]]:
    return [cell[1:] for cell in edits.cells if cell[0] == picture]


def _flip_cells(mask: np.ndarray, arrays: Arrays, cells: Sequence[tuple[int, int, int]]) -> np.ndarray:
    """(B, L, H, Q, K) with these cells turned over in every layer and head."""
    samples, _, _, queries, keys = arrays.sizes
    whole = np.broadcast_to(mask, (samples, *mask.shape[1:3], queries, keys)).copy()
    for sample, query, key in cells:
        if sample < samples and query < queries and key < keys:
            whole[sample, :, :, query, key] ^= True
    return whole


def _make_additive_mask(bias: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """A float mask that blocks as ``allowed`` says, with the fill it had."""
    low = bias.min()
    fill = low if low < 0 else -np.inf
    soft = bool(np.isin(bias, (0, 1)).all())
    return np.where(allowed, 1.0 if soft else 0.0, 0.0 if soft else fill).astype(bias.dtype)
