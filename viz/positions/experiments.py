"""Change the positions of the running model, and show what happens to its translation and attention."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.language import join_items, join_sentences, say, to_say
from attenscope.network.abstract_model import Side
from attenscope.positions.experiments import (
    ExperimentError,
    ExperimentResult,
    ExperimentSides,
    PositionExperiment,
    PositionMove,
)
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.text.words import compare_texts_by_word, split_words
from attenscope.trace import AttentionMap
from attenscope.viz.export.parts import Chart, Columns, Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts
from attenscope.viz.figures.figure_style import Palette, readable_token
from attenscope.viz.figures.positions import plot_head_in_two_maps, plot_original_translation_probability
from attenscope.viz.positions import cache
from attenscope.viz.positions.controls import draw_number_input, forget_unoffered_choice
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.positions import (
    MOVED_SIDE_LABELS,
    POSITIONS_FACTOR,
    POSITIONS_FIRST_PIECE,
    POSITIONS_MOVE,
    POSITIONS_MOVED_BY,
    POSITIONS_MOVED_SIDES,
    POSITIONS_RANDOM_DRAW,
    POSITIONS_SECOND_PIECE,
    POSITIONS_START,
)
from attenscope.viz.ui.addresses.shared import SENTENCE
from attenscope.viz.ui.captions import ChangeMark, draw_caption, escape_markdown, escape_message, mark_word_changes
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.maps import draw_heads_overview, encode_heads_overview

ORDER_LANGUAGE, ORDER_SENTENCE = "en", "The dog chased the cat."
"""A sentence whose words say nothing without their order, offered where another stays the same, and its language."""
EXPERIMENT_SIZES: dict[PositionMove, tuple[float, ...]] = {
    "shift": (0, 1, 2, 4, 8, 16, 32, 64, 128, 256),
    "stretch": (0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4),
    "beyond": (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
}
"""Sizes tried for the curve of an experiment that has one."""


def draw_experiment_view(model: RunnableModel, before: Translation, menu: DeltaGenerator) -> SavedView | None:
    """Draw the experiment that is chosen; on which side it is made is chosen in the `menu`."""
    with st.container(key="experiment-bar", horizontal=True, vertical_alignment="center"):
        experiment = _draw_experiment_controls(model, before, menu)
    try:
        result = cache.compute_position_experiment(model.name, before.source, experiment)
    except ExperimentError as error:
        st.info(escape_message(str(error)))
        return None
    marked = mark_word_changes(before.text, result.after.text)
    lead = describe_words_kept_in_order(experiment, before.text, result.after.text, model.writes)
    with st.container(key="lead"):
        draw_caption(lead)
        if result.after.text == before.text and model.card.get("source_language") == ORDER_LANGUAGE:
            label = say("Try a sentence whose order matters: {sentence} →", sentence=escape_markdown(ORDER_SENTENCE))
            if st.button(label, key="order-matters", type="tertiary", on_click=_set_word_order_example_sentence):
                st.rerun()  # The sentence box stands outside of the fragment that this is drawn in.
    st.html(build_translation_comparison_html(before.text, marked))
    lengths: dict[Side, int] = {"source": len(before.source_ids)} if model.can("translate") else {}
    lengths["target"] = len(before.trace.maps["decoder"].query_tokens)
    does = describe_experiment(experiment, lengths, _count_table_positions(model))
    says = join_sentences(does, describe_old_translation_probability(result, model.writes))
    draw_caption(says)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        kind, layer, head = controls.draw_attention_head_selector(before.trace.sizes, heads=False)
    look, rows = controls.sync_look_settings()
    old, new = before.trace.maps[kind], result.forced_trace.maps[kind]
    with st.container(key="picture"):
        left, right = st.columns([0.27, 0.73], gap="large")
        with left:
            change = _compute_attention_change(old, new)
            draw_heads_overview(change, layer, head, look, key="changes", on_pick=controls.set_layer_and_head)
            draw_caption(say("How much each head's attention changed. Click one to open it."))
        with right:

            def draw_figure(palette: Palette) -> Chart:
                maps = [(say("before"), old), (say("after"), new)]
                figure = plot_head_in_two_maps(maps, layer, head, replace(look, palette=palette), rows, difference=True)
                return Chart(figure, say("Attention before, after, and the difference"))

            shown = draw_figure(look.palette)
            draw_chart(shown.figure, shown.alt, key="compared", on_cell=lambda _, __: None)
    draw_caption(say(FORCED_TEXTS[model.writes]))
    if experiment.move in EXPERIMENT_SIZES:
        _draw_log_prob_curve(model, before, experiment, look.palette)

    written: list[tuple[str, ChangeMark]] = [(word, mark) for word, mark in marked if mark != "gone"]

    def build_parts(palette: Palette) -> list[Part]:
        tiles = encode_heads_overview(_compute_attention_change(old, new), layer, head, replace(look, palette=palette))
        return [
            Words(before.source, "sentence", "large"),
            Words(before.text, "before"),
            Words(result.after.text, "translation", "large", written),
            Words(join_sentences(lead, says)),
            Columns(([Component("overview", tiles, "heads")], [draw_figure(palette)]), (0.27, 0.73)),
        ]

    facts = collect_trace_facts(before.trace, experiment=f"{experiment.move}, {MOVED_SIDE_LABELS[experiment.sides]}")
    return SavedView(
        "positions-experiment",
        build_parts,
        lambda: tabulate_log_probs(result),
        say("Positions changed"),
        facts,
        width=1280,
    )


def _set_word_order_example_sentence() -> None:
    st.session_state[SENTENCE.key] = ORDER_SENTENCE


def tabulate_log_probs(result: ExperimentResult) -> pd.DataFrame:
    """Every piece of the old translation with its log-probability before and after."""
    steps = result.before.steps
    pieces = [readable_token(step.token) for step in steps]
    columns = {"piece": pieces, "before": [step.log_prob for step in steps], "after": result.log_probs}
    return pd.DataFrame(columns).rename_axis("step")


def _draw_experiment_controls(model: RunnableModel, before: Translation, menu: DeltaGenerator) -> PositionExperiment:
    """The experiment that the controls stand at."""
    move = controls.selectbox(say("Positions"), POSITIONS_MOVE, width=260)
    sides: ExperimentSides = "both"
    if model.can("translate"):
        with menu:
            sides = controls.selectbox(say("Positions of"), POSITIONS_MOVED_SIDES, width=190)
    experiment = PositionExperiment(move, sides=sides)
    if move == "shift":
        return replace(experiment, amount=draw_number_input(say("By"), POSITIONS_MOVED_BY))
    if move == "stretch":
        return replace(experiment, amount=draw_number_input(say("Factor"), POSITIONS_FACTOR, step=0.25))
    if move == "beyond":
        return replace(
            experiment,
            amount=draw_number_input(say("Begin at"), POSITIONS_START, default=_count_table_positions(model)),
        )
    if move == "shuffle":
        return replace(experiment, amount=draw_number_input(say("Draw"), POSITIONS_RANDOM_DRAW))
    if move == "swap":
        return replace(experiment, pair=_draw_position_swap_controls(before))
    return experiment


def _count_table_positions(model: RunnableModel) -> int:
    """The positions of the model's table."""
    added = model.model.added_positions("target")
    assert added is not None
    return len(added.rows)


