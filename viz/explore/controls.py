"""The controls of Explore: of its pictures, whose values live in the address, and of what is changed in the model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import (
    MEASURE_EXPLANATIONS,
    HeadPlace,
    Measure,
    head_name,
    heads_in_range,
    rank_heads,
    rank_heads_by_alignment,
)
from attenscope.analysis.telling_word import pick_telling_word, weigh_words
from attenscope.experiments.ablation import HeadEffects
from attenscope.interventions.changes import HeadChange, InterventionError, ModelChange, format_changes, parse_changes
from attenscope.language import format_number, join_sentences, say, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.trace import AttentionMap, Head, Kind
from attenscope.viz.explore.texts import describe_head_change_effect, name_head_change, render_word_diff
from attenscope.viz.explore.view_data import DisplayOptions, Scene, TraceSource
from attenscope.viz.figures.explore import FlowKind
from attenscope.viz.figures.figure_style import format_signed, readable_token
from attenscope.viz.traces.session import get_open_trace
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.address import Parameter
from attenscope.viz.ui.addresses.explore import (
    EXPLORE_CELL_NUMBERS,
    EXPLORE_COMPARED_VIEW,
    EXPLORE_FLOW,
    EXPLORE_FLOW_LAYER,
    EXPLORE_HEAD_ORDER,
    EXPLORE_HIDE_FIRST,
    EXPLORE_HIDE_SPECIAL,
    EXPLORE_LINE_THRESHOLD,
    EXPLORE_LINKS_LAYOUT,
    EXPLORE_MEAN_OF_HEADS,
    EXPLORE_MERGE_WORDS,
    EXPLORE_OTHER_HEADS,
    EXPLORE_PICTURED_MODEL,
    EXPLORE_PIPELINE_STEP,
    EXPLORE_SINGLE_VIEWS,
    EXPLORE_VALUE_NORMS,
    EXPLORE_VIEW,
    EXPLORE_VIEWS,
    ORDER_BY_EFFECT,
    ORDER_BY_LAYER,
    LineThreshold,
    LinksLayout,
    PicturedModel,
    SingleView,
)
from attenscope.viz.ui.addresses.shared import CHANGES, HEAD, KIND, LAYER, PIN, ROWS
from attenscope.viz.ui.captions import draw_caption, escape_message
from attenscope.viz.web.maps import RankedHead, TileSwitches
from attenscope.viz.web.page_components import is_presenting

FIRST_VIEWS: tuple[SingleView, ...] = ("heatmap", "links", "pipeline", "picture")
"""Views that are offered side by side; the others, in a menu."""
ALL_HEADS_VIEWS: tuple[SingleView, ...] = ("joint", "flow", "layers")
"""Views of all heads of a layer, or of all layers; the others show the chosen head."""
MODEL_OF_PICTURE = "model opened on its picture"
"""The session key of the model that was opened on its picture, until another one shows another view."""
_ANSWERS_GIVEN = "answers given"
"""The session key of how many times a question of the menu of what can be tried was answered by opening a head."""
_STRONGEST_ASKED = "strongest head asked"
"""The session key of whether the head that matters most was asked for and is not open yet."""
PRESSING_SWITCHES = "pressing tiles switches"
"""The session key of whether a press of a tile switches its head off, instead of opening it."""
HEAD_PATTERN = re.compile(r"\D*(\d{1,3})\D+(\d{1,3})\s*")
"""A layer and a head: ``2.5``, ``2 5``, ``L2 H5``."""
LAYER_MEANS: tuple[FlowKind, ...] = ("mean of layers", "mean of all")
"""Means that no layer is chosen for."""
SMALLEST_FIRST_MEASURES: tuple[Measure, ...] = ("entropy", "distance")
"""Measures by which the heads with the smallest values come first."""


@dataclass(frozen=True)
class HeadOrder:
    """An order of the heads of a map, and what it is by; without heads it is that of the layers."""

    heads: tuple[RankedHead, ...] = ()
    text: str = ""
    measure: Measure | None = None
    strongest: Head | None = None
    """Of all maps, the head that matters most, where the order is by that."""


def draw_view_choice(impossible: Collection[SingleView], *, of_picture: bool = False) -> tuple[SingleView, bool]:
    """Return the chosen view, and whether two sides of it are compared; `impossible` views are not offered.

    Of a picture, whose page opens on another view, the address names the default too; elsewhere its view is none.
    """
    if not of_picture and "picture" in (EXPLORE_VIEW.get(), EXPLORE_COMPARED_VIEW.get()):
        st.session_state.pop(MODEL_OF_PICTURE, None)
    possible = [one for one in EXPLORE_VIEWS if of_picture or one != "picture"]
    chosen = EXPLORE_VIEW.hold(possible, shows_default=of_picture)
    view = EXPLORE_COMPARED_VIEW.hold([one for one in EXPLORE_SINGLE_VIEWS if one in possible])
    view = view if chosen == "compare" else chosen
    listed, more = controls.split_shown_and_menu_views(EXPLORE_SINGLE_VIEWS, view, FIRST_VIEWS, impossible)
    choose = partial(_choose_view, comparing=chosen == "compare")
    st.session_state["view"] = view
    shown = controls.draw_untranslated_choice(
        st.segmented_control,
        say("View"),
        listed,
        key="view",
        format_func=EXPLORE_COMPARED_VIEW.label,
        required=True,
        on_change=lambda: choose(st.session_state["view"]),
        label_visibility="collapsed",
    )
    if menu := controls.draw_menu(say("More views"), f"more than {view}", "more-views"):
        with menu:
            controls.draw_view_buttons(more, EXPLORE_COMPARED_VIEW.label, choose)
    return shown or EXPLORE_COMPARED_VIEW.default, chosen == "compare"


def _choose_view(view: SingleView, *, comparing: bool) -> None:
    """Show a view, or two sides of it; for callbacks."""
    EXPLORE_VIEW.set("compare" if comparing else view)
    EXPLORE_COMPARED_VIEW.set(view if comparing else EXPLORE_COMPARED_VIEW.default)


def draw_compare_toggle(view: SingleView, *, comparing: bool) -> None:
    """Draw the switch that shows two sides of the view."""
    st.session_state["comparing"] = comparing

    def choose() -> None:
        _choose_view(view, comparing=st.session_state["comparing"])

    st.toggle(say("Compare"), key="comparing", on_change=choose)


def sync_display_options() -> DisplayOptions:
    """Return how maps are shown, as chosen in :func:`draw_display_settings`; kept in the address."""
    merge, hide = (_sync_token_switch(one) for one in (EXPLORE_MERGE_WORDS, EXPLORE_HIDE_SPECIAL))
    return DisplayOptions(
        *controls.sync_look_settings(), merge, hide, EXPLORE_HIDE_FIRST.hold(), EXPLORE_CELL_NUMBERS.hold()
    )


def _sync_token_switch(of: Parameter[bool | None]) -> bool:
    """Return what was chosen; else words without special tokens, but every token of an opened trace."""
    chosen = of.hold()
    return get_open_trace() is None if chosen is None else chosen


def _draw_token_switch(label: str, of: Parameter[bool | None]) -> None:
    st.session_state[of.name] = _sync_token_switch(of)
    st.toggle(label, key=of.name, on_change=lambda: of.set(st.session_state[of.name]))


def draw_display_settings() -> None:
    """Draw the choices of how maps are shown."""
    sync_display_options()
    _draw_token_switch(say("Merge pieces into words"), EXPLORE_MERGE_WORDS)
    _draw_token_switch(say("Hide special tokens"), EXPLORE_HIDE_SPECIAL)
    st.toggle(say("Leave the first token out"), **EXPLORE_HIDE_FIRST.synced_widget_arguments)
    st.toggle(say("Write the weights into the cells"), **EXPLORE_CELL_NUMBERS.synced_widget_arguments)
    controls.draw_look_settings()


def sync_chosen_head(attention: AttentionMap) -> tuple[int, int]:
    """Return the chosen layer and head, from 0; kept in the address from 1."""
    layers, heads = range(1, attention.layers + 1), range(1, attention.heads + 1)
    # Head 1.1 stands in the address too: without a head the page would pick one.
    return LAYER.hold(layers, shows_default=True) - 1, HEAD.hold(heads, shows_default=True) - 1


def draw_head_field(attention: AttentionMap, key: str) -> None:
    """Draw a field in which the layer and the head are typed, from 1; a menu and a view may each have one."""
    layer, head = sync_chosen_head(attention)
    st.session_state[key] = f"{layer + 1}.{head + 1}"

    def choose() -> None:
        found = HEAD_PATTERN.fullmatch(st.session_state[key])
        place = tuple(map(int, found.groups())) if found else (0, 0)
        if 1 <= place[0] <= attention.layers and 1 <= place[1] <= attention.heads:
            controls.set_layer_and_head(place[0] - 1, place[1] - 1)
        else:
            st.toast(
                say(
                    "Type a layer up to {layers} and a head up to {heads}, such as 2.5.",
                    layers=attention.layers,
                    heads=attention.heads,
                )
            )

    st.text_input(say("Head"), key=key, width=120, max_chars=12, on_change=choose)


def draw_stop_head_switching_button() -> None:
    """Draw the button after which a press of a tile opens its head again."""

    def end() -> None:
        st.session_state[PRESSING_SWITCHES] = False

    st.button(say("Done"), key="pressing-ends", on_click=end)


def sync_head_order(kind: Kind, source: TraceSource) -> HeadOrder:
    """Return the order of the heads of a map that is chosen; heads outside a chosen range are faint."""
    statistics = source.statistics(kind)
    # There are measures that only another kind of attention has.
    measure = EXPLORE_HEAD_ORDER.hold(_list_head_orders(statistics, source))
    if measure in statistics:
        return _order_by_measure(
            measure, statistics[measure], _get_shown_measure_range(kind, measure, statistics[measure])
        )
    effects = source.measure_effects() if measure == ORDER_BY_EFFECT else None
    return _order_by_effect(effects, kind) if effects else HeadOrder()


def draw_head_order_choice(kind: Kind, source: TraceSource) -> None:
    """Draw the choice of the order of the heads of a map, and of the range of the measure whose heads are shown."""
    statistics = source.statistics(kind)
    orders = _list_head_orders(statistics, source)
    EXPLORE_HEAD_ORDER.hold(orders)
    measure = controls.draw_untranslated_choice(
        st.selectbox,
        say("Sort heads"),
        orders,
        format_func=EXPLORE_HEAD_ORDER.label,
        **EXPLORE_HEAD_ORDER.synced_widget_arguments,
    )
    if measure in statistics:
        low, high = _get_shown_measure_range(kind, measure, statistics[measure])
        top = _compute_range_maximum(statistics[measure])
        label = say("Show heads between")
        st.slider(label, 0.0, top, (low, high), 0.05, key=_range_key(kind, measure, top), persist_state="session")


def _list_head_orders(statistics: Mapping[Measure, np.ndarray], source: TraceSource) -> tuple[str, ...]:
    return (ORDER_BY_LAYER, *statistics, *((ORDER_BY_EFFECT,) if source.run else ()))


def _get_shown_measure_range(kind: Kind, measure: Measure, values: np.ndarray) -> tuple[float, float]:
    """The range of a measure whose heads are shown: all until one is chosen."""
    top = _compute_range_maximum(values)
    chosen: tuple[float, float] = st.session_state.get(_range_key(kind, measure, top), (0.0, top))
    return chosen


def _range_key(kind: Kind, measure: Measure, top: float) -> str:
    # The maximum is in it: a slider that nobody touched stores its range too, which is a part of a longer sentence's.
    return f"range-{kind}-{measure}-{top:g}"


def _compute_range_maximum(values: np.ndarray) -> float:
    return max(1.0, float(np.ceil(values.max())))


def _order_by_measure(measure: Measure, values: np.ndarray, shown: tuple[float, float]) -> HeadOrder:
    """The order by a measure (L, H); heads outside the range `shown` are faint."""
    inside = heads_in_range(values, *shown)
    smallest = measure in SMALLEST_FIRST_MEASURES
    heads = rank_heads(values, largest_first=not smallest)
    by = EXPLORE_HEAD_ORDER.label(measure)
    ordered = (
        say("Ordered by {measure}, the smallest first.", measure=by)
        if smallest
        else say("Ordered by {measure}, the largest first.", measure=by)
    )
    text = join_sentences(ordered, say(MEASURE_EXPLANATIONS[measure]))
    if measure == "alignment":
        best = say(
            "In this sentence, {head} aligns best: {share:.0%}.",
            head=head_name(("cross", *heads[0])),
            share=values[heads[0]],
        )
        text = join_sentences(best, text)
    ranked = tuple(
        RankedHead(*place, format_number(float(values[place]), ".2f"), bool(inside[place])) for place in heads
    )
    return HeadOrder(ranked, text, measure)


def _order_by_effect(effects: HeadEffects, kind: Kind) -> HeadOrder:
    """The order by what switching off each head changes, the largest change in either direction first."""
    values = effects.total(kind)
    heads = rank_heads(np.abs(values), largest_first=True)
    strongest, change = effects.strongest()[0]
    text = say(
        "Of all heads, {head} matters most: switched off alone in the unchanged model, it changes the log-probability "
        "of the translation by {change} nats. The tiles are ordered by the size of that change; below 0, the head "
        "speaks for the translation.",
        head=head_name(strongest),
        change=format_signed(change, plus=True),
    )
    ranked = tuple(RankedHead(*place, format_signed(values[place], plus=True), True) for place in heads)
    return HeadOrder(ranked, text, strongest=strongest)


def draw_switch_off_button(head: Head) -> None:
    """Draw a button that switches a head off, beside what says that it matters; none where it is changed already."""
    if head[1:] in list_changed_heads(head[0]):
        return
    switch = lambda: CHANGES.set(format_changes((*read_changes(), HeadChange(*head))))  # noqa: E731
    st.button(say("Switch {head} off", head=head_name(head)), key="switch-strongest-off", on_click=switch)


def draw_experiments_menu() -> DeltaGenerator | None:
    """Draw the menu of what can be tried; return where its list is drawn, or None while it is closed."""
    with st.container(key="trials", width="content"):
        # It lies over the picture: a question that is answered there closes it.
        key = f"trials after {st.session_state.get(_ANSWERS_GIVEN, 0)}"
        return controls.draw_menu(say("Try something"), key, "trial-list")


def _close_experiments_menu() -> None:
    st.session_state[_ANSWERS_GIVEN] = st.session_state.get(_ANSWERS_GIVEN, 0) + 1


def draw_aligning_head_button(attention: AttentionMap, identity: str) -> None:
    """Draw a button that opens the cross-attention head that aligns best, and orders all heads by how well they do.

    It is read as the rows are named: by the token predicted, or by the token fed in. `identity` is what pins belong
    to: the word is pinned that the head shows best.
    """

    def open_best() -> None:
        best = rank_heads_by_alignment(attention, readings=(ROWS.get(),))[0]
        others = frozenset(np.ndindex(*attention.weights.shape[:2])) - {(best.layer, best.head)}
        telling, words = pick_telling_word(attention, others), weigh_words(attention)
        if telling and words and telling.row is not None:
            PIN.set({"target": words.rows[telling.row].start}, of=identity)
        st.session_state[KIND.key], st.session_state[EXPLORE_HEAD_ORDER.key] = "cross", "alignment"
        _close_experiments_menu()
        controls.set_layer_and_head(best.layer, best.head)

    st.button(say("Which head aligns?"), type="tertiary", key="aligns", on_click=open_best)


def draw_strongest_head_button() -> None:
    """Draw a button after which :func:`open_strongest_head_if_requested` opens the head that matters most."""

    def ask() -> None:
        st.session_state[_STRONGEST_ASKED] = True
        _close_experiments_menu()

    st.button(say("Which head matters most?"), type="tertiary", key="matters", on_click=ask)


def open_strongest_head_if_requested(source: TraceSource) -> None:
    """Open the head that matters most for the translation, if that was asked.

    Call it before anything shows a head. No callback: what it computes draws a progress bar.
    """
    if st.session_state.pop(_STRONGEST_ASKED, False) and (effects := source.measure_effects()):
        (kind, layer, head), _ = effects.strongest()[0]
        KIND.set(kind)
        EXPLORE_HEAD_ORDER.set(ORDER_BY_EFFECT)
        controls.set_layer_and_head(layer, head)


def _line_threshold_text(least: LineThreshold) -> str:
    return say("the strongest of each row") if least == "strongest" else say("from a weight of {least}", least=least)


def draw_links_controls(scene: Scene) -> tuple[LinksLayout, LineThreshold]:
    """Return how the two sides of the lines are laid out, and the least weight that gets one."""
    if not scene.is_first_side:
        return EXPLORE_LINKS_LAYOUT.get(), EXPLORE_LINE_THRESHOLD.get()
    with st.container(key="linksbar", horizontal=True, vertical_alignment="center"):
        layout = controls.segmented_control(say("Layout"), EXPLORE_LINKS_LAYOUT)
        EXPLORE_LINE_THRESHOLD.hold()
        return layout, controls.draw_untranslated_choice(
            st.selectbox,
            say("Lines"),
            EXPLORE_LINE_THRESHOLD.options,
            width=270,
            format_func=_line_threshold_text,
            **EXPLORE_LINE_THRESHOLD.synced_widget_arguments,
        )


def draw_flow_controls(scene: Scene) -> tuple[FlowKind, int, bool]:
    """Return what is shown of many heads, its last layer, from 0, and whether value norms weigh in.

    Means over the layers have no layer to choose.
    """
    layers = scene.trace.maps[scene.kind].layers
    if not scene.is_first_side:
        return EXPLORE_FLOW.get(), min(EXPLORE_FLOW_LAYER.get() or layers, layers) - 1, EXPLORE_VALUE_NORMS.get()
    with st.container(key="viewchoices", horizontal=True, vertical_alignment="center"):
        which = controls.segmented_control(say("Flow"), EXPLORE_FLOW)
        layer = layers
        if which not in LAYER_MEANS:
            name = say("Layer") if which == "mean of heads" else say("Through layer")
            layer = controls.selectbox_with_default(name, EXPLORE_FLOW_LAYER, range(1, layers + 1), layers, width=175)
        if which == "mean of layers":
            draw_head_field(scene.trace.maps[scene.kind], "typed-in-view")
        return which, layer - 1, controls.toggle(say("Times value norms"), EXPLORE_VALUE_NORMS)


def draw_joint_controls(scene: Scene) -> bool:
    """Draw the choice of the layer and the head, and return whether all heads of the layer are shown as their mean."""
    if not scene.is_first_side:
        return EXPLORE_MEAN_OF_HEADS.get()
    with st.container(key="viewchoices", horizontal=True, vertical_alignment="center"):
        draw_head_field(scene.trace.maps[scene.kind], "typed-in-view")
        return controls.toggle(say("Mean of all heads"), EXPLORE_MEAN_OF_HEADS)


def draw_query_choice(scene: Scene) -> int:
    """Return the row whose steps are shown: the pinned one, as captured, or the first; choosing a row pins it."""
    if not scene.is_first_side:
        return scene.captured_query or 0
    names = [readable_token(token) for token in scene.tokens.original.rows(scene.rows)]
    st.session_state["query"] = scene.captured_query or 0

    def pin() -> None:
        scene.pin_captured(st.session_state["query"])

    return controls.draw_untranslated_choice(
        st.selectbox,
        say("Query"),
        range(len(names)),
        format_func=lambda at: f"{at + 1} {names[at]}",
        key="query",
        width=230,
        on_change=pin,
    )


def get_pipeline_step(count: int) -> int:
    """Return the current step of the pipeline, from 0; kept in the address from 1."""
    current = min(EXPLORE_PIPELINE_STEP.hold(), count)
    EXPLORE_PIPELINE_STEP.show_in_address(current)
    return current - 1


def set_pipeline_step(to: int) -> None:
    """Go to a step of the pipeline, from 0; for callbacks."""
    EXPLORE_PIPELINE_STEP.set(to + 1)


def get_heads_drawn_beside(heads: int, head: int) -> tuple[int, ...]:
    """Return the other heads drawn beside the chosen one, from 0; kept in the address from 1: ``beside=2,5``."""
    others = tuple(other for other in EXPLORE_OTHER_HEADS.hold() if other < heads and other != head)
    EXPLORE_OTHER_HEADS.show_in_address(others)
    return others


def set_heads_drawn_beside(heads: list[int]) -> None:
    """Draw these heads, from 0, beside the chosen one; for callbacks."""
    EXPLORE_OTHER_HEADS.set(tuple(heads))


# Changes to the model: heads turned off, made uniform or given the weights of another head.


UNCHANGED_LABEL = to_say("unchanged")


def read_changes() -> tuple[ModelChange, ...]:
    """Return the changes that the visitor has made, kept in the address as ``changes=cross.3.1:off``."""
    try:
        made = parse_changes(CHANGES.hold())
    except InterventionError as error:
        CHANGES.reset()
        st.info(escape_message(str(error)))
        return ()
    CHANGES.set(format_changes(made))
    return made


def list_changed_heads(kind: Kind) -> frozenset[HeadPlace]:
    """Return the heads of an attention, (layer, head) from 0, that the visitor has changed."""
    return frozenset((one.layer, one.head) for one in _list_head_changes() if one.kind == kind)


def _draw_head_switch(attention: AttentionMap, layer: int, head: int) -> None:
    """Draw the control of one head, counted from 0: unchanged, off, uniform, or with the weights of another head."""
    place = attention.kind, layer, head
    own = [one for one in _list_head_changes() if (one.kind, one.layer, one.head) == place]
    options = {UNCHANGED_LABEL: None} | {
        _format_head_change_action(one): one
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
    st.session_state[key] = _format_head_change_action(own[0]) if own else UNCHANGED_LABEL

    def switch() -> None:
        rest = tuple(one for one in read_changes() if one not in own)
        change = options[st.session_state[key]]
        CHANGES.set(format_changes((*rest, change) if change else rest))

    def name(option: str) -> str:
        change = options[option]
        return name_head_change(change) if change else say(UNCHANGED_LABEL)

    controls.draw_untranslated_choice(
        st.selectbox, say("This head"), list(options), key=key, format_func=name, width=200, on_change=switch
    )


def _format_head_change_action(change: HeadChange) -> str:
    """The part of the change's text form that says what is done to the head."""
    return str(change).partition(":")[2]


