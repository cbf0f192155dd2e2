"""The controls of Decode. Their values are kept in the address, so that a branch and a step have links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import rank_heads_by_alignment
from attenscope.decoding.beam import BeamStop
from attenscope.decoding.greedy_and_sampling import Constraints, Sampling
from attenscope.interventions.changes import HeadChange, InterventionError, format_changes, parse_changes
from attenscope.language import say, to_say
from attenscope.runnable_model import InputError, RunnableModel, Translation
from attenscope.trace import AttentionMap, Head
from attenscope.viz.decode.runs import DecodingRequest
from attenscope.viz.streamlit_internals import is_history_navigation
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.address import NumberParameter, Parameter
from attenscope.viz.ui.addresses.decode import (
    DECODE_BEAM_WIDTH,
    DECODE_BEGIN_WITH,
    DECODE_BRANCH,
    DECODE_BRANCH_PARAMETERS,
    DECODE_CROSS_HEAD,
    DECODE_FORBIDDEN,
    DECODE_LENGTH_PENALTY,
    DECODE_METHOD,
    DECODE_NEVER_WRITE,
    DECODE_OWN_HEAD,
    DECODE_SEED,
    DECODE_STEP,
    DECODE_STOP_EARLY,
    DECODE_TEMPERATURE,
    DECODE_TOP_K,
    DECODE_TOP_P,
    DECODE_TREE_PATH,
)
from attenscope.viz.ui.addresses.shared import CHANGES, GIVEN_TRANSLATION, add_pins, get_pin, toggle_pins
from attenscope.viz.ui.controls import draw_given_translation_field, draw_menu
from attenscope.viz.ui.links import get_decode_branch_model_and_sentence, set_decode_branch_model_and_sentence
from attenscope.viz.web.players import PlayerStart

T = TypeVar("T")
STOP_EARLY_HELP = to_say(
    "Off: search until no running hypothesis can still enter the list of the best, whatever length it ends at. "
    "On: until none would enter it by ending at once, the usual rule, which with a length penalty above 0 may miss a "
    "longer one."
)


def draw_request_controls(model: RunnableModel, text: str) -> tuple[DecodingRequest, DeltaGenerator | None]:
    """Draw the controls of the strategy and the constraints; return the request that they describe, and the menu of
    what else can be tried.
    """
    _forget_branch_on_input_change(model.name, text)
    method = controls.selectbox(say("Strategy"), DECODE_METHOD, on_change=_forget_branch, width=210)
    sampling, seed, width, penalty, given = Sampling(), 0, 4, 1.0, ""
    stop: BeamStop = "proven"
    if method == "sample":
        temperature = _draw_number_input(say("Temperature"), DECODE_TEMPERATURE)
        st.button(
            say("Again"),
            key="again-sample",
            on_click=_resample_with_next_seed,
            help=say("Draw again, with the next seed"),
        )
        more = draw_menu(say("More"), "more-numbers", "number-list")
        top_k = _draw_number_in_menu(more, say("Top-k"), DECODE_TOP_K)
        sampling = Sampling(temperature, top_k, _draw_number_in_menu(more, say("Top-p"), DECODE_TOP_P))
        seed = _draw_number_in_menu(more, say("Seed"), DECODE_SEED)
    elif method == "beam":
        width = _draw_number_input(say("Width"), DECODE_BEAM_WIDTH)
        more = draw_menu(say("More"), "more-numbers", "number-list")
        penalty = _draw_number_in_menu(more, say("Length penalty"), DECODE_LENGTH_PENALTY)
        stop = "early" if _draw_in_menu(more, DECODE_STOP_EARLY, _draw_stop_choice) else stop
    elif method == "given":
        given = draw_given_translation_field(text, _get_unchanged_model_translation(model, text))
    menu = draw_menu(say("What if"), "what-if", "what-if-list")
    constraints = Constraints() if method == "given" else _draw_constraints(model, menu)
    request = DecodingRequest(
        text, method, sampling, seed, width, penalty, stop, given, constraints, _read_model_changes()
    )
    return request, menu


def get_tree_path(model: RunnableModel) -> tuple[int, ...]:
    """The token ids that lead to the node of the beam tree on the player; empty for the best translation."""
    return _get_valid_address_ids(model, DECODE_TREE_PATH.hold())


def build_player_start(result: Translation, off: list[Head], *, ended: bool = False) -> PlayerStart:
    """The step and the heads that the player begins with; a head that is turned off is not the best aligning one.

    Until a step is chosen it is the first, or the last if the player begins `ended`.

    A decoder-only model has no aligning head: what it attends to in its prompt need not be what it translates.
    """
    cross, own = result.to_source, result.to_target
    step, chosen = _get_player_step(result, ended), _get_valid_head_name(DECODE_CROSS_HEAD.hold(), cross)
    own_choice = _get_valid_head_name(DECODE_OWN_HEAD.hold(), own) or f"{own.layers}.mean"
    if result.trace.cross is None:
        return PlayerStart(step, chosen or f"{cross.layers}.mean", own_choice, None)
    # A step of the player is the row that predicts its token.
    ranked = rank_heads_by_alignment(cross, readings=("predicted",))
    best = next((one for one in ranked if ("cross", one.layer, one.head) not in off), ranked[0])
    return PlayerStart(step, chosen or "aligning", own_choice, (best.layer, best.head))


def set_player_step(step: int, result: Translation) -> None:
    """Come to rest at a step, from 0; for callbacks. An open card, of a word of `result`, follows."""
    DECODE_STEP.set(step + 1)
    if get_pin(result.source, "target") is not None:
        add_pins(result.source, {"target": step + result.first_row})


def toggle_word_card(result: Translation, step: int) -> None:
    """Open the card of the word written at a step, or close it where it is open; for callbacks."""
    DECODE_STEP.set(step + 1)
    toggle_pins(result.source, {"target": step + result.first_row})


def set_player_heads(cross: str, own: str) -> None:
    DECODE_CROSS_HEAD.set(cross)
    DECODE_OWN_HEAD.set(own)


def set_controls_to_request(request: DecodingRequest) -> None:
    """Set all controls to `request`, and the player to the word that is pinned or else to its beginning or end; for
    callbacks.
    """
    state = st.session_state
    state[DECODE_METHOD.key] = request.method
    if request.method == "sample":
        state[DECODE_TEMPERATURE.key], state[DECODE_TOP_K.key] = request.sampling.temperature, request.sampling.top_k
        state[DECODE_TOP_P.key], state[DECODE_SEED.key] = request.sampling.top_p, request.seed
    elif request.method == "beam":
        state[DECODE_BEAM_WIDTH.key], state[DECODE_LENGTH_PENALTY.key] = request.width, request.penalty
        state[DECODE_STOP_EARLY.key] = request.stop == "early"
    elif request.method == "given":
        state[GIVEN_TRANSLATION.key] = request.given
    state[DECODE_BEGIN_WITH.key] = state[DECODE_NEVER_WRITE.key] = ""
    _forget_branch()
    DECODE_BRANCH.set(request.constraints.prefix)
    DECODE_FORBIDDEN.set(request.constraints.forbidden)
    CHANGES.set(request.changes)


def set_controls_to_request_at_step(request: DecodingRequest, step: int, result: Translation) -> None:
    """Set all controls to `request`, and the player to a step of what it was taken from; for callbacks."""
    set_controls_to_request(request)
    set_player_step(step, result)


def list_heads_off(request: DecodingRequest) -> list[Head]:
    """The heads that are turned off, by kind, layer and head from 0."""
    heads = (
        change for change in parse_changes(request.changes) if isinstance(change, HeadChange) and change.change == "off"
    )
    return [(head.kind, head.layer, head.head) for head in heads]


def turn_heads_off(heads: list[Head]) -> None:
    """Leave these heads out, and change nothing else; for callbacks."""
    CHANGES.set(format_changes(HeadChange(kind, layer, head) for kind, layer, head in sorted(heads)))


def set_tree_path(ids: tuple[int, ...], result: Translation) -> None:
    """Show, in place of `result`, the translation that ends in a node of the beam tree; for callbacks."""
    DECODE_TREE_PATH.set(ids)
    set_player_step(len(ids) - 1, result)


def _get_player_step(result: Translation, ended: bool) -> int:
    """The step of the player, from 0: that of the pinned word, which the card is of; else the one chosen last."""
    step, pinned = DECODE_STEP.hold(), result.find_step_of_row(get_pin(result.source, "target"))
    if pinned is None:
        return (step or (len(result.steps) if ended else 1)) - 1
    DECODE_STEP.set(pinned + 1)
    return pinned


def _get_unchanged_model_translation(model: RunnableModel, text: str) -> str:
    """What the unchanged model writes; "" for a text that it cannot read."""
    try:
        return cache.compute_translation(model.name, text).text
    except InputError:
        return ""


def _read_model_changes() -> str:
    """The changes to the model in the one way of writing them; none where the address makes no sense."""
    try:
        return format_changes(parse_changes(CHANGES.hold()))
    except InterventionError:
        return ""


def _draw_stop_choice() -> bool:
    return st.toggle(
        say("Stop early"),
        help=say(STOP_EARLY_HELP),
        on_change=_forget_branch,
        **DECODE_STOP_EARLY.synced_widget_arguments,
    )


def _resample_with_next_seed() -> None:
    """Draw another sample: with the next seed."""
    seed = DECODE_SEED.get() + 1
    st.session_state[DECODE_SEED.key] = 0 if seed > DECODE_SEED.high else seed
    _forget_branch()


def _draw_number_input(label: str, of: NumberParameter[Any]) -> Any:
    with st.container(key=f"number-{of.name}", width="content"):
        return controls.number_input(label, of, step=_get_step(of), width=120, on_change=_forget_branch)


def _get_step(of: NumberParameter[Any]) -> float:
    return 1 if isinstance(of.low, int) else 0.05


def _draw_in_menu(menu: DeltaGenerator | None, of: Parameter[T], draw: Callable[[], T]) -> T:
    """The value of a parameter whose widget stands in a menu, None while it is closed.

    The browser keeps what a closed menu held: it would send it back in the place of what a version has chosen.
    """
    value = of.hold()
    if menu is None:
        return value
    with menu:
        return draw()


def _draw_number_in_menu(menu: DeltaGenerator | None, label: str, of: NumberParameter[Any]) -> Any:
    if of.key in st.session_state and st.session_state[of.key] is None:  # The visitor has emptied the box.
        of.reset()
    more: dict[str, Any] = {"min_value": of.low, "max_value": of.high, "step": _get_step(of), "width": 120}
    more |= {"value": None, "on_change": _forget_branch, **of.synced_widget_arguments}
    return _draw_in_menu(menu, of, lambda: st.number_input(label, **more))


def _draw_constraints(model: RunnableModel, menu: DeltaGenerator | None) -> Constraints:
    """The words that a visitor typed, and what a click on a candidate has put into the address."""

    def ask(label: str, of: Parameter[str], **more: Any) -> str:
        return _draw_in_menu(menu, of, lambda: st.text_input(label, **more, **of.synced_widget_arguments))

    begin = ask(say("Begin with"), DECODE_BEGIN_WITH, placeholder="Ein", on_change=_forget_branch)
    never = ask(say("Never write"), DECODE_NEVER_WRITE, placeholder=say("words, between commas"))
    if menu:
        with menu:
            st.caption(say("In the player, choose a candidate to go on from it, or its × to forbid it."))
    begun = _encode_without_special_tokens(model, begin)
    prefix = _get_valid_address_ids(model, DECODE_BRANCH.hold()) or ((*model.forced.prefix, *begun) if begun else ())
    forbidden = _filter_known_sequences(
        model, (*DECODE_FORBIDDEN.hold(), *(_encode_without_special_tokens(model, word) for word in never.split(",")))
    )
    return Constraints(prefix, tuple(dict.fromkeys(forbidden)))


def _encode_without_special_tokens(model: RunnableModel, text: str) -> tuple[int, ...]:
    """The token ids of words inside a target; empty for an empty text, or where they are too many."""
    try:
        return model.words(text)
    except InputError:
        return ()


def _get_valid_address_ids(model: RunnableModel, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Token ids of the address; empty where the model lacks one of them, or they are too many."""
    found = _filter_known_sequences(model, [ids])
    return found[0] if found and len(ids) < model.max_length else ()


def _filter_known_sequences(model: RunnableModel, sequences: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sequences of token ids that are not empty and of which the model has every token."""
    size = len(model.tokenizer)
    return [ids for ids in sequences if ids and all(token < size for token in ids)]


def _get_valid_head_name(name: str, attention: AttentionMap) -> str | None:
    """A head as the address names it, if `attention` has it."""
    every = ("mean", *map(str, range(1, attention.heads + 1)))
    known = {f"{layer}.{head}" for layer in range(1, attention.layers + 1) for head in every}
    return name if name in known else None


def _forget_branch() -> None:
    """Leave the branch: another strategy decodes from the start."""
    for one in DECODE_BRANCH_PARAMETERS:
        one.reset()


def _forget_branch_on_input_change(model: str, text: str) -> None:
    """Leave the branch with another model or sentence, unless a link or the Back button has brought both."""
    before, of = get_decode_branch_model_and_sentence(), (model, text)
    set_decode_branch_model_and_sentence(*of)
    if before not in (None, of) and not is_history_navigation():
        _forget_branch()
