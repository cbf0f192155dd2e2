"""The controls of Why: the translation that is read, its word X, and the Y that it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.attribution.any_model import list_attribution_methods
from attenscope.attribution.methods import BLOCK_METHODS
from attenscope.attribution.target import AttributionError, Target, make_piece_target
from attenscope.decoding.greedy_and_sampling import DecodingStep
from attenscope.experiments.patching import read_minimal_pairs
from attenscope.interventions.changes import InterventionError, format_changes, parse_changes
from attenscope.language import say
from attenscope.runnable_model import InputError, RunnableModel, Translation
from attenscope.text.words import SPECIAL_TOKENS, group_tokens_into_words, join_word
from attenscope.trace import Head
from attenscope.viz.export.parts import Component, Part, Words
from attenscope.viz.figures.figure_style import name_tokens_apart, quote_token
from attenscope.viz.traces.session import get_open_trace
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.addresses.shared import CHANGES, add_pins, get_pin
from attenscope.viz.ui.addresses.why import (
    WHY_ATTRIBUTION_METHOD,
    WHY_CONTRAST_PIECE,
    WHY_CONTROL_SENTENCE,
    WHY_SCORE_CELL,
    WHY_SECOND_SENTENCE,
    WHY_VIEW,
)
from attenscope.viz.ui.captions import draw_caption, draw_translation_warnings, escape_message
from attenscope.viz.ui.links import open_head_in_explore
from attenscope.viz.web.text_components import draw_tokens, token_line_data
from attenscope.viz.why import texts
from attenscope.viz.why.cache import (
    ReadingKey,
    WordKey,
    compute_sentence_pair_contrast,
    compute_words_left_out,
    has_attention_blocks,
)

WHY_STYLE = Path(__file__).parent / "why.css"
NO_COMPARISON = "—"
PAIRS_LANGUAGE = "en"
"""The language of the pairs that come with the project."""
MOST_WORDS_TRIED = 6
"""Words among which one is sought whose answer is not empty."""


class SentencePair(NamedTuple):
    """The sentence that is explained, and those that *Two sentences* compares it with; "" where there is none."""

    first: str
    second: str
    control: str


@dataclass(frozen=True, eq=False)
class Question:
    """The word that is explained, with its translation, its model, and the piece that it is compared with."""

    model: RunnableModel
    result: Translation
    key: WordKey
    target: Target
    pair: SentencePair

    @property
    def saved_texts(self) -> list[Part]:
        """What stands above the pictures of a saved file."""
        word = range(self.key.position, self.key.position + self.key.length)
        data = token_line_data(self.result.steps, self.key.position, word=word)
        return [Words(self.result.source, "sentence", "large"), Component("tokens", data, "translation")]

    @property
    def facts(self) -> dict[str, str]:
        """What is needed besides the run to ask the same question again."""
        return {"word": self.target.word, "rather than": self.target.against or "", "changes": self.key.reading.changes}


def hold_method(question: Question) -> str:
    """The chosen method, kept in the address; the default where it cannot be computed for this model."""
    names = tuple(list_attribution_methods(question.model))
    if WHY_ATTRIBUTION_METHOD.hold(names) in BLOCK_METHODS and not has_attention_blocks(question.key):
        names = tuple(one for one in names if one not in BLOCK_METHODS)
    return WHY_ATTRIBUTION_METHOD.hold(names)


def draw_method_selector(names: Iterable[str]) -> str:
    """Draw the choice among the methods that there are for this model."""
    return controls.selectbox(say("Method"), WHY_ATTRIBUTION_METHOD, tuple(names), width=270)


def find_sentence_pair(model: RunnableModel, text: str) -> SentencePair:
    """The sentence in the box with its second and its control; until a second is given, a pair of the project.

    That is the first one that differs in this model and whose sentences have as many pieces, as a patch
    needs: the view opens on something to see.
    """
    own = SentencePair(text, WHY_SECOND_SENTENCE.get().strip(), WHY_CONTROL_SENTENCE.get().strip())
    if WHY_VIEW.get() != "two sentences" or own.second or model.card.get("source_language") != PAIRS_LANGUAGE:
        return own
    pairs = sorted(read_minimal_pairs(), key=lambda one: one.first != text)
    for one in pairs:
        try:
            compute_sentence_pair_contrast(ReadingKey(model.name, one.first), ReadingKey(model.name, one.second))
        except (AttributionError, InputError):
            continue
        every = (one.first, one.second, one.control)
        if len({len(cache.compute_translation(model.name, side).source_tokens) for side in every}) == 1:
            return SentencePair(one.first, one.second, one.control)
    return own


def draw_question_controls(
    model: RunnableModel, pair: SentencePair, above: DeltaGenerator, choice: DeltaGenerator, forced: bool
) -> Question:
    """Draw the translation `above` and the `choice` of what the word is compared with; return what is asked.

    `forced`: a given translation is read in place of the model's own.
    """
    text = pair.first
    if get_open_trace():
        draw_caption(say(texts.OPENED_TRACE_NOTE))
    own = cache.compute_translation(model.name, text)
    given = controls.draw_scored_given_translation_field(model.name, text, own.text) if forced else ""
    reading = ReadingKey(model.name, text, given, _read_and_draw_model_changes(model, text, given))
    result = cache.compute_translation_with_changes(*reading)
    split = _find_score_split_row(result)
    asked = get_pin(result.source, "target")
    pinned = result.find_step_of_row(asked) if split is None else split
    compared = _find_divergence_target(reading, pair.second)
    if compared:
        group = range(compared.position, compared.position + len(compared.tokens))
    elif pinned is None:
        group = find_longest_word_that_needs_another(reading)
    else:
        group = find_pinned_word_pieces(result.target_tokens, pinned, result.special_tokens)
    with above:
        shown = pinned if pinned is not None and pinned in group else group.start
        pin_word = None if compared else lambda at: set_explained_word(result, at)
        draw_tokens(result.steps, shown, key="translation", on_pin=pin_word, keep=True, word=group)
    draw_translation_warnings(model, result, own)
    if compared is None and asked is not None and pinned is None:
        draw_caption(texts.describe_missing_piece(asked - result.first_row, len(result.steps)))
    with choice, st.container(key="rather", horizontal=True, vertical_alignment="center", width="content"):
        target = _draw_fixed_target(compared) if compared else _draw_contrast_token_selector(model, result, group)
    return Question(model, result, WordKey(reading, group.start, len(group), target.against_id), target, pair)


def _find_divergence_target(reading: ReadingKey, second: str) -> Target | None:
    """The piece at which the translations of two sentences part, where the view compares two that can be compared."""
    if WHY_VIEW.get() != "two sentences" or not second:
        return None
    try:
        return compute_sentence_pair_contrast(reading, ReadingKey(reading.model, second, "", reading.changes)).target
    except (AttributionError, InputError):  # The view says why.
        return None


def _find_score_split_row(result: Translation) -> int | None:
    """The row of the decoder whose score the view splits, where one was chosen: it writes the piece to explain."""
    cell = WHY_SCORE_CELL.get(of=result.source) if WHY_VIEW.get() == "score" else None
    return None if cell is None or cell.kind == "encoder" or cell.query >= len(result.steps) else cell.query


def _draw_fixed_target(target: Target) -> Target:
    """Say which piece is compared with which: the two sentences have decided that."""
    draw_caption(
        say("Why {word} rather than {other}", word=quote_token(target.word), other=quote_token(target.against or ""))
    )
    return target


def find_pinned_word_pieces(
    tokens: Sequence[str], pinned: int | None, special: AbstractSet[str] = SPECIAL_TOKENS
) -> range:
    """The pieces of the word of the pinned piece; of the longest word where none of these pieces is pinned."""
    if pinned is not None and pinned < len(tokens):
        return next(group for group in group_tokens_into_words(tokens, special) if pinned in group)
    return _list_words_longest_first(tokens, special)[0]


def find_longest_word_that_needs_another(reading: ReadingKey) -> range:
    """The pieces of the longest word that needs another one; of the longest word where none of the first few does."""
    result = cache.compute_translation_with_changes(*reading)
    words = _list_words_longest_first(result.target_tokens, result.special_tokens)
    for group in words[:MOST_WORDS_TRIED]:
        try:
            if texts.is_single_word_needed(compute_words_left_out(WordKey(reading, group.start, len(group)))):
                return group
        except AttributionError:  # The view says why.
            continue
    return words[0]


def _list_words_longest_first(tokens: Sequence[str], special: AbstractSet[str]) -> list[range]:
    """The pieces of each word, the longest word first; special tokens only where there is nothing else."""
    groups = group_tokens_into_words(tokens, special)
    named = [group for group in groups if tokens[group.start] not in special]
    return sorted(named or groups, key=lambda group: -len(join_word([tokens[at] for at in group]).strip()))


def set_explained_word(result: Translation, position: int) -> None:
    """Explain the word of the piece at a position, from 0; for callbacks."""
    add_pins(result.source, {"target": position + result.first_row})
    WHY_SCORE_CELL.reset()


def open_head_on_explore(question: Question, head: Head) -> None:
    """Show a head on Explore with the word pinned; for callbacks."""
    add_pins(question.result.source, {"target": question.key.position + question.result.first_row})
    open_head_in_explore(head)


def _read_and_draw_model_changes(model: RunnableModel, text: str, given: str) -> str:
    """The changes of the address, said on the page, in the one way of writing them; none where they make no sense."""
    try:
        changes = format_changes(parse_changes(CHANGES.hold()))
        if changes:
            cache.compute_intervention_comparison(model.name, text, changes, given)
    except InterventionError as error:
        st.info(escape_message(str(error)))
        changes = ""
    if CHANGES.get():
        controls.draw_model_changes_note(changes)
    return changes


def name_contrast_candidates(step: DecodingStep) -> dict[str, int]:
    """Ids of the other candidates of a step by their names, the most probable first; each name stands for one piece."""
    listed = [one for one in step.candidates if one.token_id != step.token_id]
    names = name_tokens_apart([one.token for one in listed])
    named: dict[str, int] = {}
    for name, one in zip(names, listed, strict=True):
        named.setdefault(name, one.token_id)
    return named


def _draw_contrast_token_selector(model: RunnableModel, result: Translation, group: range) -> Target:
    """Draw the choice of Y, and return X compared with it; with nothing where it cannot be compared."""
    owner = (result.source, result.target_ids[: group.stop])
    chosen = WHY_CONTRAST_PIECE.hold(of=owner)
    step = result.steps[group.start]
    candidates = name_contrast_candidates(step)
    name = join_word(result.target_tokens[group.start : group.stop])
    draw_caption(say("Why {word} rather than", word=quote_token(name)))
    against: str | int | None = None
    if chosen:
        against = candidates.get(chosen, chosen)
    options = [NO_COMPARISON, *candidates, *([chosen] if chosen and chosen not in candidates else [])]
    st.session_state["rather-than"] = chosen or NO_COMPARISON

    def choose() -> None:
        found = (st.session_state["rather-than"] or "").strip()
        WHY_CONTRAST_PIECE.set("" if found == NO_COMPARISON else found[: WHY_CONTRAST_PIECE.longest], of=owner)

    controls.draw_untranslated_choice(
        st.selectbox,
        say("Rather than"),
        options,
        key="rather-than",
        accept_new_options=True,
        on_change=choose,
        width=190,
        label_visibility="collapsed",
        placeholder=say("a piece"),
    )
    try:
        return make_piece_target(model, result, group.start, len(group), against)
    except AttributionError as error:
        st.info(escape_message(str(error)))
        return make_piece_target(model, result, group.start, len(group))
