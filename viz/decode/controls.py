"""The controls of Decode. All they hold is in the address, so that a branch and a step are links."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from model.analysis.alignment import rank_alignment
from model.decoding.beam_search import Stop
from model.decoding.constraints import Constraints
from model.decoding.sampling import Sampling
from model.interventions.changes import HeadChange, InterventionError, parse, text_of
from model.translate import InputError

from ..components.decode_player import Shown
from ..components.switchboard import Head
from ..ui.controls import SHARED
from ..ui.teacher_forced import typed
from .request import METHODS, Method, Request, from_address, to_address

if TYPE_CHECKING:
    from model.trace import AttentionMap
    from model.translate import Translator

N = TypeVar("N", int, float)
BRANCH = ("branch", "without", "way", "step")
"""Of the address, beside the widgets' own: token ids forced and forbidden, a node of the beam tree, the step from 1."""
STOP_EARLY = (
    "Off: search until no running hypothesis can still enter the list of the best, whatever length it ends at. "
    "On: until none would enter it by ending at once, the usual rule, which with a length penalty above 0 may miss a "
    "longer one."
)


def request(model: Translator, text: str) -> Request:
    """What is asked for: the strategy's row, what is forced and what forbidden."""
    _forget_branch_of_another(model.name, text)
    method: Method = st.segmented_control(
        "Strategy",
        METHODS,
        default="greedy",
        required=True,
        key="method",
        label_visibility="collapsed",
        on_change=_forget,
        **SHARED,
    )
    sampling, seed, width, penalty, given = Sampling(), 0, 4, 1.0, ""
    stop: Stop = "proven"
    if method == "sample":
        sampling, seed = _sampling()
    elif method == "beam":
        width = _number("Width", "width", 4, 1, 10)
        penalty = _number("Length penalty", "penalty", 1.0, 0.0, 3.0)
        stop = "early" if st.toggle("Stop early", key="early", help=STOP_EARLY, on_change=_forget, **SHARED) else stop
    elif method == "given":
        given = typed()
    return Request(text, method, sampling, seed, width, penalty, stop, given, _constraints(model, method), _changes())


def way(model: Translator) -> tuple[int, ...]:
    """The node of the beam tree that the player shows, as the ids of its way; empty for the best translation."""
    return _ids(model, "way")


def shown(cross: AttentionMap, own: AttentionMap, off: list[Head]) -> Shown:
    """Where the player begins; of the heads turned off, none is the best aligning one."""
    ranked = rank_alignment(cross, readings=("predicted",))  # a step of the player is the row that predicts its token
    best = next((one for one in ranked if ("cross", one.layer, one.head) not in off), ranked[0])
    step = st.query_params.get("step", "1")
    return Shown(
        step=max(int(step) - 1, 0) if step.isascii() and step.isdigit() and len(step) < 6 else 0,
        cross=_head("cross", cross) or "aligning",
        own=_head("own", own) or f"{own.layers}.mean",
        aligning=(best.layer, best.head),
    )


def on_step(step: int) -> None:
    st.query_params["step"] = str(step + 1)


def on_view(cross: str, own: str) -> None:
    st.query_params["cross"], st.query_params["own"] = cross, own


def show(one: Request, step: int = 0) -> None:
    """Make `one` what is asked for, begun at a step from 0; for callbacks."""
    state, address = st.session_state, st.query_params
    state["method"] = one.method
    if one.method == "sample":
        state["temperature"], state["top-k"] = one.sampling.temperature, one.sampling.top_k
        state["top-p"], state["seed"] = one.sampling.top_p, one.seed
    elif one.method == "beam":
        state["width"], state["penalty"], state["early"] = one.width, one.penalty, one.stop == "early"
    elif one.method == "given":
        state["given"] = one.given
    state["begin"] = state["never"] = ""
    _forget()
    for name, value in (
        ("branch", to_address(one.constraints.prefix)),
        ("without", "~".join(map(to_address, one.constraints.forbidden))),
        ("changes", one.changes),
    ):
        if value:
            address[name] = value
        else:
            address.pop(name, None)
    on_step(step)


