"""The scenes of a talk side by side with the one that is edited: order, title, notes, what is hidden, the view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.language.say import say, sentences, to_say
from viz.components.scene_pictures import scene_pictures
from viz.ui import theme, widgets
from viz.ui.captions import caption, plain

from . import guess, session
from .checks import network_of
from .live import obstacle
from .scenes import LONGEST, MOST_SCENES, PARTS, PARTS_OF, Mistake, Scene, Talk
from .talk_file import read, write_view

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from model.network.config import TransformerConfig
    from model.untrusted_trace import OpenedTrace

    from .beside import File

STYLE = Path(__file__).parent / "talk.css"
LIVE = to_say("Live: sentences from the audience are translated")
LIVE_HELP = to_say(
    "On stage by this app; in One file by the model itself, which then stands in the file and makes it larger."
)
GUESS = to_say("Guess first: among what the audience chooses")
GUESS_HELP = to_say(
    "Two to nine parts of the picture. On stage the keys 1 to 9, or clicks, count the guesses; the next key shows "
    "them. Cover what would tell with “Hidden until the next key”."
)
VIEW_ROWS = 190
"""Pixels of the field that holds a view."""


def scenes(
    talk: Talk,
    models: Mapping[str, TransformerConfig | None],
    beside: Mapping[str, File],
    drawn: Mapping[int, Mapping[str, Any]],
) -> None:
    """The list on the left, the chosen scene on the right; `drawn` are those that can be shown, by number from 0."""
    if not talk.scenes:
        caption(say("There is no scene yet. Press “Add to talk” at the top of any page, or open a talk."))
        return
    at = min(session.current(), len(talk.scenes) - 1)
    left, right = st.columns([0.36, 0.64], gap="large")
    with left:
        st.session_state["scene-choice"] = at
        widgets.offer(
            st.radio,
            say("Scenes"),
            range(len(talk.scenes)),
            format_func=lambda one: f"{one + 1} {plain(talk.scenes[one].title)}",
            key="scene-choice",
            label_visibility="collapsed",
            on_change=_choose,
        )
    with right:
        _moves(at, len(talk.scenes))
        _pictures(at, talk, drawn)
        _fields(at, talk.scenes[at], network_of(talk.scenes[at], talk, models, beside))


def _pictures(at: int, talk: Talk, drawn: Mapping[int, Mapping[str, Any]]) -> None:
    """The chosen scene, on which its parts are hidden and left out, and a small picture of each in the list."""
    pictured = [drawn.get(number) for number in range(len(talk.scenes))]
    there = PARTS_OF.get(talk.scenes[at].page, ())

    def keep(hide: Sequence[str], omit: Sequence[str]) -> None:
        scene, changed = talk.scenes[at], {"hide": hide, "omit": omit}
        kept = {name: tuple(part for part in PARTS if part in now) for name, now in changed.items()}
        if kept != {name: getattr(scene, name) for name in kept}:
            session.edit(at, **kept)
            session.renew()

    scene_pictures("scene-choice", pictured, at, theme.scheme(), {part: say(part) for part in there}, keep)


def _choose() -> None:
    session.choose(st.session_state["scene-choice"])


def _moves(at: int, count: int) -> None:
    """Buttons that change the order of the scenes, or how many there are."""

    def button(name: str, what: str, possible: bool, change: Callable[[list[Scene]], int]) -> None:
        arguments = (at, change)
        st.button(
            name,
            key=f"scene-{what}",
            type="tertiary",
            disabled=not possible,
            on_click=session.rearrange,
            args=arguments,
        )

    def move(by: int) -> Callable[[list[Scene]], int]:
        def change(scenes: list[Scene]) -> int:
            scenes.insert(at + by, scenes.pop(at))
            return at + by

        return change

    def copy(scenes: list[Scene]) -> int:
        scenes.insert(at + 1, scenes[at])
        return at + 1

    def delete(scenes: list[Scene]) -> int:
        del scenes[at]
        return at

    with st.container(key="scene-moves", horizontal=True, vertical_alignment="center"):
        st.markdown(say("Scene {number} of {count}", number=at + 1, count=count))
        button(say("Move earlier"), "earlier", at > 0, move(-1))
        button(say("Move later"), "later", at < count - 1, move(1))
        button(say("Copy"), "copy", count < MOST_SCENES, copy)
        button(say("Delete"), "delete", True, delete)


def _fields(at: int, scene: Scene, network: TransformerConfig | OpenedTrace | None) -> None:
    """The scene's own fields; each change is kept at once."""
    revision = f"{session.revision()}-{at}"

    def keep(name: str) -> None:
        value = st.session_state[f"scene-{name}-{revision}"]
        kept = value.strip() if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
        session.edit(at, **{name: kept})

    def line(name: str, label: str, hint: str) -> None:
        key = f"scene-{name}-{revision}"
        st.text_input(label, getattr(scene, name), LONGEST[name], key, placeholder=hint, on_change=keep, args=(name,))

    def parts(name: str, label: str) -> None:
        key = f"scene-{name}-{revision}"
        chosen = list(getattr(scene, name))
        there = [part for part in PARTS if part in PARTS_OF.get(scene.page, PARTS) or part in chosen]
        widgets.offer(
            st.multiselect,
            label,
            there,
            chosen,
            key=key,
            on_change=keep,
            args=(name,),
            placeholder=say("Nothing"),
            format_func=say,
        )

    line("title", say("Title"), say("What stands above the picture"))
    line("point", say("What to look at"), say("One line under the picture, for the audience"))
    key = f"scene-notes-{revision}"
    st.text_area(
        say("Notes"),
        scene.notes,
        190,
        LONGEST["notes"],
        key,
        placeholder=say("What you say"),
        on_change=keep,
        args=("notes",),
    )
    left, right = st.columns(2)
    with left:
        parts("hide", say("Hidden until the next key"))
    with right:
        parts("omit", say("Left out"))
    if choices := list(dict.fromkeys([*scene.guess, *guess.parts(scene, network)])):
        more: dict[str, Any] = {"max_selections": guess.MOST, "placeholder": say("Nothing"), "help": say(GUESS_HELP)}
        key = f"scene-guess-{revision}"
        more["format_func"] = scene.said
        widgets.offer(
            st.multiselect, say(GUESS), choices, list(scene.guess), key=key, on_change=keep, args=("guess",), **more
        )
    if scene.live or not obstacle(scene):
        st.toggle(say(LIVE), scene.live, f"scene-live-{revision}", say(LIVE_HELP), on_change=keep, args=("live",))
    _view(at, scene, revision)


def _view(at: int, scene: Scene, revision: str) -> None:
    """The page and its address, as they stand in the file."""
    key = f"scene-view-{revision}"

    def keep() -> None:
        found, mistakes = _scene_of(st.session_state[key])
        st.session_state["view-mistakes"] = (revision, mistakes)
        if found and not mistakes:
            session.edit(at, page=found.page, view=found.view, lines={})

    with st.expander(say("The view"), key="scene-view"):
        st.text_area(say("As it stands in the file"), write_view(scene), VIEW_ROWS, key=key, on_change=keep)
        of, mistakes = st.session_state.get("view-mistakes", ("", ()))
        for one in mistakes if of == revision else ():
            st.error(plain(sentences(str(one), say("The view stays as it was."))))
        caption(say("The names are those in the page's address. To change a view by hand, open it and add it again."))
    model = session.talk()[0].model
    st.link_button(say("Open this view"), scene.address(model), type="tertiary")


def _scene_of(source: str) -> tuple[Scene | None, tuple[Mistake, ...]]:
    talk, mistakes = read(f"[[scene]]\n{source}")
    moved = tuple(Mistake(max(one.line - 1, 1), one.text) for one in mistakes)
    return (talk.scenes[0] if talk.scenes else None), moved
