"""A switch for every head of every attention, layers down and heads across; turn heads off to see who needs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import say

from ...figures.labels import KIND_NAMES
from ..bundle import component

if TYPE_CHECKING:
    from model.trace import Head, Kind

_mount = component("switchboard")


def switchboard(
    sizes: Mapping[Kind, tuple[int, int]], off: Collection[Head], *, key: str, on_switch: Callable[[list[Head]], None]
) -> None:
    """Draw a switch a head for `sizes` (kind -> layers, heads); `on_switch(off)` hears of every change."""

    def switched() -> None:
        on_switch([(kind, int(layer), int(head)) for kind, layer, head in st.session_state[key].off])

    boards = [
        {"kind": kind, "name": say(KIND_NAMES[kind]), "layers": layers, "heads": heads}
        for kind, (layers, heads) in sizes.items()
    ]
    _mount(key=key, data={"boards": boards, "off": sorted(off)}, on_off_change=switched)
