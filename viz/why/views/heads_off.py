"""Heads, switched off: how far the word falls without each head of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.experiments.head_effects import HeadEffects
from model.heads.names import head_name
from model.language.say import say
from viz.components.chart import chart
from viz.export.parts import Chart, Columns, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.why.head_effects import head_falls, rows_of
from viz.figures.why.logit_parts import bars
from viz.ui import cache as shared
from viz.ui.captions import caption
from viz.ui.word_card import in_passes

from .. import cache
from ..controls import open_head
from ..texts import heads_off as texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import plotly.graph_objects as go

    from model.trace import Kind
    from viz.figures.palette import Palette

    from ..cache import WordKey
    from ..controls import Question

SHOWN = 16
"""The heads that have a bar of their own."""
SHARES = (0.5, 0.5)


def show(question: Question, palette: Palette) -> SavedView:
    """Draw the fall without each head, all of them and the largest one by one."""
    found = effects(question)
    falls = {kind: -found.total(kind) for kind in found.changes}
    largest = found.strongest()[:SHOWN]
    rows, lead = rows_of(falls), texts.most(found, question.target)
    titles = say("Fall without each head"), say("The largest")

    def opened(row: int, column: int) -> None:
        if 0 <= row < len(rows) and (place := rows[row]) and column < falls[place[0]].shape[1]:
            open_head(question, (*place, column))

    def opened_bar(row: int) -> None:
        if row < len(largest):
            open_head(question, largest[row][0])

    def drawn(of: Palette) -> tuple[go.Figure, go.Figure]:
        names, scores = [head_name(head) for head, _ in largest], [-change for _, change in largest]
        return head_falls(falls, titles[0], of), bars(names, scores, titles[1], of)

    with st.container(key="lead"):
        caption(lead)
    with st.container(key="picture"):
        for column, figure, at in zip(st.columns(SHARES, gap="large"), drawn(palette), (0, 1), strict=True):
            with column:
                if at:
                    nodes = [(row, 0, head_name(head)) for row, (head, _) in enumerate(largest)]
                    chart(figure, titles[1], key="largest-falls", on_cell=lambda row, _: opened_bar(row), nodes=nodes)
                else:
                    chart(figure, titles[0], key="falls", on_cell=opened, nodes=_nodes(falls))
    explained = texts.explained(question.target)
    caption(explained)

    def parts(of: Palette) -> list[Part]:
        both = [[Chart(figure, title)] for figure, title in zip(drawn(of), titles, strict=True)]
        return [*question.saved_texts, Words(lead), Columns((both[0], both[1]), SHARES), Words(explained)]

    title = say("{word} without each head", word=question.target.word)
    facts = facts_of(question.result.trace, **question.facts)
    return SavedView("why-heads-off", parts, lambda: numbers(found), title, facts, width=1280)


def _nodes(falls: Mapping[Kind, np.ndarray]) -> list[tuple[int, int, str]]:
    """Row, column and name of every head of the picture."""
    return [
        (row, head, head_name((*place, head)))
        for row, place in enumerate(rows_of(falls))
        if place
        for head in range(falls[place[0]].shape[1])
    ]


def effects(question: Question) -> HeadEffects:
    """How the value of the word changes without each head. Raises AttributionError where its probability is zero."""
    key: WordKey = question.key
    cache.value(key)
    target = cache.target(key)
    passes = shared.passes(key.reading.model, len(target.source_ids), len(target.input_ids))
    return in_passes(passes, lambda at: cache.effects_of(key, passes[at]))


def numbers(found: HeadEffects) -> pd.DataFrame:
    """The fall without each head; layers and heads count from 1."""
    rows = [(kind, layer + 1, head + 1, -change) for (kind, layer, head), change in found.strongest()]
    return pd.DataFrame(rows, columns=["attention", "layer", "head", "fall"])
