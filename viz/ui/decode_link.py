"""Opening Decode from another page, at a step, on a branch."""

from __future__ import annotations

import streamlit as st

from . import navigation
from .addresses.decode import BEGIN, BRANCH, METHOD, NEVER, OF_BRANCH, STEP

_OWNER = "branch-of"


def branch_owner() -> tuple[str, str] | None:
    """The model and the sentence that the branch in the address belongs to."""
    return st.session_state.get(_OWNER)


def own_branch(model: str, text: str) -> None:
    """Say which model and sentence the branch belongs to."""
    st.session_state[_OWNER] = model, text


def open_in_decode(model: str, text: str, step: int, *, prefix: tuple[int, ...] = (), given: bool = False) -> None:
    """Open Decode at a step, from 0: greedily from a `prefix` of token ids on, or with the `given` translation.

    For callbacks. The sentence, the model, the given translation and the changes are those of the session.
    """
    st.session_state[METHOD.key] = "given" if given and not prefix else "greedy"
    st.session_state[BEGIN.key] = st.session_state[NEVER.key] = ""
    for one in OF_BRANCH:
        one.reset()
    own_branch(model, text)
    BRANCH.set(prefix)
    STEP.set(step + 1)
    navigation.go_to("decode")
