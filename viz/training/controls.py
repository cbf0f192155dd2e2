"""The controls of Training alone. All they hold is in the address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import streamlit as st

from ..ui.controls import SHARED

STYLE = Path(__file__).parent / "training.css"
View = Literal["snapshots", "curves", "architecture", "parameters", "card", "comparison"]
VIEWS: tuple[View, ...] = get_args(View)
RELEASED = "released"


def view() -> View:
    return st.segmented_control(
        "View", VIEWS, default="snapshots", required=True, key="training", label_visibility="collapsed", **SHARED
    )


def log_steps() -> bool:
    """Whether the axis of steps is logarithmic."""
    return st.toggle("Logarithmic steps", key="logsteps", **SHARED)


def stop(steps: Sequence[int | None]) -> int:
    """The stop in the address, by its step (``at=366``, ``at=released``); the first one where it names none."""
    brought = st.query_params.get("at", "")
    names = [_address(step) for step in steps]
    return names.index(brought) if brought in names else 0


def rest_at(step: int | None) -> None:
    """Keep the stop in the address; for callbacks."""
    st.query_params["at"] = _address(step)


def _address(step: int | None) -> str:
    return RELEASED if step is None else str(step)
