"""The app as a server: Streamlit's own, behind what guards it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from model.language.say import say

from ..streamlit_internals import is_own_host, message_kind, uploaded_bytes
from .command_line import split, with_hosts
from .first_script import FirstScript
from .headers import SafeHeaders
from .messages import MessageGuard
from .settings import Settings
from .uploads import UploadLimits

SWITCH = 0.0005
"""Seconds after which a thread that computes in Python lets another one go on; the default of 0.005 is waited at each
of the dozens of steps of a visitor's run while another visitor's text is read."""
INSTALLED = Path(__file__).parents[1] / "start" / "attenscope_app.py"
"""Where an installed package has the script (setup.py)."""
APP = INSTALLED if INSTALLED.is_file() else Path(__file__).parents[2] / "app.py"


def application(settings: Settings) -> st.App:
    """The app with its middleware, for any ASGI server."""
    return st.App(
        APP,
        middleware=[
            Middleware(SafeHeaders, settings=settings, is_own=is_own_host),
            Middleware(UploadLimits, settings=settings, stored=uploaded_bytes),
            Middleware(MessageGuard, kind=message_kind),
            Middleware(FirstScript),
        ],
    )


def serve(arguments: Sequence[str]) -> None:
    """Serve the app under a command line until it is stopped. ValueError for what the command line cannot mean."""
    options, own = split(arguments)
    settings = Settings.of_this_process()
    if settings.read_only and any(one.partition("=")[0] in ("--model", "--models") for one in own):
        raise ValueError(
            say("A read-only server (ATTENSCOPE_READ_ONLY) shows the released models alone: leave --model out.")
        )
    served = application(settings)
    sys.argv = [str(APP), *own]  # Read by the pages; and Streamlit looks for its configuration beside the first.
    sys.setswitchinterval(SWITCH)
    served.run(config=with_hosts(options, os.environ))
