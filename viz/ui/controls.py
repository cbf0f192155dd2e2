"""The controls that pages share. Each returns a plain value, which lives in the URL and in the visitor's session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import streamlit as st

from model.checkpoint.load import CheckpointError
from model.decoding.observer_check import ObserverCheck
from model.trace import KINDS, AttentionMap, Kind
from model.translate import InputError, Translation, Translator
from model.user_model import LocalError, LocalModel

from ..figures.heatmap import ROW_NAMES, ROWS, Rows
from ..figures.palette import RAMPS, SCALE_NAMES, SCALES, Look
from . import cache, theme
from .captions import plain

EXAMPLES = {
    "en": (
        "The old man who lives next door reads a book in the garden every evening.",
        "He turned the offer down.",
        "Where did you buy this red bicycle?",
        "The bank by the river was closed.",
    ),
    "zh": ("我昨天在图书馆读了一本书。", "你想喝茶还是咖啡？", "他每天早上跑步。"),
}
Place = Literal["source", "target", "source_key", "target_key"]
"""What a pinned position counts: tokens of the sentence, of its translation, or, in self-attention, keys of either."""
PLACES: tuple[Place, ...] = get_args(Place)
REMEMBERED = 12
SHOWN = 70
"""Characters of an earlier sentence that its button shows."""

# In the URL, so that a link restores it, and in the session, so that other pages find it.
SHARED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
KEPT: dict[str, Any] = {"persist_state": "session"}
"""Of a control whose place in the address is kept by :func:`in_address`."""
FOLDED = KEPT | {"horizontal": True}


def sentence(beside: Callable[[], None] | None = None) -> tuple[Translator, str]:
    """The sentence box, with examples, earlier sentences and the choice of the model that is to read it.

    `beside` draws what else stands in the row of the examples.
    """
    _keep("model", "sentence")
    box = st.container()
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        chips = st.container(key="chips", horizontal=True, gap="small")
        _earlier()
        terms = st.container(key="terms", width="content")
        model = _model()
        if beside:
            beside()
        with terms:
            _licence(model)
    first, *more = examples(model.card)
    for example in more:
        chips.button(plain(example), key=f"example-{example}", on_click=_take, args=(example,))
    hint = "Type a sentence and press Enter"
    text = box.text_input("Sentence", first, key="sentence", placeholder=hint, label_visibility="collapsed", **SHARED)
    return model, text or ""


def examples(card: Mapping[str, Any]) -> Sequence[str]:
    """Sentences a model can read, the first for the empty box: those its card names, else those of its language."""
    own = card.get("examples", "")
    return own.split(" | ") if own else EXAMPLES.get(card.get("source_language", ""), ("",))


def plain_sentence(beside: Callable[[], None]) -> str:
    """The sentence box for a model that is none of this project; `beside` draws what else stands in its row."""
    _keep("model", "sentence")
    box = st.container()
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        _earlier()
        st.selectbox("Model", cache.models(), key="model", width=215, **SHARED)
        beside()
    first = EXAMPLES["en"][0]
    hint = "Type a sentence and press Enter"
    text = box.text_input("Sentence", first, key="sentence", placeholder=hint, label_visibility="collapsed", **SHARED)
    return text or ""


def translated(model: Translator, text: str) -> tuple[Translation, ObserverCheck]:
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
    return st.segmented_control(
        "Attention", KINDS, default="cross", required=True, key="kind", label_visibility="collapsed", **SHARED
    )


def place(attention: AttentionMap) -> tuple[int, int]:
    """The chosen layer and head, counted from 0; people and the URL count from 1."""
    with st.container(key="place", horizontal=True):
        layer = st.selectbox("Layer", range(1, attention.layers + 1), key="layer", width=120, **SHARED)
        head = st.selectbox("Head", range(1, attention.heads + 1), key="head", width=120, **SHARED)
    return layer - 1, head - 1


def choose(layer: int, head: int) -> None:
    """Set the layer and head, counted from 0; for callbacks."""
    st.session_state["layer"], st.session_state["head"] = layer + 1, head + 1


def pinned(text: str, place: Place) -> int | None:
    """The pinned position of `text` or of its translation, from 0; another sentence starts with none."""
    return _pins(text).get(place)


def pin(text: str, cell: Mapping[Place, int]) -> None:
    """Pin positions, or let go of them where all of them are pinned already; for callbacks."""
    before = _pins(text)
    if cell.items() <= before.items():
        after = {place: position for place, position in before.items() if place not in cell}
    else:
        after = before | dict(cell)
    st.session_state["pinned"] = (text, after)


def pins_in_address(text: str) -> None:
    """Keep the pinned positions in the address, from 1: ``pin=target.4,source.2``; take over what a link brought."""
    if "pinned" not in st.session_state:
        found = (part.split(".") for part in st.query_params.get("pin", "").split(","))
        pins = {part[0]: int(part[1]) - 1 for part in found if len(part) == 2 and part[1].isdecimal()}
        st.session_state["pinned"] = (text, {place: pins[place] for place in PLACES if pins.get(place, -1) >= 0})
    address = ",".join(f"{place}.{position + 1}" for place, position in _pins(text).items())
    if address:
        st.query_params["pin"] = address
    elif "pin" in st.query_params:
        del st.query_params["pin"]


def _pins(text: str) -> dict[Place, int]:
    of, pins = st.session_state.get("pinned", (text, {}))
    return pins if of == text else {}


def in_address(key: str, options: Sequence[str], default: str) -> None:
    """Keep what a control holds in the address by its own short name, not by the words it shows. Comes before it."""
    state = st.session_state
    if state.get(key) not in options:
        brought = st.query_params.get(key)
        state[key] = brought if brought in options else default
    if state[key] != default:
        st.query_params[key] = state[key]
    elif key in st.query_params:
        del st.query_params[key]


def look() -> tuple[Look, Rows]:
    """How pictures are coloured and their rows named; folded away, as it is rarely changed."""
    with display():
        return look_choices()


def display() -> Any:
    """The folded place for how a page's pictures look."""
    return st.popover("Display", type="tertiary", key="display")


