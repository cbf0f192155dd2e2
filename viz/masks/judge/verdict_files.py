"""The findings as files: JSON as the command line writes it, and CSV."""

from __future__ import annotations

import json
from dataclasses import fields

import streamlit as st

from model.atomic_write import csv_text
from model.diagnosis import Diagnosis, Finding
from model.language.say import say


def downloads(diagnosis: Diagnosis) -> None:
    """A button for each format."""
    with st.container(key="verdict-files", horizontal=True):
        for name, made in (("json", as_json), ("csv", as_csv)):
            st.download_button(
                say("Findings ({format})", format=name.upper()),
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
            "verdict": diagnosis.verdict,
            "findings": [one.as_dict() for one in diagnosis.findings],
            "meant": {"words": diagnosis.meaning, "sure": diagnosis.sure},
            "unknown": [{"code": one.code, "missing": list(one.missing)} for one in diagnosis.unknown],
        },
        indent=1,
    )


def as_csv(diagnosis: Diagnosis) -> str:
    """One finding a line; queries, keys and layers are joined by spaces, and count from 0 as in the JSON."""
    names = [one.name for one in fields(Finding)]
    rows = []
    for one in diagnosis.findings:
        row = one.as_dict()
        lists = {name: " ".join(map(str, row[name])) for name in ("queries", "keys", "layers")}
        rows.append([(row | lists)[name] for name in names])
    return csv_text(names, rows)
