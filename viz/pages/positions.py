"""Positions: the model's own positional encoding in pictures, and what happens when it is changed."""

import streamlit as st

from viz import frame
from viz.export.save import save
from viz.positions import controls, experiments, heads, precision, rotation, sentence, similarity, table, waves
from viz.ui import controls as shared
from viz.ui.captions import badge, hints

frame.begin("positions")
st.html(controls.STYLE)
chosen, text = shared.sentence()
model = shared.able(chosen, "positions")

PICTURES = {
    "table": table.show,
    "waves": waves.show,
    "similarity": similarity.show,
    "rotation": rotation.show,
    "precision": precision.show,
}
RUNS = {"sentence": sentence.show, "experiments": experiments.show}


@st.fragment
def pictures() -> None:
    """One view at a time. A fragment: its controls leave the sentence's alone."""
    with st.container(key="views", horizontal=True, vertical_alignment="center"):
        view = controls.view(model)
        saving = st.container(key="saving", width="content")
    if view in PICTURES:
        if view != "table":  # which marks where the sentence ends
            shared.hide_sentence_box()
        bar = st.container(key="of-table", horizontal=True, vertical_alignment="center")
        with bar:
            choice = controls.table(shared.ours(model, "position pictures"), text, view)
        found = PICTURES[view](choice, bar)
    else:
        result, check = shared.translation(model, text)
        badge(model, result, check)
        hints(model, result, result)
        if view == "heads":
            found = heads.show(shared.ours(model, "position pictures"), result)
        else:
            found = RUNS[view](model, result)
    if found:
        with saving:
            save(found)


pictures()
