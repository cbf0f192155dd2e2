"""A talk opened and saved, what is wrong with it, and the two talks one can begin with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import streamlit as st

from viz.ui import widgets
from viz.ui.captions import plain

from . import session
from .scenes import LONGEST, Mistake, Talk
from .talk_file import read, write

if TYPE_CHECKING:
    from .checks import CheckedTalk

LISTED = 12
"""Mistakes that are shown at once."""


def title(talk: Talk) -> None:
    """The talk's title, to be changed where it stands."""
    key = f"talk-title-{session.revision()}"

    def keep() -> None:
        session.rename(st.session_state[key].strip() or session.MINE)

    st.text_input("Title of the talk", talk.title, LONGEST["title"], key, label_visibility="collapsed", on_change=keep)


def menu(talk: Talk) -> None:
    """Open, save, begin anew."""
    # Keyed by the revision, so that the menu closes once a talk is open.
    with st.popover("Open", type="tertiary", key=f"talk-open-{session.revision()}"):
        widgets.file_uploader("A talk (TOML)", 1, type="toml", key=f"talk-file-{session.revision()}", on_change=_open)
        st.button("The talk that ships with the app", key="talk-shipped", on_click=_shipped, width="stretch")
        st.button("An empty talk", key="talk-empty", on_click=session.put, args=(Talk(session.MINE),), width="stretch")
    name = re.sub(r"[^\w]+", "-", talk.title.lower(), flags=re.ASCII).strip("-") or "talk"
    st.download_button(
        "Save", write(talk), f"{name}.toml", "application/toml", key="talk-save", type="tertiary", on_click="ignore"
    )


def mistakes(checked: CheckedTalk, reading: tuple[Mistake, ...]) -> None:
    """Every mistake with its line and what to do; the scenes without one can be shown all the same."""
    if problem := st.session_state.pop("talk-problem", None):
        st.error(plain(problem))
    found = sorted((*reading, *checked.mistakes), key=lambda one: one.line)
    if not found:
        return
    lines = [f"- {plain(str(one))}" for one in found[:LISTED]]
    if len(found) > LISTED:
        lines.append(f"- and {len(found) - LISTED} more")
    ready = f"{len(checked.shown)} of the {len(checked.talk.scenes)} scenes that could be read can be shown."
    st.warning("\n".join([*lines, "", ready]))


def _open() -> None:
    file = st.session_state[f"talk-file-{session.revision()}"]
    if file is None:
        return
    data = file.getvalue()
    if len(data) > session.LONGEST_FILE:
        st.session_state["talk-problem"] = (
            f"{file.name} is larger than {session.LONGEST_FILE // 1024} kB, so it is no talk."
        )
        return
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        st.session_state["talk-problem"] = f"Line {line}: {file.name} is not text in UTF-8; save it as such."
        return
    session.put(*read(source), at=0)


def _shipped() -> None:
    session.put(*session.shipped_talk(), at=0)
