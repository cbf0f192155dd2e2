"""Heads: the logit of the word as a sum over heads, feed-forward networks, embedding, position and biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.language.say import say, sentences
from viz.components.chart import chart
from viz.export.parts import Chart, Columns, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.why.logit_parts import by_layer, largest
from viz.ui import widgets
from viz.ui.addresses.why import HEADS_BY
from viz.ui.captions import caption
from viz.ui.links import follow

from .. import cache
from ..controls import open_head
from ..texts import heads as texts
from . import heads_off

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.attribution.logit_parts import LogitPart, LogitParts
    from model.trace import Head
    from viz.figures.palette import Palette

    from ..controls import Question

SHOWN = 16
"""The largest parts that have a bar of their own."""
SHARES = (0.42, 0.58)


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts with bars of their own, and the sum of the others."""

    shown: Sequence[LogitPart]
    rest: float


def show(question: Question, palette: Palette) -> SavedView:
    """Draw what the heads do for the word in one of two ways; a click on a head opens it on Explore."""
    follow()
    by = "switched off"
    if question.model.can("parts"):
        by = widgets.segmented_control(say("Heads by"), HEADS_BY)
    return heads_off.show(question, palette) if by == "switched off" else _parts(question, palette)


def _parts(question: Question, palette: Palette) -> SavedView:
    """Draw the parts by layer and one by one."""
    found = cache.logit_parts(question.key)
    listed = _Parts(found.sorted[:SHOWN], sum(one.score for one in found.sorted[SHOWN:]))
    lead, alts = texts.total(found), (say("The logit by layer"), say("The largest parts of the logit"))

    def opened(row: int) -> None:
        if row < len(listed.shown) and (head := head_of(listed.shown[row])):
            open_head(question, head)

    nodes = [(row, 0, one.part.label) for row, one in enumerate(listed.shown) if head_of(one)]
    with st.container(key="lead"):
        caption(lead)
    with st.container(key="picture"):
        left, right = st.columns(SHARES, gap="large")
        with left:
            chart(by_layer(found.parts, palette), alts[0], key="by-layer", on_cell=lambda _, __: None)
        with right:
            figure = largest(listed.shown, listed.rest, palette)
            chart(figure, alts[1], key="parts", on_cell=lambda row, _: opened(row), nodes=nodes)
    says = [texts.largest(found), found.exactness]
    caption(sentences(*says, say(texts.OPEN_HEAD)))

    def parts(of: Palette) -> list[Part]:
        drawn = Chart(by_layer(found.parts, of), alts[0]), Chart(largest(listed.shown, listed.rest, of), alts[1])
        return [*question.saved_texts, Words(lead), Columns(([drawn[0]], [drawn[1]]), SHARES), *map(Words, says)]

    facts = facts_of(question.result.trace, **question.facts)
    title = say("The logit of {word} by heads and layers", word=found.word)
    return SavedView("why-heads", parts, lambda: numbers(found), title, facts, width=1280)


def numbers(found: LogitParts) -> pd.DataFrame:
    """Every part in the order in which it is added; layers and heads count from 1."""
    rows = [
        (one.part.name, one.part.kind, *(None if at is None else at + 1 for at in (one.part.layer, one.part.head)))
        for one in found.parts
    ]
    table = pd.DataFrame(rows, columns=["part", "kind", "layer", "head"]).astype({"layer": "Int64", "head": "Int64"})
    return table.assign(score=[one.score for one in found.parts])


def head_of(part: LogitPart) -> Head | None:
    """The head that a part is, None where it is none."""
    kind, layer, head = part.part.kind, part.part.layer, part.part.head
    if layer is None or head is None or kind not in ("encoder", "decoder", "cross"):
        return None
    return kind, layer, head


def strongest_head(found: LogitParts) -> LogitPart:
    """The head that adds most to the logit, or takes most from it."""
    return next(one for one in found.sorted if head_of(one))
