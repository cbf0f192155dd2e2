"""The findings in plain words, the worst first, each with its place and its fix."""

from __future__ import annotations

import streamlit as st

from model.diagnosis import Diagnosis, Finding
from model.diagnosis.fixes import can_fix

from ...ui.addresses.masks import HEAD, LAYER, SAMPLE
from ...ui.captions import caption, plain
from .input import edits
from .input.mask_input import MaskInput
from .judgement import Judgement
from .verdict_files import downloads

ORDER = {"error": 0, "warning": 1, "info": 2}
SIGNS = {"error": "●", "warning": "▲", "info": "○"}
NAMES = {"error": "Error", "warning": "Warning", "info": "Note"}


def headline(mask_input: MaskInput, judgement: Judgement) -> None:
    """Whether something is wrong; the worst finding, with its place and its fix; what it was judged against."""
    ranked = sorted_findings(judgement.diagnosis)
    with st.container(key="verdict-line"):
        st.markdown(f"### {plain(headline_text(judgement.diagnosis, bool(judgement.done)))}")
        caption(meaning(mask_input, judgement.diagnosis))
    if judgement.done:
        with st.container(key="fixes-done", horizontal=True, vertical_alignment="center"):
            caption("Applied: " + " ".join(judgement.done))
            st.button(
                "Undo the last fix", key="undo-fix", type="tertiary", on_click=edits.undo, args=(mask_input.identity,)
            )
    if _faults(judgement.diagnosis):
        _finding(mask_input.identity, 0, ranked[0], judgement)


def headline_text(diagnosis: Diagnosis, mended: bool) -> str:
    """``Faulty: 1 error, 2 warnings``, or that nothing is wrong."""
    faults = _faults(diagnosis)
    if not faults:
        return "✓ Sound, once mended" if mended else "✓ Nothing wrong found"
    counts = {name: sum(one.severity == name for one in faults) for name in ("error", "warning")}
    return "Faulty: " + ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count)


def meaning(mask_input: MaskInput, diagnosis: Diagnosis) -> str:
    """What the mask was taken to be meant as."""
    if diagnosis.meant is None:
        return "What was meant cannot be told while this is wrong."
    if diagnosis.sure == 1:
        return f"Judgement against what was meant: {mask_input.rule or diagnosis.meaning}."
    return (
        f"Nobody said what was meant, so it was proposed: {diagnosis.meaning} ({diagnosis.sure:.0%} sure). "
        f"To correct that, choose under Meant{'' if mask_input.map else ' or Attention'}, or click cells of the first "
        "picture."
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
    return sorted(diagnosis.findings, key=lambda one: ORDER[one.severity])


def _faults(diagnosis: Diagnosis) -> list[Finding]:
    return [one for one in diagnosis.findings if one.severity != "info"]


def where(one: Finding, sizes: tuple[int, ...]) -> str:
    """The place in words, counted from 1; ``sizes`` are B, L, H: an axis of one is not named."""
    parts = [
        f"{name} {index + 1}"
        for name, index, size in zip(
            ("sample", "layer", "head"), (one.sample, one.layer, one.head), sizes, strict=False
        )
        if index is not None and size > 1
    ]
    return ", ".join([*parts, f"queries {spans(one.queries)}", f"keys {spans(one.keys)}"])


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
    with st.container(key=f"finding-{at}-{one.severity}"):
        st.markdown(f"**{SIGNS[one.severity]} {NAMES[one.severity]} · {plain(one.code)}** {plain(one.message)}")
        if one.severity == "info":
            return
        st.code(one.fix, language="python", wrap_lines=True)
        with st.container(key=f"acts-{at}", horizontal=True, vertical_alignment="center"):
            st.button(
                f"Show {where(one, judgement.arrays.sizes)}", key=f"show-{at}", on_click=_point, args=(identity, one)
            )
            if can_fix(one.code, judgement.arrays, judgement.diagnosis):
                st.button(
                    "Apply this fix", key=f"apply-{at}", type="primary", on_click=edits.apply, args=(identity, one.code)
                )
            else:
                caption("This fix has to be made in the model; these arrays do not hold what it needs.")


def _point(identity: str, one: Finding) -> None:
    edits.point(identity, one.queries, one.keys)
    for of, index in ((SAMPLE, one.sample), (LAYER, one.layer), (HEAD, one.head)):
        if index is not None:
            st.session_state[of.key] = index + 1


def _unknown(diagnosis: Diagnosis) -> None:
    if not diagnosis.unknown:
        return
    count = len(diagnosis.unknown)
    with st.expander(f"{count} fault{'s' * (count > 1)} that cannot be ruled out without more arrays"):
        st.markdown("\n".join(f"- {plain(one.message)}" for one in diagnosis.unknown))
