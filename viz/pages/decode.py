"""Decode: a translation made step by step, and what would have happened otherwise."""

import streamlit as st

from model.language.say import say
from viz import frame
from viz.decode import controls, panels, runs
from viz.export.save import save
from viz.ui import controls as shared
from viz.ui.addresses.pins import PIN
from viz.ui.captions import badge, plain

frame.begin("decode")
st.html(panels.STYLE)
model, text = shared.sentence()
PIN.hold(of=text)
with st.container(key="strategy", horizontal=True, vertical_alignment="center"):
    request = controls.request(model, text)
    look, _ = shared.look()
    menu = st.container(width="content")
run = runs.run(model, request)
header = st.container(key="facts")
if problem := runs.input_problem(run):
    st.info(plain(problem))
    if request.changes:  # They may be what is wrong: heads that the model before had and this one has not.
        st.button(say("Undo all changes"), key="undo", type="tertiary", on_click=controls.turn_off, args=([],))
elif run.working or run.progress.result is None or run.check is None:
    panels.show_progress(run)
else:
    with header:
        badge(model, run.progress.result, run.check)
    view = panels.show_result(model, run, look)
    with menu:
        save(view)
