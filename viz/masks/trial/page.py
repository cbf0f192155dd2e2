"""Try on the model: a mask in place of the model's own, and what becomes of translation, attention and tests."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from model.experiments.mask_trial import MaskTrial, TrialResult, masks_of
from model.language.say import number, say
from model.live.live_model import LiveModel
from model.live.translation import InputError
from model.masking.rule import RuleError
from model.trace import Kind

from ...components.versions import Version, versions
from ...export.save import save
from ...figures.labels import readable, signed
from ...ui import cache, controls, widgets
from ...ui.addresses.masks import EFFECT, MASK, PADDING, RULE, TRIED_RULE, WINDOW, WORD
from ...ui.captions import badge, caption, hints, plain
from ...ui.translation_changes import attention_difference, word_changes
from ...ui.url_state.kinds import Number
from . import saving, texts, views

STYLE = Path(__file__).parent / "trial.css"


def show() -> None:
    """The sentence, then the mask. The badge says whether looking changes this model."""
    st.html(STYLE)
    chosen, text = controls.sentence()
    model = controls.able(chosen, "mask trial")
    result, check = controls.translation(model, text)
    badge(model, result, check)
    hints(model, result, result)
    _trial(model, text, tuple(result.trace.maps))


@st.fragment
def _trial(model: LiveModel, text: str, kinds: tuple[Kind, ...]) -> None:
    with st.container(key="tried-bar", horizontal=True, vertical_alignment="center"):
        kind = controls.kind() if len(kinds) > 1 else kinds[0]
        trial, pads = _chosen(model, text, kind)
    try:
        tried = cache.mask_trial(model.name, text, trial, pads)
    except (RuleError, InputError) as error:
        st.error(plain(str(error)))
        return
    caption(texts.explained(trial.name))
    rows = [_version(say("own mask"), tried, own=True), _version(say("this mask"), tried, own=False)]
    versions(rows, saving.headings(), -1, key="tried-versions", on_choice=lambda _: None)
    effect = texts.effect(tried, translates=model.can("translate"))
    caption(effect)
    with st.container(key="tried-views", horizontal=True, vertical_alignment="center"):
        view = widgets.segmented_control(say("Look at"), EFFECT)
        beside = st.container(key="tried-beside", horizontal=True, vertical_alignment="center")
        menu = st.container(width="content")
    if view == "attention":
        shown = views.attention(model, tried, kind, beside)
    elif view == "one token":
        shown = views.poked(model, text, trial, pads, tried, beside)
    else:
        shown = views.tests(model, text, kind, trial)
    facts = {"model": model.name, "sentence": text, "mask": f"{kind}: {trial.name}", "padding": str(pads)}
    with menu:
        save(saving.saved_view(trial, rows, shown, facts, effect))


def _chosen(model: LiveModel, text: str, kind: Kind) -> tuple[MaskTrial, int]:
    """The mask and the number of padding tokens that the controls stand at."""
    masks = masks_of(model, kind)
    if st.session_state.get(MASK.key) not in (None, *masks):
        del st.session_state[MASK.key]
    name = widgets.selectbox(say("Mask"), MASK, masks, width=330)
    trial = MaskTrial(kind, name)
    if name == "window":
        trial = MaskTrial(kind, name, width=_number(say("Nearer than"), WINDOW))
    if name == "one word hidden":
        trial = MaskTrial(kind, name, key=_word(model, text))
    if name == "rule":
        built = RULE.get() or RULE.default
        rule = widgets.text_input(say("where"), TRIED_RULE, built, width=260, label_visibility="collapsed")
        trial = MaskTrial(kind, name, rule=rule)
    return trial, _number(say("Padding"), PADDING) if model.model.pad_id is not None else 0


def _word(model: LiveModel, text: str) -> int:
    """The place of the hidden word, from 0."""
    tokens = model.encode(text).tokens
    places = range(1, len(tokens) + 1)
    name = lambda at: readable(tokens[at - 1])  # noqa: E731
    return widgets.following_selectbox(say("Word"), WORD, places, min(3, len(tokens)), format_func=name, width=190) - 1


def _number(label: str, of: Number[int]) -> int:
    return int(widgets.number_input(label, of, width=170))


def _version(what: str, tried: TrialResult, *, own: bool) -> Version:
    one = tried.own if own else tried.trial
    moved = max(attention_difference(tried.own.maps[kind], one.maps[kind]) for kind in one.maps)
    numbers = (signed(one.log_prob), signed(one.log_prob_of_target), number(moved, ".0%"))
    return Version(what, word_changes(tried.own.text, one.text), numbers)
