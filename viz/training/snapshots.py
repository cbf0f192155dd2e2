"""One sentence at every snapshot of the training: watch the heads form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.checkpoint.bleu_scores import ScoresError
from model.checkpoint.history import HistoryError
from model.checkpoint.load import CheckpointError
from model.language.say import say

from ..components.snapshots import Scrubbed, StopShown, packed, snapshots
from ..export.parts import Component, Words
from ..export.save import SavedView, facts_of, save
from ..figures.labels import readable
from ..ui import cache
from ..ui import controls as shared
from ..ui.captions import badge, caption, hints, model_button, plain
from . import controls, texts

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.experiments.training_timeline import Moment
    from model.translate import Translator


def show(model: Translator, text: str, bar: DeltaGenerator) -> None:
    with bar:
        kind = shared.kind()
    result, check = shared.translation(model, text)
    badge(model, result, check)
    hints(model, result, result)
    try:
        moments = cache.moments(model.name, text)
        shown = stop_descriptions(model, moments)
    except (CheckpointError, HistoryError, ScoresError) as error:
        st.error(plain(str(error)))
        return
    if len(moments) == 1:
        caption(texts.end_alone(model.name))
        _offer_model_with_snapshots(model.name)
        return
    maps = [moment.trace.maps[kind] for moment in moments]
    steps = [moment.step for moment in moments]
    with bar:
        place = shared.place(maps[0])
        look, rows = shared.look()
        menu = st.container(width="content")
    run = f"{model.name} {model.checkpoint.hash} {kind} {text}"
    scrubbed = Scrubbed(shown, maps, controls.chosen_stop(steps), place, look, rows, run)
    with st.container(key="picture"):
        stopped = lambda stop: controls.keep_stop(steps[stop])  # noqa: E731
        snapshots(scrubbed, key="snapshots", on_stop=stopped, on_pick=shared.choose)
    said = texts.axes(model.name, result.text, len(moments) - 2)
    caption(said)
    if shared.is_lent(model.name):
        caption(
            say(
                "Training begins with {model}, which kept snapshots; every other page goes on with your model.",
                model=model.name,
            )
        )
    if len(moments) == 2:
        _offer_model_with_snapshots(model.name)
    with menu:
        save(
            SavedView(
                "training-snapshots",
                lambda palette: [
                    Words(text, "sentence", "large"),
                    Component("snapshots", packed(replace(scrubbed, look=replace(look, palette=palette)))),
                    Words(said),
                ],
                lambda: numbers(scrubbed),
                title=say("Training of {model}", model=model.name),
                facts=facts_of(result.trace),
                width=1280,
            )
        )


def numbers(scrubbed: Scrubbed) -> pd.DataFrame:
    """Every weight of the head that is shown large, at every stop."""
    layer, head = scrubbed.place
    cells = [
        {
            "stop": stop.name,
            "query": readable(query),
            "key": readable(key),
            "weight": float(one.weights[layer, head, i, j]),
        }
        for stop, one in zip(scrubbed.shown, scrubbed.maps, strict=True)
        for i, query in enumerate(one.query_tokens)
        for j, key in enumerate(one.key_tokens)
    ]
    return pd.DataFrame(cells).set_index("stop")


def _offer_model_with_snapshots(name: str) -> None:
    """Draw a button that goes on with a model that kept snapshots, where one reads the same language."""
    best = _with_most_snapshots(name)
    if best != name:
        text = say("Use {model}, which kept {count}", model=best, count=len(cache.snapshot_steps(best)))
        model_button(text, best, key="use-model-with-snapshots")


def first_model() -> str:
    """The model that the page begins with: of the language of the app's first, the one with the most snapshots."""
    return next((_with_most_snapshots(name) for name in cache.models()), "")


def _with_most_snapshots(name: str) -> str:
    """The model of the same language that kept the most snapshots; the model itself where none kept more."""
    language = cache.source_languages()
    kept = {
        one: len(cache.snapshot_steps(one)) for one in cache.checkpoints() if language.get(one) == language.get(name)
    }
    return max([name, *kept], key=lambda one: kept.get(one, 0))


def stop_descriptions(model: Translator, moments: tuple[Moment, ...]) -> list[StopShown]:
    """Every stop in words."""
    history, scores = cache.history(model.name), cache.scores(model.name)
    last = max((step for step in (*(row.step for row in history), *(one.step for one in moments)) if step), default=0)
    return [
        StopShown(
            texts.tick(one.step),
            texts.stop_name(one.step, last),
            one.translation.text,
            one.token_probability,
            texts.quality(one.step, history, scores),
        )
        for one in moments
    ]
