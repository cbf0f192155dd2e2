"""Example sentences that each show one phenomenon of attention, and the guided tour of Explore."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import streamlit as st

from attenscope.language import current_language, join_sentences, load_translated_toml, say
from attenscope.runnable_model import RunnableModel
from attenscope.text.words import group_tokens_into_words
from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import quote_token
from attenscope.viz.tour import TourStep, load_tour_steps
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.explore import EXPLORE_MERGE_WORDS, EXPLORE_TOUR_STEP, EXPLORE_VIEW, PAGE
from attenscope.viz.ui.addresses.shared import KIND, PIN, SENTENCE, add_pins
from attenscope.viz.ui.captions import escape_markdown
from attenscope.viz.ui.controls import draw_example_sentences, draw_examples_menu_container, set_layer_and_head
from attenscope.viz.ui.current_sentence import list_example_sentences
from attenscope.viz.ui.links import open_in_decode

# The examples, each with the head and the row at which its phenomenon is seen.


EXAMPLES_FILE = Path(__file__).parent / "examples.toml"
EXAMPLE_LANGUAGES = ("en", "de")
"""The source and target language of the models that the examples are for."""
MIN_LINK_WEIGHT = 0.5
"""The least weight of an example's link: above it a row looks at one token more than at all others together."""


@dataclass(frozen=True)
class Example:
    """A sentence, what it shows, and the row and the column of cross-attention at which it is seen."""

    phenomenon: str
    sentence: str
    query: str
    """The piece of the translation whose row shows it."""
    key: str
    """The piece of the sentence that this row looks at."""
    written: str
    """Text that the translation must contain."""
    see: str
    """What to see, in one sentence."""
    jumps: bool = False
    """Whether the row looks left of where the row before it looks."""


@dataclass(frozen=True)
class ExamplePlace:
    """Where an example is seen in a map, all from 0."""

    layer: int
    head: int
    row: int
    column: int


def load_examples() -> tuple[Example, ...]:
    """Return the examples that ship with the project, in the current language."""
    return _load_examples_in(current_language())


@functools.cache
def _load_examples_in(language: str) -> tuple[Example, ...]:
    return tuple(Example(**one) for one in load_translated_toml(EXAMPLES_FILE, language)["example"])


def find_example_head(example: Example, cross: AttentionMap) -> ExamplePlace | None:
    """Return the head that links the example's row most to its column; None where none does by `MIN_LINK_WEIGHT`."""
    rows = [token.strip() for token in cross.rows("predicted")]
    columns = [token.strip() for token in cross.key_tokens]
    if example.query not in rows or example.key not in columns:
        return None
    row, column = len(rows) - 1 - rows[::-1].index(example.query), columns.index(example.key)
    weights = cross.weights[:, :, row, column]
    layer, head = np.unravel_index(weights.argmax(), weights.shape)
    return ExamplePlace(int(layer), int(head), row, column) if weights[layer, head] > MIN_LINK_WEIGHT else None


def get_model_languages(model: RunnableModel) -> tuple[str, str]:
    """Return the codes of the languages that a model reads and writes, "" where its card does not say them."""
    return model.card.get("source_language", ""), model.card.get("target_language", "")


def has_examples(model: RunnableModel) -> bool:
    """Return whether the examples and the tour are for a model."""
    return model.can("examples") and get_model_languages(model) == EXAMPLE_LANGUAGES


def draw_start_menus(model: RunnableModel) -> None:
    """Draw what stands beside the choice of the model: the list of examples, and at the welcome sentence the tour.

    Nothing for a model of other languages.
    """
    if not has_examples(model):
        return
    welcomes = _has_welcome_sentence(model)
    if welcomes:
        draw_tour_button(model)
    if menu := draw_examples_menu_container():
        with menu:
            if not welcomes:
                draw_tour_button(model)
            for at, example in enumerate(load_examples()):
                _draw_example_button(model, example, f"phenomenon-{at}", "tertiary")


def _has_welcome_sentence(model: RunnableModel) -> bool:
    """Return whether the box holds the sentence that a model begins with."""
    return SENTENCE.get() in (None, list_example_sentences(model.card)[0])


def draw_example_suggestion(model: RunnableModel) -> None:
    """Draw the first example that is not on the screen, but at the welcome sentence, which has the tour in its place.

    Where a model has sentences of its own, or is of other languages, these are drawn.
    """
    if not has_examples(model) or model.card.get("examples"):
        draw_example_sentences(model)
    elif not _has_welcome_sentence(model):
        example = next(one for one in load_examples() if one.sentence != SENTENCE.get())
        _draw_example_button(model, example, f"example-{example.sentence}", "secondary")