class SwitchableHeads:
    """What a source of traces adds where its model can be run: heads are switched off on the tiles and in the menu."""

    def changed_heads(self, kind: Kind) -> Collection[HeadPlace]:
        """Return the changed heads of a kind of attention, layer and head from 0."""
        return list_changed_heads(kind)

    def tile_switches(self, kind: Kind) -> TileSwitches:
        """Return what the tiles need to switch heads off."""
        off = [(one.kind, one.layer, one.head) for one in _list_head_changes() if one.change == "off"]

        def switch(heads: list[HeadPlace]) -> None:
            others = [one for one in off if one[0] != kind]
            places: list[Head] = [(kind, *place) for place in heads]
            CHANGES.set(format_changes(replace_turned_off_heads(read_changes(), [*others, *places])))

        own = [(layer, head) for one, layer, head in off if one == kind]
        return TileSwitches(own, switch, pressing=bool(st.session_state.get(PRESSING_SWITCHES)))

    def draw_trials(self, attention: AttentionMap, layer: int, head: int) -> None:
        """Draw the switches of the menu of what can be tried."""
        st.toggle(say("Switch heads off by pressing their tiles"), key=PRESSING_SWITCHES, persist_state="session")
        _draw_head_switch(attention, layer, head)


def replace_turned_off_heads(made: tuple[ModelChange, ...], off: Collection[Head]) -> tuple[ModelChange, ...]:
    """Return `made` with exactly the heads `off`, (kind, layer, head) from 0, turned off; other changes stay."""

    def stays(one: ModelChange) -> bool:
        return not isinstance(one, HeadChange) or (one.change != "off" and (one.kind, one.layer, one.head) not in off)

    return (*filter(stays, made), *(HeadChange(*place) for place in off))


