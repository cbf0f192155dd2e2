"""The controls of Training alone. All they hold is in the address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from model.language.say import say

from ..ui import widgets
from ..ui.addresses.training import AT, LOGSTEPS, TRAINING, View

STYLE = Path(__file__).parent / "training.css"
RELEASED = "released"


def view() -> View:
    """Which view of the training is shown."""
    return widgets.segmented_control(say("View"), TRAINING)


def log_steps() -> bool:
    """Whether the axis of steps is logarithmic."""
    return widgets.toggle(say("Logarithmic steps"), LOGSTEPS)


def chosen_stop(steps: Sequence[int | None]) -> int:
    """The index of the stop that the address names (``at=366``, ``at=released``); the last where it names none."""
    names = [_address(step) for step in steps]
    return names.index(AT.hold(["", *names]) or names[-1])


def keep_stop(step: int | None) -> None:
    """Keep the stop in the address; for callbacks."""
    AT.set(_address(step))


def _address(step: int | None) -> str:
    return RELEASED if step is None else str(step)
