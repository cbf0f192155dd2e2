"""What the address of the page Training can say."""

from __future__ import annotations

from typing import Literal, get_args

from ..url_state.kinds import choice, switch, text
from ..url_state.page import Page, parameters_in
from . import shared

View = Literal["snapshots", "curves", "architecture", "parameters", "card", "comparison"]
VIEWS: tuple[View, ...] = get_args(View)

TRAINING = choice("training", VIEWS)
LOGSTEPS = switch("logsteps", views=("curves", "comparison"))
AT = text("at", longest=20, views=("snapshots",), scrubbed=True)
"""The stop that is shown, by its step: ``366``, or ``released``; "" until somebody has chosen one."""

PAGE = Page.of("training", *shared.COMMON, *shared.CHOSEN_HEAD, *parameters_in(globals()), view=TRAINING)
