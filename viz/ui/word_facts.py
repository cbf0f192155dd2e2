"""What the card of a word needs, computed once for all visitors: facts of a translation, effects of its heads."""

from __future__ import annotations

import numpy as np
import streamlit as st
import torch

from model.experiments import head_effects as effects
from model.experiments.head_effects import HeadEffects
from model.experiments.word_facts import WordFacts
from model.experiments.word_facts import word_facts as facts_of
from model.interventions.apply import intervening
from model.interventions.changes import parse
from model.translate import Translation

from .cache import translator


@st.cache_resource(max_entries=64, show_spinner=False)
def word_facts(name: str, text: str, target_ids: tuple[int, ...], changes: str = "") -> WordFacts:
    """What a translation rests on, word by word; frozen, so visitors share it. Raises InterventionError."""
    return facts_of(translator(name), text, target_ids, parse(changes))


def head_effects(name: str, result: Translation, changes: str = "") -> HeadEffects:
    """What switching off each head changes, with a bar of how far it is while it is computed. InterventionError."""
    ids = result.source_ids, result.target_ids
    passes = effects.plan(translator(name).model, *map(len, ids))
    bar = st.empty()
    parts = []
    for at, heads in enumerate(passes):
        if at:  # what is in the cache needs no bar, and the first pass says how long the others take
            bar.progress(at / len(passes), f"Switching off each of {sum(map(len, passes))} heads …")
        parts.append(_pass(name, *ids, heads, changes))
    bar.empty()
    return effects.joined(passes, parts)


@st.cache_resource(max_entries=512, show_spinner=False)
def _pass(
    name: str,
    source_ids: tuple[int, ...],
    target_ids: tuple[int, ...],
    heads: tuple[effects.Head, ...],
    changes: str,
) -> np.ndarray:
    """One forward pass of the plan."""
    model = translator(name)
    with intervening(model.model, parse(changes)):
        return effects.effects_of(model.model, torch.tensor([source_ids], device=model.device), target_ids, heads)
