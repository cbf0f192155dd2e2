"""Masks and weights that a person pastes."""

from __future__ import annotations

import hashlib

import streamlit as st

from model.diagnosis import NAMES, DiagnosisError
from model.diagnosis.readers.files import Contents
from model.diagnosis.readers.printed import read_printed
from model.faults.printed_examples import EXAMPLES
from model.language.say import listed, say

from ....traces.session import PASTED_MASK
from ....ui.addresses.masks import FROM, PART
from ....ui.captions import caption, plain
from .interpretation import interpret
from .mask_input import MaskInput

PLACEHOLDER = "tensor([[ True, False],\n        [ True,  True]])"


def mask_input() -> MaskInput | None:
    """Draw the box for a printed tensor, with what its arrays were read as; None where there is nothing to judge."""
    text = st.text_area(
        say("Printed tensor"), key=PASTED_MASK, height=190, placeholder=PLACEHOLDER, label_visibility="collapsed"
    )
    if not (text or "").strip():
        caption(
            say(
                "Paste what torch, numpy or a nested list printed. Several arrays need a name each: weights = …, "
                "mask = …, key_keep = …; known names are {names} and torch's key_padding_mask.",
                names=listed(NAMES),
            )
        )
        if st.button(say("Only a picture? Find the fault by what you see"), key="by-sight", on_click=_by_sight):
            st.rerun()
        return None
    try:
        arrays = read_printed(text or "")
    except DiagnosisError as error:
        st.error(plain(str(error)))
        return None
    return interpret(Contents("", arrays), hashlib.sha1((text or "").encode()).hexdigest())


def _by_sight() -> None:
    st.session_state[PART.key] = "gallery"


def take_example(name: str) -> None:
    """Load a broken case into the box; for callbacks."""
    st.session_state[PASTED_MASK] = EXAMPLES[name]()
    st.session_state[FROM.key] = "paste"
