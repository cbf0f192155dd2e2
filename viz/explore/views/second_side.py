"""What the chosen head is compared with: the controls of the second side, all of them in the address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import say, to_say
from model.text.language import guess
from model.user_model import LocalError, LocalModel
from viz.figures.labels import label_text
from viz.ui import cache, widgets
from viz.ui.addresses.explore import (
    WITH,
    WITH_HEAD,
    WITH_KIND,
    WITH_LAYER,
    WITH_MODEL,
    WITH_SENTENCE,
    Second,
)
from viz.ui.addresses.shared import KIND
from viz.ui.captions import caption

from ..run_key import RunKey

if TYPE_CHECKING:
    from model.trace import AttentionMap, Kind

    from ..scene import Scene
    from ..trace_source import TraceSource

NAMES: dict[Second, str] = {
    "head": to_say("another head"),
    "sentence": to_say("another sentence"),
    "model": to_say("another model"),
    "original": to_say("the model's own"),
}
TITLE = 38
"""Letters that a map's title has room for."""


@dataclass(frozen=True, eq=False)
class SecondSide:
    """The second side of a comparison, and the titles of both sides."""

    source: TraceSource
    kind: Kind
    layer: int
    """From 0, as is the head."""
    head: int
    first_name: str
    name: str
    in_words: bool = False
    """The two sides cut the same text into different pieces, so only words can be compared."""

    @property
    def attention(self) -> AttentionMap:
        """The map as it was captured."""
        return self.source.trace.maps[self.kind]


def second_side(scene: Scene, *, of_head: bool) -> SecondSide | None:
    """Draw the controls and return the second side; None, with a sentence that says so, where something is missing.

    `of_head`: the view is of one head, so that another head can be the second side.
    Raises InputError and CheckpointError.
    """
    options = _options(scene.source.run, of_head=of_head)
    if not options:
        caption(
            say("This view is of all heads, so only another run can be beside it, and there is no model to make one.")
        )
        return None
    with st.container(key="sidechoices", horizontal=True, vertical_alignment="center"):
        WITH.hold(options)
        name = lambda option: say(NAMES[option])  # noqa: E731
        choice = widgets.offer(st.selectbox, say("Compare with"), options, format_func=name, width=285, **WITH.storage)
        if choice == "head" or scene.source.run is None:
            return _head(scene)
        return OF_RUNS[choice](scene, scene.source.run)


def _options(run: RunKey | None, *, of_head: bool) -> tuple[Second, ...]:
    """Return what a view can be compared with; without a model, only the trace's own heads."""
    heads: tuple[Second, ...] = ("head",) if of_head else ()
    if run is None:
        return heads
    models: tuple[Second, ...] = ("model",) if cache.live(run.model).can("translate") else ()
    return (*heads, "sentence", *models, *(("original",) if run.given or run.changes else ()))


def _head(scene: Scene) -> SecondSide:
    maps = scene.trace.maps
    kinds = tuple(maps)
    kind = widgets.following_selectbox(
        say("Its kind"),
        WITH_KIND,
        kinds,
        scene.kind,
        format_func=KIND.label,
        width=120,
        label_visibility="collapsed",
    )
    layer, head = _place(maps[kind], scene.layer, (scene.head + 1) % maps[kind].heads)
    titles = _title(scene.kind, scene.layer, scene.head), _title(kind, layer, head)
    return SecondSide(scene.source, kind, layer, head, *titles)


def _sentence(scene: Scene, run: RunKey) -> SecondSide | None:
    hint = say("Type a second sentence")
    text = widgets.text_input(say("Second sentence"), WITH_SENTENCE, placeholder=hint, label_visibility="collapsed")
    if not text.strip():
        caption(say("Type a sentence that has some words in common with the first."))
        return None
    second = scene.source.of_run(RunKey(run.model, text, "", run.changes))
    titles = label_text(run.sentence, TITLE), label_text(text, TITLE)
    return SecondSide(second, scene.kind, scene.layer, scene.head, *titles)


def _model(scene: Scene, run: RunKey) -> SecondSide | None:
    others = _other_models(run)
    if not others:
        caption(say("There is only one model. Train another with `python -m model train`, and it can be chosen here."))
        return None
    WITH_MODEL.hold(others)
    name = widgets.offer(
        st.selectbox, say("Second model"), others, width=215, label_visibility="collapsed", **WITH_MODEL.storage
    )
    if refused := _refusal(name):
        caption(refused)
        return None
    key = RunKey(name, run.sentence, run.given)
    first, second = cache.reading(*run), cache.reading(*key)
    layer, head = _place(second.trace.maps[scene.kind], scene.layer, scene.head)
    titles = f"{run.model}: L{scene.layer + 1} h{scene.head + 1}", f"{name}: L{layer + 1} h{head + 1}"
    in_words = first.source_tokens != second.source_tokens
    return SecondSide(scene.source.of_run(key), scene.kind, layer, head, *titles, in_words)


def _refusal(name: str) -> str:
    """Why a model that was chosen cannot stand beside; a folder says so once it has been loaded. "" where it can."""
    found = cache.brought(name)
    if isinstance(found, LocalError):
        return str(found)
    if isinstance(found, LocalModel):
        return say("{model} only reads what it is given: it writes no translation to compare.", model=name)
    return found.cannot("translate") if found else ""


def _other_models(run: RunKey) -> list[str]:
    """Return the models that a run can be compared with, those that read the language of its sentence first."""
    languages = cache.source_languages()
    language = guess(run.sentence) or languages.get(run.model)
    others = [name for name in cache.models() if name != run.model]
    return sorted(others, key=lambda name: languages.get(name) != language)


def _original(scene: Scene, run: RunKey) -> SecondSide:
    own = scene.source.of_run(RunKey(run.model, run.sentence))
    first = say("Given translation") if run.given else say("Changed model")
    return SecondSide(own, scene.kind, scene.layer, scene.head, first, say("The model's own, unchanged"))


OF_RUNS: dict[Second, Callable[[Scene, RunKey], SecondSide | None]] = {
    "sentence": _sentence,
    "model": _model,
    "original": _original,
}


def _place(attention: AttentionMap, layer: int, head: int) -> tuple[int, int]:
    """Return the layer and head of the second side, from 0; those given until others are chosen."""
    layers, heads = range(1, attention.layers + 1), range(1, attention.heads + 1)
    return (
        widgets.following_selectbox(say("Layer"), WITH_LAYER, layers, min(layer + 1, layers[-1]), width=115) - 1,
        widgets.following_selectbox(say("Head"), WITH_HEAD, heads, min(head + 1, heads[-1]), width=115) - 1,
    )


TITLES: dict[Kind, str] = {
    "encoder": to_say("Encoder, layer {layer}, head {head}"),
    "decoder": to_say("Decoder, layer {layer}, head {head}"),
    "cross": to_say("Cross, layer {layer}, head {head}"),
}


def _title(kind: Kind, layer: int, head: int) -> str:
    return say(TITLES[kind], layer=layer + 1, head=head + 1)
