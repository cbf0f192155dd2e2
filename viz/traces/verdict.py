"""What the diagnosis of the page Masks says of an opened trace, in a line for each map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.diagnosis import Diagnosis, DiagnosisError, judge
from model.diagnosis.inputs import NAMES, arrange
from model.trace import AttentionMap
from viz.ui.captions import caption, plain

from ..explore.trace.derived import kept

if TYPE_CHECKING:
    from model.untrusted_trace import Opened

MOST_CELLS = 2**20
"""Cells that are judged while a visitor waits; of a larger map every so-manieth head is."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """Of one map."""

    map: str
    diagnosis: Diagnosis | None
    """None where it cannot be judged."""
    sentence: str
    judged: str = ""
    """Which heads, where not all were."""

    @property
    def sound(self) -> bool:
        return self.diagnosis is not None and self.diagnosis.sound


def verdict(one: AttentionMap) -> Verdict:
    """Judge one map as it was saved."""
    heads = one.layers * one.heads
    step = max(1, int(np.ceil(one.weights.size / MOST_CELLS)))
    rows = np.arange(0, heads, step)
    judged = f"{len(rows)} of {heads} heads were judged; python -m model diagnose judges all." if step > 1 else ""
    try:
        found = judge(arrange(_arrays(one, rows), one.kind))
    except (DiagnosisError, ValueError) as error:
        return Verdict(one.kind, None, f"cannot be judged: {error}", judged)
    codes = list(dict.fromkeys(finding.code for finding in found.findings if finding.severity != "info"))
    said = "sound" if found.sound else ", ".join(codes)
    return Verdict(one.kind, found, f"{said} (meant: {found.meaning}, {found.sure:.0%} sure)", judged)


def _arrays(one: AttentionMap, rows: np.ndarray) -> dict[str, np.ndarray]:
    """(1, heads chosen, 1, Q, K): every head as a layer of its own where not all are judged."""
    arrays = {"weights": one.weights, **{name: one.tensors[name] for name in one.tensors if name in NAMES}}
    if len(rows) < one.layers * one.heads:
        arrays = {name: array.reshape(-1, 1, *array.shape[2:])[rows] for name, array in arrays.items()}
    return {name: array[None] for name, array in arrays.items()} | {"mask": one.mask}


def verdicts(opened: Opened) -> list[Verdict]:
    """Of every map, worked out once for a visitor."""
    with st.spinner("Looking at the masks …"):
        return kept(opened, "verdict", 0, lambda: [verdict(one) for one in opened.trace.maps.values()])


def show(opened: Opened) -> None:
    """The verdict on every map in one line, its findings folded away."""
    every = verdicts(opened)
    judged = list(dict.fromkeys(one.judged for one in every if one.judged))
    line = " ".join(["Masks: " + " · ".join(f"{one.map} {one.sentence}" for one in every) + ".", *judged])
    sound = all(one.sound for one in every)
    caption(line) if sound else st.error(plain(line))
    found = [finding for one in every if one.diagnosis for finding in one.diagnosis.findings]
    if found:
        with st.expander(f"{len(found)} finding{'s' * (len(found) > 1)}"):
            for finding in found:
                st.markdown(f"**{plain(finding.map)} · {finding.code}** ({finding.severity})")
                caption(finding.message)
                st.code(finding.fix, language="python")
