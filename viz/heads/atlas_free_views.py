"""The views of Heads that need no atlas: word alignment, heads over training, and pruning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import ALIGNMENT_READINGS, head_name
from attenscope.atlas.heads_over_training import Timeline
from attenscope.atlas.pruning import Pruning, PruningCurve
from attenscope.language import format_number, join_sentences, say, say_many, to_say
from attenscope.runnable_model import InputError
from attenscope.trace import Head
from attenscope.translate import Translator
from attenscope.viz.export.parts import Chart, Component, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.curves import Curves
from attenscope.viz.figures.figure_style import Palette, format_signed
from attenscope.viz.figures.heads import (
    RateTable,
    find_table_start_row,
    plot_alignment_error_rates,
    plot_head_pruning_curves,
    plot_heads_over_training,
)
from attenscope.viz.heads import cache, texts
from attenscope.viz.heads.measure_scatter import open_one_head_view
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.addresses.heads import (
    HEADS_MEASURE_NAMES,
    HEADS_PRUNED_COUNT,
    HEADS_PRUNING_MEASURE,
    HEADS_TRACKED_MEASURE,
    PruningMeasure,
)
from attenscope.viz.ui.cache import load_alignment_rates
from attenscope.viz.ui.captions import (
    draw_caption,
    draw_model_button,
    escape_markdown,
    escape_message,
    mark_word_changes,
)
from attenscope.viz.web.charts import draw_chart, draw_curves, encode_curves
from attenscope.viz.web.text_components import (
    TranslationVersion,
    build_translation_versions_data,
    draw_translation_versions,
)
from attenscope.word_alignment.measure import AlignmentRates

# Word alignment: the error rates of every cross-attention head and of their means, against links drawn by hand.


READING_NAMES = {"predicted": to_say("Read at the token predicted"), "fed": to_say("Read at the token fed in")}


def draw_alignment_view(model: Translator, bar: DeltaGenerator) -> SavedView:
    found = load_alignment_rates(model.name, model.checkpoint.hash)
    tables = build_rate_tables(found)
    said = texts.describe_alignment(found)
    title = say("Alignment error rate, %: {model}", model=model.name)

    def draw_figure(palette: Palette) -> Chart:
        return Chart(plot_alignment_error_rates(tables, title, palette), say("{title}. {text}", title=title, text=said))

    draw_caption(texts.describe_gold_alignments(found))
    with st.container(key="finding"):
        st.markdown(escape_markdown(said))
    rows, columns = tables[0].rates.shape
    heads: dict[tuple[int, int], Head] = {
        (find_table_start_row(at, rows) + layer, head): ("cross", layer, head)
        for at in range(len(tables))
        for layer in range(rows - 1)
        for head in range(columns - 1)
    }
    nodes = [(*cell, head_name(head)) for cell, head in heads.items()]
    with st.container(key="picture"):
        shown = draw_figure(style.get_palette())
        on_cell = lambda row, column: open_one_head_view(heads[row, column]) if (row, column) in heads else None  # noqa: E731
        draw_chart(shown.figure, shown.alt, key="alignment", on_cell=on_cell, nodes=nodes)
    draw_caption(say(texts.ERROR_RATE_EXPLANATION))
    return SavedView(
        f"heads-alignment-{model.name}",
        lambda palette: (draw_figure(palette), Words(join_sentences(said, texts.describe_gold_alignments(found)))),
        lambda: tabulate_alignment_rates(found),
        title,
        {"model": model.name, "hash": model.checkpoint.hash, "gold": texts.describe_gold_alignments(found)},
    )


def build_rate_tables(found: AlignmentRates) -> list[RateTable]:
    """The rates laid out for the figure, a table a reading."""
    layers = 1 + max(one.layer for one in found.rates)
    heads = 1 + max(one.head for one in found.rates)
    tables = []
    for reading in ALIGNMENT_READINGS:
        rates = np.full((layers + 1, heads + 1), np.nan)
        for one in found.rates:
            if one.reading == reading:  # -1, of a mean, is the last row or column
                rates[one.layer, one.head] = one.aer
        tables.append(RateTable(say(READING_NAMES[reading]), rates))
    return tables


def tabulate_alignment_rates(found: AlignmentRates) -> pd.DataFrame:
    """Every rate, layers and heads from 1; a mean has no head."""
    from_one = [
        vars(one) | {name: _format_index_from_one(getattr(one, name)) for name in ("layer", "head")}
        for one in found.rates
    ]
    return pd.DataFrame(from_one).set_index(["part", "layer", "head", "reading"])


def _format_index_from_one(number: int) -> str:
    return "" if number < 0 else str(number + 1)


# Heads over training: a measure of every head at each snapshot.


def draw_heads_over_training_view(model: Translator, bar: DeltaGenerator) -> SavedView | None:
    if not cache.has_head_measure_timeline(model) and (others := cache.list_models_with_head_measure_timeline()):
        draw_caption(say("{model} kept nothing over its training; {other} did.", model=model.name, other=others[0]))
        draw_model_button(say("Use {model}", model=others[0]), others[0], key="use-model-with-timeline")
        return None
    found = cache.load_head_measure_timeline(model.name, model.checkpoint.hash)
    with bar:
        measure = controls.selectbox(
            say("Measure"), HEADS_TRACKED_MEASURE, found.measures, label_visibility="collapsed", width=280
        )
    name = say(HEADS_MEASURE_NAMES[measure])
    courses = found.courses(measure)
    heads = [head for head, values in courses.items() if pd.notna(list(values)).any()]
    title = say("{model} over training: {measure}", model=model.name, measure=name)

    def draw_figure(palette: Palette) -> Curves:
        lines = {head_name(head): (head[0], courses[head]) for head in heads}
        return plot_heads_over_training(
            lines, [texts.format_snapshot_tick(step) for step in found.steps], name, title, palette
        )

    said = texts.describe_measure_over_training(found, measure)
    with st.container(key="finding"):
        st.markdown(escape_markdown(said))
    with st.container(key="picture"):
        draw_curves(
            draw_figure(style.get_palette()),
            key="over-training",
            on_point=lambda mark, _: open_one_head_view(heads[mark // 2]),
        )
    draw_caption(texts.explain_timeline_measure(found, measure))
    return SavedView(
        f"heads-over-training-{model.name}",
        lambda palette: (
            Component("curves", encode_curves(draw_figure(palette))),
            Words(join_sentences(said, texts.explain_timeline_measure(found, measure))),
        ),
        lambda: tabulate_timeline(found),
        title,
        {"model": model.name, "hash": model.checkpoint.hash},
        width=1100,
    )


def tabulate_timeline(found: Timeline) -> pd.DataFrame:
    """All measures, a row a stop and head; layers and heads from 1, no step for the released weights."""
    steps = ["released" if found.steps[stop] is None else found.steps[stop] for stop in found.heads["stop"]]
    table = found.heads.assign(layer=found.heads["layer"] + 1, head=found.heads["head"] + 1, step=steps)
    return table.drop(columns="stop").set_index(["step", "map", "layer", "head"])


# Pruning: how good translations are as heads are taken away, and one sentence at each point.


def draw_pruning_view(model: Translator, text: str, bar: DeltaGenerator) -> SavedView:
    found = cache.load_pruning_measurement(model.name, model.checkpoint.hash)
    away = [found.left[0] - one for one in found.left]
    with bar:
        by = controls.segmented_control(say("Measure"), HEADS_PRUNING_MEASURE)
    at = away.index(HEADS_PRUNED_COUNT.hold(away))
    title = say("{measure} of {model} with fewer heads", measure=say(by), model=model.name)

    def draw_figure(palette: Palette) -> Curves:
        own, *random = (select_pruning_measure_values(one, by) for one in (found.by_cost, *found.random))
        return plot_head_pruning_curves(away, own, np.array(random), at, say(by), title, palette)

    draw_caption(texts.describe_pruning_data(found))
    with st.container(key="finding"):
        st.markdown(escape_markdown(texts.describe_pruning(found)))
    with st.container(key="picture"):
        draw_curves(
            draw_figure(style.get_palette()),
            key="pruning",
            on_point=lambda _, point: HEADS_PRUNED_COUNT.set(away[point]),
        )
    controls.draw_untranslated_choice(
        st.select_slider, say("Heads taken away"), away, **HEADS_PRUNED_COUNT.synced_widget_arguments
    )
    written = _load_pruned_translations(found, model, text)
    rows = build_pruned_translation_rows(found, written) if written else []
    headings = say("BLEU"), say("log p a token")
    if rows:
        choose = lambda number: HEADS_PRUNED_COUNT.set(away[number])  # noqa: E731
        draw_translation_versions(rows, headings, at, key="pruned", on_choice=choose)
    draw_caption(say(texts.PRUNING_EXPLANATION))
    said = join_sentences(texts.describe_pruning(found), texts.describe_pruning_data(found))
    return SavedView(
        f"heads-pruning-{model.name}",
        lambda palette: (
            Component("curves", encode_curves(draw_figure(palette))),
            *(
                [Component("versions", build_translation_versions_data(rows, headings, at), "translation")]
                if rows
                else []
            ),
            Words(said),
        ),
        lambda: tabulate_pruning(found),
        title,
        {"model": model.name, "hash": model.checkpoint.hash, "sentence": text},
        width=1100,
    )


def select_pruning_measure_values(course: PruningCurve, by: PruningMeasure) -> tuple[float, ...]:
    """The measure that is shown."""
    return course.bleu if by == "BLEU" else course.log_prob


def build_pruned_translation_rows(found: Pruning, written: Sequence[str]) -> list[TranslationVersion]:
    """The translation at each point, beside that of the whole model."""
    return [
        TranslationVersion(
            say_many("{count} head", "{count} heads", heads),
            mark_word_changes(written[0], one),
            (format_number(bleu, ".1f"), format_signed(log_prob)),
        )
        for heads, one, bleu, log_prob in zip(
            found.left, written, found.by_cost.bleu, found.by_cost.log_prob, strict=True
        )
    ]


def tabulate_pruning(found: Pruning) -> pd.DataFrame:
    """A row a number of heads left, the columns by cost and of each random order."""
    columns: dict[str, Sequence[float]] = {}
    for name, course in (("cost", found.by_cost), *((f"random {n}", one) for n, one in enumerate(found.random, 1))):
        columns |= {f"bleu {name}": course.bleu, f"log_prob {name}": course.log_prob}
    return pd.DataFrame(columns, index=pd.Index(found.left, name="heads_left"))


def _load_pruned_translations(found: Pruning, model: Translator, text: str) -> tuple[str, ...]:
    """The translation of the sentence at each point; none where it cannot be read, with the reason said."""
    try:
        return cache.compute_pruned_translations(model.name, model.checkpoint.hash, text, found)
    except InputError as error:
        st.info(escape_message(str(error)))
        return ()
