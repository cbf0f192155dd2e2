"""The controls that pages share. Each returns a plain value, which lives in the address and in the session."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.checkpoint.load import CheckpointError
from model.checkpoint.summary import Summary, grouped
from model.decoding.observer_check import ObserverCheck
from model.language.say import say, sentences
from model.live.abilities import Ability
from model.live.live_model import LiveModel
from model.text.language import NAMES
from model.trace import AttentionMap, Kind
from model.translate import InputError, Translation, Translator
from model.user_model import LocalError, LocalModel

from ..components.presenter import live, presenting
from ..figures.heatmap import ROW_NAMES, Rows
from ..figures.palette import SCALE_NAMES, Look
from . import cache, theme, widgets
from .addresses.shared import COLOURS, HEAD, KIND, LAYER, LOOK, MODEL, ROWS, SCALE, SENTENCE
from .captions import caption, choose_model, plain
from .sentences import begin, examples, follow
from .url_state.page import carry, forget, is_in_address
from .url_state.record import record

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

LENT = "lent model"
"""Where the session has the model that a page began with for a visitor who had chosen none."""
REMEMBERED = 12
SHOWN = 70
"""Characters of an earlier sentence that its button shows."""
KIND_ORDER: tuple[Kind, ...] = ("encoder", "cross", "decoder")
"""Keys come to cross-attention from the left, queries from the right."""


def sentence(beside: Callable[[LiveModel], None] | None = None, first: str = "") -> tuple[LiveModel, str]:
    """The sentence box, with examples, earlier sentences and the choice of the model that is to read it.

    What it holds at first, and with another model, :mod:`.sentences` says.

    `beside` draws what else stands in the row of the examples; `first` is the model of an address that names none, if
    not the first of the list.
    """
    carry(MODEL, SENTENCE)
    box = st.container(key="sentence-box")
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        chips = st.container(key="chips", horizontal=True, gap="small")
        earlier = st.container(key="earlier", width="content")
        terms = st.container(key="terms", width="content")
        model = _model(first)
        if beside:
            beside(model)
        with terms:
            _licence(model)
    follow(model.name, model.card, lent=is_lent(model.name))
    with earlier:
        _earlier()
    for example in examples(model.card)[1:]:
        chips.button(plain(example), key=f"example-{example}", on_click=_take, args=(example,))
    return model, _box(box)


def lend(name: str) -> None:
    """Let a page begin with a model other than the first of the list, if the visitor chose none.

    Every other page begins with the visitor's own again.
    """
    if record().arrived and _chosen_name() == next(iter(cache.models()), "") != name and not is_in_address(MODEL):
        st.session_state[MODEL.key] = st.session_state[LENT] = name


def is_lent(name: str) -> bool:
    """Whether a model is one that a page began with for a visitor who had chosen none."""
    return st.session_state.get(LENT) == name


def take_back_lent() -> None:
    """On arrival at a page, forget the model that the page before began with."""
    lent = st.session_state.pop(LENT, None) if record().arrived else None
    if lent and _chosen_name() == lent and not is_in_address(MODEL):
        forget(MODEL)


def hide_sentence_box() -> None:
    """Leave the sentence box out of the page: for a view that no sentence changes. What is in it stays."""
    hidden = ":is(.st-key-sentence-box, .st-key-chips, .st-key-earlier) { display: none; }"
    theme.fragment_style("without-sentence", hidden)


def user_model() -> LocalModel | None:
    """The model of the command line that is chosen, where it only reads; None for one that writes."""
    return cache.reader(_chosen_name())


def _chosen_name() -> str:
    names = cache.models()
    return MODEL.get() if MODEL.get() in names else next(iter(names), "")


def plain_sentence(beside: Callable[[], None]) -> str:
    """The sentence box for a model that is none of this project; `beside` draws what else stands in its row."""
    carry(MODEL, SENTENCE)
    box = st.container(key="sentence-box")
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(key="earlier", width="content"):
            _earlier()
        widgets.offer(st.selectbox, say("Model"), _names(), width=215, **MODEL.binding)
        beside()
    begin({})
    return _box(box)


def _box(place: DeltaGenerator) -> str:
    """The sentence box itself."""
    with place:
        if presenting() and not live():
            return _written(SENTENCE.get())
        hint = say("Type a sentence and press Enter")
        return widgets.sentence_input(say("Sentence"), SENTENCE, placeholder=hint, label_visibility="collapsed")


def _written(text: str) -> str:
    """The sentence of a scene on the whole screen: words, in as many lines as they need."""
    with st.container(key="sentence"):
        st.html(f'<p dir="auto">{html.escape(text)}</p>')
    return text


def translation(model: LiveModel, text: str) -> tuple[Translation, ObserverCheck]:
    """The translation of `text`; ends the page with a sentence when it cannot be translated."""
    try:
        found = cache.translation(model.name, text)
    except InputError as error:
        st.info(plain(str(error)))
        st.stop()
    _remember(text)
    return found


def kind() -> Kind:
    """Which attention is looked at."""
    return widgets.segmented_control(say("Attention"), KIND)


def kind_of(kinds: Sequence[Kind]) -> Kind:
    """Which of the maps of a trace is looked at; the last until one is chosen."""
    KIND.hold((kinds[-1], *kinds))
    return widgets.segmented_control(say("Attention"), KIND, [one for one in KIND_ORDER if one in kinds])


def place(attention: AttentionMap) -> tuple[int, int]:
    """The chosen layer and head, counted from 0; people and the URL count from 1."""
    with st.container(key="place", horizontal=True):
        layer = widgets.offer(st.selectbox, say("Layer"), range(1, attention.layers + 1), width=120, **LAYER.binding)
        head = widgets.offer(st.selectbox, say("Head"), range(1, attention.heads + 1), width=120, **HEAD.binding)
    return layer - 1, head - 1


def choose(layer: int, head: int) -> None:
    """Set the layer and head, counted from 0; for callbacks."""
    st.session_state[LAYER.key], st.session_state[HEAD.key] = layer + 1, head + 1


def look() -> tuple[Look, Rows]:
    """How pictures are coloured and their rows named; folded away, as it is rarely changed."""
    with display():
        return look_choices()


def display() -> Any:
    """The folded place for how a page's pictures look."""
    return st.popover(say("Display"), type="tertiary", key="display")


