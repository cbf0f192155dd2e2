"""A talk opened and saved, what is wrong with it, and the two talks one can begin with."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.language.say import say, sentences
from model.untrusted_trace import MEGABYTES
from viz.ui import widgets
from viz.ui.captions import plain

from . import beside, session
from .scenes import LONGEST, Mistake, Talk
from .talk_file import LONGEST_FILE, read, write

if TYPE_CHECKING:
    from .checks import CheckedTalk

LISTED = 12
"""Mistakes that are shown at once."""


def title(talk: Talk) -> None:
    """The talk's title, to be changed where it stands."""
    key = f"talk-title-{session.revision()}"

    def keep() -> None:
        session.rename(st.session_state[key].strip() or say(session.MINE))

    st.text_input(
        say("Title of the talk"), talk.title, LONGEST["title"], key, label_visibility="collapsed", on_change=keep
    )


def menu(talk: Talk) -> None:
    """Undo, open, save, begin anew."""
    st.button(say("Undo"), key="talk-undo", type="tertiary", disabled=not session.can_undo(), on_click=session.undo)
    # Keyed by the revision, so that the menu closes once a talk is open.
    with st.popover(say("Open"), type="tertiary", key=f"talk-open-{session.revision()}"):
        key = f"talk-file-{session.revision()}"
        label = say("A talk (TOML), with its traces and masks beside it or all in a zip")
        more: dict[str, Any] = {"accept_multiple_files": True, "type": beside.UPLOADED}
        widgets.file_uploader(label, MEGABYTES, key=key, on_change=_open, **more)
        st.button(say("The talk that ships with the app"), key="talk-shipped", on_click=_shipped, width="stretch")
        empty = Talk(say(session.MINE))
        st.button(say("An empty talk"), key="talk-empty", on_click=session.put, args=(empty,), width="stretch")
    name = re.sub(r"[^\w]+", "-", talk.title.lower(), flags=re.ASCII).strip("-") or "talk"
    there = beside.files() if beside.named(talk) else {}
    kind = (".zip", "application/zip") if there else (".toml", "application/toml")
    data = partial(beside.packed, talk, there) if there else write(talk)
    file = f"{name}{kind[0]}"
    st.download_button(say("Save"), data, file, kind[1], key="talk-save", type="tertiary", on_click="ignore")


def mistakes(checked: CheckedTalk, reading: tuple[Mistake, ...]) -> None:
    """Every mistake with its line and what to do; the scenes without one can be shown all the same."""
    if problem := st.session_state.pop("talk-problem", None):
        st.error(plain(problem))
    found = sorted((*reading, *checked.mistakes), key=lambda one: one.line)
    if not found:
        return
    lines = [f"- {plain(str(one))}" for one in found[:LISTED]]
    if len(found) > LISTED:
        lines.append(f"- {say('and {count} more', count=len(found) - LISTED)}")
    ready = say(
        "{shown} of the {count} scenes that could be read can be shown.",
        shown=len(checked.shown),
        count=len(checked.talk.scenes),
    )
    st.warning("\n".join([*lines, "", ready]))


def _open() -> None:
    """Open the talk among the files that were brought; files without one are kept beside the talk that is open."""
    given = st.session_state[f"talk-file-{session.revision()}"]
    if not given:
        return
    found, problems = beside.unpacked((file.name, file.getvalue()) for file in given)
    talks = [name for name in found if name.lower().endswith(beside.TALK)]
    problems += beside.bring({name: data for name, data in found.items() if name not in talks})
    if len(talks) > 1:
        problems.append(say("There are {count} talks; {name} is opened.", count=len(talks), name=talks[0]))
    opened = _read(talks[0], found[talks[0]], problems) if talks else session.talk()
    if opened:
        session.put(*opened, at=0)
    if problems:
        st.session_state["talk-problem"] = sentences(*problems)


def _read(name: str, data: bytes, problems: list[str]) -> tuple[Talk, tuple[Mistake, ...]] | None:
    """The talk in a file; None, with what is wrong added to `problems`, where it is none."""
    if len(data) > LONGEST_FILE:
        most = LONGEST_FILE // 1024
        problems.append(say("{name} is larger than {most} kB, so it is no talk.", name=name, most=most))
        return None
    try:
        return read(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problems.append(say("Line {line}: {name} is not text in UTF-8; save it as such.", line=line, name=name))
        return None


def _shipped() -> None:
    session.put(*session.shipped_talk(), at=0)