def look_choices() -> tuple[Look, Rows]:
    """The controls of :func:`look`, for a page that has more to put beside them."""
    for key, options in (("rows", ROWS), ("scale", SCALES), ("colours", RAMPS)):
        in_address(key, options, options[0])
    rows = st.radio("Decoder rows are named by the token", ROWS, key="rows", format_func=ROW_NAMES.get, **FOLDED)
    scale = st.radio("Colour grows with the weight", SCALES, key="scale", format_func=SCALE_NAMES.get, **FOLDED)
    ramp = st.radio("Colours", RAMPS, key="colours", **FOLDED)
    return Look(theme.palette(), ramp, scale), rows


def _model() -> Translator:
    names, local = cache.models(), cache.local()
    if isinstance(local, LocalError):
        st.error(plain(str(local)))
    if not names:
        st.info("There is no trained model yet. Train one with `python -m model train`, then reload this page.")
        st.stop()
    name = st.selectbox("Model", names, key="model", width=215, **SHARED)
    if isinstance(local, LocalModel) and name == local.name:
        st.info(plain(f"{name} is no model of this project: look at it on Explore, or choose another for this page."))
        st.stop()
    try:
        return cache.translator(name)
    except CheckpointError as error:
        st.error(plain(str(error)))
        st.stop()


def _licence(model: Translator) -> None:
    """Beside the choice: what a model may not be used for, if anything."""
    licence = str(model.card.get("licence", ""))
    if "non-commercial" in licence.lower():
        st.caption(plain(licence[:SHOWN]))


def _keep(*keys: str) -> None:
    """Take over what a link brought: until a visitor has touched a control, Streamlit drops it on another page."""
    for key in keys:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def _earlier() -> None:
    current = st.session_state.get("sentence")
    earlier = [one for one in st.session_state.get("history", []) if one != current]
    if not earlier:
        return
    # Keyed by the sentence, so that the list closes once another one is chosen.
    with (
        st.container(key="earlier", width="content"),
        st.popover("Earlier", type="tertiary", key=f"earlier than {current}"),
    ):
        for at, text in enumerate(earlier):
            shown = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
            st.button(plain(shown), key=f"earlier-{at}", type="tertiary", on_click=_take, args=(text,))


def _remember(text: str) -> None:
    others = [one for one in st.session_state.get("history", []) if one != text]
    st.session_state["history"] = [text, *others][:REMEMBERED]


def _take(text: str) -> None:
    st.session_state["sentence"] = text
