"""Going from one page to another by a click: a callback says where to, and the run that follows goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from .. import FOLDER
from ..streamlit_internals import unbind_query_parameters
from .addresses.decode import BEGIN, BRANCH, METHOD, NEVER, OF_BRANCH, STEP
from .addresses.explore import VIEW
from .addresses.pages import PAGES
from .addresses.shared import KIND
from .addresses.why import CELL, WHY, Cell
from .addresses.why import View as WhyView
from .controls import choose
from .teacher_forced import give

if TYPE_CHECKING:
    from model.trace import Head

_PAGE = "page to open"
_OWNER = "branch-of"


def follow() -> None:
    """Go where a callback has asked to go, if it has; comes before what need not be drawn then."""
    if page := st.session_state.pop(_PAGE, None):
        unbind_query_parameters()  # Streamlit refuses to leave a page whose widgets stand in the address.
        st.switch_page(FOLDER / "pages" / f"{page}.py", query_params=PAGES[page].carried_address())


def branch_owner() -> tuple[str, str] | None:
    """The model and the sentence that the branch of Decode in the address belongs to."""
    return st.session_state.get(_OWNER)


def own_branch(model: str, text: str) -> None:
    """Say which model and sentence the branch belongs to."""
    st.session_state[_OWNER] = model, text


def open_in_decode(model: str, text: str, step: int, *, prefix: tuple[int, ...] = (), given: bool = False) -> None:
    """Open Decode at a step, from 0: greedily from a `prefix` of token ids on, or with the `given` translation.

    For callbacks, in which Streamlit cannot switch pages itself. The sentence, the model, the given translation and the
    changes are those of the session.
    """
    st.session_state[METHOD.key] = "given" if given and not prefix else "greedy"
    st.session_state[BEGIN.key] = st.session_state[NEVER.key] = ""
    for one in OF_BRANCH:
        one.reset()
    own_branch(model, text)
    BRANCH.set(prefix)
    STEP.set(step + 1)
    st.session_state[_PAGE] = "decode"


def choose_head(head: Head) -> None:
    """Choose an attention, a layer and a head of Explore; for callbacks."""
    kind, layer, number = head
    st.session_state[KIND.key] = kind
    choose(layer, number)


def open_on_explore(head: Head) -> None:
    """Open Explore on the heatmap of a head; for callbacks. The sentence and the pinned word come along."""
    choose_head(head)
    st.session_state[VIEW.key] = "heatmap"
    st.session_state[_PAGE] = "explore"


def open_why(view: WhyView = "source words") -> None:
    """Open a view of Why; for callbacks. The sentence, what is read of it and the pinned word come along."""
    st.session_state[WHY.key] = view
    st.session_state[_PAGE] = "why"


def open_why_of(text: str, translation: str = "") -> None:
    """Open Why on a translation of a sentence, "" for the model's own; for callbacks."""
    give(text, translation)
    open_why()


def open_why_here(text: str, cell: Cell) -> None:
    """Open Why on the score of a cell of the maps of a sentence; for callbacks."""
    CELL.set(cell, of=text)
    open_why("score")
