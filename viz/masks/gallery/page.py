"""The gallery: every fault and bug broken beside fixed, run as it is shown, found by what a person notices first."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ...ui import widgets
from ...ui.addresses.masks import FAULT, SYMPTOM
from ...ui.captions import caption, plain
from . import entry
from .entries import ABOUT, ENTRIES, PLACES
from .entry_text import EntryText

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
        entry.show(ENTRIES[name], ABOUT[name])


def matching(text: str) -> list[str]:
    """Names of the entries in which every typed word occurs: in title, symptoms, explanation or code."""
    words = text.lower().split()
    return [name for name, about in ABOUT.items() if all(word in _searchable(name, about) for word in words)]


def _searchable(name: str, about: EntryText) -> str:
    return " ".join((name, ENTRIES[name].code, about.title, *about.symptoms, about.how, about.met)).lower()


def _choose() -> str | None:
    """The name of the entry to show, which stands in the address; None where nothing matches."""
    text = widgets.text_input("What do you see?", SYMPTOM, placeholder="NaN, padding, copies the next token …")
    names = matching(text)
    if not names:
        caption("Nothing in the gallery speaks of that. Try one word: NaN, batch, padding, cache, sum, dropout.")
        return None
    FAULT.set(FAULT.hold(["", *names]) or names[0])
    count = f"{len(names)} of {len(ABOUT)}" if text else f"{len(ABOUT)} faults"
    with st.container(key="fault-list"):
        places = [plain(PLACES.get(name, "")) for name in names]
        return st.radio(
            count, names, format_func=lambda name: plain(ABOUT[name].title), captions=places, **FAULT.storage
        )
