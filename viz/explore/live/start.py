"""What Explore begins with where the address shows nothing: the head that aligns best, with one word pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from model.analysis.alignment import rank_alignment
from model.text.words import SPECIAL_TOKENS
from viz.ui.addresses.pins import PIN, pin
from viz.ui.addresses.shared import CHANGES, CHOSEN_HEAD, FORCED, GIVEN, HEAD, KIND, LAYER, SENTENCE
from viz.ui.url_state.page import is_in_address
from viz.ui.url_state.parameter import Parameter

from .examples import MOST

if TYPE_CHECKING:
    from model.trace import AttentionMap

VIEW_OF_A_SENTENCE: tuple[Parameter[Any], ...] = (SENTENCE, GIVEN, FORCED, CHANGES, *CHOSEN_HEAD, PIN)
"""What an address that shows something says: a sentence, or what is looked at in it."""


def nothing_chosen() -> bool:
    """Return whether this is a visitor's first look at Explore, by an address that shows no sentence and no head."""
    return LAYER.key not in st.session_state and not any(is_in_address(one) for one in VIEW_OF_A_SENTENCE)


def choose_head(text: str, cross: AttentionMap) -> None:
    """Begin with the cross-attention head that aligns best, and pin a long word that it aligns.

    A head that aligns the token just fed in is left for later: its rows are named by the token predicted.
    """
    ranking = rank_alignment(cross)
    best = next((one for one in ranking if one.reading == "predicted"), ranking[0])
    st.session_state[KIND.key] = "cross"
    LAYER.put(best.layer + 1)
    HEAD.put(best.head + 1)
    row = telling_row(cross, best.layer, best.head)
    if row is not None:
        pin(text, {"target": row})


def telling_row(cross: AttentionMap, layer: int, head: int) -> int | None:
    """Return the row of the longest word that puts most of its weight on one token of the text; None for none."""
    keys = [at for at, token in enumerate(cross.key_tokens) if token not in SPECIAL_TOKENS]
    if not keys:
        return None
    links = cross.weights[layer, head][:, keys].max(axis=1)
    rows = [at for at, token in enumerate(cross.rows("predicted")) if token not in SPECIAL_TOKENS and links[at] > MOST]
    return max(rows, key=lambda at: len(cross.rows("predicted")[at]), default=None)
