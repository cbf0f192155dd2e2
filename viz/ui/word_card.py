"""The card of one word of a translation, the same on Explore and on Decode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from ..components.word_card import CardActions, card_data
from ..components.word_card import word_card as mount
from . import navigation
from .word_facts import head_effects, word_facts

if TYPE_CHECKING:
    from model.translate import Translation


def word_card(model: str, result: Translation, position: int, actions: CardActions, changes: str = "") -> None:
    """Draw the card of the token at `position`, from 0, of a translation by the model with the changes made."""
    navigation.follow()
    with st.container(key="wordcard"):
        facts = word_facts(model, result.source, result.target_ids, changes)
        effects = head_effects(model, result, changes)
        mount(card_data(result.steps[position], facts, effects.strongest(position)), actions, key="word-card")
