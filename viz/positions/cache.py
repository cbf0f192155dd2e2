"""What the page Positions computes once for all visitors."""

from __future__ import annotations

import numpy as np
import streamlit as st

from attenscope.positions.analysis import (
    PositionalHeads,
    Uniqueness,
    find_nearest_other_positions,
    position_similarity,
    score_positional_heads,
)
from attenscope.positions.experiments import (
    ExperimentResult,
    PositionExperiment,
    compute_log_prob_curve,
    run_experiment,
)
from attenscope.positions.table import (
    TABLE_FORMS,
    FormError,
    compute_table_by_form,
    make_formula_table,
    measure_form_error,
)
from attenscope.viz.ui import cache
from attenscope.viz.ui.cache import queue_and_cache


@st.cache_data(max_entries=16, show_spinner=False)
def compute_sinusoidal_table(form: str, positions: int, d_model: int, base: float) -> np.ndarray:
    """A sinusoidal table (positions, d_model) as a form computes it; `reference` is the float64 formula."""
    if form == "reference":
        return make_formula_table(positions, d_model, base).values
    return compute_table_by_form(form, positions, d_model, base)


@st.cache_data(max_entries=32, show_spinner=False)
def compute_encoding_form_errors(positions: int, d_model: int, base: float) -> dict[str, FormError]:
    """Every form's error, by name."""
    return {name: measure_form_error(name, positions, d_model, base) for name in TABLE_FORMS}


@st.cache_data(max_entries=8, show_spinner=False)
def compute_position_similarities(rows: np.ndarray, cosine: bool) -> np.ndarray:
    """Similarity of all positions of a table (P, D): (P, P)."""
    return position_similarity(rows, cosine=cosine)


@st.cache_data(max_entries=8, show_spinner=False)
def find_nearest_positions(rows: np.ndarray) -> Uniqueness:
    """The closest positions of a table (P, D)."""
    return find_nearest_other_positions(rows)


@queue_and_cache(64)
def compute_position_experiment(name: str, sentence: str, experiment: PositionExperiment) -> ExperimentResult:
    """A sentence translated with its positions moved. Raises ExperimentError."""
    return run_experiment(cache.load_runnable_model(name), cache.compute_translation(name, sentence), experiment)


@queue_and_cache(64, is_long=True)
def compute_experiment_log_probs(
    name: str, sentence: str, experiment: PositionExperiment, amounts: tuple[float, ...]
) -> np.ndarray:
    """The log-probability of the model's own translation as the experiment grows. Raises ExperimentError."""
    curve = compute_log_prob_curve(
        cache.load_runnable_model(name), cache.compute_translation(name, sentence), experiment, amounts
    )
    curve.flags.writeable = False
    return curve


@queue_and_cache(32, is_long=True)
def compute_positional_heads(name: str, sentence: str) -> PositionalHeads:
    """Which heads of a checkpoint look at places, on one sentence."""
    return score_positional_heads(cache.load_translator(name), cache.compute_translation(name, sentence))