def _draw_position_swap_controls(before: Translation) -> tuple[int, int]:
    """The two pieces of the sentence whose positions are exchanged, counted from 1 on the page."""
    last = min(len(before.source_ids), len(before.target_ids))
    places = range(1, last + 1)
    for of in (POSITIONS_FIRST_PIECE, POSITIONS_SECOND_PIECE):
        forget_unoffered_choice(of, places)
    third = min(3, last)
    POSITIONS_SECOND_PIECE.follow_default(third)
    names = [f"{place} {readable_token(before.source_tokens[place - 1])}" for place in places]
    name = lambda at: names[at - 1]  # noqa: E731
    one = controls.draw_untranslated_choice(
        st.selectbox, say("Position"), places, format_func=name, width=190, **POSITIONS_FIRST_PIECE.binding
    )
    other = controls.draw_untranslated_choice(
        st.selectbox,
        say("with"),
        places,
        third - 1,
        format_func=name,
        width=170,
        **POSITIONS_SECOND_PIECE.binding,
    )
    return one - 1, other - 1


def _compute_attention_change(old: AttentionMap, new: AttentionMap) -> AttentionMap:
    """Return the absolute difference of the weights as a map, so that it can be drawn as one."""
    return replace(old, weights=np.abs(new.weights - old.weights))


