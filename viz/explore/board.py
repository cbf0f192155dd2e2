"""Every head of the model at once, each with a switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from model.interventions.changes import HeadChange
from viz.components.switchboard import switchboard
from viz.ui.captions import caption

from .interventions import changes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from model.interventions.changes import Change
    from model.trace import AttentionMap, Kind
    from viz.components.switchboard import Head


def board(maps: Mapping[Kind, AttentionMap]) -> None:
    """A switch for every head of every attention, folded away."""
    sizes = {kind: (one.layers, one.heads) for kind, one in maps.items()}
    off = [(one.kind, one.layer, one.head) for one in changes() if isinstance(one, HeadChange) and one.change == "off"]

    def switched(now: Collection[Head]) -> None:
        st.session_state["changes"] = with_off(changes(), now)

    with st.popover("Switch heads off", type="tertiary", key="board"):
        caption(
            "Press a head to turn it off, or the name of a layer for all of its heads. The translation is made again, "
            "and what changes in it is marked. “This head” can do more: look at all keys alike, or copy another head."
        )
        switchboard(sizes, off, key="switches", on_switch=switched)


def with_off(made: tuple[Change, ...], off: Collection[Head]) -> tuple[Change, ...]:
    """`made` with exactly the heads `off`, (kind, layer, head) from 0, turned off; other changes of others stay."""

    def stays(one: Change) -> bool:
        return not isinstance(one, HeadChange) or (one.change != "off" and (one.kind, one.layer, one.head) not in off)

    return (*filter(stays, made), *(HeadChange(*place) for place in off))
