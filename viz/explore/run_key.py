"""What a run of a checkpoint depends on, in the order in which :mod:`viz.ui.cache` takes it."""

from __future__ import annotations

from typing import NamedTuple


class RunKey(NamedTuple):
    """One run: equal keys give equal traces."""

    model: str
    sentence: str
    given: str = ""
    """The translation that was typed; "" for the model's own."""
    changes: str = ""
    """In the form of :mod:`model.interventions.changes`; "" for the unchanged model."""
