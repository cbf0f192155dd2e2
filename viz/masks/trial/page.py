"""Try on the model: a mask in place of the model's own, and what becomes of translation, attention and tests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import streamlit as st

from model.experiments.mask_trial import OF_KIND, MaskName, MaskTrial, TrialResult
from model.masking.rule import RuleError
from model.trace import Kind
from model.translate import Translator

from ...components.versions import Version, versions
from ...decode.compare import attention_difference, changes
from ...export.save import save
from ...figures.labels import readable, signed
from ...ui import cache, controls
from ...ui.captions import badge, caption, hints, plain
from ...ui.controls import SHARED
from ..saving import tried_mask
from . import texts as words
from . import views as tried_views

STYLE = Path(__file__).parent / "trial.css"
View = Literal["attention", "one token", "tests"]
VIEWS: tuple[View, ...] = get_args(View)


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
        menu = st.container(width="content")
    if view == "attention":
        shown = tried_views.attention(tried, kind, beside)
    elif view == "one token":
        shown = tried_views.poked(model, text, trial, pads, tried, beside)
    else:
        shown = tried_views.tests(model, text, kind, trial)
    facts = {"model": model.name, "sentence": text, "mask": f"{kind}: {trial.name}", "padding": str(pads)}
    with menu:
        save(tried_mask(tried, trial, rows, shown, facts))


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


def _version(what: str, tried: TrialResult, *, own: bool) -> Version:
    one = tried.own if own else tried.trial
    moved = max(attention_difference(tried.own.maps[kind], one.maps[kind]) for kind in one.maps)
    numbers = (signed(one.log_prob), signed(one.log_prob_of_target), f"{moved:.0%}")
    return Version(what, changes(tried.own.text, one.text), numbers)
