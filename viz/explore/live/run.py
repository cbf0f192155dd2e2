"""A live run of a model: its own translation or a given one, as it is or with changes made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import streamlit as st

from model.analysis.head_statistics import head_statistics
from model.analysis.value_norm import value_weighted_trace
from model.language.say import say, sentences
from model.trace import TraceError
from viz.components.tokens import SURE, is_unsure, line, tokens
from viz.export.parts import Component, Part, Words
from viz.figures.labels import quoted
from viz.ui import cache
from viz.ui.addresses.pins import pin_of, toggle_pins
from viz.ui.captions import caption, hints
from viz.ui.teacher_forced import given_toggle, given_translation
from viz.ui.word_card import head_effects, word_card

from ..intervention_texts import saved_effect
from ..run_key import RunKey
from ..token_display import Display, TokenDisplay, display_tokens
from . import interventions
from .card_actions import card_actions
from .examples import what_to_see

if TYPE_CHECKING:
    import numpy as np

    from model.analysis.head_statistics import Measure, Place
    from model.experiments.logit_lens import Lens
    from model.live.live_model import LiveModel
    from model.trace import AttentionMap, AttentionTrace, Kind
    from model.translate import Translation


@dataclass(frozen=True, eq=False)
class LiveRun:
    """A run whose model is loaded, so that it can be asked for more. Implements `TraceSource`."""

    run: RunKey
    translation: Translation
    view_errors: ClassVar[tuple[type[Exception], ...]] = ()

    @property
    def trace(self) -> AttentionTrace:
        return self.translation.trace

    @property
    def first_row(self) -> int:
        return self.translation.first_row

    @property
    def whole_trace(self) -> AttentionTrace:
        return cache.whole_trace(*self.run)

    def value_weighted(self) -> AttentionTrace:
        return value_weighted_trace(self.whole_trace, cache.live(self.run.model).model)

    @property
    def model(self) -> str:
        return self.run.model

    @property
    def identity(self) -> str:
        return self.run.sentence

    def statistics(self, kind: Kind) -> Mapping[Measure, np.ndarray]:
        return head_statistics(self.trace.maps[kind])

    def display_tokens(self, kind: Kind, display: Display) -> TokenDisplay:
        return display_tokens(self.trace.maps[kind], display.rows, merge=display.merge, hide=display.hide)

    def tiles(self, attention: AttentionMap) -> AttentionMap:
        return attention

    def lens(self) -> Lens:
        model = cache.live(self.run.model)
        if not model.can("lens"):
            raise TraceError(model.cannot("lens"))
        return cache.lens(*self.run)

    def attention_flow(self, trace: AttentionTrace, kind: Kind, layer: int, *, weighted: bool) -> AttentionMap:
        return cache.attention_flow(tuple(self.run), kind, layer, weighted, trace)

    def changed_heads(self, kind: Kind) -> Collection[Place]:
        return interventions.changed_heads(kind)

    def head_controls(self, attention: AttentionMap, layer: int, head: int) -> None:
        interventions.head_switch(attention, layer, head)

    @property
    def pinned(self) -> int | None:
        """The step of the pinned token of the translation."""
        return self.translation.step_of(pin_of(self.identity, "target"))

    def effects(self, kind: Kind) -> tuple[np.ndarray, str]:
        effects = head_effects(self.run.model, self.translation, self.run.changes)
        of = say("the translation") if self.pinned is None else quoted(self.translation.target_tokens[self.pinned])
        return effects.total(kind, self.pinned), of

    def of_run(self, run: RunKey) -> LiveRun:
        return LiveRun(run, cache.reading(*run))

    def word_card(self) -> None:
        if self.pinned is not None and cache.live(self.run.model).can("word facts"):
            actions = card_actions(self.run, self.translation, self.pinned)
            word_card(self.run.model, self.translation, self.pinned, actions, self.run.changes)

    def what_to_see(self, kind: Kind, layer: int, head: int) -> str:
        cross, text = self.trace.cross, self.translation.text
        if cross is None or kind != "cross":
            return ""
        return what_to_see(self.run.sentence, text, cross, layer, head, self.pinned)

    def saved_texts(self) -> list[Part]:
        data = line(self.translation.steps, self.pinned)
        effect = saved_effect(self.run) if self.run.changes else []
        return [Words(self.trace.source, "sentence", "large"), Component("tokens", data, "translation"), *effect]


def live_run(model: LiveModel, text: str) -> LiveRun:
    """Draw the translation in large type with the controls that change the run under it, and return the run."""
    above = st.container()
    with st.container(key="underline", horizontal=True, vertical_alignment="center"):
        key_of_line = st.empty()
        own = cache.translation(model.name, text)[0]
        interventions.board(own.trace.maps)
        forced = given_toggle(text, model.writes)
    given = given_translation(model.name, text, own.text) if forced else ""
    key = RunKey(model.name, text, given, interventions.effect(model, text, given))
    run = LiveRun(key, cache.reading(*key))
    first = run.translation.first_row
    with key_of_line:
        _explain_line(model, run.translation)
    with above:
        pin = lambda at: toggle_pins(text, {"target": at + first})  # noqa: E731
        tokens(run.translation.steps, run.pinned, key="translation", on_pin=pin)
    if first:
        caption(
            say(
                "The first {count} rows and columns are the prompt; what was written after it follows.", count=first + 1
            )
        )
    hints(model, run.translation, own)
    return run


def _explain_line(model: LiveModel, shown: Translation) -> None:
    """What the marks of the translation mean, of those that there are, and what a click on it does."""
    marks = say("Underlined: a probability below {sure:.0%}.", sure=SURE) if any(map(is_unsure, shown.steps)) else ""
    click = (
        say("Click a piece to pin its row and open its card.")
        if model.can("word facts")
        else say("Click a piece to pin its row.")
    )
    caption(sentences(marks, click))
