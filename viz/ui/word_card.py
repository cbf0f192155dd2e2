"""The card of one word of a translation, the same on Explore and on Decode, and the effects of heads that it shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from model.experiments.head_effects import HeadEffects, joined
from model.language.say import say

from ..components.word_card import CardActions, card_data
from ..components.word_card import word_card as mount
from . import cache, links

if TYPE_CHECKING:
    import numpy as np

    from model.trace import Head
    from model.translate import Translation


Heads = tuple["Head", ...]


def word_card(model: str, result: Translation, position: int, actions: CardActions, changes: str = "") -> None:
    """Draw the card of the token at `position`, from 0, of a translation by the model with the changes made."""
    links.follow()
    with st.container(key="wordcard"):
        facts = cache.word_facts(model, result.source, result.target_ids, changes)
        effects = head_effects(model, result, changes)
        mount(card_data(result.steps[position], facts, effects.strongest(position)), actions, key="word-card")


def head_effects(model: str, result: Translation, changes: str = "") -> HeadEffects:
    """What switching off each head changes, with a bar of how far it is while it is computed. InterventionError."""
    ids = result.source_ids, result.target_ids
    passes = cache.passes(model, *map(len, ids))
    return in_passes(passes, lambda at: cache.effects_of(model, *ids, at, changes))


def in_passes(passes: Sequence[Heads], effects_of: Callable[[int], np.ndarray]) -> HeadEffects:
    """Put together the effects of the heads of some passes, by their numbers, with a bar of how far they are."""
    bar, parts = st.empty(), []
    count = sum(map(len, passes))
    for at in range(len(passes)):
        if at:  # what is in the cache needs no bar, and the first pass says how long the others take
            bar.progress(at / len(passes), say("Switching off each of {count} heads …", count=count))
        parts.append(effects_of(at))
    bar.empty()
    return joined(passes, parts)