def draw_change_effect(model: RunnableModel, text: str, given: str = "") -> str:
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
        st.info(escape_message(str(error)))
        _draw_undo_button()
        return ""
    with place, st.container(key="again"):
        if not given:
            st.html(f'<p dir="auto">{render_word_diff(comparison.words)}</p>')
        draw_caption(describe_head_change_effect(comparison))
        with st.container(key="pictured", horizontal=True, vertical_alignment="center"):
            version = _draw_pictured_model_choice()
            _draw_undo_button()
    return format_changes(made) if version == "changed" else ""


def _list_head_changes() -> list[HeadChange]:
    return [one for one in read_changes() if isinstance(one, HeadChange)]


def _draw_pictured_model_choice() -> PicturedModel:
    """Return whether the pictures are of the changed model or of the unchanged one."""
    EXPLORE_PICTURED_MODEL.hold()
    names: dict[PicturedModel, str] = {"changed": say("changed model"), "unchanged": say("unchanged model")}
    return controls.draw_untranslated_choice(
        st.segmented_control,
        say("Pictures show"),
        EXPLORE_PICTURED_MODEL.options,
        required=True,
        format_func=names.__getitem__,
        **EXPLORE_PICTURED_MODEL.synced_widget_arguments,
    )


def _draw_undo_button() -> None:
    st.button(say("Undo all changes"), key="undo", type="tertiary", on_click=CHANGES.reset)
