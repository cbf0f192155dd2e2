"""The controls of Decode. All they hold is in the address, so that a branch and a step are links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from model.analysis.alignment import rank_alignment
from model.decoding.beam_search import Stop
from model.decoding.constraints import Constraints
from model.decoding.sampling import Sampling
from model.interventions.changes import HeadChange, InterventionError, parse, text_of
from model.language.say import say, to_say
from model.trace import Head
from model.translate import InputError

from ..components.decode_player import PlayerStart
from ..streamlit_internals import went_through_history
from ..ui import cache, widgets
from ..ui.addresses.decode import (
    BEGIN,
    BRANCH,
    CROSS,
    EARLY,
    METHOD,
    NEVER,
    OF_BRANCH,
    OWN,
    PENALTY,
    SEED,
    STEP,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    WAY,
    WIDTH,
    WITHOUT,
    Method,
)
from ..ui.addresses.pins import pin, pin_of, toggle_pins
from ..ui.addresses.shared import CHANGES, GIVEN
from ..ui.links import branch_owner, own_branch
from ..ui.teacher_forced import given_input
from .request import Request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from model.live.live_model import LiveModel
    from model.trace import AttentionMap
    from model.translate import Translation

    from ..ui.url_state.kinds import Number

STOP_EARLY = to_say(
    "Off: search until no running hypothesis can still enter the list of the best, whatever length it ends at. "
    "On: until none would enter it by ending at once, the usual rule, which with a length penalty above 0 may miss a "
    "longer one."
)


def request(model: LiveModel, text: str) -> Request:
    """Draw the controls of the strategy and the constraints; returns the decoding that they stand at."""
    _forget_branch_of_another(model.name, text)
    method = widgets.segmented_control(say("Strategy"), METHOD, on_change=_forget_branch)
    sampling, seed, width, penalty, given = Sampling(), 0, 4, 1.0, ""
    stop: Stop = "proven"
    if method == "sample":
        sampling = Sampling(
            _number(say("Temperature"), TEMPERATURE), _number(say("Top-k"), TOP_K), _number(say("Top-p"), TOP_P)
        )
        seed = _number(say("Seed"), SEED)
    elif method == "beam":
        width, penalty = _number(say("Width"), WIDTH), _number(say("Length penalty"), PENALTY)
        early = widgets.toggle(say("Stop early"), EARLY, help=say(STOP_EARLY), on_change=_forget_branch)
        stop = "early" if early else stop
    elif method == "given":
        given = given_input(text, _own_translation(model, text))
    return Request(text, method, sampling, seed, width, penalty, stop, given, _constraints(model, method), _changes())


def path(model: LiveModel) -> tuple[int, ...]:
    """The token ids that lead to the node of the beam tree on the player; empty for the best translation."""
    return _known(model, WAY.hold())


def player_start(result: Translation, off: list[Head]) -> PlayerStart:
    """The step and the heads that the player begins with; a head that is turned off is not the best aligning one.

    Of a decoder alone, none is looked for: what it attends to in its prompt need not be what it translates.
    """
    cross, own = result.to_source, result.to_target
    step, chosen = _step(result), _head(CROSS.hold(), cross)
    own_choice = _head(OWN.hold(), own) or f"{own.layers}.mean"
    if result.trace.cross is None:
        return PlayerStart(step, chosen or f"{cross.layers}.mean", own_choice, None)
    ranked = rank_alignment(cross, readings=("predicted",))  # a step of the player is the row that predicts its token
    best = next((one for one in ranked if ("cross", one.layer, one.head) not in off), ranked[0])
    return PlayerStart(step, chosen or "aligning", own_choice, (best.layer, best.head))


def on_step(step: int, result: Translation) -> None:
    """Come to rest at a step, from 0; for callbacks. An open card, of a word of `result`, follows."""
    STEP.set(step + 1)
    if pin_of(result.source, "target") is not None:
        pin(result.source, {"target": step + result.first_row})


def on_word(result: Translation, step: int) -> None:
    """Open the card of the word written at a step, or close it where it is open; for callbacks."""
    STEP.set(step + 1)
    toggle_pins(result.source, {"target": step + result.first_row})


def on_view(cross: str, own: str) -> None:
    CROSS.set(cross)
    OWN.set(own)


def choose(request: Request) -> None:
    """Set all controls to `request`, and the player to the word that is pinned or else to the first; for callbacks."""
    state = st.session_state
    state[METHOD.key] = request.method
    if request.method == "sample":
        state[TEMPERATURE.key], state[TOP_K.key] = request.sampling.temperature, request.sampling.top_k
        state[TOP_P.key], state[SEED.key] = request.sampling.top_p, request.seed
    elif request.method == "beam":
        state[WIDTH.key], state[PENALTY.key] = request.width, request.penalty
        state[EARLY.key] = request.stop == "early"
    elif request.method == "given":
        state[GIVEN.key] = request.given
    state[BEGIN.key] = state[NEVER.key] = ""
    _forget_branch()
    BRANCH.set(request.constraints.prefix)
    WITHOUT.set(request.constraints.forbidden)
    CHANGES.set(request.changes)
    STEP.set(1)


def choose_at(request: Request, step: int, result: Translation) -> None:
    """Set all controls to `request`, and the player to a step of what it was taken from; for callbacks."""
    choose(request)
    on_step(step, result)


def heads_off(request: Request) -> list[Head]:
    """The heads that are turned off, by kind, layer and head from 0."""
    heads = (change for change in parse(request.changes) if isinstance(change, HeadChange) and change.change == "off")
    return [(head.kind, head.layer, head.head) for head in heads]


def turn_off(heads: list[Head]) -> None:
    """Leave these heads out, and change nothing else; for callbacks."""
    CHANGES.set(text_of(HeadChange(kind, layer, head) for kind, layer, head in sorted(heads)))


def choose_path(ids: tuple[int, ...], result: Translation) -> None:
    """Show, in place of `result`, the translation that ends in a node of the beam tree; for callbacks."""
    WAY.set(ids)
    on_step(len(ids) - 1, result)


def _step(result: Translation) -> int:
    """The step of the player, from 0: that of the pinned word, which the card is of; else the one chosen last."""
    step, pinned = STEP.hold(), result.step_of(pin_of(result.source, "target"))
    if pinned is None:
        return (step or 1) - 1
    STEP.set(pinned + 1)
    return pinned


def _own_translation(model: LiveModel, text: str) -> str:
    """What the unchanged model writes; "" for a text that it cannot read."""
    try:
        return cache.translation(model.name, text)[0].text
    except InputError:
        return ""


def _changes() -> str:
    """The changes to the model in the one way of writing them; none where the address makes no sense."""
    try:
        return text_of(parse(CHANGES.hold()))
    except InterventionError:
        return ""


def _number(label: str, of: Number[Any]) -> Any:
    with st.container(key=f"number-{of.name}", width="content"):
        step = 1 if isinstance(of.low, int) else 0.05
        return widgets.number_input(label, of, step=step, width=120, on_change=_forget_branch)


def _constraints(model: LiveModel, method: Method) -> Constraints:
    """The words that a visitor typed, and what a click on a candidate has put into the address."""
    if method == "given":
        return Constraints()
    with st.popover(say("What if"), type="tertiary", key="what-if"):
        begin = widgets.text_input(say("Begin with"), BEGIN, placeholder="Ein", on_change=_forget_branch)
        never = widgets.text_input(say("Never write"), NEVER, placeholder=say("words, between commas"))
        st.caption(say("In the player, choose a candidate to go on from it, or its × to forbid it."))
    begun = _tokens(model, begin)
    prefix = _known(model, BRANCH.hold()) or ((*model.forced.prefix, *begun) if begun else ())
    forbidden = _in_vocabulary(model, (*WITHOUT.hold(), *(_tokens(model, word) for word in never.split(","))))
    return Constraints(prefix, tuple(dict.fromkeys(forbidden)))


def _tokens(model: LiveModel, text: str) -> tuple[int, ...]:
    """The ids of some words inside a target; none for none, or where they are too many."""
    try:
        return model.words(text)
    except InputError:
        return ()


def _known(model: LiveModel, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Ids of the address that this model can write; none where it has no such token, or they are too many."""
    found = _in_vocabulary(model, [ids])
    return found[0] if found and len(ids) < model.max_length else ()


def _in_vocabulary(model: LiveModel, sequences: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The sequences of token ids that are not empty and of which the model has every token."""
    size = len(model.tokenizer)
    return [ids for ids in sequences if ids and all(token < size for token in ids)]


def _head(name: str, attention: AttentionMap) -> str | None:
    """A head as the address names it, if `attention` has it."""
    every = ("mean", *map(str, range(1, attention.heads + 1)))
    known = {f"{layer}.{head}" for layer in range(1, attention.layers + 1) for head in every}
    return name if name in known else None


def _forget_branch() -> None:
    """Leave the branch: another strategy decodes from the start."""
    for one in OF_BRANCH:
        one.reset()


def _forget_branch_of_another(model: str, text: str) -> None:
    """Leave the branch with another model or sentence, unless a link or the Back button has brought both."""
    before, of = branch_owner(), (model, text)
    own_branch(*of)
    if before not in (None, of) and not went_through_history():
        _forget_branch()
