"""The files beside a talk in the visitor's browser, from where they come back when the server has lost them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ..bundle import component
from ..packing import pack

_mount = component("kept_files")
_KEY, _WANTED = "kept-files", "kept-files wanted"


def kept_files(
    known: Mapping[str, str],
    lost: Mapping[str, str],
    data: Callable[[str], bytes],
    on_found: Callable[[str, bytes], None],
) -> None:
    """Have the browser keep the files `known` by name and key, whose bytes are `data(name)`; draws nothing.

    Of those that are `lost`, each that the browser has under the same key is told once to `on_found(name, bytes)`.
    """

    def wanted() -> None:
        st.session_state[_WANTED] = _told("wanted").get("name")

    def found() -> None:
        told = _told("found")
        try:
            on_found(str(told.get("name")), base64.b64decode(str(told.get("data")), validate=True))
        except binascii.Error:
            return

    name = st.session_state.pop(_WANTED, None)
    sent = name if name in known else None
    header = {"known": dict(known), "lost": dict(lost), "sent": sent}
    body = data(sent) if sent else b""
    _mount(key=_KEY, data=pack(header, body), on_wanted_change=wanted, on_found_change=found)


def _told(what: str) -> Mapping[str, Any]:
    """What the browser says; nothing where it is of no kind that it says."""
    value = getattr(st.session_state[_KEY], what)
    return value if isinstance(value, Mapping) else {}
