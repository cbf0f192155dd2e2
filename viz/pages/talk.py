"""Talk: scenes made of views, put in order, with notes, and shown on the whole screen."""

import streamlit as st

from model.language.say import say
from viz import frame
from viz.components.presenter import show
from viz.export.button import save_talk
from viz.talk import beside, editor, files, guess, session
from viz.talk.checks import check, network_of
from viz.ui import cache
from viz.ui.addresses.shared import LANGUAGE
from viz.ui.captions import caption

frame.begin("talk")
session.follow_language()
st.html(editor.STYLE)
talk, reading = session.talk()
models = cache.configurations()
keys = beside.keys()
there = beside.files()
checked = check(talk, models, there)
with st.container(key="talk-head", horizontal=True, vertical_alignment="center"):
    files.title(talk)
    at = sum(number < session.current() for number in checked.numbers)
    scenes = [
        scene.presenter_data(talk.model, keys, LANGUAGE.get())
        | guess.clicked(scene, network_of(scene, talk, models, there))
        for scene in checked.shown
    ]
    leave = lambda left: session.choose(checked.numbers[left])  # noqa: E731
    show(talk.title, scenes, min(at, len(scenes) - 1), own=session.is_own(), on_left=leave)
    files.menu(talk)
    save_talk(talk, models)
files.mistakes(checked, reading)
caption(
    say(
        "Page Down and Page Up, or the arrow keys, go through the scenes; a number and Enter goes to one; n opens the "
        "notes in a window of their own, f fills the screen, c raises the contrast, Escape comes back here. Where a "
        "scene lets the audience guess, 1 to 9 count and Backspace takes one back."
    )
)
editor.scenes(talk, models, there, dict(zip(checked.numbers, scenes, strict=True)))
