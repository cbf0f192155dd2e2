"""The card of one word: what the model knew of it, and the links that lead on from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from attenscope.experiments.ablation import HeadEffects, join_effects
from attenscope.language import say
from attenscope.runnable_model import Translation
from attenscope.trace import Head
from attenscope.viz.ui import cache
from attenscope.viz.ui.links import follow_link
from attenscope.viz.web.texts import CardActions, draw_word_card, word_card_data

HeadBatch = tuple[Head, ...]


def draw_token_card(model: str, result: Translation, position: int, actions: CardActions, changes: str = "") -> None:
    """Draw the card of the token at `position`, from 0, of a translation by the model with the changes made."""
    follow_link()
    with st.container(key="wordcard"):
        facts = cache.compute_word_facts(model, result.source, result.target_ids, changes)
        effects = compute_head_effects(model, result, changes)
        data = word_card_data(result.steps[position], facts, effects.strongest(position))
        draw_word_card(data, actions, key="word-card")


def compute_head_effects(model: str, result: Translation, changes: str = "") -> HeadEffects:
    """What switching off each head changes, with a progress bar while it is computed. Raises InterventionError."""
    ids = result.source_ids, result.target_ids
    passes = cache.plan_ablation_batches(model, *map(len, ids))
    return compute_effects_in_batches(passes, lambda at: cache.compute_ablation_batch(model, *ids, at, changes))


def compute_effects_in_batches(passes: Sequence[HeadBatch], effects_of: Callable[[int], np.ndarray]) -> HeadEffects:
    """Compute the effects of the heads pass by pass with a progress bar, and join them.

    `effects_of` returns the effects of the pass with a number, from 0.
    """
    bar, parts = st.empty(), []
    count = sum(map(len, passes))
    for at in range(len(passes)):
        if at:  # what is in the cache needs no bar, and the first pass says how long the others take
            bar.progress(at / len(passes), say("Switching off each of {count} heads …", count=count))
        parts.append(effects_of(at))
    bar.empty()
    return join_effects(passes, parts)
