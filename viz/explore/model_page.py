"""The page Explore for a model that translates a sentence: its run, its first view and its word card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, get_args

import numpy as np
import streamlit as st

from attenscope.analysis.attention_steps import weight_trace_by_value_norms
from attenscope.analysis.heads import HeadPlace, Measure, compute_head_statistics
from attenscope.analysis.telling_word import find_best_head, read_target_word, weigh_words
from attenscope.decoding.greedy_and_sampling import DecodingStep
from attenscope.experiments.ablation import HeadEffects
from attenscope.experiments.lens import LogitLens
from attenscope.language import current_language, join_sentences, say
from attenscope.runnable_model import CHAT_TEMPLATE, RunnableModel, Translation
from attenscope.trace import AttentionMap, AttentionTrace, Kind, TraceError
from attenscope.viz.explore import controls as explore_controls
from attenscope.viz.explore import examples
from attenscope.viz.explore.examples import example_hint_text
from attenscope.viz.explore.long_text_page import draw_long_text
from attenscope.viz.explore.screen import (
    draw_screen,
    is_default_pinned_row,
    is_head_auto_selected,
    select_default_head_and_pin,
)
from attenscope.viz.explore.texts import build_head_change_effect_parts
from attenscope.viz.explore.view_data import DisplayOptions, RunKey, TokenDisplay
from attenscope.viz.export.parts import SENTENCE_PICTURE_ROLE, Component, Part, Words
from attenscope.viz.figures.figure_style import quote_token
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.addresses.explore import EXPLORE_HIDE_SPECIAL, SingleView
from attenscope.viz.ui.addresses.shared import HEAD, KIND, LAYER, PIN, ROWS, get_pin, toggle_pins
from attenscope.viz.ui.captions import draw_caption, draw_model_run_badge, draw_translation_warnings, escape_markdown
from attenscope.viz.ui.controls import (
    draw_given_translation_toggle,
    draw_scored_given_translation_field,
    is_given_translation_on,
    remember_auto_selected_head,
    set_given_translation,
    set_layer_and_head,
)
from attenscope.viz.ui.links import compute_head_effects, draw_token_card, open_in_decode, open_why, set_explore_head
from attenscope.viz.web.page_components import is_on_stage, is_presenting
from attenscope.viz.web.text_components import (
    SURE_FROM,
    CardActions,
    SentencePicture,
    SentenceSide,
    draw_sentence_picture,
    draw_tokens,
    encode_sentence_picture,
    is_low_probability_token,
    token_line_data,
)

# The page.


def draw_model_page() -> None:
    """Draw the sentence, its translation and the pictures. The badge says whether looking changed the model.

    Of a text that is too long for whole maps, pooled ones are drawn.
    """
    model, text = controls.draw_sentence_and_model_controls(
        examples.draw_start_menus, draw_examples=examples.draw_example_suggestion
    )
    examples.draw_tour_step(model)
    if long_text := model.encode_long_text(text):
        draw_long_text(model, text, long_text)
        return
    translation = controls.require_translation(model, text)
    select_default_head_and_pin(model.name, text, translation.trace)
    _draw_pictures(model, text)
    # Last: the translation is seen while it is made once more.
    draw_model_run_badge(model, translation, cache.compute_observer_check(model.name, text))


@st.fragment
def _draw_pictures(model: RunnableModel, text: str) -> None:
    """Draw the run. A fragment: a click here leaves the sentence's controls alone."""
    PIN.hold(of=text)
    draw_screen(draw_explore_run(model, text))


# A run: the model's own translation or a given one, with or without changes to the model.


