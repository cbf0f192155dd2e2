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
from ....turns import READING, BusyError
from ....ui.addresses.masks import FROM, PART
from ....ui.captions import caption, plain
from .interpretation import interpret
from .mask_input import MaskInput

SHORT = 2**14
"""Characters of a text that is read before longer ones that came earlier."""
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
        contents = _contents(text or "")
    except (DiagnosisError, BusyError) as error:
        st.error(plain(str(error)))
        return None
    return interpret(contents, hashlib.sha1((text or "").encode("utf-8", "replace")).hexdigest())


def _contents(text: str) -> Contents:
    """The arrays of a text; what was read is kept for this visitor until they paste another. DiagnosisError."""
    kept = st.session_state.get("mask_pasted", ("", ""))
    if kept[0] != text:
        st.session_state.pop("mask_pasted", None)
        try:
            with READING.turn(READING.ticket(is_long=len(text) > SHORT)):
                found: Contents | str = Contents("", read_printed(text))
        except DiagnosisError as error:
            found = str(error)
        kept = st.session_state["mask_pasted"] = (text, found)
    if isinstance(kept[1], str):
        raise DiagnosisError(kept[1])
    return kept[1]


def _by_sight() -> None:
    st.session_state[PART.key] = "gallery"


def take_example(name: str) -> None:
    """Load a broken case into the box; for callbacks."""
    st.session_state[PASTED_MASK] = EXAMPLES[name]()
    st.session_state[FROM.key] = "paste"
