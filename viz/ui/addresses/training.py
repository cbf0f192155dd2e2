"""What the address of the page Training can say."""

from __future__ import annotations

from typing import Literal, get_args

from attenscope.viz.ui.address import (
    AddressPage,
    boolean_parameter,
    choice_parameter,
    collect_module_parameters,
    text_parameter,
)
from attenscope.viz.ui.addresses import shared

TrainingView = Literal["snapshots", "curves", "architecture", "parameters", "card", "comparison"]
TRAINING_VIEWS: tuple[TrainingView, ...] = get_args(TrainingView)
FIRST_VIEWS: tuple[TrainingView, ...] = ("snapshots", "architecture")
"""The views that stand beside each other; the others are folded."""

TRAINING_VIEW = choice_parameter("training", TRAINING_VIEWS)
TRAINING_LOG_STEPS = boolean_parameter("logsteps", views=("curves", "comparison"))
TRAINING_STOP = text_parameter("at", longest=20, views=("snapshots",), scrubbed=True)
"""The stop that is shown, by its step: ``2500``, or ``released``; "" until somebody has chosen one."""

PAGE = AddressPage.build(
    "training",
    *shared.COMMON_PARAMETERS,
    *shared.HEAD_PARAMETERS,
    *collect_module_parameters(globals()),
    view=TRAINING_VIEW,
)
