"""Views of a training over its steps: loss and BLEU curves, snapshots, and a watched training."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.telling_word import pick_telling_word
from attenscope.checkpoint.load import CheckpointError
from attenscope.checkpoint.measurements import HistoryError, HistoryRow, ScoresError
from attenscope.experiments.lens import SnapshotRun
from attenscope.language import format_number, join_sentences, say, say_many
from attenscope.network.config import TransformerConfig
from attenscope.runnable_model import InputError
from attenscope.trace import Sizes
from attenscope.translate import Translator
from attenscope.untrusted_trace import OpenedRun
from attenscope.viz.export.parts import Chart, Component, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts, register_savable_view
from attenscope.viz.figures.curves import plot_training_curves
from attenscope.viz.figures.figure_style import Palette, readable_token
from attenscope.viz.traces.session import close_training_run
from attenscope.viz.training import cache as training_cache
from attenscope.viz.training import texts
from attenscope.viz.ui import cache, controls, style
from attenscope.viz.ui.address import is_in_address
from attenscope.viz.ui.addresses.shared import HEAD, KIND, LAYER
from attenscope.viz.ui.addresses.training import TRAINING_STOP, TRAINING_VIEW
from attenscope.viz.ui.captions import (
    draw_caption,
    draw_model_button,
    draw_model_run_badge,
    draw_translation_warnings,
    escape_markdown,
    escape_message,
)
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.page_components import is_on_stage, is_presenting
from attenscope.viz.web.players import SnapshotSequence, SnapshotText, draw_snapshot_player, encode_snapshot_player

# Curves: loss, BLEU and learning rate over the steps of the training.


def draw_curves_view(model: Translator, bar: DeltaGenerator) -> None:
    with bar:
        log_steps = texts.draw_log_steps_toggle()
    try:
        history, marked = (
            training_cache.load_training_history(model.name),
            training_cache.list_snapshot_steps(model.name),
        )
    except (HistoryError, CheckpointError) as error:
        st.error(escape_message(str(error)))
        return
    if not history:
        st.info(escape_markdown(say("{model} has no history.csv, so there is nothing to draw.", model=model.name)))
        return
    title = say("Training of {model}", model=model.name)
    said = describe_history(history, bool(marked))
    look = {"log_steps": log_steps, "beside": is_on_stage()}

    def draw_figure(palette: Palette) -> Chart:
        figure = plot_training_curves({model.name: history}, palette, title, marked=marked, **look)
        return Chart(figure, say("{title}: loss, BLEU and learning rate", title=title))

    with st.container(key="picture"):
        shown = draw_figure(style.get_palette())
        draw_chart(shown.figure, shown.alt, key="curves", on_cell=lambda _, __: None)
    draw_caption(said)
    facts = {"model": model.name, "hash": model.checkpoint.hash}
    register_savable_view(
        SavedView(
            "training-curves",
            lambda palette: (draw_figure(palette), Words(said)),
            lambda: tabulate_history(history),
            title,
            facts,
        )
    )


def describe_history(history: tuple[HistoryRow, ...], marked: bool) -> str:
    """What was measured, and how the training went."""
    last = history[-1]
    best = max((row for row in history if row.bleu is not None), key=lambda row: row.bleu or 0, default=None)
    return join_sentences(
        say_many(
            "{steps:,} steps, {count} pass over the data, {hours:.1f} hours.",
            "{steps:,} steps, {count} passes over the data, {hours:.1f} hours.",
            last.epoch + 1,
            steps=last.step,
            hours=last.seconds / 3600,
        ),
        say("Loss: smoothed cross-entropy of a target token on the training text, mean since the point before."),
        say(
            "BLEU: greedy, on a part of the dev text; best {bleu:.1f} at step {step:,}.", bleu=best.bleu, step=best.step
        )
        if best
        else "",
        say("Dotted: steps with a snapshot.") if marked else "",
    )


def tabulate_history(history: tuple[HistoryRow, ...]) -> pd.DataFrame:
    return pd.DataFrame(history).set_index("step")


# Snapshots: one sentence at every snapshot of the training.


def count_attention_layers_and_heads(config: TransformerConfig) -> Sizes:
    """How many layers and heads each attention has, known before a sentence is read: then nothing moves for it."""
    encoder, decoder = (config.encoder_layers, config.heads), (config.decoder_layers, config.heads)
    return {"encoder": encoder, "decoder": decoder, "cross": decoder}


def _select_telling_head(model: Translator, text: str) -> None:
    """Choose the head that shows the telling word of the sentence best, where no head of this model was chosen.

    An address that names this view and no head means the first.
    """
    chosen = any(one.key in st.session_state or is_in_address(one) for one in (LAYER, HEAD))
    named = is_in_address(TRAINING_VIEW) or is_in_address(TRAINING_STOP)
    if KIND.get() != "cross" or chosen or named or is_presenting():
        return
    try:
        cross = cache.compute_translation(model.name, text).trace.cross
    except InputError:
        return
    if cross is not None and (telling := pick_telling_word(cross)):
        LAYER.put(telling.layer + 1)
        HEAD.put(telling.head + 1)
        # Of no sentence, so that Explore opens as if nothing had been chosen, with the word pinned.
        controls.remember_auto_selected_head(model.name, "", (telling.layer, telling.head))


def draw_snapshots_view(model: Translator, text: str, bar: DeltaGenerator) -> None:
    _select_telling_head(model, text)
    with bar:
        kind, layer, head = controls.draw_attention_head_selector(
            count_attention_layers_and_heads(model.config), heads=False, shows_default=True
        )
    result = controls.require_translation(model, text)
    draw_model_run_badge(model, result, cache.compute_observer_check(model.name, text))
    draw_translation_warnings(model, result, result)
    try:
        moments = training_cache.compute_snapshot_runs(model.name, text)
        shown = describe_snapshots(model, moments)
    except (CheckpointError, HistoryError, ScoresError) as error:
        st.error(escape_message(str(error)))
        return
    if len(moments) == 1:
        draw_caption(texts.no_snapshots_text(model.name))
        _draw_snapshots_model_button(model.name)
        return
    maps = [moment.trace.maps[kind] for moment in moments]
    steps = [moment.step for moment in moments]
    look, rows = controls.sync_look_settings()
    run = f"{model.name} {model.checkpoint.hash} {kind} {text}"
    stop = texts.get_chosen_snapshot_index(steps)
    plays = not TRAINING_STOP.get() and not is_presenting()
    scrubbed = SnapshotSequence(shown, maps, stop, (layer, head), look, rows, run, plays)
    with st.container(key="picture"):
        stopped = lambda stop: texts.write_snapshot_to_address(steps[stop])  # noqa: E731
        draw_snapshot_player(scrubbed, key="snapshots", on_stop=stopped, on_pick=controls.set_layer_and_head)
    said = texts.explain_snapshot_teacher_forcing(model.name, result.text, len(moments) - 2)
    draw_caption(said)
    if len(moments) == 2:
        _draw_snapshots_model_button(model.name)
    register_savable_view(
        SavedView(
            "training-snapshots",
            lambda palette: [
                Words(text, "sentence", "large"),
                Component(
                    "snapshots",
                    encode_snapshot_player(replace(scrubbed, plays=False, look=replace(look, palette=palette))),
                ),
                Words(said),
            ],
            lambda: tabulate_snapshot_attention_weights(scrubbed),
            title=say("Training of {model}", model=model.name),
            facts=collect_trace_facts(result.trace),
            width=1280,
        )
    )


def tabulate_snapshot_attention_weights(scrubbed: SnapshotSequence) -> pd.DataFrame:
    """Every weight of the head that is shown large, at every stop."""
    layer, head = scrubbed.place
    cells = [
        {
            "stop": stop.name,
            "query": readable_token(query),
            "key": readable_token(key),
            "weight": float(one.weights[layer, head, i, j]),
        }
        for stop, one in zip(scrubbed.shown, scrubbed.maps, strict=True)
        for i, query in enumerate(one.query_tokens)
        for j, key in enumerate(one.key_tokens)
    ]
    return pd.DataFrame(cells).set_index("stop")


def _draw_snapshots_model_button(name: str) -> None:
    """Draw a button that changes to the model of the same language with the most snapshots, where one has some."""
    language = cache.load_source_languages()
    kept = {
        one: len(training_cache.list_snapshot_steps(one))
        for one in cache.list_checkpoint_names()
        if language.get(one) == language.get(name)
    }
    best = max(kept, key=kept.__getitem__, default=name)
    if kept.get(best):
        text = say("Use {model}, which kept {count}", model=best, count=kept[best])
        draw_model_button(text, best, key="use-model-with-snapshots")


def describe_snapshots(model: Translator, moments: tuple[SnapshotRun, ...]) -> list[SnapshotText]:
    """Every stop in words."""
    history, scores = training_cache.load_training_history(model.name), training_cache.load_bleu_scores(model.name)
    last = max((step for step in (*(row.step for row in history), *(one.step for one in moments)) if step), default=0)
    return [
        SnapshotText(
            texts.format_stop_tick(one.step),
            texts.describe_snapshot(one.step, last),
            one.translation.text + (" …" if one.translation.stop_reason == "length" else ""),
            one.mean_token_probability,
            texts.describe_snapshot_bleu(one.step, history, scores),
        )
        for one in moments
    ]


# A watched training: the attention of a fixed input at the steps that ``attenscope.watch`` has saved.


def draw_opened_run_snapshots(run: OpenedRun) -> None:
    """Draw the bar with the name of the run, its pictures, and what they are."""
    last = run.traces[-1].drawable
    with st.container(key="openedbar", horizontal=True, vertical_alignment="center"):
        st.markdown(
            say(
                "**{name}** · a training of {model}", name=escape_markdown(run.name), model=escape_markdown(last.model)
            ),
            width="content",
        )
        st.button(say("Back to the models"), type="tertiary", key="close-run", on_click=close_training_run)
    st.fragment(_draw_opened_run_snapshots)(run)


def _draw_opened_run_snapshots(run: OpenedRun) -> None:
    """The snapshots and their controls. A fragment: nothing else on the page depends on them."""
    last = run.traces[-1].drawable
    with st.container(key="of-view", horizontal=True, vertical_alignment="center"):
        kind, layer, head = controls.draw_attention_head_selector(last.sizes, heads=False)
    look, rows = controls.sync_look_settings()
    maps = [opened.drawable.maps[kind] for opened in run.traces]
    steps = list(run.steps)
    names = [say("step {step:,} of {last:,}", step=step, last=steps[-1]) for step in steps]
    shown = [
        SnapshotText(format_number(step, ","), name, None, None, "") for step, name in zip(steps, names, strict=True)
    ]
    identity = f"{run.traces[-1].identity} {kind}"
    scrubbed = SnapshotSequence(
        shown, maps, texts.get_chosen_snapshot_index(steps), (layer, head), look, rows, identity
    )
    with st.container(key="picture"):
        stopped = lambda stop: texts.write_snapshot_to_address(steps[stop])  # noqa: E731
        draw_snapshot_player(scrubbed, key="watched", on_stop=stopped, on_pick=controls.set_layer_and_head)
    said = texts.describe_opened_run_snapshots(len(steps), steps[0], steps[-1])
    draw_caption(said)
    register_savable_view(
        SavedView(
            "training-watched",
            lambda palette: [
                Component("snapshots", encode_snapshot_player(replace(scrubbed, look=replace(look, palette=palette)))),
                Words(said),
            ],
            title=say("Training of {model}", model=last.model),
            facts=collect_trace_facts(last, steps=", ".join(map(str, steps))),
            width=1280,
        )
    )
