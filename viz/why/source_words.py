"""The views of Why about source words: attribution scores and deletion curves, also for a user's own model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from attenscope.attribution.alti_and_leave_one_out import WordsLeftOut
from attenscope.attribution.any_model import ANY_MODEL_METHODS
from attenscope.attribution.methods import DEFAULT_METHOD, Attribution
from attenscope.attribution.target import AttributionError
from attenscope.evaluation.attribution import AttributionScores, AttributionScoresError, DeletionCurves
from attenscope.hugging_face.media import MediaModel, Medium
from attenscope.language import format_number, join_sentences, say, to_say
from attenscope.runnable_model import LocalError, LocalModel
from attenscope.trace import AttentionTrace
from attenscope.viz.export.parts import Chart, Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts, register_savable_view
from attenscope.viz.figures.figure_style import Palette, format_percent, format_signed, readable_token
from attenscope.viz.figures.why import plot_attribution_method_scores, plot_deletion_curves
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.shared import PIN, add_pins, get_pin
from attenscope.viz.ui.addresses.why import WHY_ATTRIBUTION_METHOD, WHY_VIEW, WhyView
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.ui.links import switch_to_requested_page
from attenscope.viz.ui.style import TableCell, draw_table
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.web.page_components import is_on_stage
from attenscope.viz.web.text_components import SignedText, draw_signed_text, encode_signed_text
from attenscope.viz.why import cache as why_cache
from attenscope.viz.why import controls as why_controls
from attenscope.viz.why import heads, texts
from attenscope.viz.why.controls import Question

# The scores of each piece of the source and of the prefix, by one method and by all.


PIECE_HINT = to_say("point at a piece to read its number")
MATRIX_TITLE = to_say("Every method for this word")
LONG_PIECES = 200
"""Pieces of the sentence and of what is written, from which the methods take more than some seconds on two cores."""


def draw_source_words_view(question: Question, palette: Palette) -> SavedView:
    """Draw the texts shaded by how much the value falls without each word; below, folded, what all methods say."""
    switch_to_requested_page()
    left = why_cache.compute_words_left_out(question.key)
    answer, staged = texts.describe_leave_one_out_answer(left), is_on_stage()
    with st.container(key="picture"):
        with st.container(key="answer"):
            draw_caption(answer)
        draw_signed_text(build_leave_one_out_texts(left), palette, answer, key="left-out")
    method = why_controls.hold_method(question)
    pieces = len(question.target.source_tokens) + len(question.target.input_ids)
    if pieces > LONG_PIECES:  # They take a minute: a fold of its own, so that it is open for who asks of this text.
        name, key = say("How other methods answer (slow: {count} pieces)", count=pieces), f"methods-fold-{pieces}"
    else:
        name, key = say("How other methods answer"), "methods-fold"
    fold = st.expander(name, expanded=method != DEFAULT_METHOD and pieces <= LONG_PIECES, key=key, on_change="rerun")
    if fold.open:
        with fold:
            _draw_attribution_methods(question, palette)

    def build_parts(of: Palette) -> list[Part]:
        # A scene has the sentence once: as the shaded words.
        above = [one for one in question.saved_texts if not (staged and isinstance(one, Words))]
        words = Component("signed_text", encode_signed_text(build_leave_one_out_texts(left), of, answer))
        shown = [*above, Words(answer, "", "large"), words]
        return shown if staged else [*shown, *_build_attribution_saved_parts(question, method, of)]

    saved_as = say("Why {word}", word=question.target.word)
    facts = collect_trace_facts(question.result.trace, **question.facts, method=method)
    table = lambda: tabulate_attributions(why_cache.compute_attributions_by_method(question.key))  # noqa: E731
    return SavedView("why-source-words", build_parts, table, saved_as, facts, width=1280)


def _draw_attribution_methods(question: Question, palette: Palette) -> None:
    """Draw the texts shaded by one method, and all methods beside each other."""
    every = why_cache.compute_attributions_by_method(question.key)
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        method = why_controls.draw_method_selector(every)
        if question.model.can("parts"):
            _draw_strongest_head_link(question)
    hint = "" if is_on_stage() else say(PIECE_HINT)
    draw_signed_text(build_shaded_texts(every[method], hint), palette, _describe_shading(every[method]), key="shaded")
    draw_caption(join_sentences(*_describe_method(every[method])))
    draw_chart(
        plot_method_matrix(every, method, palette),
        say(MATRIX_TITLE),
        key="methods",
        on_cell=lambda row, _: _choose_method(list(every)[row]),
    )
    draw_caption(join_sentences(*_describe_all_methods(question, every)))


def _build_attribution_saved_parts(question: Question, method: str, palette: Palette) -> list[Part]:
    """What :func:`_draw_attribution_methods` draws, to be saved."""
    every = why_cache.compute_attributions_by_method(question.key)
    found = every[method]
    shaded = encode_signed_text(build_shaded_texts(found, say(PIECE_HINT)), palette, _describe_shading(found))
    matrix = Chart(plot_method_matrix(every, method, palette), say(MATRIX_TITLE))
    says = [*_describe_method(found), *_describe_all_methods(question, every)]
    return [Component("signed_text", shaded), matrix, *map(Words, says)]


def _describe_shading(found: Attribution) -> str:
    named = say("{method} for {word}.", method=say(found.method), word=found.target.word)
    return join_sentences(named, texts.describe_highest_scored_pieces(found))


def _describe_method(found: Attribution) -> list[str]:
    lead = texts.describe_target_value(found.target, found.target_value)
    strongest = join_sentences(lead, texts.describe_highest_scored_pieces(found), say(texts.COLOURS_HINT))
    return [strongest, texts.describe_attribution_unit(found.method, found.target), *found.notes]


def _describe_all_methods(question: Question, every: Mapping[str, Attribution]) -> list[str]:
    remarks = [
        texts.describe_method_agreement(every),
        texts.describe_completeness(every["integrated-gradients"]),
        say(texts.METHOD_ROWS_HINT),
    ]
    return [*remarks, *filter(None, [why_cache.describe_refused_methods(question.key)])]


def build_leave_one_out_texts(found: WordsLeftOut) -> list[SignedText]:
    """The words of the source and those written before, shaded by how far the value falls without each."""
    of_source, readings = len(found.source_words), texts.list_remaining_probabilities(found)
    is_probability = found.target.against is None
    falls = math.exp(found.value) - np.exp(found.without) if is_probability else found.value - found.without
    title = say("The prompt") if found.target.continues else say("The sentence")
    source = SignedText(
        title, texts.describe_left_out_values(found), found.source_words, falls[:of_source], readings[:of_source]
    )
    if not found.prefix_words:
        return [source]
    before = found.prefix_words, falls[of_source:], readings[of_source:]
    return [source, SignedText(say("Written before"), say("shaded by the same scale"), *before)]


def tabulate_attributions(every: Mapping[str, Attribution]) -> pd.DataFrame:
    """Every piece with the score of every method; empty where a method says nothing of it."""
    target = next(iter(every.values())).target
    of = ["source"] * len(target.source_tokens) + ["prefix"] * len(target.prefix_tokens)
    table = pd.DataFrame({"of": of, "piece": texts.format_pieces([*target.source_tokens, *target.prefix_tokens])})
    return table.assign(**{name: pd.Series(found.scores) for name, found in every.items()})


def build_shaded_texts(found: Attribution, hint: str) -> list[SignedText]:
    """The source and what was written before, each piece with its score; `hint` stands under the first title."""
    says_prefix = len(found.prefix) > 0
    source = say("The prompt") if found.target.continues else say("The sentence")
    prefix = say("shaded by the same scale") if says_prefix else say("this method says nothing of it")
    return [
        SignedText(
            source,
            hint,
            found.target.source_tokens,
            found.source,
        ),
        SignedText(say("Written before"), prefix, found.target.prefix_tokens, found.prefix if says_prefix else None),
    ]


def plot_method_matrix(every: Mapping[str, Attribution], method: str, palette: Palette) -> go.Figure:
    """All methods by piece, `method` marked."""
    target = every[method].target
    scores = {name: found.scores for name, found in every.items()}
    return plot_attribution_method_scores(
        scores,
        target.source_tokens,
        target.prefix_tokens,
        texts.compute_leave_one_out_correlations(every),
        method,
        palette,
    )


def _choose_method(method: str) -> None:
    st.session_state[WHY_ATTRIBUTION_METHOD.key] = method


def _draw_strongest_head_link(question: Question) -> None:
    """Draw the button that opens the head with the largest part of the logit."""
    part = heads.find_strongest_head(why_cache.compute_logit_parts(question.key))
    head = heads.find_head_of_part(part)
    assert head is not None
    opened = lambda: why_controls.open_head_on_explore(question, head)  # noqa: E731
    st.button(texts.format_head_link_label(part), key="strongest-head", type="tertiary", on_click=opened)


# Deletion curves: whether the order of a method is right, for this word and over many sentences.


WORD_TABLE_HEADINGS = (to_say("order"), to_say("left on average"))
SET_TABLE_HEADINGS = (
    *(to_say("method"), to_say("beats two random"), to_say("fall of log p"), to_say("left on average")),
    to_say("rank correlation"),
)


def draw_deletion_view(question: Question, palette: Palette) -> SavedView:
    """Draw the curves of all methods, the chosen one marked, and the tables beside them."""
    curves, every = (
        why_cache.compute_deletion_curves(question.key),
        why_cache.compute_attributions_by_method(question.key),
    )
    with st.container(key="bar", horizontal=True, vertical_alignment="center"):
        method = why_controls.draw_method_selector(every)
    says = [texts.describe_top_two_pieces_deletion(curves, every[method]), texts.describe_best_deletion_order(curves)]
    alt = draw_deletion_curves(curves, method, palette, *says)
    says.append(texts.describe_deletion_method(texts.DELETION_BY_MASKS))
    draw_caption(says[-1])
    _draw_corpus_method_scores(question, method)

    def build_parts(of: Palette) -> list[Part]:
        return [*question.saved_texts, Chart(plot_deletion_curves(curves, method, of), alt), *map(Words, says)]

    facts = collect_trace_facts(question.result.trace, **question.facts, method=method)
    title = make_deletion_curves_title(question.target.word)
    return SavedView("why-deletion", build_parts, lambda: tabulate_deletion(curves), title, facts, width=1280)


def make_deletion_curves_title(word: str) -> str:
    """The title of what is saved."""
    return say("Deletion curves of {word}", word=word)


def draw_deletion_curves(curves: DeletionCurves, method: str, palette: Palette, lead: str, best: str) -> str:
    """Draw the curves, the chosen method marked, `lead` above them and `best` beside; returns their alt text."""
    alt = join_sentences(say("Deletion curves."), lead)
    with st.container(key="lead"):
        draw_caption(lead)
    with st.container(key="picture"):
        left, right = st.columns([0.6, 0.4], gap="large")
        with left:
            draw_chart(plot_deletion_curves(curves, method, palette), alt, key="deletion", on_cell=lambda _, __: None)
        with right:
            draw_table(
                [say(one) for one in WORD_TABLE_HEADINGS],
                build_area_rows(curves, method),
                say("What each order leaves of this word"),
            )
            draw_caption(best)
    return alt


def tabulate_deletion(curves: DeletionCurves) -> pd.DataFrame:
    """What is left after each deletion, a column an order; of random orders the mean and its band."""
    low, mean, high = curves.band
    columns = {name: curves.remaining_share(values) for name, values in curves.methods.items()}
    random = {"random, lower end": low, "random, mean": mean, "random, upper end": high}
    return pd.DataFrame(columns | random).rename_axis("pieces taken away")


def build_area_rows(curves: DeletionCurves, method: str) -> list[list[TableCell]]:
    areas = texts.compute_curve_areas(curves)
    show = format_percent if curves.against is None else format_signed
    return [
        [(say(name), "own") if name == method else say(name), show(area)]
        for name, area in sorted(areas.items(), key=lambda one: one[1])
    ]


def _draw_corpus_method_scores(question: Question, method: str) -> None:
    """The table that was measured with the model, where there is one."""
    try:
        scores = why_cache.load_attribution_scores(question.model.name)
    except AttributionScoresError as error:
        draw_caption(str(error))
        return
    if scores is None:
        draw_caption(
            say(texts.DELETION_NOT_MEASURED if question.model.can("training") else texts.DELETION_NEVER_MEASURED)
        )
        return
    with st.container(key="over-sentences"):
        count = scores.sentences
        st.subheader(say("Over {count} sentences", count=count), anchor=False)
        title = say("All methods over {count} sentences", count=count)
        draw_table([say(one) for one in SET_TABLE_HEADINGS], _build_measured_score_rows(scores, method), title)
        draw_caption(texts.describe_measured_method_scores(scores))


def _build_measured_score_rows(scores: AttributionScores, method: str) -> list[list[TableCell]]:
    rows: list[list[TableCell]] = [
        [
            (say(one.method), "own") if one.method == method else say(one.method),
            *(
                format_number(one.beats_random, ".1%"),
                format_signed(one.drop),
                format_number(one.area, ".1%"),
                format_signed(one.correlation),
            ),
        ]
        for one in scores.methods
    ]
    return [
        *rows,
        [say(texts.RANDOM_ORDER), "", format_signed(scores.random_drop), format_number(scores.random_area, ".1%"), ""],
    ]


# Both views for a user's own model: what can be computed where its modules are not known.


METHODS_TITLE = to_say("Every method for this piece")
DrawnUserView = tuple[str, Callable[[Palette], list[Part]], Callable[[], pd.DataFrame]]
"""The title of a view, its parts in the colours of a palette, and its numbers."""


class PieceQuestion(NamedTuple):
    """The piece that is explained, and the method that is shown."""

    model: str
    sentence: str
    position: int
    """Of the piece, from 0."""
    method: str


NO_WORDS_MESSAGES: Mapping[Medium, str] = {
    "sound": to_say("{model} reads sound, so no word of a source can be left out."),
    "picture": to_say("{model} reads pictures, so no word of a source can be left out."),
}


def draw_user_model_page(own: LocalModel) -> None:
    """Draw the page: the sentence, the piece that is explained, and its scores or what is left without the first."""
    if isinstance(own, MediaModel):
        ui_controls.draw_model_choice()
        st.info(escape_markdown(say(NO_WORDS_MESSAGES[own.medium], model=own.name)))
        return
    text = ui_controls.draw_encoder_sentence_box()
    PIN.hold(of=text)
    if not text.strip():
        st.info(say("Type a sentence for the model to read."))
        return
    try:
        trace = ui_cache.compute_encoder_only_trace(own.name, text).trace
        with st.container(key="bar", horizontal=True, vertical_alignment="center"):
            view = ui_controls.segmented_control(say("View"), WHY_VIEW, tuple(USER_MODEL_VIEWS))
            position = _draw_piece_selector(trace, text)
            every = why_cache.compute_user_model_attributions_by_method(own.name, text, position)
            asked = PieceQuestion(own.name, text, position, why_controls.draw_method_selector(every))
        title, parts, numbers = USER_MODEL_VIEWS[view](asked, every)
    except (AttributionError, LocalError) as error:
        st.info(escape_message(str(error)))
        return
    missing = why_cache.describe_missing_user_model_methods(own.name, text, position)
    draw_caption(missing)
    facts = collect_trace_facts(trace, word=every[asked.method].target.word, method=asked.method)
    name = f"why-{view.replace(' ', '-')}"
    sentence = Words(text, "sentence", "large")
    register_savable_view(
        SavedView(name, lambda of: [sentence, *parts(of), Words(missing)], numbers, title, facts, width=1280)
    )


def _draw_any_model_attributions(asked: PieceQuestion, every: Mapping[str, Attribution]) -> DrawnUserView:
    """Shaded text by the chosen method, and the matrix of both."""
    found = every[asked.method]
    meaning = say("{method}: {meaning}.", method=say(asked.method), meaning=say(ANY_MODEL_METHODS[asked.method]))
    says = [
        join_sentences(
            texts.describe_target_value(found.target, found.target_value), texts.describe_highest_scored_pieces(found)
        )
    ]
    says += [join_sentences(meaning, say(texts.COLOURS_HINT)), texts.describe_method_agreement(every)]
    says += [texts.describe_completeness(every["integrated-gradients"])]
    hint, title = "" if is_on_stage() else say(PIECE_HINT), say(METHODS_TITLE)
    with st.container(key="picture"):
        draw_signed_text(build_shaded_texts(found, hint), style.get_palette(), says[0], key="shaded")
        matrix = plot_method_matrix(every, asked.method, style.get_palette())
        draw_chart(matrix, title, key="methods", on_cell=lambda _, __: None)
    draw_caption(join_sentences(*says))

    def build_parts(of: Palette) -> list[Part]:
        shaded = Component("signed_text", encode_signed_text(build_shaded_texts(found, hint), of, says[0]))
        return [shaded, Chart(plot_method_matrix(every, asked.method, of), title), *map(Words, says)]

    return title, build_parts, lambda: tabulate_attributions(every)


def _draw_user_model_deletion(asked: PieceQuestion, every: Mapping[str, Attribution]) -> DrawnUserView:
    """What is left of the piece's probability, by the order of each method and in random orders."""
    curves = why_cache.compute_user_model_deletion_curves(*asked[:3])
    says = [
        texts.describe_top_two_pieces_deletion(curves, every[asked.method]),
        texts.describe_best_deletion_order(curves),
    ]
    alt = draw_deletion_curves(curves, asked.method, style.get_palette(), *says)
    says.append(texts.describe_deletion_method(texts.DELETION_BY_EMBEDDINGS))
    draw_caption(says[-1])
    word = every[asked.method].target.word

    def build_parts(of: Palette) -> list[Part]:
        return [Chart(plot_deletion_curves(curves, asked.method, of), alt), *map(Words, says)]

    return make_deletion_curves_title(word), build_parts, lambda: tabulate_deletion(curves)


USER_MODEL_VIEWS: dict[WhyView, Callable[[PieceQuestion, Mapping[str, Attribution]], DrawnUserView]] = {
    "source words": _draw_any_model_attributions,
    "deletion": _draw_user_model_deletion,
}


def _draw_piece_selector(trace: AttentionTrace, text: str) -> int:
    """Draw the choice among the pieces that the model predicts, the first until one is chosen."""
    pieces = next((one.rows("predicted") for kind, one in trace.maps.items() if kind != "encoder"), ())
    if not pieces:
        raise AttributionError(say("This model has no decoder whose words could be explained."))
    pinned = get_pin(text, "target")
    st.session_state["own-piece"] = pinned if pinned is not None and pinned < len(pieces) else 0
    choose = lambda: add_pins(text, {"target": st.session_state["own-piece"]})  # noqa: E731
    name = lambda at: f"{at + 1} · {readable_token(pieces[at])}"  # noqa: E731
    return ui_controls.draw_untranslated_choice(
        st.selectbox, say("Piece"), range(len(pieces)), format_func=name, key="own-piece", on_change=choose, width=240
    )
