"""What the page says besides its pictures: one-line captions, hints, and the badge in the header."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import streamlit as st

from model.devices import has_left_gpu
from model.evaluation.familiarity import FALSE_ALARMS, mean_log_prob
from model.language.say import listed, number, say, sentences
from model.text.language import NAMES, foreign

from ..components.tokens import SURE, is_unsure
from ..figures.labels import quoted, signed
from . import cache
from .addresses.shared import MODEL
from .glossary import with_meanings

if TYPE_CHECKING:
    from model.decoding.observer_check import ObserverCheck
    from model.live.live_model import LiveModel
    from model.translate import Translation

MARKDOWN = frozenset(r"\`*_{}[]()#+-.!|<>~:$^=&")
DEVICES = {"cpu": "CPU", "cuda": "GPU"}


def plain(text: str) -> str:
    """Text for where Streamlit reads Markdown, with every sign of it escaped: a token or a sentence is data."""
    return "".join(f"\\{sign}" if sign in MARKDOWN else sign for sign in text)


def caption(text: str) -> None:
    """One line in plain words, whose terms say what they mean."""
    st.caption(with_meanings(plain(text)), unsafe_allow_html=True)


def badge(model: LiveModel, result: Translation, check: ObserverCheck) -> None:
    """What ran, where, how fast, and whether looking changed anything; stands in the header."""
    device, proof = DEVICES.get(model.device.type, model.device.type), html.escape(check.sentence)
    title = html.escape(f"{model.name}: {check.sentence}. {check.explanation}")
    parts = [
        f'<span class="more">{html.escape(model.name)} · </span>{html.escape(device)}',
        f'<span class="time"> · {_duration(result.seconds)}</span><span class="more"> · {proof}</span>',
        " ✓" if check.difference == 0 else "",
    ]
    with st.container(key="badge"):  # Where there is little room, what has a class is left out.
        st.html(f'<span title="{title}">{"".join(parts)}</span>')


def _duration(seconds: float) -> str:
    """A time in as many letters whatever it is: where there is little room, the badge has no more."""
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{number(seconds, '.1f')} s"


def hints(model: LiveModel, result: Translation, own: Translation) -> None:
    """What a reader should know about this sentence before trusting the picture.

    `result` is what the page shows. `own` is what the unchanged model writes for the sentence of itself: how sure the
    model is of that one tells about the sentence; of any other, also about what was changed or given.
    """
    language = model.card.get("source_language", "")
    other = foreign(result.source, language) if language else None
    if other:
        reads = NAMES.get(language, language)
        caption(
            say(
                "This looks like {other}. The model reads {own}, so its translation may make no sense.",
                other=say(NAMES[other]),
                own=say(reads),
            )
        )
        _offer_model_of(other)
    if has_left_gpu():
        caption(say("The GPU has no memory left, so the CPU computes now, with the same numbers but for rounding."))
    if result.unknown:
        pieces = listed(map(quoted, dict.fromkeys(result.unknown)))
        if any(one.startswith("<0x") for one in result.source_tokens):
            caption(say("The vocabulary has no pieces for {pieces}: the model reads bytes there.", pieces=pieces))
        else:
            caption(
                say("The vocabulary has no pieces for {pieces}: the model reads an unknown token there.", pieces=pieces)
            )
    if result.stopped == "length":
        count = len(result.steps)
        caption(
            say("Cut off at the limit of {count} pieces: the model had not ended the sentence.", count=count)
            if model.can("translate")
            else say("Cut off at the limit of {count} pieces: the model had not ended the text.", count=count)
        )
    for note in model.notes:
        caption(note)
    if model.can("translate") and (doubt := _doubt(model, own)):  # What follows a prompt is open.
        caption(doubt)


def _doubt(model: LiveModel, own: Translation) -> str:
    """That the model doubts its own translation; by what was measured of it, where that was."""
    known = cache.familiarity(model.name)
    closer = say("Try a sentence that is closer to its training text.")
    if known and not any(step.forced for step in own.steps):
        if not known.is_unlike(own.steps):
            return ""
        said = say(
            "The model is less sure of its own translation of this sentence than of its translations of {share:.0%} of "
            "{sentences} sentences of {set}: the mean log-probability is {mean} a piece.",
            share=1 - FALSE_ALARMS,
            sentences=known.sentences,
            set=known.set,
            mean=signed(mean_log_prob(own.steps)),
        )
        return sentences(said, closer)
    unsure = sum(map(is_unsure, own.steps))
    if 2 * unsure <= len(own.steps):
        return ""
    said = say(
        "The model was unsure of most pieces of its own translation: it gave {unsure} of {count} a probability below "
        "{sure:.0%}.",
        unsure=unsure,
        count=len(own.steps),
        sure=SURE,
    )
    return sentences(said, closer)


def _offer_model_of(language: str) -> None:
    """Draw a button that goes on with a model that reads the language, where there is one."""
    reading = [name for name, reads in cache.source_languages().items() if reads == language]
    if reading:
        model_button(say("Use {model}", model=reading[0]), reading[0], key="use-other-model")


def model_button(label: str, name: str, *, key: str) -> None:
    """Draw a button that goes on with another model."""
    if st.button(plain(label), key=key, on_click=choose_model, args=(name,)):
        st.rerun()  # In a fragment the click has run nothing else, and the model is chosen outside of it.


def choose_model(name: str) -> None:
    """Go on with another model; for callbacks."""
    st.session_state[MODEL.key] = name
