"""Attenscope: type a sentence and see the attention of every head of the model that translates it."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

# Not wide: viz/ui/style.css says how wide a page is, at once with all else, so that nothing moves as it arrives.
st.set_page_config(page_title="Attenscope", page_icon=str(HERE / "viz" / "icon.png"))
PAGES = [
    st.Page("viz/pages/explore.py", title="Explore", default=True),
    st.Page("viz/pages/decode.py", title="Decode"),
    st.Page("viz/pages/why.py", title="Why"),
    st.Page("viz/pages/positions.py", title="Positions"),
    st.Page("viz/pages/training.py", title="Training"),
    st.Page("viz/pages/masks.py", title="Masks"),
    st.Page("viz/pages/talk.py", title="Talk"),
]
page = st.navigation(PAGES, position="top")
# A pixel high until the style sheet is there, which makes it as high as it is: nothing is seen without its style.
with st.container(key="page", height=1, border=False):
    page.run()