def _draw_log_prob_curve(
    model: RunnableModel, before: Translation, experiment: PositionExperiment, palette: Palette
) -> None:
    sizes = tuple(sorted({*EXPERIMENT_SIZES[experiment.move], experiment.amount}))
    try:
        curve = cache.compute_experiment_log_probs(model.name, before.source, replace(experiment, amount=0.0), sizes)
    except ExperimentError:
        return  # A learned table ends before the largest size; then no curve is drawn.
    title = say(BELIEF_TITLES[model.writes])
    draw_chart(
        plot_original_translation_probability(sizes, curve, experiment.amount, title, palette),
        title,
        key="belief",
        on_cell=lambda _, __: None,
    )


# The experiments and their results in words.


EXPERIMENT_TEXTS = {
    "shift": to_say(
        "Every piece is given a position further on. A model that only looked at distances would not notice."
    ),
    "reverse": to_say("The words stay, their positions run backwards."),
    "shuffle": to_say("The words stay, their positions are dealt out anew."),
    "stretch": to_say("Positions are multiplied: distances grow or shrink."),
    "swap": to_say("Two pieces change positions, the words stay where they are."),
}
_SHIFTED_BACK_TEXT = to_say(
    "Every piece is given a position further back. A model that only looked at distances would not notice."
)
_KEPT_TEXT = to_say("Every piece keeps its position.")


class BeginTexts(NamedTuple):
    """What is said of a text that begins past the table, crosses its end, or lies inside it."""

    past: str
    across: str
    inside: str


_BEGUN_TEXTS: Mapping[Side, BeginTexts] = {
    "source": BeginTexts(
        to_say("The sentence begins at position {position:g}, past the {positions:,} positions of the model's table."),
        to_say("The sentence begins at position {position:g} and runs past the {positions:,} positions of the table."),
        to_say("The sentence begins at position {position:g}: all its positions are inside the table."),
    ),
    "target": BeginTexts(
        to_say(
            "The translation begins at position {position:g}, past the {positions:,} positions of the model's table."
        ),
        to_say(
            "The translation begins at position {position:g} and runs past the {positions:,} positions of the table."
        ),
        to_say("The translation begins at position {position:g}: all its positions are inside the table."),
    ),
}
_REMOVED_TEXTS: Mapping[Side, str] = {
    "source": to_say("No position is added to the sentence: the encoder sees a bag of words."),
    "target": to_say(
        "No position is added to the translation. The decoder still sees an order: its causal mask lets each row see "
        "only what was written before it."
    ),
}
_SENTENCE_KEEPS_TEXT = to_say("The sentence keeps its positions: the order of its words still counts.")
_REMOVED_ALONE_TEXT = to_say(
    "No position is added. The decoder still sees an order: its causal mask lets each row see only what was written "
    "before it."
)
UNCHANGED_TEXTS = {
    "translation": to_say("The translation is the same."),
    "continuation": to_say("The continuation is the same."),
}
WITHOUT_POSITIONS_TEXTS = {
    "translation": to_say(
        "Without positions the model does not know the order of the words: {kept} of {words} words of its translation "
        "are left in their order."
    ),
    "continuation": to_say("Without positions {kept} of {words} words of its continuation are left in their order."),
}
STILL_THE_SAME_TEXTS = {
    "translation": to_say(
        "Without positions the model does not know the order of the words, and still writes the same translation of "
        "this sentence."
    ),
    "continuation": to_say("Without positions the model still writes the same continuation."),
}
CHANGED_POSITIONS_TEXTS = {
    "translation": to_say("With these positions {kept} of {words} words of its translation are left in their order."),
    "continuation": to_say("With these positions {kept} of {words} words of its continuation are left in their order."),
}
BELIEVED_TEXTS = {
    "translation": to_say(
        "Fed its old translation, the model gave each piece {before:.0%} before and {after:.0%} now (geometric mean)."
    ),
    "continuation": to_say(
        "Fed its old continuation, the model gave each piece {before:.0%} before and {after:.0%} now (geometric mean)."
    ),
}
FORCED_TEXTS = {
    "translation": to_say(
        "All three while the old translation is fed, so that rows stay comparable. Difference: indigo where attention "
        "was gained, orange where it was lost."
    ),
    "continuation": to_say(
        "All three while the old continuation is fed, so that rows stay comparable. Difference: indigo where attention "
        "was gained, orange where it was lost."
    ),
}
MOST_LOST_WORDS = 6
"""How many words that are gone or moved a sentence names."""
BELIEF_TITLES = {
    "translation": to_say("How much of its old translation the model still believes, by size of the experiment"),
    "continuation": to_say("How much of its old continuation the model still believes, by size of the experiment"),
}
"""By what the model calls the text that it writes."""


