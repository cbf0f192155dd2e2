"""What Explore shows of the model: kept while an opened trace is in its place, and brought back when that is closed."""

from __future__ import annotations

import streamlit as st

from attenscope.viz.ui.address import get_address_record, reset_parameters_to_default
from attenscope.viz.ui.addresses.explore import EXPLORE_HEAD_ORDER
from attenscope.viz.ui.addresses.shared import HEAD_PARAMETERS, PIN, SENTENCE

OPEN_TRACE, TRACE_RESULTS = "opened", "opened-results"
"""Session keys of the trace that a visitor has opened, and of what was computed of it."""
_MODEL_VIEW = "view of the model"
_KEPT_PARAMETERS = (*HEAD_PARAMETERS, EXPLORE_HEAD_ORDER)
"""Where a trace lacks what is chosen, what it has takes its place in the session."""


def keep_model_view() -> None:
    """Keep what is seen of the model, unless a trace has taken its place already; comes before one does."""
    state, owners = st.session_state, get_address_record().owners
    if _MODEL_VIEW not in state:
        values = {one.key: state.get(one.key) for one in (*_KEPT_PARAMETERS, PIN)}
        state[_MODEL_VIEW] = values, owners.get(PIN.key)


def close_trace() -> None:
    """Forget the trace and everything computed of it, and bring back what was seen of the model; for callbacks."""
    state = st.session_state
    for key in (OPEN_TRACE, TRACE_RESULTS):
        state.pop(key, None)
    if _MODEL_VIEW not in state:
        return
    values, pins_of = state.pop(_MODEL_VIEW)
    reset_parameters_to_default(*(one for one in _KEPT_PARAMETERS if values[one.key] is None))
    state.update({one.key: values[one.key] for one in _KEPT_PARAMETERS if values[one.key] is not None})
    # Those of the sentence were kept, or set on another page meanwhile.
    if values[PIN.key] is not None and get_address_record().owners.get(PIN.key) != SENTENCE.get():
        PIN.set(values[PIN.key], of=pins_of)
