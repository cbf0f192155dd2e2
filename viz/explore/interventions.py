"""The controls that change the model: heads turned off, made uniform or given the weights of another head."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from attenscope.analysis.heads import HeadPlace
from attenscope.interventions.changes import HeadChange, InterventionError, ModelChange, format_changes, parse_changes
from attenscope.language import say, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.trace import AttentionMap, Head, Kind
from attenscope.viz.explore.controls import PRESSING_SWITCHES
from attenscope.viz.explore.texts import change_name, describe_effect, difference_html
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.addresses.explore import EXPLORE_PICTURED_MODEL, PicturedModel
from attenscope.viz.ui.addresses.shared import CHANGES
from attenscope.viz.ui.words import draw_caption, escape_markdown
from attenscope.viz.web.maps import TileSwitches
from attenscope.viz.web.stage import is_presenting

UNCHANGED_LABEL = to_say("unchanged")


def read_changes() -> tuple[ModelChange, ...]:
    """Return the changes that the visitor has made, kept in the address as ``changes=cross.3.1:off``."""
    try:
        made = parse_changes(CHANGES.hold())
    except InterventionError as error:
        CHANGES.reset()
        st.info(escape_markdown(str(error)))
        return ()
    CHANGES.set(format_changes(made))
    return made


def list_changed_heads(kind: Kind) -> frozenset[HeadPlace]:
    """Return the heads of an attention, (layer, head) from 0, that the visitor has changed."""
    return frozenset((one.layer, one.head) for one in _list_head_changes() if one.kind == kind)


def draw_head_switch(attention: AttentionMap, layer: int, head: int) -> None:
    """Draw the control of one head, counted from 0: unchanged, off, uniform, or with the weights of another head."""
    place = attention.kind, layer, head
    own = [one for one in _list_head_changes() if (one.kind, one.layer, one.head) == place]
    options = {UNCHANGED_LABEL: None} | {
        _change_key(one): one
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
    st.session_state[key] = _change_key(own[0]) if own else UNCHANGED_LABEL

    def switch() -> None:
        rest = tuple(one for one in read_changes() if one not in own)
        change = options[st.session_state[key]]
        CHANGES.set(format_changes((*rest, change) if change else rest))

    def name(option: str) -> str:
        change = options[option]
        return change_name(change) if change else say(UNCHANGED_LABEL)

    controls.draw_choice(
        st.selectbox, say("This head"), list(options), key=key, format_func=name, width=200, on_change=switch
    )


def _change_key(change: HeadChange) -> str:
    """The part of the change's text form that says what is done to the head."""
    return str(change).partition(":")[2]


def build_tile_switches(kind: Kind) -> TileSwitches:
    """Return what lets the tiles of an attention switch its heads off."""
    off = [(one.kind, one.layer, one.head) for one in _list_head_changes() if one.change == "off"]

    def switch(heads: list[HeadPlace]) -> None:
        others = [one for one in off if one[0] != kind]
        places: list[Head] = [(kind, *place) for place in heads]
        CHANGES.set(format_changes(replace_heads_off(read_changes(), [*others, *places])))

    own = [(layer, head) for one, layer, head in off if one == kind]
    return TileSwitches(own, switch, pressing=bool(st.session_state.get(PRESSING_SWITCHES)))


def draw_switching_toggle() -> None:
    """Draw the switch that lets a press of a tile switch its head off."""
    st.toggle(say("Switch heads off by pressing their tiles"), key=PRESSING_SWITCHES, persist_state="session")


class SwitchableHeads:
    """What a source of traces adds where its model can be run: heads are switched off on the tiles and in the menu."""

    def changed_heads(self, kind: Kind) -> Collection[HeadPlace]:
        """Return the changed heads of a kind of attention, layer and head from 0."""
        return list_changed_heads(kind)

    def tile_switches(self, kind: Kind) -> TileSwitches:
        """Return what the tiles need to switch heads off."""
        return build_tile_switches(kind)

    def draw_trials(self, attention: AttentionMap, layer: int, head: int) -> None:
        """Draw the switches of the menu of what can be tried."""
        draw_switching_toggle()
        draw_head_switch(attention, layer, head)


def replace_heads_off(made: tuple[ModelChange, ...], off: Collection[Head]) -> tuple[ModelChange, ...]:
    """Return `made` with exactly the heads `off`, (kind, layer, head) from 0, turned off; other changes stay."""

    def stays(one: ModelChange) -> bool:
        return not isinstance(one, HeadChange) or (one.change != "off" and (one.kind, one.layer, one.head) not in off)

    return (*filter(stays, made), *(HeadChange(*place) for place in off))


def draw_effect(model: RunnableModel, text: str, given: str = "") -> str:
    """Translate again with the changes made, and draw the difference in the words and in the log-probability.

    A `given` translation is read again instead of a new one. Returns the changes that the pictures are to show, in
    their text form: "" for none, and where the visitor looks at the unchanged model.
    """
    # Over the foot of the window, so that nothing moves and it is in sight; a scene has it under its sentence. It is
    # there at all times: what follows it on the page keeps its place.
    place = st.container(key="scene-foot" if is_presenting() else "foot")
    made = read_changes()
    if not made:
        return ""
    try:
        comparison = cache.compute_intervention_comparison(model.name, text, format_changes(made), given)
    except InterventionError as error:
        st.info(escape_markdown(str(error)))
        _draw_undo_button()
        return ""
    with place, st.container(key="again"):
        if not given:
            st.html(f'<p dir="auto">{difference_html(comparison.words)}</p>')
        draw_caption(describe_effect(comparison))
        with st.container(key="pictured", horizontal=True, vertical_alignment="center"):
            version = _draw_version_choice()
            _draw_undo_button()
    return format_changes(made) if version == "changed" else ""


def _list_head_changes() -> list[HeadChange]:
    return [one for one in read_changes() if isinstance(one, HeadChange)]


def _draw_version_choice() -> PicturedModel:
    """Return whether the pictures are of the changed model or of the unchanged one."""
    EXPLORE_PICTURED_MODEL.hold()
    names: dict[PicturedModel, str] = {"changed": say("changed model"), "unchanged": say("unchanged model")}
    return controls.draw_choice(
        st.segmented_control,
        say("Pictures show"),
        EXPLORE_PICTURED_MODEL.options,
        required=True,
        format_func=names.__getitem__,
        **EXPLORE_PICTURED_MODEL.storage,
    )


def _draw_undo_button() -> None:
    st.button(say("Undo all changes"), key="undo", type="tertiary", on_click=CHANGES.reset)
