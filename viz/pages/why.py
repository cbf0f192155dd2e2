"""Why: what made the model write this word, and what makes a head look there."""

import streamlit as st

from model.language.say import say
from viz import frame
from viz.export.save import save
from viz.ui import controls as shared
from viz.ui import widgets
from viz.ui.addresses.pins import PIN
from viz.ui.addresses.why import WHY
from viz.ui.captions import badge
from viz.why import controls
from viz.why.views import screen, user_model

frame.begin("why")
st.html(controls.STYLE)
if own := shared.user_model():
    user_model.show(own)
    st.stop()
chosen, text = shared.sentence()
model = shared.able(chosen, "attribution")
badge(model, *shared.translation(model, text))
PIN.hold(of=text)
question = controls.question(model, text)
with st.container(key="views", horizontal=True, vertical_alignment="center"):
    view = widgets.segmented_control(say("View"), WHY)
    menu = st.container(key="saving", width="content")
if saved := screen.show(view, question):
    with menu:
        save(saved)
