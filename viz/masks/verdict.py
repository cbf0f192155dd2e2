"""The findings in plain words, the worst first, each with its place and its fix."""

from __future__ import annotations

import csv
import io
import json

import streamlit as st

from model.diagnosis import Diagnosis, Finding
from model.diagnosis.mending import can_mend

from ..remarks import caption, plain
from . import edits
from .brought import Brought
from .judged import Judged

ORDER = {"error": 0, "warning": 1, "info": 2}
SIGNS = {"error": "●", "warning": "▲", "info": "○"}
NAMES = {"error": "Error", "warning": "Warning", "info": "Note"}


def headline(found: Judged) -> None:
    """One line: whether something is wrong, and what most of all."""
    ranked = sorted_findings(found.diagnosis)
    bad = [one for one in ranked if one.severity != "info"]
    fixed = bool(found.done)
    with st.container(key="verdict-line"):
        if bad:
            st.markdown(f"### {SIGNS[bad[0].severity]} {plain(headline_words(bad))}")
        else:
            st.markdown(f"### ✓ {'Sound once mended.' if fixed else 'Nothing wrong found.'}")
    caption(meaning(found.diagnosis))


def headline_words(bad: list[Finding]) -> str:
    """The worst finding in words, and how many more there are."""
    first = bad[0]
    _, _, what = first.message.partition(": ")
    more = f" And {len(bad) - 1} more." if len(bad) > 1 else ""
    return f"{first.code}: {what}{more}"


def meaning(diagnosis: Diagnosis) -> str:
    """What the mask was taken to be meant as."""
    if diagnosis.meant is None:
        return "What was meant cannot be told while this is wrong."
    if diagnosis.sure == 1:
        return f"Judged against what was meant: {diagnosis.meaning}."
    return (
        f"Nobody said what was meant, so it was proposed: {diagnosis.meaning} ({diagnosis.sure:.0%} sure). "
        "Choose it under Meant, or click cells of the first picture, to correct that."
    )


def show(brought: Brought, found: Judged) -> None:
    """Every finding, the fixes that were applied, and what cannot be told."""
    identity = brought.identity
    if found.done:
        with st.container(key="fixes-done", horizontal=True, vertical_alignment="center"):
            caption("Applied: " + " ".join(found.done))
            st.button("Undo the last fix", key="undo-fix", on_click=edits.undo, args=(identity,))
    for at, one in enumerate(sorted_findings(found.diagnosis)):
        _finding(identity, at, one, can_mend(one.code, found.arrays, found.diagnosis))
    _unknown(found.diagnosis)
    _downloads(found.diagnosis)


def sorted_findings(diagnosis: Diagnosis) -> list[Finding]:
    """The worst first; among equals the most likely cause first, as they came."""
    return sorted(diagnosis.findings, key=lambda one: ORDER[one.severity])


def where(one: Finding) -> str:
    """The place in words, counted from 1."""
    parts = [
        f"{name} {index + 1}"
        for name, index in (("sample", one.sample), ("layer", one.layer), ("head", one.head))
        if index is not None
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


def _finding(identity: str, at: int, one: Finding, mendable: bool) -> None:
    with st.container(key=f"finding-{at}-{one.severity}"):
        st.markdown(f"**{SIGNS[one.severity]} {NAMES[one.severity]} · {plain(one.code)}** {plain(one.message)}")
        if one.severity == "info":
            return
        st.code(one.fix, language="python", wrap_lines=True)
        with st.container(key=f"acts-{at}", horizontal=True, vertical_alignment="center"):
            st.button(f"Show {where(one)}", key=f"show-{at}", on_click=_point, args=(identity, one))
            if mendable:
                st.button(
                    "Apply this fix", key=f"apply-{at}", type="primary", on_click=edits.apply, args=(identity, one.code)
                )
            else:
                caption("This fix has to be made in the model; these arrays do not hold what it needs.")


def _point(identity: str, one: Finding) -> None:
    edits.point(identity, one.queries, one.keys)
    for key, index in (("mask_sample", one.sample), ("mask_layer", one.layer), ("mask_head", one.head)):
        if index is not None:
            st.session_state[key] = index + 1


def _unknown(diagnosis: Diagnosis) -> None:
    if not diagnosis.unknown:
        return
    with st.expander(f"{len(diagnosis.unknown)} faults that cannot be ruled out without more arrays"):
        st.markdown("\n".join(f"- {plain(one.message)}" for one in diagnosis.unknown))


def _downloads(diagnosis: Diagnosis) -> None:
    with st.container(key="verdict-files", horizontal=True):
        for name, made in (("json", as_json), ("csv", as_csv)):
            st.download_button(
                f"Findings ({name.upper()})",
                made(diagnosis),
                f"findings.{name}",
                on_click="ignore",
                type="tertiary",
                key=f"findings-{name}",
            )


def as_json(diagnosis: Diagnosis) -> str:
    """The verdict as the command line gives it, with what was assumed and what could not be told."""
    return json.dumps(
        {
            "verdict": "sound" if diagnosis.sound else "faulty",
            "findings": [one.as_dict() for one in diagnosis.findings],
            "meant": {"words": diagnosis.meaning, "sure": diagnosis.sure},
            "unknown": [{"code": one.code, "missing": list(one.missing)} for one in diagnosis.unknown],
        },
        indent=1,
    )


def as_csv(diagnosis: Diagnosis) -> str:
    """One finding a line; queries and keys are joined by spaces, and count from 0 as in the JSON."""
    out = io.StringIO()
    names = ["code", "severity", "map", "sample", "layer", "head", "queries", "keys", "message", "fix"]
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    for one in diagnosis.findings:
        row = one.as_dict()
        lists = {name: " ".join(map(str, row[name])) for name in ("queries", "keys")}
        writer.writerow(row | lists)
    return out.getvalue()
