"""What a tried mask does: to the attention, to every output when one token is another, and to the behaviour tests.

Each view draws itself and returns what can be saved of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from model.language.current import current_language
from model.language.say import say, sentences, to_say

from ...components.chart import chart
from ...components.presenter import on_stage
from ...export.parts import Chart, Table, Words
from ...figures.labels import KIND_NAMES, readable
from ...figures.masks.input_perturbation import poked_bars
from ...figures.masks.pair import Panel, gallery_pair
from ...figures.palette import Look
from ...ui import cache, controls, theme, widgets
from ...ui.addresses.masks import TOKEN
from ...ui.captions import caption
from . import texts
from .saving import Shown

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.experiments.mask_trial import MaskTrial, TrialResult
    from model.live.live_model import LiveModel
    from model.trace import Kind

    from ...figures.palette import Palette

MOVES = {
    "leak": to_say("moves and should not"),
    "over": to_say("should move and does not"),
    "nan": to_say("not a number"),
    "blocked": to_say("still"),
}
POKED = to_say(
    "Each column: that token exchanged for another, and how far the next-token probabilities move, 0 to 1 (total "
    "variation). Compared to the last bit, so that nothing is nothing."
)


def attention(model: LiveModel, tried: TrialResult, kind: Kind, beside: Any) -> Shown:
    """One head with the model's own mask and with this one."""
    own, other = tried.own.maps[kind], tried.trial.maps[kind]
    with beside:
        layer, head = controls.place(own)
    sides = (("own mask", own), ("this mask", other))
    panels = [Panel(say(side), one.weights[layer, head], own.mask) for side, one in sides]
    title = say("{kind} · layer {layer}, head {head}", kind=say(KIND_NAMES[kind]), layer=layer + 1, head=head + 1)
    rows, columns = own.rows("predicted"), own.key_tokens
    alt = say("{title}: with the model's own mask and with this one", title=title)

    def drawn(palette: Palette) -> go.Figure:
        return gallery_pair(panels, rows, columns, title, Look(palette))

    chart(drawn(theme.palette()), alt, key="tried-pair", on_cell=_nothing)
    fed = (
        say("Both while the right translation is fed, so that rows compare; rows are named by the token predicted.")
        if model.can("translate")
        else say(
            "Both while the right continuation is fed, so that rows compare; rows are named by the token predicted."
        )
    )
    said = sentences(fed, say("A row whose sum is 0 has no key left: {empty}.", empty=say(model.empty_rows)))
    caption(said)

    def numbers() -> pd.DataFrame:
        cells = [
            {"query": readable(row), "key": readable(column)}
            | {name: float(one.weights[layer, head, i, j]) for name, one in sides}
            for i, row in enumerate(rows)
            for j, column in enumerate(columns)
        ]
        return pd.DataFrame(cells).set_index("query")

    return Shown("attention", lambda palette: [Chart(drawn(palette), alt), Words(said)], numbers)


def poked(model: LiveModel, text: str, trial: MaskTrial, pads: int, tried: TrialResult, beside: Any) -> Shown:
    """Which outputs move with one input, and the same for every input."""
    own = cache.mask_poke(model.name, text, None, pads)
    other = cache.mask_poke(model.name, text, trial, pads)
    inputs, sources = (*tried.source_tokens, *tried.fed), len(tried.source_tokens)
    translates = model.can("translate")

    def name(at: int) -> str:
        token = readable(inputs[at])
        if at >= sources:
            return say("target {token}", token=token)
        return say("source {token}", token=token) if translates else say("prompt {token}", token=token)

    def number(place: int) -> str:
        return name(place - 1)

    with beside:
        first = sources + len(tried.fed) // 2 if trial.kind == "decoder" else 0
        places = range(1, len(inputs) + 1)
        at = widgets.following_selectbox(say("Change"), TOKEN, places, first + 1, format_func=number, width=290) - 1
    title = say("Another token in place of {token}: grey with the own mask, in colour with this one", token=name(at))
    every = (
        say("What each output (down) depends on: source, then the target fed in (across)")
        if translates
        else say("What each output (down) depends on: prompt, then the target fed in (across)")
    )
    moves, pokes = say("How far each output moves"), say(POKED)

    def bars(palette: Palette) -> go.Figure:
        changes = own.change[:, at], other.change[:, at]
        return poked_bars(tried.target_tokens, *changes, other.allowed[:, at], title, palette)

    def pair(palette: Palette) -> go.Figure:
        panels = [Panel(label, one.change, one.allowed, sums=False) for label, one in sides]
        look = Look(palette)
        return gallery_pair(panels, tried.target_tokens, inputs, every, look, MOVES, pinned=at, divided=sources)

    sides = ((say("own mask"), own), (say("this mask"), other))
    outputs = tried.target_tokens
    said = [texts.moved(outputs, own, at, say("Own mask")), texts.moved(outputs, other, at, say("This mask"))]
    chart(bars(theme.palette()), moves, key="poked-bars", on_cell=_nothing)
    for line in said:
        caption(line)
    choose: Callable[[int, int], None] = lambda _, column: TOKEN.set(column + 1)  # noqa: E731
    alone = on_stage()  # There the one token that is changed has all the room.
    if not alone:
        chart(pair(theme.palette()), every, key="poked-pair", on_cell=choose)
        caption(sentences(pokes, say("Click a column to choose it.")))
    names = [readable(token) for token in tried.target_tokens]
    return Shown(
        "one-token",
        lambda palette: [
            Chart(bars(palette), moves),
            *map(Words, said),
            *([] if alone else [Chart(pair(palette), every), Words(pokes)]),
        ],
        lambda: pd.DataFrame(other.change, names, [name(column) for column in range(len(inputs))]),
    )


def tests(model: LiveModel, text: str, kind: Kind, trial: MaskTrial) -> Shown:
    """The eight behaviour tests, on the model as it is and with this mask."""
    language = current_language()
    own, other = (cache.mask_checks(model.name, text, kind, one, language) for one in (None, trial))
    rows, words = texts.checks_rows(own, other), texts.of_tests(kind)
    st.html(texts.checks_table(rows))
    caption(words)
    drawn = Table(texts.checks_headings(), rows, say("Behaviour tests"))
    return Shown("tests", lambda _: [drawn, Words(words)], lambda: texts.checks_numbers(own, other))


def _nothing(_: int, __: int) -> None:
    """A click says nothing here."""
