"""Attenscope: type a sentence and see the attention of every head of the model that translates it."""

import streamlit as st

from attenscope.language import say
from attenscope.viz import FOLDER, visitor_language
from attenscope.viz.traces.session import open_command_line_trace
from attenscope.viz.ui.address import restore_history_entry_address
from attenscope.viz.web.page_components import forget_previous_scene

# Not wide: viz/ui/style.css says how wide a page is, at once with all else, so that nothing moves as it arrives.
st.set_page_config(page_title="Attenscope", page_icon=str(FOLDER / "icon.png"))
restore_history_entry_address()
forget_previous_scene()
visitor_language.set_visitor_language()
# The name "explore" is taken below.
EXPLORE = st.Page(FOLDER / "pages/explore.py", title=say("Explore"), url_path="start", default=True)
open_command_line_trace()


def explore_by_name() -> None:
    """Go to the first page, which has no name in its address, with what the address says."""
    st.switch_page(EXPLORE, query_params=st.query_params.to_dict())


PAGES = [
    EXPLORE,
    st.Page(FOLDER / "pages/decode.py", title=say("Decode")),
    st.Page(FOLDER / "pages/why.py", title=say("Why")),
    st.Page(FOLDER / "pages/heads.py", title=say("Heads")),
    st.Page(FOLDER / "pages/positions.py", title=say("Positions")),
    st.Page(FOLDER / "pages/training.py", title=say("Training")),
    st.Page(FOLDER / "pages/masks.py", title=say("Masks")),
    st.Page(FOLDER / "pages/talk.py", title=say("Talk")),
    st.Page(explore_by_name, title=say("Explore"), url_path="explore", visibility="hidden"),
]
page = st.navigation(PAGES, position="top")
# A pixel high until the style sheet is there, which makes it as high as it is: nothing is seen without its style.
with st.container(key="page", height=1, border=False):
    page.run()