@dataclass(frozen=True, eq=False)
class ExploreRun(explore_controls.SwitchableHeads):
    """A run whose model is loaded, so that it can be asked for more. Implements `TraceSource`."""

    run: RunKey
    translation: Translation
    view_errors: ClassVar[tuple[type[Exception], ...]] = ()
    patches: ClassVar[None] = None

    @property
    def trace(self) -> AttentionTrace:
        return self.translation.trace

    @property
    def changes(self) -> str:
        return self.run.changes

    @property
    def first_row(self) -> int:
        return self.translation.first_row

    @property
    def whole_trace(self) -> AttentionTrace:
        return cache.compute_full_trace(*self.run)

    def value_weighted(self) -> AttentionTrace:
        return weight_trace_by_value_norms(self.whole_trace, cache.load_runnable_model(self.run.model).model)

    @property
    def model(self) -> str:
        return self.run.model

    @property
    def identity(self) -> str:
        return self.run.sentence

    def statistics(self, kind: Kind) -> Mapping[Measure, np.ndarray]:
        return compute_head_statistics(self.trace.maps[kind], (ROWS.get(),))

    def display_tokens(self, kind: Kind, display: DisplayOptions) -> TokenDisplay:
        return display.make_token_display(self.trace.maps[kind])

    def tiles(self, attention: AttentionMap) -> AttentionMap:
        return attention

    def lens(self) -> LogitLens:
        model = cache.load_runnable_model(self.run.model)
        if not model.can("lens"):
            raise TraceError(model.cannot("lens"))
        return cache.compute_logit_lens(*self.run)

    def attention_flow(self, trace: AttentionTrace, kind: Kind, layer: int, *, weighted: bool) -> AttentionMap:
        return cache.compute_attention_flow(tuple(self.run), kind, layer, weighted, trace)

    def draw_trials(self, attention: AttentionMap, layer: int, head: int) -> None:
        super().draw_trials(attention, layer, head)
        draw_given_translation_toggle(self.run.sentence, cache.load_runnable_model(self.run.model).writes)

    @property
    def impossible_views(self) -> tuple[SingleView, ...]:
        can_read_layers = cache.load_runnable_model(self.run.model).can("lens")
        return ("picture",) if can_read_layers else ("layers", "picture")

    @property
    def pinned_step(self) -> int | None:
        """The step of the pinned token of the translation."""
        return self.translation.find_step_of_row(get_pin(self.identity, "target"))

    def measure_effects(self) -> HeadEffects:
        unchanged = self.run._replace(changes="")  # Else the tiles would change places at every switch.
        return compute_head_effects(self.run.model, cache.compute_translation_with_changes(*unchanged))

    def open_run(self, run: RunKey) -> ExploreRun:
        return ExploreRun(run, cache.compute_translation_with_changes(*run))

    @property
    def has_open_card(self) -> bool:
        """Whether the card of a pinned word stands open: that of the word which the page picks is folded."""
        step, cross = self.pinned_step, self.trace.cross
        if step is None or not cache.load_runnable_model(self.run.model).can("word facts"):
            return False
        return cross is None or not is_default_pinned_row(cross, step + self.first_row)

    @property
    def written_steps(self) -> Sequence[DecodingStep]:
        """The pieces of the translation; its end is left out where special tokens are hidden."""
        steps = self.translation.steps
        return steps if EXPLORE_HIDE_SPECIAL.get() is False else [step for step in steps if step.stopped != "eos"]

    def word_card(self) -> None:
        step, cross = self.pinned_step, self.trace.cross
        if step is None or not cache.load_runnable_model(self.run.model).can("word facts"):
            return
        if cross is None or self.has_open_card:
            self._draw_word_card(step)
            return
        if is_presenting():  # What is folded on the page is no part of its picture.
            return
        position = step + self.first_row
        words = weigh_words(cross)
        row = words.row_of(position) if words else None
        word = self.translation.target_tokens[step] if words is None or row is None else words.row_words[row]
        name = say("More about {word}", word=escape_markdown(quote_token(word)))
        card = st.expander(name, key=f"card of {self.identity} {step}", on_change="rerun")
        if card.open:
            with card:
                self._draw_word_card(step)

    def _draw_word_card(self, step: int) -> None:
        actions = build_card_actions(self.run, self.translation, step)
        draw_token_card(self.run.model, self.translation, step, actions, self.run.changes)

    def what_to_see(self, kind: Kind, layer: int, head: int) -> str:
        cross, text = self.trace.cross, self.translation.text
        if cross is None or kind != "cross":
            return ""
        return example_hint_text(self.run.sentence, text, cross, layer, head, self.pinned_step)

    def saved_texts(self) -> list[Part]:
        data = token_line_data(self.written_steps, self.pinned_step)
        effect = build_head_change_effect_parts(self.run) if self.run.changes else []
        texts: list[Part] = [Words(self.trace.source, "sentence", "large"), Component("tokens", data, "translation")]
        picture = _build_sentence_picture(self) if is_on_stage() else None  # Pages are saved without.
        lines = [Component("sentence", encode_sentence_picture(picture), SENTENCE_PICTURE_ROLE)] if picture else []
        return [*texts, *lines, *effect]


def draw_explore_run(model: RunnableModel, text: str) -> ExploreRun:
    """Draw the sentence above its translation, and return the run: of a given translation, of a changed model."""
    above = st.container()
    with st.container(key="underline"):
        key_of_line = st.empty()
    own = cache.compute_translation(model.name, text)
    given = _draw_given_translation_field(model, text, own.text) if is_given_translation_on(text) else ""
    key = RunKey(model.name, text, given, explore_controls.draw_change_effect(model, text, given))
    run = ExploreRun(key, cache.compute_translation_with_changes(*key))
    explore_controls.open_strongest_head_if_requested(run)
    first = run.translation.first_row
    with key_of_line:
        _draw_translation_caption(model, run.translation)
    with above:
        _draw_sentence_and_translation(run)
    if first:
        places = say(
            "The first {count} rows and columns are the prompt; what was written after it follows.", count=first + 1
        )
        prompt = quote_token("".join(run.translation.source_tokens))
        chat = say("The model reads {prompt}.", prompt=prompt) if model.prompt_template == CHAT_TEMPLATE else ""
        draw_caption(join_sentences(places, chat))
    draw_translation_warnings(model, run.translation, own)
    return run


