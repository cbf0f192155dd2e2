"""Source or prefix: where each word of the translation comes from, and whether it has come loose from the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.evaluation.attribution_scores import AttributionScoresError, LooseThreshold
from model.language.say import say, sentences
from viz.components.chart import chart
from viz.export.parts import Chart, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.why.shares import effects, shares
from viz.ui.captions import caption

from .. import cache
from ..controls import choose_word
from ..texts import shares as texts
from ..texts.word import pieces

if TYPE_CHECKING:
    from model.attribution.source_shares import SourceShares
    from viz.figures.palette import Palette

    from ..controls import Question


def show(question: Question, palette: Palette) -> SavedView:
    """Draw the shares and the effect of the source under the whole translation; a click chooses a word."""
    found, loose = cache.source_shares(question.key.reading), _threshold(question)
    at, threshold = question.key.position, loose.threshold if loose else None
    lead = texts.alarm(found, loose)
    is_loose = loose is not None and found.mean_effect < loose.threshold
    with st.container(key="loose" if is_loose else "lead"):
        caption(lead)
    titles = say("Share of the source and of the prefix"), say("Effect of the source on each piece")

    def clicked(column: int) -> None:
        choose_word(question.result.source, min(max(column, 0), len(found.tokens) - 1))

    with st.container(key="picture"):
        figure = shares(found, at, palette)
        chart(figure, titles[0], key="shares", on_cell=lambda _, x: clicked(x))
        figure = effects(found, at, threshold, palette)
        chart(figure, titles[1], key="effects", on_cell=lambda _, x: clicked(x))
    says = [texts.word(found, question.target), texts.explained(question.target)]
    caption(sentences(*says))

    def parts(of: Palette) -> list[Part]:
        drawn = Chart(shares(found, at, of), titles[0]), Chart(effects(found, at, threshold, of), titles[1])
        return [*question.saved_texts, Words(lead), *drawn, *map(Words, says)]

    facts = facts_of(question.result.trace, **question.facts)
    return SavedView("why-source-or-prefix", parts, lambda: numbers(found), titles[0], facts, width=1280)


def numbers(found: SourceShares) -> pd.DataFrame:
    """Every piece with its shares, the effect of the source and the attention to </s>."""
    columns = {
        "source": found.source,
        "prefix": found.prefix,
        "effect of the source, nats": found.effect,
        "attention to </s>": found.end_attention,
    }
    table = pd.DataFrame({"piece": pieces(found.tokens)} | columns)
    return table.set_index(pd.RangeIndex(1, len(table) + 1, name="position"))


def _threshold(question: Question) -> LooseThreshold | None:
    """The threshold that is kept with the model; None where there is none."""
    try:
        scores = cache.measured(question.model.name)
    except AttributionScoresError as error:
        caption(str(error))
        return None
    return scores.loose if scores else None
