"""Why: what made the model write this word, and what makes a head look there."""

import streamlit as st

from attenscope.language import say
from attenscope.viz import page_setup
from attenscope.viz.export.save import draw_view_save_menu
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui.addresses.pins import PIN
from attenscope.viz.ui.addresses.why import WHY_VIEW
from attenscope.viz.ui.words import draw_badge
from attenscope.viz.why import controls as why_controls
from attenscope.viz.why import page, source_words

page_setup.draw_page_frame("why")
st.html(why_controls.WHY_STYLE)
if own := ui_controls.get_encoder_only_model():
    source_words.draw_user_model_page(own)
    st.stop()
chosen, text = ui_controls.draw_sentence_box()
model = ui_controls.require_ability(chosen, "attribution")
draw_badge(model, *ui_controls.require_translation(model, text))
PIN.hold(of=text)
question = why_controls.draw_question(model, text)
with st.container(key="views", horizontal=True, vertical_alignment="center"):
    view = ui_controls.segmented_control(say("View"), WHY_VIEW)
    menu = st.container(key="saving", width="content")
if saved := page.draw_why_page_view(view, question):
    with menu:
        draw_view_save_menu(saved)