def _draw_given_translation_field(model: RunnableModel, text: str, own: str) -> str:
    """Draw the field of a given translation and the way back, and return what is given."""
    with st.container(key="givenbar", horizontal=True, vertical_alignment="center"):
        field = st.container()
        back = say("Back to the model's own")
        st.button(back, key="given-back", type="tertiary", on_click=set_given_translation, args=(text, ""))
    with field:
        return draw_scored_given_translation_field(model.name, text, own)


def _draw_sentence_and_translation(run: ExploreRun) -> None:
    """Draw the sentence above its translation, word by word; without cross-attention, the pieces written alone."""
    text, cross = run.run.sentence, run.trace.cross
    picture = _build_sentence_picture(run)
    if is_presenting() or picture is None:
        pin = lambda at: toggle_pins(text, {"target": at + run.first_row})  # noqa: E731
        draw_tokens(run.written_steps, run.pinned_step, key="translation", on_pin=pin)
    if picture is None or cross is None:
        return
    key = SENTENCE_PICTURE_ROLE if is_presenting() else "translation"
    draw_sentence_picture(picture, key=key, on_pin=partial(pin_word, run.run, cross))


def _build_sentence_picture(run: ExploreRun) -> SentencePicture | None:
    """Return the words with the links of the head that is shown; without cross-attention or words there are none."""
    text, cross = run.run.sentence, run.trace.cross
    words = weigh_words(cross) if cross is not None else None
    if words is None or cross is None:
        return None
    row = words.row_of(get_pin(text, "target"))
    place = get_chosen_cross_head(cross) if KIND.get() == "cross" else find_best_head(words, row or 0)
    pinned: dict[SentenceSide, int | None] = {side: get_pin(text, side) for side in get_args(SentenceSide)}
    own = not (run.run.given or run.run.changes)  # What is typed is translated by the unchanged model alone.
    note = say("Press Enter to see its heads below.")
    can_type = own and not is_on_stage()
    preview = {"model": run.run.model, "language": current_language(), "sentence": text, "note": note}
    picked = is_head_auto_selected(run.run.model, text)
    return SentencePicture(
        words,
        *place,
        run.translation.steps,
        pinned,
        head_picked=picked,
        preview=preview if can_type else None,
        has_card=run.has_open_card and not is_on_stage(),
    )


def _draw_translation_caption(model: RunnableModel, shown: Translation) -> None:
    """What the marks of the translation mean, of those that there are, and what a click on it does."""
    marks = (
        say("Underlined: a probability below {sure:.0%}.", sure=SURE_FROM)
        if any(map(is_low_probability_token, shown.steps))
        else ""
    )
    click = (
        say("Click a word to see what it looked at and to open its card.")
        if model.can("word facts")
        else say("Click a word to see what it looked at.")
    )
    draw_caption(join_sentences(marks, click))


# A click on a word.


def pin_word(run: RunKey, cross: AttentionMap, side: SentenceSide, position: int) -> None:
    """Pin a word, or let go of it, and bring the head that shows it, unless the shown one does; for callbacks."""
    toggle_pins(run.sentence, {side: position})
    words = weigh_words(cross)
    row = words.row_of(position) if words and side == "target" else None
    if words is None or row is None or KIND.get() != "cross" or get_pin(run.sentence, "target") != position:
        return
    place = get_chosen_cross_head(cross)
    if better := read_target_word(words, row, place, explore_controls.list_changed_heads("cross")).better:
        set_layer_and_head(*better)
        remember_auto_selected_head(run.model, run.sentence, better)


def get_chosen_cross_head(cross: AttentionMap) -> HeadPlace:
    """Return the chosen head of the cross-attention, from 0."""
    return min(LAYER.get(), cross.layers) - 1, min(HEAD.get(), cross.heads) - 1


# The actions of the word card.


def build_card_actions(run: RunKey, result: Translation, position: int) -> CardActions:
    """Return the actions: continue from another candidate or open the step on Decode, show a head here, or open Why."""

    def candidate(token_id: int) -> None:
        prefix = (*result.target_ids[:position], token_id)
        open_in_decode(run.model, run.sentence, position, prefix=prefix)

    return CardActions(
        close=lambda: toggle_pins(run.sentence, {"target": position}),
        candidate=candidate,
        head=set_explore_head,
        why=open_why,
        open=lambda: open_in_decode(run.model, run.sentence, position, given=bool(run.given)),
    )
