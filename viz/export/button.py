"""The button that saves a whole talk as one file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from model.language.current import in_this_language
from model.language.say import say, sentences, to_say

from ..talk import beside
from ..talk.checks import check, model_of
from ..ui import cache, theme
from .collect import talk_file
from .packed_models import estimated_size

if TYPE_CHECKING:
    from model.network.config import TransformerConfig

    from ..talk.scenes import Talk

HELP = to_say(
    "The whole talk as one HTML file for a USB stick: no server, no network. Making it takes a second or so a scene."
)
LIVE_HELP = to_say("Its live scenes bring their model along.")


def save_talk(talk: Talk, models: Mapping[str, TransformerConfig | None]) -> None:
    """Make the file once the button is pressed, in the colours that the visitor sees; `models` are those there are."""
    there = beside.files() if beside.named(talk) else {}
    live = {model_of(one, talk, models) for one in check(talk, models, there).shown if one.live}
    sizes = [estimated_size(one.parameters, "half") for one in cache.summaries() if one.name in live]
    name = re.sub(r"[^\w]+", "-", talk.title.lower(), flags=re.ASCII).strip("-") or "talk"
    st.download_button(
        say("One file (about {size:.0f} MB)", size=sum(sizes) / 1e6) if sizes else say("One file"),
        partial(in_this_language(talk_file), talk, models, theme.palette(), date.today(), beside=there),
        f"{name}.html",
        "text/html",
        key="talk-one-file",
        type="tertiary",
        help=sentences(say(HELP), say(LIVE_HELP) if sizes else ""),
        on_click="ignore",
        disabled=not talk.scenes,
    )
