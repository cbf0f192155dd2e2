"""One entry of the gallery: its two sides, what the diagnosis says of each, and the line that mends it."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import streamlit as st

from model.behaviour.outcomes import STATUS_NAMES
from model.diagnosis import FAULTS, Diagnosis
from model.faults.exhibits import Exhibit, Side, run, sources
from model.language.say import say, sentences

from ...components.chart import chart
from ...export.parts import Chart, Columns, Part, Words
from ...export.save import SavedView, save
from ...figures.palette import Look
from ...ui import theme
from ...ui.captions import caption, plain
from .entry_text import EntryText
from .pictures import numbers, picture

if TYPE_CHECKING:
    from ...figures.palette import Palette

SIGNS = {"error": "●", "warning": "▲", "likely": "?", "info": "○"}


def show(entry: Exhibit, about: EntryText) -> None:
    """Run both sides and draw them."""
    broken, fixed = run(entry)
    with st.container(key="fault-lead"):
        st.markdown(f"### {plain(about.title)}")
        st.markdown(plain(about.how))
        shows = say("Shows as: {symptoms}.", symptoms=reduce(_beside, about.symptoms)) if about.symptoms else ""
        caption(sentences(shows, say("Met: {met}", met=about.met)))
    figure = picture(entry, broken, fixed, Look(theme.palette()))
    chart(figure, _alt(about), key="fault-pair", on_cell=lambda _, __: None)
    caption(reading(entry))
    columns = st.columns(2, gap="medium")
    for column, side, function in zip(columns, (broken, fixed), (entry.broken, entry.fixed), strict=True):
        with column:
            st.markdown("  \n".join(map(plain, verdict(side))))
            st.code(sources(function)[0], language="python", wrap_lines=True)
    _draw_fix(entry, about)
    save(_saved(entry, about, broken, fixed))


def _beside(one: str, other: str) -> str:
    return say("{one}; {other}", one=one, other=other)


def verdict(side: Side) -> list[str]:
    """What the diagnosis, or a test of the running model, says of one side, a line each."""
    lines = [f"torch: {side.error}"] if side.error else []
    lines += _findings(side.diagnosis) if side.diagnosis else []
    for outcome in side.outcomes:
        sign = {"pass": "✓", "fault": "●"}.get(outcome.status, "○")
        said = {"test": outcome.check, "status": say(STATUS_NAMES[outcome.status]), "reason": outcome.reason}
        lines.append(f"{sign} {say('{test} {status}: {reason}', **said)}")
    return lines


def reading(entry: Exhibit) -> str:
    """How to read the pictures."""
    if entry.recipe is None:
        return say(
            "Rows are outputs, columns inputs: how much each output depends on each input, by its gradient, the "
            "largest of a row being 1."
        )
    return say("Rows are queries, columns keys; beside each row stands its sum. Both run on the same random scores.")


def _draw_fix(entry: Exhibit, about: EntryText) -> None:
    st.markdown(f"**{say('The fix')}**")
    st.code(_fix(entry, about), language="python", wrap_lines=True)
    helpers = "\n\n".join(dict.fromkeys(part for part in (sources(entry.broken)[1], sources(entry.fixed)[1]) if part))
    with st.expander(say("What the code above uses")):
        caption(
            say(
                "x is a batch: x.scores (batch, heads, queries, keys) before the mask, x.keep and x.key_keep True at "
                "real tokens, x.causal True on and below the diagonal, x.allowed where both are."
            )
            if entry.recipe
            else say(
                "states are hidden states (batch, tokens, width); allowed and real are True where a query may attend."
            )
        )
        if helpers:
            st.code(helpers, language="python")


def _fix(entry: Exhibit, about: EntryText) -> str:
    return about.fix or FAULTS[entry.code].fix


def _findings(diagnosis: Diagnosis) -> list[str]:
    lines = [
        f"{SIGNS[finding.rank]} {say('{code}: {finding}', code=finding.code, finding=finding.message)}"
        for finding in diagnosis.findings
    ]
    return [*([f"✓ {say('sound')}"] if diagnosis.sound else []), *lines]


def _alt(about: EntryText) -> str:
    return say("{title}: broken beside fixed", title=about.title)


def _saved(entry: Exhibit, about: EntryText, broken: Side, fixed: Side) -> SavedView:
    """Both sides, the verdicts on them and the line that mends the fault."""

    def parts(palette: Palette) -> list[Part]:
        return [
            Words(about.title, "verdict", "heading"),
            Words(about.how, "verdict"),
            Chart(picture(entry, broken, fixed, Look(palette)), _alt(about)),
            Words(reading(entry)),
            Columns(tuple([Words(line, "verdict") for line in verdict(side)] for side in (broken, fixed)), (1, 1)),
            Words(say("The fix: {code}", code=_fix(entry, about))),  # It is read at a desk: no scene of a talk has it.
        ]

    return SavedView("mask-fault", parts, lambda: numbers(entry, broken, fixed), about.title, width=1100)