def describe_words_kept_in_order(experiment: PositionExperiment, before: str, after: str, written: str) -> str:
    """How many words of the text are left in their order once the positions are changed, and which are not."""
    runs = compare_texts_by_word(before, after)
    same = _list_words(" ".join(run.text for run in runs if run.change == "same"))
    lost = _list_words(" ".join(run.text for run in runs if run.change == "removed"))
    facts = {"kept": len(same), "words": len(_list_words(before))}
    alone = experiment.move == "remove" and experiment.sides == "both"
    if before == after:
        return say(STILL_THE_SAME_TEXTS[written]) if alone else say(UNCHANGED_TEXTS[written])
    kept = say((WITHOUT_POSITIONS_TEXTS if alone else CHANGED_POSITIONS_TEXTS)[written], **facts)
    return join_sentences(kept, _describe_lost_words(lost))


def _describe_lost_words(lost: Sequence[str]) -> str:
    """Name the words that are gone or moved, the first of them where they are many; nothing where none is."""
    named = join_items(lost[:MOST_LOST_WORDS])
    if len(lost) > MOST_LOST_WORDS:
        return say("Gone or moved: {words}, and {count} more.", words=named, count=len(lost) - MOST_LOST_WORDS)
    return say("Gone or moved: {words}.", words=named) if lost else ""


def _list_words(text: str) -> list[str]:
    """The words of a text; punctuation is none."""
    return [word.strip() for word in split_words(text) if any(map(str.isalnum, word))]


def describe_experiment(chosen: PositionExperiment, lengths: Mapping[Side, int], table_length: int) -> str:
    """What an experiment does to a text of `lengths` pieces, in a model with a table of `table_length` positions.

    A decoder alone has no source; its target, a prompt and what follows, is the sentence.
    """
    alone = "source" not in lengths
    sides: list[Side] = [side for side in lengths if alone or chosen.sides in (side, "both")]
    if chosen.move == "remove" and alone:
        return say(_REMOVED_ALONE_TEXT)
    if chosen.move == "remove":
        said = [say(_REMOVED_TEXTS[side]) for side in sides]
        return join_sentences(*said, say(_SENTENCE_KEEPS_TEXT) if chosen.sides == "target" else "")
    if chosen.move == "beyond":
        begun = [(_BEGUN_TEXTS["source" if alone else side], lengths[side]) for side in sides]
        return join_sentences(*(_describe_begin(texts, chosen.amount, length, table_length) for texts, length in begun))
    if _keeps_every_position(chosen):
        return say(_KEPT_TEXT)
    if chosen.move == "shift" and chosen.amount < 0:
        return say(_SHIFTED_BACK_TEXT)
    return say(EXPERIMENT_TEXTS[chosen.move])


def _keeps_every_position(chosen: PositionExperiment) -> bool:
    """Whether the amount or the pair that is chosen moves nothing."""
    one, other = chosen.pair
    return {"shift": chosen.amount == 0, "stretch": chosen.amount == 1, "swap": one == other}.get(chosen.move, False)


def _describe_begin(texts: BeginTexts, begin: float, length: int, table_length: int) -> str:
    """Where a text of `length` pieces lies that begins at another position."""
    at = {"position": begin, "positions": table_length}
    if begin >= table_length:
        return say(texts.past, **at)
    return say(texts.across if begin + length > table_length else texts.inside, **at)


def describe_old_translation_probability(result: ExperimentResult, written: str) -> str:
    """Return how probable the model still finds its old text; `written` is what it calls that text."""
    before = float(np.exp(np.mean([step.log_prob for step in result.before.steps])))
    after = float(np.exp(result.log_probs.mean()))
    return say(BELIEVED_TEXTS[written], before=before, after=after)


def build_translation_comparison_html(before: str, words: Sequence[tuple[str, ChangeMark]]) -> str:
    """HTML of `before` in small type and the new translation in large, its new words marked; every word is escaped."""
    shown = [
        f'<span class="{mark}">{html.escape(word)}</span>' if mark == "new" else html.escape(word)
        for word, mark in words
        if mark != "gone"
    ]
    after = "".join(shown) or html.escape(say("(nothing)"))
    return (
        f'<div class="versions"><small>{html.escape(say("before"))}</small>'
        f'<p class="before" dir="auto">{html.escape(before)}</p>'
        f'<small>{html.escape(say("after"))}</small><p class="after" dir="auto">{after}</p></div>'
    )
