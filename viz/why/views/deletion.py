"""Deletion: whether the order of a method is right, for this word and over 200 sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.evaluation.attribution_scores import AttributionScoresError
from model.language.say import number, say, sentences, to_say
from viz.components.chart import chart
from viz.export.parts import Chart, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.labels import percent, signed
from viz.figures.why.deletion import deletion
from viz.ui.captions import caption
from viz.ui.table import Cell, table

from .. import cache, controls
from ..texts import deletion as texts

if TYPE_CHECKING:
    from model.evaluation.attribution_scores import AttributionScores
    from model.evaluation.deletion_curves import DeletionCurves
    from viz.figures.palette import Palette

    from ..controls import Question

WORD = (to_say("order"), to_say("left on average"))
SET = (
    *(to_say("method"), to_say("beats two random"), to_say("fall of log p"), to_say("left on average")),
    to_say("rank correlation"),
)


def show(question: Question, palette: Palette) -> SavedView:
    """Draw the curves of all methods, the chosen one marked, and the tables beside them."""
    curves, every = cache.deletion_curves(question.key), cache.attributions(question.key)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        method = controls.method(every)
    says = [texts.first_two(curves, every[method]), texts.best(curves)]
    alt = draw(curves, method, palette, *says)
    says.append(texts.explained(texts.BY_MASKS))
    caption(says[-1])
    _over_sentences(question, method)

    def parts(of: Palette) -> list[Part]:
        return [*question.saved_texts, Chart(deletion(curves, method, of), alt), *map(Words, says)]

    facts = facts_of(question.result.trace, **question.facts, method=method)
    title = title_of(question.target.word)
    return SavedView("why-deletion", parts, lambda: numbers(curves), title, facts, width=1280)


def title_of(word: str) -> str:
    """The title of what is saved."""
    return say("Deletion curves of {word}", word=word)


def draw(curves: DeletionCurves, method: str, palette: Palette, lead: str, best: str) -> str:
    """Draw the curves, the chosen method marked, below one sentence and beside another; returns their description."""
    alt = sentences(say("Deletion curves."), lead)
    with st.container(key="lead"):
        caption(lead)
    with st.container(key="picture"):
        left, right = st.columns([0.6, 0.4], gap="large")
        with left:
            chart(deletion(curves, method, palette), alt, key="deletion", on_cell=lambda _, __: None)
        with right:
            table([say(one) for one in WORD], rows(curves, method), say("What each order leaves of this word"))
            caption(best)
    return alt


def numbers(curves: DeletionCurves) -> pd.DataFrame:
    """What is left after each deletion, a column an order; of random orders the mean and its band."""
    low, mean, high = curves.band
    columns = {name: curves.left(values) for name, values in curves.methods.items()}
    random = {"random, lower end": low, "random, mean": mean, "random, upper end": high}
    return pd.DataFrame(columns | random).rename_axis("pieces taken away")


def rows(curves: DeletionCurves, method: str) -> list[list[Cell]]:
    areas = texts.areas(curves)
    show = percent if curves.against is None else signed
    return [
        [(say(name), "own") if name == method else say(name), show(area)]
        for name, area in sorted(areas.items(), key=lambda one: one[1])
    ]


def _over_sentences(question: Question, method: str) -> None:
    """The table that was measured with the model, where there is one."""
    try:
        scores = cache.measured(question.model.name)
    except AttributionScoresError as error:
        caption(str(error))
        return
    if scores is None:
        caption(say(texts.NOT_MEASURED if question.model.can("training") else texts.NEVER_MEASURED))
        return
    with st.container(key="over-sentences"):
        count = scores.sentences
        st.subheader(say("Over {count} sentences", count=count), anchor=False)
        title = say("All methods over {count} sentences", count=count)
        table([say(one) for one in SET], _set_rows(scores, method), title)
        caption(texts.over_sentences(scores))


def _set_rows(scores: AttributionScores, method: str) -> list[list[Cell]]:
    rows: list[list[Cell]] = [
        [
            (say(one.method), "own") if one.method == method else say(one.method),
            *(number(one.beats_random, ".1%"), signed(one.drop), number(one.area, ".1%"), signed(one.correlation)),
        ]
        for one in scores.methods
    ]
    return [*rows, [say(texts.RANDOM), "", signed(scores.random_drop), number(scores.random_area, ".1%"), ""]]
