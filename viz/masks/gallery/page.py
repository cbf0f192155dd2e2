"""The gallery: every fault broken beside fixed, run as it is shown, found by what a person notices first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from model.diagnosis import FAULTS, Diagnosis
from model.faults.exhibits import Exhibit, Side, run, sources
from model.faults.gallery import EXHIBITS

from ...components.chart import chart
from ...export.save import save
from ...figures.gallery_pair import Panel, gallery_pair
from ...figures.palette import Look
from ...ui import theme, widgets
from ...ui.addresses.masks import FAULT, SYMPTOM
from ...ui.captions import caption, plain
from ..saving import exhibit
from .texts import WORDS, Words

STYLE = Path(__file__).parent / "gallery.css"
SENTENCE = ("the", "old", "man", "reads", "a", "book", "outside", "today", "and", "smiles")
TARGET = ("der", "alte", "Mann", "liest", "draußen", "ein", "Buch", "und", "lächelt", "heute")
CROSS = ("causal-on-cross", "padding-visible", "padding-swapped")
SIGNS = {"error": "●", "warning": "▲", "info": "○"}


@st.fragment
def show() -> None:
    """One fault at a time. A fragment: choosing another leaves the rest of the page alone."""
    st.html(STYLE)
    left, right = st.columns([0.3, 0.7], gap="large")
    with left:
        name = _chosen()
    if name is None:
        return
    with right:
        _entry(EXHIBITS[name], WORDS[name])


def matching(text: str) -> list[str]:
    """Names of the entries in which every typed word occurs: in title, symptoms, explanation or code."""
    wanted = text.lower().split()
    return [name for name, words in WORDS.items() if all(word in _searched(name, words) for word in wanted)]


def _searched(name: str, words: Words) -> str:
    return " ".join((name, EXHIBITS[name].code, words.title, *words.symptoms, words.how, words.met)).lower()


def _chosen() -> str | None:
    """The entry, kept in the address by its short name."""
    text = widgets.text_input("What do you see?", SYMPTOM, placeholder="NaN, padding, copies the next token …")
    found = matching(text)
    if not found:
        caption("Nothing in the gallery speaks of that. Try one word: NaN, batch, padding, cache, sum, dropout.")
        return None
    FAULT.set(FAULT.hold(["", *found]) or found[0])
    count = f"{len(found)} of {len(WORDS)}" if text else f"{len(WORDS)} faults"
    with st.container(key="fault-list"):
        return st.radio(count, found, format_func=lambda name: plain(WORDS[name].title), **FAULT.kept)


def _entry(entry: Exhibit, words: Words) -> None:
    broken, fixed = run(entry)
    with st.container(key="fault-lead"):
        st.markdown(f"### {plain(words.title)}")
        st.markdown(plain(words.how))
        caption(f"Shows as: {'; '.join(words.symptoms)}. Met: {words.met}")
    drawn = lambda palette: picture(entry, broken, fixed, Look(palette))  # noqa: E731
    figure = drawn(theme.palette())
    chart(figure, f"{words.title}: broken beside fixed", key="fault-pair", on_cell=lambda _, __: None)
    caption(reading(entry))
    for column, side, function in zip(
        st.columns(2, gap="medium"), (broken, fixed), (entry.broken, entry.fixed), strict=True
    ):
        with column:
            st.markdown("  \n".join(map(plain, verdict(side))))
            st.code(sources(function)[0], language="python", wrap_lines=True)
    _fix(entry, words)
    line = words.fix or FAULTS[entry.code].fix
    save(exhibit(words.title, words.how, drawn, reading(entry), (verdict(broken), verdict(fixed)), line))


def _fix(entry: Exhibit, words: Words) -> None:
    line = words.fix or FAULTS[entry.code].fix
    st.markdown("**The fix**")
    st.code(line, language="python", wrap_lines=True)
    helpers = "\n\n".join(dict.fromkeys(part for part in (sources(entry.broken)[1], sources(entry.fixed)[1]) if part))
    with st.expander("What the code above uses"):
        caption(
            "x is a batch: x.scores (batch, heads, queries, keys) before the mask, x.keep and x.key_keep True at real "
            "tokens, x.causal True on and below the diagonal, x.allowed where both are."
            if entry.recipe
            else "states are hidden states (batch, tokens, width); allowed and real are True where a query may attend."
        )
        if helpers:
            st.code(helpers, language="python")


def verdict(side: Side) -> list[str]:
    """What the diagnosis, or a test of the running model, says of one side, a line each."""
    lines = [f"torch: {side.error}"] if side.error else []
    lines += _findings(side.diagnosis) if side.diagnosis else []
    for one in side.outcomes:
        sign = {"pass": "✓", "fault": "●"}.get(one.status, "○")
        lines.append(f"{sign} {one.check} {one.status}: {one.reason}")
    return lines


def _findings(diagnosis: Diagnosis) -> list[str]:
    found = [f"{SIGNS[one.severity]} {one.code}: {one.message}" for one in diagnosis.findings]
    return [*(["✓ sound"] if diagnosis.sound else []), *found]


def reading(entry: Exhibit) -> str:
    """How to read the pictures."""
    if entry.recipe is None:
        return (
            "Rows are outputs, columns inputs: how much each output depends on each input, by its gradient, the "
            "largest of a row being 1."
        )
    return "Rows are queries, columns keys; beside each row stands its sum. Both run on the same random scores."


def picture(entry: Exhibit, broken: Side, fixed: Side, look: Look) -> Any:
    """The one map, of all samples, layers and heads, on which the two sides differ most."""
    sample, layer, head = place(broken, fixed)
    panels = [
        Panel(title, side.weights[sample, layer, head], side.meant[sample, layer, head], entry.recipe is not None)
        for title, side in (("broken", broken), ("fixed", fixed))
    ]
    rows = named(TARGET if entry.code in CROSS else SENTENCE, broken.query_keep[sample])
    columns = named(SENTENCE, broken.key_keep[sample])
    extra = len(columns) - len(rows)
    if entry.code == "top-left-causal":
        rows = columns[extra:]
    return gallery_pair(panels, rows, columns, where(broken, sample, layer, head), look)


def place(broken: Side, fixed: Side) -> tuple[int, int, int]:
    """Sample, layer and head, from 0, on which the two sides differ most."""
    change = np.nan_to_num(np.abs(broken.weights.astype(np.float64) - fixed.weights), nan=1.0)
    at = np.unravel_index(int(change.sum((-1, -2)).argmax()), change.shape[:3])
    return int(at[0]), int(at[1]), int(at[2])


def where(side: Side, sample: int, layer: int, head: int) -> str:
    """The place in words, counted from 1."""
    samples, layers, heads = side.weights.shape[:3]
    parts = (("sentence", sample, samples), ("layer", layer, layers), ("head", head, heads))
    return ", ".join(f"{what} {at + 1} of {count}" for what, at, count in parts if count > 1)


def named(words: tuple[str, ...], keep: np.ndarray) -> list[str]:
    """Words for real tokens, in order, and ``pad`` for the others; keep (K,) bool."""
    left = iter(words)
    return [next(left) if real else "pad" for real in keep]
