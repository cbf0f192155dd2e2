"""The findings in plain words, the worst first, each with its place and its fix."""

from __future__ import annotations

import streamlit as st

from model.diagnosis import Diagnosis, Finding
from model.diagnosis.fixes import can_fix

from ...ui.addresses.masks import HEAD, LAYER, SAMPLE
from ...ui.captions import caption, plain
from . import edits
from .input import Brought
from .judged import Judged
from .verdict_files import downloads

ORDER = {"error": 0, "warning": 1, "info": 2}
SIGNS = {"error": "●", "warning": "▲", "info": "○"}
NAMES = {"error": "Error", "warning": "Warning", "info": "Note"}


def headline(brought: Brought, found: Judged) -> None:
    """Whether something is wrong; the worst finding, with its place and its fix; what it was judged against."""
    ranked = sorted_findings(found.diagnosis)
    bad = [one for one in ranked if one.severity != "info"]
    with st.container(key="verdict-line"):
        st.markdown(f"### {plain(headline_words(bad, bool(found.done)))}")
        caption(meaning(brought, found.diagnosis))
    if found.done:
        with st.container(key="fixes-done", horizontal=True, vertical_alignment="center"):
            caption("Applied: " + " ".join(found.done))
            st.button(
                "Undo the last fix", key="undo-fix", type="tertiary", on_click=edits.undo, args=(brought.identity,)
            )
    if bad:
        _finding(brought.identity, 0, ranked[0], found)


def headline_words(bad: list[Finding], fixed: bool) -> str:
    """``Faulty: 1 error, 2 warnings``, or that nothing is wrong."""
    if not bad:
        return "✓ Sound, once mended" if fixed else "✓ Nothing wrong found"
    counts = {name: sum(one.severity == name for one in bad) for name in ("error", "warning")}
    return "Faulty: " + ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count)


def meaning(brought: Brought, diagnosis: Diagnosis) -> str:
    """What the mask was taken to be meant as."""
    if diagnosis.meant is None:
        return "What was meant cannot be told while this is wrong."
    if diagnosis.sure == 1:
        return f"Judged against what was meant: {brought.rule or diagnosis.meaning}."
    return (
        f"Nobody said what was meant, so it was proposed: {diagnosis.meaning} ({diagnosis.sure:.0%} sure). "
        f"To correct that, choose under Meant{'' if brought.map else ' or Attention'}, or click cells of the first "
        "picture."
    )


def rest(brought: Brought, found: Judged) -> None:
    """The other findings, and what cannot be told."""
    ranked = sorted_findings(found.diagnosis)
    first = 1 if ranked and ranked[0].severity != "info" else 0
    for at, one in enumerate(ranked[first:], first):
        _finding(brought.identity, at, one, found)
    _unknown(found.diagnosis)
    downloads(found.diagnosis)


def sorted_findings(diagnosis: Diagnosis) -> list[Finding]:
    """The worst first; among equals the most likely cause first, as they came."""
    return sorted(diagnosis.findings, key=lambda one: ORDER[one.severity])


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


def _finding(identity: str, at: int, one: Finding, found: Judged) -> None:
    with st.container(key=f"finding-{at}-{one.severity}"):
        st.markdown(f"**{SIGNS[one.severity]} {NAMES[one.severity]} · {plain(one.code)}** {plain(one.message)}")
        if one.severity == "info":
            return
        st.code(one.fix, language="python", wrap_lines=True)
        with st.container(key=f"acts-{at}", horizontal=True, vertical_alignment="center"):
            st.button(f"Show {where(one, found.arrays.sizes)}", key=f"show-{at}", on_click=_point, args=(identity, one))
            if can_fix(one.code, found.arrays, found.diagnosis):
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
