"""What the page says besides its pictures: one-line captions, hints, and the badge in the header."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import streamlit as st

from model.devices import has_left_gpu
from model.evaluation.familiarity import FALSE_ALARMS, mean_log_prob
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
    device = DEVICES.get(model.device.type, model.device.type)
    ran, proof = f"{device} · {_duration(result.seconds)}", html.escape(check.sentence)
    title = html.escape(f"{model.name}: {check.sentence}. {check.explanation}")
    sign = " ✓" if check.difference == 0 else ""
    with st.container(key="badge"):  # Where there is little room, only what has the class "more" is left out.
        more = [f'<span class="more">{part}</span>' for part in (f"{html.escape(model.name)} · ", f" · {proof}")]
        st.html(f'<span title="{title}">{more[0]}{html.escape(ran)}{more[1]}{sign}</span>')


def _duration(seconds: float) -> str:
    """A time in as many letters whatever it is: where there is little room, the badge has no more."""
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{seconds:.1f} s"


def hints(model: LiveModel, result: Translation) -> None:
    """What a reader should know about this sentence before trusting the picture."""
    language = model.card.get("source_language", "")
    other = foreign(result.source, language) if language else None
    if other:
        reads = NAMES.get(language, language)
        caption(f"This looks like {NAMES[other]}. The model reads {reads}, so its translation may make no sense.")
        _offer_model_of(other)
    if has_left_gpu():
        caption("The GPU has no memory left, so the CPU computes now, with the same numbers but for rounding.")
    if result.unknown:
        pieces = ", ".join(map(quoted, dict.fromkeys(result.unknown)))
        how = "bytes" if any(one.startswith("<0x") for one in result.source_tokens) else "an unknown token"
        caption(f"The vocabulary has no pieces for {pieces}: the model reads {how} there.")
    if result.stopped == "length":
        ended = "sentence" if model.can("translate") else "text"
        caption(f"Cut off at the limit of {len(result.steps)} pieces: the model had not ended the {ended}.")
    for note in model.notes:
        caption(note)
    if model.can("translate") and (doubt := _doubt(model, result)):  # What follows a prompt is open.
        caption(doubt)


def _doubt(model: LiveModel, result: Translation) -> str:
    """That the model doubts its own translation; by what was measured of it, where that was."""
    known = cache.familiarity(model.name)
    closer = "Try a sentence that is closer to its training text."
    if known and not any(step.forced for step in result.steps):
        return (
            f"The model is less sure of this translation than of {1 - FALSE_ALARMS:.0%} of {known.sentences} sentences "
            f"of {known.set}: its mean log-probability is {signed(mean_log_prob(result.steps))} a piece. {closer}"
            if known.is_unlike(result.steps)
            else ""
        )
    unsure = sum(map(is_unsure, result.steps))
    below = f"it gave {unsure} of {len(result.steps)} a probability below {SURE:.0%}"
    return f"The model was unsure of most pieces: {below}. {closer}" if 2 * unsure > len(result.steps) else ""


def _offer_model_of(language: str) -> None:
    """Draw a button that goes on with a model that reads the language, where there is one."""
    reading = [name for name, reads in cache.source_languages().items() if reads == language]
    if reading:
        st.button(plain(f"Use {reading[0]}"), key="use-other-model", on_click=choose_model, args=(reading[0],))


def choose_model(name: str) -> None:
    """Go on with another model; for callbacks."""
    st.session_state[MODEL.key] = name
