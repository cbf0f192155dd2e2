"""What is computed once and shared: the only calls of st.cache_* in the project."""

from __future__ import annotations

import gc

import numpy as np
import streamlit as st

from model.agreement import Agreement
from model.changes import parse
from model.compare import Comparison, compare, force_changed
from model.interventions import intervening
from model.lens import Lens, logit_lens
from model.position_experiments import ExperimentResult, PositionExperiment, belief, run_experiment
from model.position_forms import FORMS, FormError, form_error, form_values
from model.position_geometry import Uniqueness, similarity
from model.position_geometry import uniqueness as closest
from model.position_table import formula_table
from model.positional_heads import PositionalHeads, positional_heads
from model.trace import TENSORS, AttentionTrace
from model.translate import ObserverCheck, Translation, Translator, available


@st.cache_data(ttl=10, show_spinner=False)
def checkpoints() -> list[str]:
    """Names of the checkpoints that can be chosen."""
    return list(available())


@st.cache_resource(show_spinner="Loading the model …")
def translator(name: str) -> Translator:
    """The one copy of a checkpoint that all visitors share."""
    loaded = Translator.load(name)
    # Streamlit collects garbage after every rerun; walking all that torch has loaded would be most of a rerun.
    gc.collect()
    gc.freeze()
    return loaded


@st.cache_resource(max_entries=128, show_spinner=False)
def translation(name: str, sentence: str) -> tuple[Translation, ObserverCheck]:
    """A sentence through a checkpoint, and whether looking changed it. Both are frozen, so visitors share them."""
    model = translator(name)
    translated = model.translate(sentence)
    return translated, model.check_observer(translated)


@st.cache_resource(max_entries=128, show_spinner=False)
def agreement(name: str, source_ids: tuple[int, ...], target_ids: tuple[int, ...]) -> Agreement:
    """Whether cached, full and teacher-forced attention of a translation agree; frozen, so visitors share it."""
    return translator(name).three_ways(source_ids, target_ids)


@st.cache_data(max_entries=16, show_spinner=False)
def position_values(form: str, positions: int, d_model: int, base: float) -> np.ndarray:
    """A sinusoidal table (positions, d_model) as a form computes it; `reference` is the float64 formula."""
    if form == "reference":
        return formula_table(positions, d_model, base).values
    return form_values(form, positions, d_model, base)


@st.cache_data(max_entries=32, show_spinner=False)
def position_errors(positions: int, d_model: int, base: float) -> dict[str, FormError]:
    """Every form's error, by name."""
    return {name: form_error(name, positions, d_model, base) for name in FORMS}


@st.cache_data(max_entries=8, show_spinner=False)
def similarities(rows: np.ndarray, cosine: bool) -> np.ndarray:
    """Similarity of all positions of a table (P, D): (P, P)."""
    return similarity(rows, cosine=cosine)


@st.cache_data(max_entries=8, show_spinner=False)
def uniqueness(rows: np.ndarray) -> Uniqueness:
    """The closest positions of a table (P, D)."""
    return closest(rows)


@st.cache_resource(max_entries=64, show_spinner=False)
def position_experiment(name: str, sentence: str, experiment: PositionExperiment) -> ExperimentResult:
    """A sentence translated with its positions moved. Raises ExperimentError."""
    return run_experiment(translator(name), translation(name, sentence)[0], experiment)


@st.cache_data(max_entries=64, show_spinner=False)
def position_belief(name: str, sentence: str, experiment: PositionExperiment, amounts: tuple[float, ...]) -> np.ndarray:
    """What the model keeps of its translation as the experiment grows. Raises ExperimentError."""
    return belief(translator(name), translation(name, sentence)[0], experiment, amounts)


@st.cache_resource(max_entries=32, show_spinner=False)
def position_heads(name: str, sentence: str) -> PositionalHeads:
    """Which heads of a checkpoint look at places, on one sentence."""
    return positional_heads(translator(name), translation(name, sentence)[0])


@st.cache_resource(max_entries=64, show_spinner=False)
def given(name: str, sentence: str, target: str) -> Translation:
    """A given translation read by teacher forcing; frozen. Raises InputError."""
    return translator(name).force(sentence, target)


@st.cache_resource(max_entries=64, show_spinner=False)
def changed(name: str, sentence: str, changes: str, target: str = "") -> Comparison:
    """A sentence translated again by the model with changes made, as changes.text_of writes them; frozen.

    With `target`, that given translation is read again. Raises InterventionError.
    """
    return compare(translator(name), reading(name, sentence, target), parse(changes))


def reading(name: str, sentence: str, target: str = "", changes: str = "") -> Translation:
    """A sentence with the model's own translation or a given one, by the model as it is or with changes made."""
    if changes:
        return changed(name, sentence, changes, target).after
    return given(name, sentence, target) if target else translation(name, sentence)[0]


@st.cache_resource(max_entries=16, show_spinner=False)
def whole_trace(name: str, sentence: str, target: str = "", changes: str = "") -> AttentionTrace:
    """The trace of a reading with queries, keys, values and scores, by one teacher-forced pass; frozen."""
    ids = reading(name, sentence, target, changes).target_ids
    return force_changed(translator(name), sentence, ids, parse(changes), tensors=TENSORS).trace


@st.cache_resource(max_entries=64, show_spinner=False)
def lens(name: str, sentence: str, target: str = "", changes: str = "") -> Lens:
    """What the decoder would have written after each layer; frozen."""
    model, found = translator(name), reading(name, sentence, target, changes)
    with intervening(model.model, parse(changes)):
        return logit_lens(model, found)
