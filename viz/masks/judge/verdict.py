"""The findings in plain words, the worst first, each with its place and its fix."""

from __future__ import annotations

from typing import Literal, get_args

import streamlit as st

from model.diagnosis import Diagnosis, Finding, Rank
from model.diagnosis.api_fixes import ANOTHER_CALL, API_NAMES, APIS, Api, meant_line
from model.diagnosis.fixes import can_fix
from model.language.say import listed, say, say_many, sentences, to_say

from ...traces.verdict import where_in_code
from ...ui import widgets
from ...ui.addresses.masks import HEAD, LAYER, SAMPLE
from ...ui.captions import caption, plain
from .input import edits
from .input.mask_input import MaskInput
from .judgement import Judgement
from .verdict_files import downloads

RANKS: tuple[Rank, ...] = get_args(Rank)
SIGNS: dict[Rank, str] = {"error": "●", "warning": "▲", "likely": "?", "info": "○"}
NAMES: dict[Rank, str] = {
    "error": to_say("Error"),
    "warning": to_say("Warning"),
    "likely": to_say("Question"),
    "info": to_say("Note"),
}
AXES = (to_say("sample {number}"), to_say("layer {number}"), to_say("head {number}"))
"""The axes of a place."""
FIX_FOR = "mask_fix_for"
"""The state of the choice of the interface in which fixes are written."""
SAID_KEY = "mask_meant"
"""The state of the choice under Meant."""
MEANINGS = {
    to_say("causal"): "causal",
    to_say("padding"): "padding",
    to_say("window"): "causal+window:4",
    to_say("packed"): "packed:3,3",
}
"""Meanings to choose from while nobody has said one, by their labels; sizes are examples to change."""


def headline(mask_input: MaskInput, judgement: Judgement) -> None:
    """Whether something is wrong; the worst finding, with its place and its fix; what it was judged against."""
    ranked = sorted_findings(judgement.diagnosis)
    with st.container(key="verdict-line"):
        st.markdown(f"### {plain(headline_text(judgement.diagnosis, bool(judgement.done)))}")
        caption(meaning(mask_input, judgement.diagnosis))
    if not judgement.diagnosis.stated:
        _choices(judgement.diagnosis)
    if judgement.done:
        with st.container(key="fixes-done", horizontal=True, vertical_alignment="center"):
            caption(say("Applied: {fixes}", fixes=sentences(*judgement.done)))
            label = say("Undo the last fix")
            st.button(label, key="undo-fix", type="tertiary", on_click=edits.undo, args=(mask_input.identity,))
    if _faults(judgement.diagnosis):
        _finding(mask_input.identity, 0, ranked[0], judgement)


def headline_text(diagnosis: Diagnosis, mended: bool) -> str:
    """``Faulty: 1 error, 2 warnings``, or that nothing is wrong, or the question that is open."""
    if diagnosis.verdict == "sound":
        return say("✓ Sound, once mended") if mended else say("✓ Nothing wrong found")
    if diagnosis.verdict == "open":
        return say("Mended: no contradiction left") if mended else say("No contradiction. What was meant?")
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
    return say("Faulty: {counts}", counts=listed(filter(None, counted)))


def _choices(diagnosis: Diagnosis) -> None:
    """Buttons that say what was meant: the guess, where it has a name, and the usual meanings."""
    others = {label: name for label, name in MEANINGS.items() if name != diagnosis.guess}
    with st.container(key="meant-choices", horizontal=True, vertical_alignment="center", gap="small"):
        if guess := diagnosis.guess:
            st.button(say("Yes: {meaning}", meaning=guess), key=f"meant-Yes: {guess}", on_click=_mean, args=(guess,))
        for label, name in others.items():
            st.button(say(label), key=f"meant-{label}", on_click=_mean, args=(name,))


def _mean(name: str) -> None:
    st.session_state[SAID_KEY] = name


def meaning(mask_input: MaskInput, diagnosis: Diagnosis) -> str:
    """What the mask was taken to be meant as."""
    if diagnosis.meant is None:
        return say("What was meant cannot be told while this is wrong.")
    if diagnosis.stated:
        return say("Judgement against what was meant: {meaning}.", meaning=mask_input.rule or diagnosis.meaning)
    guessed = say(
        "Nobody said what was meant, so it was guessed: {meaning} ({sure:.0%} sure).",
        meaning=diagnosis.meaning,
        sure=diagnosis.sure,
    )
    return sentences(
        guessed,
        say("Say it here, or under Meant, or click cells of the first picture.")
        if mask_input.map
        else say("Say it here, or under Meant or Attention, or click cells of the first picture."),
    )


