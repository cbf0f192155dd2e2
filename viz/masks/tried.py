"""Try on the model: a mask in place of the model's own, and what becomes of translation, attention and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import streamlit as st

from model.mask_rule import RuleError
from model.mask_trial import OF_KIND, MaskName, MaskTrial, Tried
from model.trace import Kind
from model.translate import Translator

from .. import cache, controls, theme
from ..components.chart import chart
from ..components.versions import Version, versions
from ..controls import SHARED
from ..decode.compare import attention_difference, changes
from ..figures.gallery_pair import Panel, gallery_pair
from ..figures.gallery_poked import poked_bars
from ..figures.labels import KIND_NAMES, readable, signed
from ..figures.palette import Look
from ..remarks import badge, caption, hints, plain
from . import tried_words as words

STYLE = Path(__file__).parent / "tried.css"
View = Literal["attention", "one token", "tests"]
VIEWS: tuple[View, ...] = get_args(View)
MOVES = {"leak": "moves and should not", "over": "should move and does not", "nan": "not a number", "blocked": "still"}


def show() -> None:
    """The sentence, then the mask. The badge says whether looking changes this model."""
    st.html(STYLE)
    model, text = controls.sentence()
    result, check = controls.translated(model, text)
    badge(model, result, check)
    hints(model, result)
    _trial(model, text)


@st.fragment
def _trial(model: Translator, text: str) -> None:
    with st.container(key="tried-bar", horizontal=True, vertical_alignment="center"):
        kind = controls.kind()
        trial, pads = _asked(model, text, kind)
    try:
        tried = cache.mask_trial(model.name, text, trial, pads)
    except RuleError as error:
        st.error(plain(str(error)))
        return
    caption(words.EXPLAINED[trial.name] + (f" {words.AT_ONCE}" if trial.name == "no causal mask" else ""))
    rows = [_version("own mask", tried, own=True), _version("this mask", tried, own=False)]
    headings = ("log-probability", "of the right one", "attention moved")
    versions(rows, headings, -1, key="tried-versions", on_choice=lambda _: None)
    caption(words.effect(tried))
    with st.container(key="tried-views", horizontal=True, vertical_alignment="center"):
        view: View = st.segmented_control(
            "Look at", VIEWS, default="attention", required=True, key="tried", label_visibility="collapsed", **SHARED
        )
        beside = st.container(key="tried-beside", horizontal=True, vertical_alignment="center")
    if view == "attention":
        _attention(tried, kind, beside)
    elif view == "one token":
        _poked(model, text, trial, pads, tried, beside)
    else:
        _tests(model, text, kind, trial)


def _asked(model: Translator, text: str, kind: Kind) -> tuple[MaskTrial, int]:
    """The mask and the padding, all in the address."""
    if st.session_state.get("tried_mask") not in (None, *OF_KIND[kind]):
        del st.session_state["tried_mask"]
    name: MaskName = st.selectbox(
        "Mask", OF_KIND[kind], format_func=words.TITLES_OF.__getitem__, key="tried_mask", width=290, **SHARED
    )
    trial = MaskTrial(kind, name)
    if name == "window":
        trial = MaskTrial(kind, name, width=_number("Nearer than", "tried_width", 3, 1, 99))
    if name == "one word hidden":
        trial = MaskTrial(kind, name, key=_word(model, text))
    if name == "rule":
        built = st.session_state.get("rule") or st.query_params.get("rule", "causal and padding")
        rule = st.text_input("where", built, key="tried_rule", width=260, label_visibility="collapsed", **SHARED)
        trial = MaskTrial(kind, name, rule=rule or "")
    return trial, _number("Padding", "pads", 3, 0, 16)


def _word(model: Translator, text: str) -> int:
    tokens = model.encode(text).tokens
    places = range(len(tokens))
    if st.session_state.get("tried_word") not in (None, *places):
        del st.session_state["tried_word"]
    return st.selectbox(
        "Word", places, format_func=lambda at: readable(tokens[at]), index=min(2, len(tokens) - 1), key="tried_word",
        width=190,
    )  # fmt: skip


def _number(label: str, key: str, value: int, low: int, high: int) -> int:
    found = st.number_input(label, low, high, value, key=key, width=170, **SHARED)
    return value if found is None else int(found)


def _version(what: str, tried: Tried, *, own: bool) -> Version:
    one = tried.right if own else tried.tried
    moved = max(attention_difference(tried.right.maps[kind], one.maps[kind]) for kind in one.maps)
    numbers = (signed(one.log_prob), signed(one.log_prob_of_right), f"{moved:.0%}")
    return Version(what, changes(tried.right.text, one.text), numbers)


def _attention(tried: Tried, kind: Kind, beside: Any) -> None:
    own, other = tried.right.maps[kind], tried.tried.maps[kind]
    with beside:
        layer, head = controls.place(own)
    panels = [
        Panel(title, one.weights[layer, head], own.mask) for title, one in (("own mask", own), ("this mask", other))
    ]
    title = f"{KIND_NAMES[kind]} · layer {layer + 1}, head {head + 1}"
    figure = gallery_pair(panels, own.rows("predicted"), own.key_tokens, title, Look(theme.palette()))
    chart(figure, f"{title}: with the model's own mask and with this one", key="tried-pair", on_cell=_nothing)
    caption(
        "Both while the right translation is fed, so that rows compare; rows are named by the token predicted. A row "
        "whose sum is 0 has no key left: this model gives zeros there, never NaN."
    )


def _poked(model: Translator, text: str, trial: MaskTrial, pads: int, tried: Tried, beside: Any) -> None:
    own = cache.mask_poke(model.name, text, None, pads)
    poked = cache.mask_poke(model.name, text, trial, pads)
    fed = tried.right.maps["decoder"].query_tokens
    inputs = (*tried.source_tokens, *fed)
    sources = len(tried.source_tokens)
    if (st.session_state.get("poked") or 0) >= len(inputs):
        del st.session_state["poked"]

    def name(at: int) -> str:
        return f"{'source' if at < sources else 'target'} {readable(inputs[at])}"

    with beside:
        first = sources + len(fed) // 2 if trial.kind == "decoder" else 0
        at = st.selectbox("Change", range(len(inputs)), first, format_func=name, key="poked", width=290)
    palette = theme.palette()
    title = f"Another token in place of {name(at)}: grey with the own mask, in colour with this one"
    bars = poked_bars(tried.target_tokens, own.change[:, at], poked.change[:, at], poked.may[:, at], title, palette)
    chart(bars, "How far each output moves", key="poked-bars", on_cell=_nothing)
    caption(words.moved(tried.target_tokens, own, at, "Own mask"))
    caption(words.moved(tried.target_tokens, poked, at, "This mask"))
    panels = [Panel(title, one.change, one.may, sums=False) for title, one in (("own mask", own), ("this mask", poked))]
    every = "What each output (down) depends on: source, then the target fed in (across)"
    look = Look(palette)
    figure = gallery_pair(panels, tried.target_tokens, inputs, every, look, MOVES, pinned=at, divided=sources)
    chart(figure, every, key="poked-pair", on_cell=lambda _, column: st.session_state.update(poked=column))
    caption(
        "Each column: that token exchanged for another, and how far the next-token probabilities move, 0 to 1 (total "
        "variation). Compared to the last bit, so that nothing is nothing. Click a column to choose it."
    )


def _tests(model: Translator, text: str, kind: Kind, trial: MaskTrial) -> None:
    own = cache.mask_checks(model.name, text, kind, None)
    st.html(words.checks_table(own, cache.mask_checks(model.name, text, kind, trial)))
    caption(words.of_tests(kind))


def _nothing(_: int, __: int) -> None:
    """A click says nothing here."""