def look_choices() -> tuple[Look, Rows]:
    """The controls of :func:`look`, for a page that has more to put beside them."""
    for one in LOOK:
        one.hold()
    more: dict[str, Any] = {"horizontal": True}
    rows = widgets.offer(
        st.radio,
        say("Decoder rows are named by the token"),
        ROWS.options,
        format_func=lambda one: say(ROW_NAMES[one]),
        **ROWS.storage | more,
    )
    scale = widgets.offer(
        st.radio,
        say("Colour grows with the weight"),
        SCALE.options,
        format_func=lambda one: say(SCALE_NAMES[one]),
        **SCALE.storage | more,
    )
    ramp = widgets.offer(st.radio, say("Colours"), COLOURS.options, **COLOURS.storage | more)
    return Look(theme.palette(), ramp, scale), rows


def _model(first: str) -> LiveModel:
    names = _names()
    if not names:
        st.info(say("There is no trained model yet. Train one with `python -m model train`, then reload this page."))
        st.stop()
    name = widgets.offer(
        st.selectbox, say("Model"), names, names.index(first) if first in names else 0, width=215, **MODEL.binding
    )
    _model_list(name)
    chosen = cache.brought(name)
    if isinstance(chosen, LocalError):
        st.error(plain(str(chosen)))
        st.stop()
    if isinstance(chosen, LocalModel):
        st.info(
            plain(
                say(
                    "{model} only reads, and writes nothing: look at it on Explore, or choose another here.", model=name
                )
            )
        )
        st.stop()
    try:
        return cache.live(name)
    except CheckpointError as error:
        st.error(plain(str(error)))
        st.stop()


def _names() -> list[str]:
    """The names of all models that can be chosen; what the command line names and cannot be had is said."""
    for problem in cache.command_line_problems():
        st.error(plain(problem))
    return cache.models()


def able(model: LiveModel, ability: Ability) -> LiveModel:
    """The model where it can do what a page is about; ends the page with a sentence that says what can otherwise."""
    if not model.can(ability):
        st.info(plain(model.cannot(ability)))
        st.stop()
    return model


def ours(model: LiveModel, ability: Ability) -> Translator:
    """The same for what only a model of this project can be asked."""
    able(model, ability)
    assert isinstance(model, Translator)
    return model


def _model_list(current: str) -> None:
    """The models by direction, folded away: what each is, its size and its score; one can be chosen here as well."""
    groups = grouped(cache.summaries(), NAMES)
    if not groups:
        return
    # Keyed by the model, so that the list closes once another one is chosen.
    with st.popover("?", type="tertiary", key=f"models beside {current}"), st.container(key="model-list"):
        for group, found in groups.items():
            st.markdown(f"**{plain(group)}**")
            for one in found:
                key = f"model {one.name}"
                st.button(plain(one.name), key=key, type="tertiary", on_click=choose_model, args=(one.name,))
                caption(summary_text(one))


def summary_text(one: Summary) -> str:
    """What a model is, how large, and how well it translates, as far as its folder says."""
    score = one.score
    return sentences(
        say("{title}.", title=one.title) if one.title else "",
        say("{millions:.1f} M parameters.", millions=one.parameters / 1e6),
        say("{bleu:.1f} BLEU on {set}, beam {beam}.", bleu=score.bleu, set=score.set, beam=score.beam) if score else "",
    )


def _licence(model: LiveModel) -> None:
    """Beside the choice: what a model may not be used for, if anything."""
    licence = str(model.card.get("licence", ""))
    if "non-commercial" in licence.lower():
        st.caption(plain(licence[:SHOWN]))


def _earlier() -> None:
    current = st.session_state.get(SENTENCE.key)
    earlier = [one for one in st.session_state.get("history", []) if one != current]
    if not earlier:
        return
    # Keyed by the sentence, so that the list closes once another one is chosen.
    with st.popover(say("Earlier"), type="tertiary", key=f"earlier than {current}"):
        for at, text in enumerate(earlier):
            shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
            st.button(plain(shown), key=f"earlier-{at}", type="tertiary", on_click=_take, args=(text,))


def _remember(text: str) -> None:
    others = [one for one in st.session_state.get("history", []) if one != text]
    st.session_state["history"] = [text, *others][:REMEMBERED]


def _take(text: str) -> None:
    st.session_state[SENTENCE.key] = text
