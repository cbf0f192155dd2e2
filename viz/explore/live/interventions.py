"""The controls that change the model: heads turned off, made uniform or given the weights of another head."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import streamlit as st

from model.interventions.changes import Change, HeadChange, InterventionError, parse, text_of
from model.language.say import say, to_say
from viz.components.switchboard import switchboard
from viz.ui import cache, widgets
from viz.ui.addresses.explore import PICTURES, Pictured
from viz.ui.addresses.shared import CHANGES
from viz.ui.captions import caption, plain

from ..intervention_texts import change_name, difference_html, effect_in_words

if TYPE_CHECKING:
    from model.analysis.head_statistics import Place
    from model.live.live_model import LiveModel
    from model.trace import AttentionMap, Head, Kind

UNCHANGED = to_say("as it is")


def changes() -> tuple[Change, ...]:
    """Return the changes that the visitor has made, kept in the address as ``changes=cross.3.1:off``."""
    try:
        made = parse(CHANGES.hold())
    except InterventionError as error:
        CHANGES.reset()
        st.info(plain(str(error)))
        return ()
    CHANGES.set(text_of(made))
    return made


def changed_heads(kind: Kind) -> frozenset[Place]:
    """Return the heads of an attention, (layer, head) from 0, that the visitor has changed."""
    return frozenset((one.layer, one.head) for one in _head_changes() if one.kind == kind)


def head_switch(attention: AttentionMap, layer: int, head: int) -> None:
    """Draw the control of one head, counted from 0: unchanged, off, uniform, or with the weights of another head."""
    place = attention.kind, layer, head
    own = [one for one in _head_changes() if (one.kind, one.layer, one.head) == place]
    options = {UNCHANGED: None} | {
        _key(one): one
        for one in (
            HeadChange(attention.kind, layer, head, "off"),
            HeadChange(attention.kind, layer, head, "uniform"),
            *(
                HeadChange(attention.kind, layer, head, "copy", other)
                for other in range(attention.heads)
                if other != head
            ),
        )
    }
    key = f"switch-{attention.kind}-{layer}-{head}"
    st.session_state[key] = _key(own[0]) if own else UNCHANGED

    def switch() -> None:
        rest = tuple(one for one in changes() if one not in own)
        change = options[st.session_state[key]]
        CHANGES.set(text_of((*rest, change) if change else rest))

    def name(option: str) -> str:
        change = options[option]
        return change_name(change) if change else say(UNCHANGED)

    widgets.offer(st.selectbox, say("This head"), list(options), key=key, format_func=name, width=200, on_change=switch)


def _key(change: HeadChange) -> str:
    """What is done to a head, as the text form of the change says it."""
    return str(change).partition(":")[2]


def board(maps: Mapping[Kind, AttentionMap]) -> None:
    """Draw a switch for every head of every attention, folded away."""
    sizes = {kind: (one.layers, one.heads) for kind, one in maps.items()}
    off = [(one.kind, one.layer, one.head) for one in _head_changes() if one.change == "off"]

    def switch(heads: Collection[Head]) -> None:
        CHANGES.set(text_of(with_heads_off(changes(), heads)))

    with st.popover(say("Switch heads off"), type="tertiary", key="board"):
        caption(
            say(
                "Press a head to turn it off, or the name of a layer for all of its heads. The translation is made "
                "again, and what changes in it is marked. “This head” can do more: look at all keys alike, or copy "
                "another head."
            )
        )
        switchboard(sizes, off, key="switches", on_switch=switch)


def with_heads_off(made: tuple[Change, ...], off: Collection[Head]) -> tuple[Change, ...]:
    """Return `made` with exactly the heads `off`, (kind, layer, head) from 0, turned off; other changes stay."""

    def stays(one: Change) -> bool:
        return not isinstance(one, HeadChange) or (one.change != "off" and (one.kind, one.layer, one.head) not in off)

    return (*filter(stays, made), *(HeadChange(*place) for place in off))


def effect(model: LiveModel, text: str, given: str = "") -> str:
    """Translate again with the changes made, and draw the difference in the words and in the log-probability.

    A `given` translation is read again instead of a new one. Returns the changes that the pictures are to show, in
    their text form: "" for none, and where the visitor looks at the unchanged model.
    """
    made = changes()
    if not made:
        return ""
    try:
        comparison = cache.with_changes(model.name, text, text_of(made), given)
    except InterventionError as error:
        st.info(plain(str(error)))
        _undo_button()
        return ""
    with st.container(key="again"):
        if not given:
            st.html(f'<p dir="auto">{difference_html(comparison.words)}</p>')
        caption(effect_in_words(comparison))
        with st.container(key="pictured", horizontal=True, vertical_alignment="center"):
            version = _version()
            _undo_button()
    return text_of(made) if version == "changed" else ""


def _head_changes() -> list[HeadChange]:
    return [one for one in changes() if isinstance(one, HeadChange)]


def _version() -> Pictured:
    """Return whether the pictures are of the changed model or of the unchanged one."""
    PICTURES.hold()
    names: dict[Pictured, str] = {"changed": say("changed model"), "unchanged": say("unchanged model")}
    return widgets.offer(
        st.segmented_control,
        say("Pictures show"),
        PICTURES.options,
        required=True,
        format_func=names.__getitem__,
        **PICTURES.storage,
    )


def _undo_button() -> None:
    st.button(say("Undo all changes"), key="undo", type="tertiary", on_click=CHANGES.reset)