def heads_off(request: Request) -> list[Head]:
    """The heads that are turned off, by kind, layer and head from 0."""
    heads = (change for change in parse(request.changes) if isinstance(change, HeadChange) and change.change == "off")
    return [(head.kind, head.layer, head.head) for head in heads]


def turn_off(heads: list[Head]) -> None:
    """Leave these heads out, and change nothing else; for callbacks."""
    text = text_of(HeadChange(kind, layer, head) for kind, layer, head in sorted(heads))
    if text:
        st.query_params["changes"] = text
    else:
        st.query_params.pop("changes", None)


def show_way(ids: tuple[int, ...]) -> None:
    """Show the way to a node of the beam tree; for callbacks."""
    st.query_params["way"] = to_address(ids)
    on_step(len(ids) - 1)


def _changes() -> str:
    """The changes to the model that the address asks for, in one way of writing them; none where it makes no sense."""
    try:
        return text_of(parse(st.query_params.get("changes", "")))
    except InterventionError:
        return ""


def _sampling() -> tuple[Sampling, int]:
    temperature = _number("Temperature", "temperature", 1.0, 0.0, 5.0)
    top_k = _number("Top-k", "top-k", 0, 0, 1000)
    top_p = _number("Top-p", "top-p", 1.0, 0.01, 1.0)
    return Sampling(temperature, top_k, top_p), _number("Seed", "seed", 0, 0, 999_999)


def _number(label: str, key: str, value: N, least: N, most: N) -> N:
    step = 1 if isinstance(value, int) else 0.05
    with st.container(key=f"number-{key}", width="content"):
        return st.number_input(label, least, most, value, step, key=key, width=120, on_change=_forget, **SHARED)


def _constraints(model: Translator, method: Method) -> Constraints:
    """What a visitor typed, and what a click on a candidate has put into the address."""
    if method == "given":
        return Constraints()
    with st.popover("What if", type="tertiary", key="what-if"):
        begin = st.text_input("Begin with", key="begin", placeholder="Ein", on_change=_forget, **SHARED)
        never = st.text_input("Never write", key="never", placeholder="words, between commas", **SHARED)
        st.caption("In the player, choose a candidate to go on from it, or its × to forbid it.")
    prefix = _ids(model, "branch") or _tokens(model, begin or "")
    clicked = (from_address(one, len(model.tokenizer)) for one in st.query_params.get("without", "").split("~"))
    typed = (_tokens(model, word) for word in (never or "").split(","))
    return Constraints(prefix, tuple(dict.fromkeys(ids for ids in (*clicked, *typed) if ids)))


def _tokens(model: Translator, text: str) -> tuple[int, ...]:
    """The ids of some words without </s>; none for none, or where they are too many."""
    try:
        return model.encode(text).ids[:-1] if text.strip() else ()
    except InputError:
        return ()


def _ids(model: Translator, name: str) -> tuple[int, ...]:
    ids = from_address(st.query_params.get(name, ""), len(model.tokenizer))
    return ids if len(ids) < model.config.max_length else ()


def _head(name: str, attention: AttentionMap) -> str | None:
    """The address's choice of a head, if `attention` has it."""
    value = st.query_params.get(name, "")
    every = ("mean", *map(str, range(1, attention.heads + 1)))
    known = {f"{layer}.{head}" for layer in range(1, attention.layers + 1) for head in every}
    return value if value in known else None


def _forget() -> None:
    """Leave the branch: another strategy decodes from the start."""
    for name in BRANCH:
        st.query_params.pop(name, None)


def _forget_branch_of_another(model: str, text: str) -> None:
    """A branch is made of a model's tokens and of one sentence; a link brings all."""
    of = model, text
    if st.session_state.setdefault("branch-of", of) != of:
        st.session_state["branch-of"] = of
        _forget()
