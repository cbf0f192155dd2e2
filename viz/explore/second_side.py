"""What the chosen head is compared with: the controls of the second side, all of them in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import streamlit as st

from viz.figures.labels import label_text
from viz.ui import cache, controls
from viz.ui.captions import caption
from viz.ui.controls import KEPT, SHARED

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from .scene import Scene

T = TypeVar("T")
With = Literal["head", "sentence", "model", "original"]
NAMES: dict[With, str] = {
    "head": "another head",
    "sentence": "another sentence",
    "model": "another model",
    "original": "the model's own",
}
TITLE = 38
"""Letters that a map's title has room for."""


@dataclass(frozen=True, eq=False)
class Other:
    """The second side of a comparison."""

    captured: AttentionMap
    layer: int
    """From 0, as is the head."""
    head: int
    first_name: str
    name: str
    in_words: bool = False
    """The two sides cut the same text into different pieces, so only words can be compared."""


def choose(scene: Scene) -> Other | None:
    """What a visitor has chosen; None, and a sentence that says so, where something is still missing.

    Raises InputError and CheckpointError.
    """
    options = _options(scene)
    with st.container(key="viewchoices", horizontal=True, vertical_alignment="center"):
        controls.in_address("with", options, "head")
        chosen = st.selectbox("Compare with", options, format_func=NAMES.__getitem__, key="with", width=285, **KEPT)
        return CHOICES[chosen](scene)


def _options(scene: Scene) -> tuple[With, ...]:
    """What there is to compare with: of a trace without a model, only its own heads."""
    if not scene.result.steps:
        return ("head",)
    changed = scene.reading.given or scene.reading.changes
    return ("head", "sentence", "model", "original") if changed else ("head", "sentence", "model")


def _head(scene: Scene) -> Other:
    kind = _following(
        "Its kind", "with-kind", tuple(scene.result.trace.maps), scene.kind, 120, label_visibility="collapsed"
    )
    captured = scene.result.trace.maps[kind]
    layer, head = _place(captured, scene.layer, (scene.head + 1) % captured.heads)
    return Other(captured, layer, head, _named(scene.kind, scene.layer, scene.head), _named(kind, layer, head))


def _sentence(scene: Scene) -> Other | None:
    text = st.text_input(
        "Second sentence",
        placeholder="Type a second sentence",
        key="with-sentence",
        label_visibility="collapsed",
        **SHARED,
    )
    if not text or not text.strip():
        caption("Type a sentence that has some words in common with the first.")
        return None
    second = cache.reading(scene.reading.model, text, "", scene.reading.changes)
    captured = second.trace.maps[scene.kind]
    return Other(captured, scene.layer, scene.head, _short(scene.reading.sentence), _short(text))


def _model(scene: Scene) -> Other | None:
    others = [name for name in cache.checkpoints() if name != scene.reading.model]
    if not others:
        caption("There is only one model. Train another with `python -m model train`, and it can be chosen here.")
        return None
    controls.in_address("with-model", others, others[0])
    name = st.selectbox("Second model", others, key="with-model", width=215, label_visibility="collapsed", **KEPT)
    cache.translator(name)
    second = cache.reading(name, scene.reading.sentence, scene.reading.given)
    captured = second.trace.maps[scene.kind]
    layer, head = _place(captured, scene.layer, scene.head)
    titles = f"{scene.model.name}: L{scene.layer + 1} h{scene.head + 1}", f"{name}: L{layer + 1} h{head + 1}"
    return Other(captured, layer, head, *titles, in_words=second.source_tokens != scene.result.source_tokens)


def _original(scene: Scene) -> Other:
    own = cache.reading(scene.reading.model, scene.reading.sentence)
    first = "Given translation" if scene.reading.given else "Changed model"
    return Other(own.trace.maps[scene.kind], scene.layer, scene.head, first, "The model's own, unchanged")


CHOICES = {"head": _head, "sentence": _sentence, "model": _model, "original": _original}


def _place(captured: AttentionMap, layer: int, head: int) -> tuple[int, int]:
    """Layer and head of the second side, from 0; those given until others are chosen."""
    layers, heads = range(1, captured.layers + 1), range(1, captured.heads + 1)
    return (
        _following("Layer", "with-layer", layers, min(layer + 1, layers[-1]), 115) - 1,
        _following("Head", "with-head", heads, min(head + 1, heads[-1]), 115) - 1,
    )


def _following(label: str, key: str, options: Sequence[T], default: T, width: int, **more: Any) -> T:
    """One of `options`, in the address once it is chosen; until then it follows the first side, which is `default`."""
    state, kept = st.session_state, f"{key}-chosen"
    if kept not in state:
        state[kept] = next((one for one in options if str(one) == st.query_params.get(key)), None)
    chosen = state[kept] if state[kept] in options else None
    state[key] = default if chosen is None else chosen
    if chosen is not None:
        st.query_params[key] = str(chosen)
    elif key in st.query_params:
        del st.query_params[key]

    def choose() -> None:
        state[kept] = state[key]

    return st.selectbox(label, options, key=key, width=width, on_change=choose, **more)


def _named(kind: str, layer: int, head: int) -> str:
    return f"{kind.capitalize()}, layer {layer + 1}, head {head + 1}"


def _short(text: str) -> str:
    return label_text(text, TITLE)