def rest(mask_input: MaskInput, judgement: Judgement) -> None:
    """The other findings, and what cannot be told."""
    ranked = sorted_findings(judgement.diagnosis)
    first = 1 if ranked and ranked[0].severity != "info" else 0
    for at, one in enumerate(ranked[first:], first):
        _finding(mask_input.identity, at, one, judgement)
    _unknown(judgement.diagnosis)
    downloads(judgement.diagnosis)


def sorted_findings(diagnosis: Diagnosis) -> list[Finding]:
    """The worst first; among equals the most likely cause first, as they came."""
    return sorted(diagnosis.findings, key=lambda one: RANKS.index(one.rank))


def _faults(diagnosis: Diagnosis) -> list[Finding]:
    return [one for one in diagnosis.findings if one.severity != "info"]


def where(one: Finding, sizes: tuple[int, ...]) -> str:
    """The place in words, counted from 1; ``sizes`` are B, L, H: an axis of one is not named."""
    axes = zip(AXES, (one.sample, one.layer, one.head), sizes, strict=False)
    parts = [say(axis, number=index + 1) for axis, index, size in axes if index is not None and size > 1]
    cells = say("queries {queries}", queries=spans(one.queries)), say("keys {keys}", keys=spans(one.keys))
    return listed([*parts, *cells])


def spans(places: tuple[int, ...]) -> str:
    """(0, 1, 2, 5) -> ``1–3, 6``."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][1] == place - 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    return ", ".join(str(a + 1) if a == b else f"{a + 1}–{b + 1}" for a, b in runs)


def _finding(identity: str, at: int, one: Finding, judgement: Judgement) -> None:
    shown = one.rank
    with st.container(key=f"finding-{at}-{shown}"):
        st.markdown(f"**{SIGNS[shown]} {say(NAMES[shown])} · {plain(one.code)}** {plain(one.message)}")
        if one.severity == "info":
            return
        if place := where_in_code(one):
            st.caption(plain(place))  # a path holds no terms of the glossary
        st.code(fix_text(one, judgement), language="python", wrap_lines=True)
        with st.container(key=f"acts-{at}", horizontal=True, vertical_alignment="center"):
            show = say("Show {place}", place=where(one, judgement.arrays.sizes))
            st.button(show, key=f"show-{at}", on_click=_point, args=(identity, one))
            if can_fix(one.code, judgement.arrays, judgement.diagnosis):
                label, cause = say("Apply this fix"), (identity, one.code)
                st.button(label, key=f"apply-{at}", type="primary", on_click=edits.apply, args=cause)
            else:
                caption(say("This fix has to be made in the model; these arrays do not hold what it needs."))
            if at == 0 and _is_a_call(one, judgement.diagnosis):
                widgets.offer(
                    st.selectbox,
                    say("The fix as a call of"),
                    ("", *APIS),
                    format_func=_call,
                    key=FIX_FOR,
                    label_visibility="collapsed",
                    width=330,
                )


def _call(api: Api | Literal[""]) -> str:
    if not api:
        return say("for the mask as it was given")
    return say("as a call of {interface}", interface=say(API_NAMES[api]))


def fix_text(one: Finding, judgement: Judgement) -> str:
    """The line that fixes a finding, for the mask at hand or as a call of the interface that was chosen."""
    api = st.session_state.get(FIX_FOR, "")
    if not api or not _is_a_call(one, judgement.diagnosis):
        return one.fix
    return meant_line(judgement.diagnosis, api)


def _is_a_call(one: Finding, diagnosis: Diagnosis) -> bool:
    return one.code in ANOTHER_CALL and bool(diagnosis.guess)


def _point(identity: str, one: Finding) -> None:
    edits.point(identity, one.queries, one.keys)
    for of, index in ((SAMPLE, one.sample), (LAYER, one.layer), (HEAD, one.head)):
        if index is not None:
            st.session_state[of.key] = index + 1


def _unknown(diagnosis: Diagnosis) -> None:
    if not diagnosis.unknown:
        return
    title = say_many(
        "{count} fault that cannot be ruled out without more arrays",
        "{count} faults that cannot be ruled out without more arrays",
        len(diagnosis.unknown),
    )
    with st.expander(title):
        st.markdown("\n".join(f"- {plain(one.message)}" for one in diagnosis.unknown))