def _draw_example_button(
    model: RunnableModel, example: Example, key: str, kind: Literal["secondary", "tertiary"]
) -> None:
    """Draw a button that shows an example where it is seen."""
    text = f"**{escape_markdown(example.phenomenon)}** {escape_markdown(example.sentence)}"
    st.button(text, key=key, type=kind, on_click=_open_example, args=(model, example))


def _open_example(model: RunnableModel, example: Example) -> None:
    st.session_state[SENTENCE.key] = example.sentence
    st.session_state[KIND.key], st.session_state[EXPLORE_VIEW.key] = "cross", "heatmap"
    cross = cache.compute_translation(model.name, example.sentence).trace.cross
    place = find_example_head(example, cross) if cross else None
    if place and cross:
        set_layer_and_head(place.layer, place.head)
        add_pins(example.sentence, {"target": place.row})
        ends = (cross.rows("predicted"), place.row), (cross.key_tokens, place.column)
        words = [one for tokens, at in ends for one in group_tokens_into_words(tokens) if at in one]
        EXPLORE_MERGE_WORDS.set(False if any(len(one) > 1 for one in words) else None)


def example_hint_text(text: str, written: str, cross: AttentionMap, layer: int, head: int, row: int | None) -> str:
    """Return the sentence of the example that is looked at: `text`, its translation `written`, and a row of a head.

    "" where the example's row, its head, its link or its words are not what is shown.
    """
    for example in load_examples():
        if example.sentence == text and example.written in written:
            place = find_example_head(example, cross)
            if place and (place.layer, place.head, place.row) == (layer, head, row):
                return example.see
    return ""


# The tour: a few steps on the live page, each with something to look at and something to try.


def draw_tour_button(model: RunnableModel) -> None:
    """Draw the button that begins the tour, in the accent colour; nothing for a model of other languages."""
    if has_examples(model):
        st.button(say("Start here"), type="primary", key="tour-begins", on_click=_go_to_tour_step, args=(1,))


def draw_tour_step(model: RunnableModel) -> None:
    """Draw the step that the visitor is at, in place of the examples; nothing outside the tour.

    Nothing for a model of other languages.
    """
    if not has_examples(model):
        return
    if not (at := EXPLORE_TOUR_STEP.hold()) or at > len(steps := load_tour_steps()):
        return
    step, sentence = steps[at - 1], steps[0].address["sentence"]
    shows_it = SENTENCE.get() == sentence
    other = say("This step is about the sentence {sentence}", sentence=quote_token(sentence))
    with st.container(key="tour", horizontal=True, vertical_alignment="center"):
        said = escape_markdown(step.text if shows_it else other)
        st.markdown(f"{at}/{len(steps)} {join_sentences(f'**{escape_markdown(step.title)}**', said)}")
        with st.container(key="tour-buttons", horizontal=True, vertical_alignment="center", width="content"):
            if shows_it:
                st.button(step.button, key="tour-try", on_click=_try_tour_step, args=(model, step))
            else:
                st.button(say("Show it"), key="tour-try", on_click=_go_to_tour_step, args=(at,))
            if at > 1:
                st.button(say("Back"), key="tour-back", type="tertiary", on_click=_go_to_tour_step, args=(at - 1,))
            if at < len(steps):
                st.button(say("Next"), key="tour-next", type="primary", on_click=_go_to_tour_step, args=(at + 1,))
            st.button(say("Leave"), key="tour-leave", type="tertiary", on_click=EXPLORE_TOUR_STEP.reset)


def _try_tour_step(model: RunnableModel, step: TourStep) -> None:
    if step.attempt:
        apply_address(step.attempt)
    else:
        open_in_decode(model.name, SENTENCE.get(), 0)


def _go_to_tour_step(at: int) -> None:
    """Begin a step, from 1."""
    EXPLORE_TOUR_STEP.set(at)
    first, step = load_tour_steps()[0], load_tour_steps()[at - 1]
    apply_address({"sentence": first.address["sentence"], **step.address})


def apply_address(address: Mapping[str, str]) -> None:
    """Show what an address of this page says, where it says anything; for callbacks."""
    for name, text in address.items():
        parameter = PAGE.parameters[name]
        if parameter is PIN:
            PIN.set(PIN.value_of(text), of=address.get("sentence", SENTENCE.get()))
        else:
            st.session_state[parameter.key] = parameter.value_of(text)
