"""The gallery: every fault and bug broken beside fixed, run as it is shown, found by what a person notices first."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from model.language.catalogue import SOURCE
from model.language.current import speaking
from model.language.say import say, say_many

from ...ui import widgets
from ...ui.addresses.masks import FAULT, SYMPTOM
from ...ui.captions import caption, plain
from . import entry
from .entries import ENTRIES, PLACES, about

STYLE = Path(__file__).parent / "gallery.css"


@st.fragment
def show() -> None:
    """Draw one fault at a time. A fragment: choosing another leaves the rest of the page alone."""
    st.html(STYLE)
    left, right = st.columns([0.3, 0.7], gap="large")
    with left:
        name = _choose()
    if name is None:
        return
    with right:
        entry.show(ENTRIES[name], about(name))


def matching(text: str) -> list[str]:
    """Names of the entries in which every typed word occurs: in title, symptoms, explanation or code.

    They are looked for in the current language and in English.
    """
    words = text[: SYMPTOM.longest].lower().split()
    if not words:
        return list(ENTRIES)
    read = {name: f"{name} {ENTRIES[name].code} {_words(name)}" for name in ENTRIES}
    with speaking(SOURCE):
        searched = {name: f"{known} {_words(name)}".lower() for name, known in read.items()}
    return [name for name, known in searched.items() if all(word in known for word in words)]


def _words(name: str) -> str:
    one = about(name)
    return " ".join((one.title, *one.symptoms, one.how, one.met))


def _choose() -> str | None:
    """The name of the entry to show, which stands in the address; None where nothing matches."""
    text = widgets.text_input(
        say("What do you see?"), SYMPTOM, placeholder=say("NaN, padding, copies the next token …")
    )
    names = matching(text)
    if not names:
        caption(say("Nothing in the gallery speaks of that. Try one word: NaN, batch, padding, cache, sum, dropout."))
        return None
    FAULT.set(FAULT.hold(["", *names]) or names[0])
    count = (
        say("{count} of {all}", count=len(names), all=len(ENTRIES))
        if text
        else say_many("{count} fault", "{count} faults", len(ENTRIES))
    )
    with st.container(key="fault-list"):
        places = [plain(PLACES.get(name, "")) for name in names]
        return widgets.offer(
            st.radio, count, names, format_func=lambda name: plain(about(name).title), captions=places, **FAULT.storage
        )
