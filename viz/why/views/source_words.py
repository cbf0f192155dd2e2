"""Source words: what each piece of the source and of the prefix contributes, by one method and by all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.language.say import say, sentences, to_say
from viz.components.chart import chart
from viz.components.presenter import on_stage
from viz.components.signed_text import SignedText, packed, signed_text
from viz.export.parts import Chart, Component, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.why.methods import methods
from viz.ui.addresses.why import ATTRIBUTION
from viz.ui.captions import caption
from viz.ui.links import follow

from .. import cache, controls
from ..texts import heads as head_texts
from ..texts import word as texts
from . import heads

if TYPE_CHECKING:
    from collections.abc import Mapping

    import plotly.graph_objects as go

    from model.attribution.methods import Attribution
    from viz.figures.palette import Palette

    from ..controls import Question

HINT = to_say("point at a piece to read its number")


def show(question: Question, palette: Palette) -> SavedView:
    """Draw the texts shaded by one method, and all methods beside each other."""
    follow()
    every = cache.attributions(question.key)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        method = controls.method(every)
        if question.model.can("parts"):
            _strongest_head(question)
    found = every[method]
    lead = texts.value(found.target, found.target_value)
    with st.container(key="lead"):
        caption(lead)
    staged = on_stage()
    hint = "" if staged else say(HINT)
    named = say("{method} for {word}.", method=say(method), word=question.target.word)
    alt = sentences(named, texts.strongest(found))
    title = say("Every method for this word")
    with st.container(key="picture"):
        signed_text(shaded_texts(found, hint), palette, alt, key="shaded")
        strongest = sentences(texts.strongest(found), say(texts.COLOURS))
        says = [strongest, texts.unit(method, found.target), *found.notes]
        caption(sentences(*says))
        chart(
            method_matrix(every, method, palette),
            title,
            key="methods",
            on_cell=lambda row, _: _choose(list(every)[row]),
        )
    remarks = [texts.trust(every), texts.completeness(every["integrated-gradients"]), say(texts.ROWS)]
    remarks += filter(None, [cache.refused(question.key)])
    caption(sentences(*remarks))

    def parts(of: Palette) -> list[Part]:
        # A scene has the sentence once: as the shaded words.
        above = [one for one in question.saved_texts if not (staged and isinstance(one, Words))]
        shaded = Component("signed_text", packed(shaded_texts(found, hint), of, alt))
        words = [Words(one) for one in (*says, *remarks)]
        return [*above, Words(lead), shaded, Chart(method_matrix(every, method, of), title), *words]

    saved_as = say("Why {word}", word=question.target.word)
    facts = facts_of(question.result.trace, **question.facts, method=method)
    return SavedView("why-source-words", parts, lambda: numbers(every), saved_as, facts, width=1280)


def numbers(every: Mapping[str, Attribution]) -> pd.DataFrame:
    """Every piece with the score of every method; empty where a method says nothing of it."""
    target = next(iter(every.values())).target
    of = ["source"] * len(target.source_tokens) + ["prefix"] * len(target.prefix_tokens)
    table = pd.DataFrame({"of": of, "piece": texts.pieces([*target.source_tokens, *target.prefix_tokens])})
    return table.assign(**{name: pd.Series(found.scores) for name, found in every.items()})


def shaded_texts(found: Attribution, hint: str) -> list[SignedText]:
    """The source and what was written before, each piece with its score; `hint` stands under the first title."""
    says_prefix = len(found.prefix) > 0
    prefix = say("shaded by the same scale") if says_prefix else say("this method says nothing of it")
    return [
        SignedText(say("The sentence"), hint, found.target.source_tokens, found.source),
        SignedText(say("Written before"), prefix, found.target.prefix_tokens, found.prefix if says_prefix else None),
    ]


def method_matrix(every: Mapping[str, Attribution], method: str, palette: Palette) -> go.Figure:
    """All methods by piece, `method` marked."""
    target = every[method].target
    scores = {name: found.scores for name, found in every.items()}
    return methods(scores, target.source_tokens, target.prefix_tokens, texts.correlations(every), method, palette)


def _choose(method: str) -> None:
    st.session_state[ATTRIBUTION.key] = method


def _strongest_head(question: Question) -> None:
    """Draw what leads to the head with the largest part of the logit."""
    part = heads.strongest_head(cache.logit_parts(question.key))
    head = heads.head_of(part)
    assert head is not None
    opened = lambda: controls.open_head(question, head)  # noqa: E731
    st.button(head_texts.link(part), key="strongest-head", type="tertiary", on_click=opened)
