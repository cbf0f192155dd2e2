"""Decode: a translation made step by step, and what would have happened otherwise."""

import streamlit as st

from attenscope.language import say
from attenscope.viz import page_setup
from attenscope.viz.decode import controls as decode_controls
from attenscope.viz.decode import panels, runs
from attenscope.viz.export.share_menu import register_savable_view
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui.addresses.shared import PIN
from attenscope.viz.ui.captions import draw_model_run_badge, escape_markdown
from attenscope.viz.ui.links import draw_next_page_link

page_setup.draw_page_frame("decode", settings=ui_controls.draw_look_settings)
st.html(panels.DECODE_STYLE)
model, text = ui_controls.draw_sentence_and_model_controls()
PIN.hold(of=text)
with st.container(key="strategy", horizontal=True, vertical_alignment="center"):
    request, menu = decode_controls.draw_request_controls(model, text)
look, _ = ui_controls.sync_look_settings()
run = runs.get_or_start_run(model, request)
header = st.container(key="facts")
if problem := runs.input_problem_text(run):
    st.info(escape_markdown(problem))
    if request.changes:  # They may be what is wrong: heads that the model before had and this one has not.
        st.button(
            say("Undo all changes"), key="undo", type="tertiary", on_click=decode_controls.turn_heads_off, args=([],)
        )
elif run.is_working or run.progress.result is None or run.check is None:
    panels.draw_progress(run)
else:
    with header:
        draw_model_run_badge(model, run.progress.result, run.check)
    view = panels.draw_result(model, run, look, menu)
    register_savable_view(view)
draw_next_page_link("decode")
