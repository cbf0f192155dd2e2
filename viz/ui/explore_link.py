"""Choosing a head of Explore, from Explore itself or from another page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from . import navigation
from .addresses.explore import VIEW
from .addresses.shared import KIND
from .controls import choose

if TYPE_CHECKING:
    from model.experiments.head_effects import Head


def choose_head(head: Head) -> None:
    """Choose an attention, a layer and a head; for callbacks."""
    kind, layer, number = head
    st.session_state[KIND.key] = kind
    choose(layer, number)


def open_on_explore(head: Head) -> None:
    """Open Explore on the heatmap of a head; for callbacks. The sentence and the pinned word come along."""
    choose_head(head)
    st.session_state[VIEW.key] = "heatmap"
    navigation.go_to("explore")
