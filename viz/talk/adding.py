"""The view on the screen, made the next scene of the visitor's talk."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import listed, say, sentences
from model.untrusted_trace import OpenedTrace

from ..figures.labels import KIND_NAMES
from ..traces.kept import KeptError
from ..traces.session import PASTED_MASK, UPLOADED_MASKS, current_run
from ..traces.session import current as current_trace
from ..ui.addresses import masks
from ..ui.addresses.pages import TITLES
from ..ui.addresses.shared import MODEL, SENTENCE
from ..ui.captions import plain
from . import beside, session
from .scenes import MOST_SCENES, Scene, Talk

if TYPE_CHECKING:
    from ..ui.url_state.page import Page

OF_A_MODEL = (MODEL.name, SENTENCE.name, "changes")
"""Of the address of Explore, what says nothing of an opened trace."""
PASTED_FILE = "pasted.txt"
"""What arrays that were pasted are called beside a talk."""
TITLED = 60
"""Characters of a sentence that a scene's first title has."""


def add_view_button(page: Page) -> None:
    """A quiet button in the header that makes the view on the screen the next scene of the visitor's talk."""
    with st.container(key="add-view"):
        what = say("Make this view the next scene of your talk (page Talk)")
        st.button(say("Add to talk"), key="add-this-view", type="tertiary", help=what, on_click=_add, args=(page,))


def _add(page: Page) -> None:
    """Add the view as a scene, with the file that it shows kept beside the talk; or say why it cannot be one."""
    mine, mistakes = st.session_state.get("talk") or (Talk(say(session.MINE)), ())
    if problem := _problem(page.name, len(mine.scenes)):
        st.toast(problem)
        return
    opened = current_trace() if page.name == "explore" else None
    try:
        trace = beside.keep_trace(opened) if opened else ""
        arrays = "".join(beside.keep_arrays(*one) for one in _arrays(page.name))
    except (KeptError, ValueError) as error:
        st.toast(plain(str(error)))
        return
    scene = _scene(page, opened, trace, arrays)
    session.put(replace(mine, scenes=(*mine.scenes, scene)), mistakes, len(mine.scenes))
    file = trace or arrays
    kept = say("{file} is kept beside it: Save on the page Talk hands out both as a zip.", file=file) if file else ""
    number = len(mine.scenes) + 1
    said = say("Scene {number} of your talk. Give it a title and notes on the page Talk.", number=number)
    st.toast(plain(sentences(said, kept)))


def _scene(page: Page, opened: OpenedTrace | None, trace: str, arrays: str) -> Scene:
    carried = () if trace or arrays else (MODEL, SENTENCE)
    left_out = OF_A_MODEL if trace else (masks.FROM.name,) if arrays else ()
    view = {one.name: st.session_state[one.key] for one in carried if st.session_state.get(one.key)}
    view |= {name: value for name, value in page.current_view().items() if name not in left_out}
    source = opened.drawable.source if opened else view.get(SENTENCE.name, arrays)
    return Scene(_title(page.name, view, source), page.name, view, trace=trace, arrays=arrays)


def _problem(page: str, scenes: int) -> str:
    """Why the view cannot become a scene; "" where it can."""
    if scenes >= MOST_SCENES:
        return say("A talk has at most {most} scenes: save this one and begin another.", most=MOST_SCENES)
    if shows_opened(page):
        return say("A scene is an address or a file: a training that was opened is neither.")
    if not _judges(page) or masks.FROM.get() == "build" or len(_arrays(page)) == 1:
        return ""
    if _arrays(page):
        return say("A scene shows one file: take the other uploads away, or open each on the page Talk.")
    if masks.FROM.get() == "opened trace":
        return say("A scene shows an opened trace on Explore: add it to the talk there.")
    return say("There is no mask to show yet: paste, upload or build one first.")


def shows_opened(page: str) -> bool:
    """Whether the page shows the traces of a training that the visitor opened: no scene holds them."""
    return page == "training" and current_run() is not None


def _judges(page: str) -> bool:
    return page == "masks" and masks.PART.get() == "judge"


def _arrays(page: str) -> list[tuple[str, bytes]]:
    """What the page Masks judges of the visitor's own, as files: name and bytes of each. What was pasted is a text."""
    if not _judges(page):
        return []
    if masks.FROM.get() == "paste":
        text = str(st.session_state.get(PASTED_MASK) or "").strip()
        return [(PASTED_FILE, text.encode())] if text else []
    uploaded = st.session_state.get(UPLOADED_MASKS) if masks.FROM.get() == "upload" else None
    return [(one.name, bytes(one.getbuffer())) for one in uploaded or []]


def _title(page: str, view: dict[str, str], source: str) -> str:
    """What a scene is called until it is given a title: its sentence and what is seen of it."""
    chosen = (view.get(name, "") for name in ("view", "plot", "move", "why", "method"))
    what = view.get("part") or next(filter(None, chosen), "")
    fault = view.get("fault", "").replace("-", " ")
    kind = KIND_NAMES.get(view.get("kind", ""), "")
    layer, head = view.get("layer", 1), view.get("head", 1)
    place = say("layer {layer}, head {head}", layer=layer, head=head) if {"layer", "head"} & view.keys() else ""
    parts = (say(TITLES[page]), what and say(what), fault, kind and say(kind), place)
    seen = listed(filter(None, parts))
    shown = source if len(source) <= TITLED else f"{source[: TITLED - 1]}…"
    return say("“{sentence}” · {seen}", sentence=shown, seen=seen) if shown else seen
