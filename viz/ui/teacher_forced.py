"""A translation that is given instead of made: where it is typed, and what the model thinks of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import number, say, sentences, to_say
from model.translate import InputError

from ..figures.labels import quoted, signed
from . import cache, widgets
from .addresses.shared import FORCED, GIVEN
from .captions import caption, plain

if TYPE_CHECKING:
    from model.decoding.steps import DecodingStep

HINT = to_say("Type a translation: how probable is each of its tokens?")
GIVEN_TEXT = {"translation": to_say("Given translation"), "continuation": to_say("Given continuation")}
SURPRISING = 0.05
"""A given token less probable than this is named."""
NAMED = 4
GIVEN_FOR = "given-for"
"""Where the session has the sentence that the given translation belongs to."""


def given_input(sentence: str, own: str) -> str:
    """The text field for a given translation, which pages share: its text, or the model's `own` while it is empty.

    For a sentence without a given translation it begins with the model's own, for the visitor to change.
    """
    state = st.session_state
    if GIVEN_FOR not in state and GIVEN.get():
        state[GIVEN_FOR] = sentence  # a link has brought both
    if state.get(GIVEN_FOR) != sentence:
        state[GIVEN_FOR] = sentence
        GIVEN.put(own)
    given = widgets.text_input(say("Given"), GIVEN, placeholder=say(HINT), label_visibility="collapsed").strip()
    if not given:
        del state[GIVEN_FOR]
    return given or own


def given_toggle(sentence: str, what: str = "translation") -> bool:
    """The switch that has a given translation read instead of the model's own; a new sentence turns it off.

    `what` the model writes, for its label.
    """
    state = st.session_state
    if state.setdefault("given-of", sentence) != sentence:
        state["given-of"], state[FORCED.key] = sentence, False
    return widgets.toggle(say(GIVEN_TEXT[what]), FORCED)


def give(sentence: str, translation: str) -> None:
    """Have a translation of a sentence read, "" for the model's own; for callbacks."""
    state = st.session_state
    state["given-of"], state[FORCED.key] = sentence, bool(translation)
    if translation:
        state[GIVEN_FOR], state[GIVEN.key] = sentence, translation


def given_translation(model: str, sentence: str, own: str) -> str:
    """The translation that a visitor types, with its probability under it; "" where it cannot be read."""
    given = given_input(sentence, own)
    try:
        caption(given_text(cache.teacher_forced(model, sentence, given).steps))
    except InputError as error:
        st.info(plain(str(error)))
        return ""
    return given


def given_text(steps: tuple[DecodingStep, ...]) -> str:
    """What the model thinks of a given translation: its probability, and the tokens that surprised it most."""
    total = sum(step.log_prob for step in steps)
    perplexity = math.exp(-total / len(steps))
    text = say(
        "Log-probability {total}, perplexity {perplexity:.1f} a token.", total=signed(total), perplexity=perplexity
    )
    surprising = [step for step in steps if step.log_prob < math.log(SURPRISING)]
    surprising.sort(key=lambda step: step.log_prob)
    if not surprising:
        nothing = say(
            "Nothing surprised the model: every token had a probability of {share:.0%} or more.", share=SURPRISING
        )
        return sentences(text, nothing)
    parts = [_surprise(step) for step in surprising[:NAMED]]
    if len(surprising) > NAMED:
        parts.append(say("and {count} more", count=len(surprising) - NAMED))
    return sentences(text, say("Surprising: {tokens}.", tokens=say("; ").join(parts)))


def _surprise(step: DecodingStep) -> str:
    chance = math.exp(step.log_prob)
    return say(
        "{token} was its choice no. {rank:,} ({chance}), it would have written {best}",
        token=quoted(step.token),
        rank=step.rank,
        chance=number(chance, ".2%") if chance >= 0.0001 else say("less than {share:.2%}", share=0.0001),
        best=quoted(step.candidates[0].token),
    )
