"""Talk: scenes made of views, put in order, with notes, and shown on the whole screen."""

import streamlit as st

from attenscope.language import say
from attenscope.viz import page_setup
from attenscope.viz.export.talk_html import draw_save_talk_button
from attenscope.viz.talk import attachments, editor, session
from attenscope.viz.talk import scenes as talk_scenes
from attenscope.viz.talk.checks import check_talk, find_scene_trace_or_config
from attenscope.viz.ui import cache, style
from attenscope.viz.ui.addresses.shared import LANGUAGE
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.ui.links import draw_next_page_link
from attenscope.viz.web.page_components import mount_talk_presenter

page_setup.draw_page_frame("talk")
session.refresh_shipped_talk_language()
st.html(editor.TALK_STYLE)
talk, reading = session.get_talk()
models = cache.load_model_configs()
keys = attachments.get_stored_file_keys()
attached_files = attachments.get_attached_files()
scene_checks = check_talk(talk, models, attached_files)
with st.container(key="talk-head", horizontal=True, vertical_alignment="center"):
    editor.draw_title_field(talk)
    at = sum(number < session.get_edited_scene_index() for number in scene_checks.numbers)
    scenes = [
        scene.presenter_data(talk.model, keys, LANGUAGE.get())
        | talk_scenes.build_choice_click_data(scene, find_scene_trace_or_config(scene, talk, models, attached_files))
        for scene in scene_checks.shown
    ]
    leave = lambda left: session.set_edited_scene(scene_checks.numbers[left])  # noqa: E731
    mount_talk_presenter(
        talk.title,
        scenes,
        min(at, len(scenes) - 1),
        own=session.is_own_talk(),
        scheme=style.get_colour_scheme(),
        on_left=leave,
    )
    editor.draw_talk_menu(talk)
    draw_save_talk_button(talk, models)
editor.draw_mistakes(scene_checks, reading)
draw_caption(
    say(
        "Page Down and Page Up, or the arrow keys, go through the scenes; a number and Enter goes to one; n opens the "
        "notes in a window of their own, f fills the screen, c raises the contrast, Escape comes back here and Shift+P "
        "returns to the stage. Where a scene lets the audience guess, 1 to 9 count and Backspace takes one back."
    )
)
editor.draw_scene_editor(talk, models, attached_files, dict(zip(scene_checks.numbers, scenes, strict=True)))
draw_next_page_link("talk")
