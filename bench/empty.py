"""An app that shows one number: what a click costs in Streamlit before a page does anything of its own."""

import streamlit as st


@st.fragment
def counter() -> None:
    st.session_state.setdefault("clicks", 0)
    if st.button("Add one"):
        st.session_state["clicks"] += 1
    st.text(f"clicks: {st.session_state['clicks']}")


counter()
