"""The page Explore for a trace without a model to run: an opened file, or a model that only encodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, NoReturn

import numpy as np
import streamlit as st

from attenscope.analysis.attention_steps import weight_trace_by_value_norms
from attenscope.analysis.flow import compute_attention_flow
from attenscope.analysis.heads import HeadPlace, Measure, compute_head_statistics
from attenscope.capture.any_model.module_kinds import read_saved_remarks
from attenscope.experiments.lens import LogitLens
from attenscope.hugging_face.masked_words import MaskedWordModel
from attenscope.interventions.changes import InterventionError, format_changes
from attenscope.language import say
from attenscope.runnable_model import LocalError, LocalModel
from attenscope.text.patches import Patches
from attenscope.trace import AttentionMap, AttentionTrace, Kind, TraceError
from attenscope.untrusted_trace import OpenedTrace, clean_text
from attenscope.viz.explore import controls as explore_controls
from attenscope.viz.explore.screen import draw_screen, select_default_head_and_pin
from attenscope.viz.explore.view_data import DisplayOptions, RunKey, TokenDisplay
from attenscope.viz.export.parts import Part, Words
from attenscope.viz.traces import verdict
from attenscope.viz.traces.session import cache_trace_result
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.addresses.explore import SingleView
from attenscope.viz.ui.addresses.shared import LAYER, PIN, ROWS, get_pin, toggle_pins
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.ui.links import set_explore_head
from attenscope.viz.ui.open_trace import close_trace
from attenscope.viz.web.maps import TileSwitches
from attenscope.viz.web.text_components import CardActions, draw_word_card, masked_word_data

# The page of a trace that a visitor has opened.


TRACE_STYLE = Path(__file__).parent / "trace.css"
MAX_NOTE_LENGTH = 1000
"""Characters shown of a note that a trace holds about its capture."""


def draw_opened_page(opened: OpenedTrace) -> None:
    """Draw the page of an opened trace."""
    with st.container(key="openedbar", horizontal=True, vertical_alignment="center"):
        opened_trace = say(
            "**{name}** · an opened trace of {model}",
            name=escape_markdown(opened.name),
            model=escape_markdown(opened.model),
        )
        st.markdown(opened_trace, width="content")
        st.button(say("Back to the model"), key="close", on_click=close_trace)
    draw_trace(opened)


def draw_trace(opened: OpenedTrace, draw_pictures: Callable[[], None] | None = None) -> None:
    """Draw the texts of a trace, the verdict on its masks, and its pictures, if not others."""
    st.html(TRACE_STYLE)
    _draw_texts(opened)
    for note in (*opened.notes, *_observer_effect_notes(opened)):
        draw_caption(note)
    with st.container(key="verdict"):
        place = st.empty()
    if LAYER.key not in st.session_state:
        select_default_head_and_pin(opened.model, opened.identity, opened.drawable)
    st.fragment(draw_pictures or partial(draw_screen, StaticTrace(opened)))()
    with place.container():  # Drawn last: a verdict on large masks takes a moment.
        verdict.draw_verdicts(opened)


def _draw_texts(opened: OpenedTrace) -> None:
    """Draw the sentence and the translation, where the trace has them."""
    for side, text in (("source", opened.drawable.source), ("target", opened.drawable.target)):
        if text:
            with st.container(key=f"opened-{side}"):
                st.markdown(escape_markdown(text))


def _observer_effect_notes(opened: OpenedTrace) -> list[str]:
    """Whether the capture changed which kernel ran, as the trace says."""
    effect = read_saved_remarks(opened.trace.settings)
    return [clean_text(effect, MAX_NOTE_LENGTH)] if effect else []


# A trace that no model can extend: an opened file, or that of a model that only reads.


MAX_TILE_CELLS = 2**22
"""Cells that all tiles of the overview have together at most."""


@dataclass(frozen=True, eq=False)
class StaticTrace:
    """An opened trace as the screen of Explore shows it. Implements `TraceSource`.

    It belongs to one visitor, so what is computed of it is kept in that visitor's session.
    """

    opened: OpenedTrace
    run: ClassVar[None] = None
    changes: str = ""
    first_row: ClassVar[int] = 0
    view_errors: ClassVar[tuple[type[Exception], ...]] = (ValueError, IndexError, KeyError)

    @property
    def trace(self) -> AttentionTrace:
        return self.opened.drawable

    @property
    def whole_trace(self) -> AttentionTrace:
        return self.opened.drawable

    @property
    def patches(self) -> Patches | None:
        return None

    def value_weighted(self) -> AttentionTrace:
        return weight_trace_by_value_norms(self.trace)

    @property
    def model(self) -> str:
        return self.opened.model

    @property
    def identity(self) -> str:
        return self.opened.identity

    def statistics(self, kind: Kind) -> Mapping[Measure, np.ndarray]:
        attention, rows = self.trace.maps[kind], ROWS.get()
        return cache_trace_result(
            self.opened, f"statistics-{kind}-{rows}", None, lambda: compute_head_statistics(attention, (rows,))
        )

    def display_tokens(self, kind: Kind, display: DisplayOptions) -> TokenDisplay:
        attention = self.trace.maps[kind]
        arguments = kind, display.rows, display.merge, display.hide, display.hide_first
        return cache_trace_result(self.opened, "tokens", arguments, lambda: display.make_token_display(attention))

    def tiles(self, attention: AttentionMap) -> AttentionMap:
        return cache_trace_result(
            self.opened, "tiles", id(attention), lambda: pool_attention(attention, MAX_TILE_CELLS)
        )

    def lens(self) -> LogitLens:
        raise TraceError(
            say("What each layer would write needs a running model of this project: a trace holds attention only.")
        )

    def attention_flow(self, trace: AttentionTrace, kind: Kind, layer: int, *, weighted: bool) -> AttentionMap:
        arguments = kind, layer, weighted
        return cache_trace_result(
            self.opened, "attention flow", arguments, lambda: compute_attention_flow(trace, kind, layer)
        )

    def open_run(self, run: RunKey) -> NoReturn:
        raise TraceError(say("This trace has no model that could run another sentence."))

    def measure_effects(self) -> None:
        return None

    def word_card(self) -> None:
        pass

    def changed_heads(self, kind: Kind) -> Collection[HeadPlace]:
        return ()

    def what_to_see(self, kind: Kind, layer: int, head: int) -> str:
        return ""

    def tile_switches(self, kind: Kind) -> TileSwitches | None:
        return None

    def draw_trials(self, attention: AttentionMap, layer: int, head: int) -> None:
        """Draw nothing: there is no model to change."""

    @property
    def impossible_views(self) -> tuple[SingleView, ...]:
        held = any("q" in one.tensors for one in self.trace.maps.values())
        return ("layers", "picture") if held else ("pipeline", "layers", "picture")

    def saved_texts(self) -> list[Part]:
        sides = (("sentence", self.trace.source), ("translation", self.trace.target))
        return [Words(text, role, "large") for role, text in sides if text]


def pool_attention(attention: AttentionMap, cells: int) -> AttentionMap:
    """A map of at most `cells` cells: each stands for a square block of tokens and has its largest weight."""
    step = int(np.ceil(np.sqrt(attention.weights.size / cells)))
    if step < 2:
        return attention
    weights = _block_maximum(_block_maximum(np.where(attention.masks, attention.weights, 0), step, 2), step, 3)
    masks = attention.layer_masks
    return dataclasses.replace(
        attention,
        weights=weights,
        query_tokens=attention.query_tokens[::step],
        key_tokens=attention.key_tokens[::step],
        predicted_tokens=attention.predicted_tokens[::step],
        mask=_block_maximum(_block_maximum(attention.mask, step, 0), step, 1),
        layer_masks=None if masks is None else _block_maximum(_block_maximum(masks, step, 2), step, 3),
        passed_masks=None,
        tensors={},
    )


def _block_maximum(array: np.ndarray, step: int, axis: int) -> np.ndarray:
    """The maximum of every `step` entries along an axis."""
    return np.maximum.reduceat(array, np.arange(0, array.shape[axis], step), axis)


# The page of a model that only reads a sentence.


def draw_encoder_only_page(local: LocalModel) -> None:
    """Draw the page: the sentence, and what the model attends to."""
    text = controls.draw_encoder_sentence_box()
    if not text.strip():
        st.info(say("Type a sentence for the model to read."))
        return
    try:
        trace = cache.compute_encoder_only_trace(local.name, text)
    except LocalError as error:
        st.info(escape_message(str(error)))
        return
    reads_masks = isinstance(local, MaskedWordModel)
    draw_trace(trace, partial(_draw_masked_word_pictures, local.name, text) if reads_masks else None)


def _draw_masked_word_pictures(name: str, text: str) -> None:
    """Draw the pictures of an encoder that reads masked words, with the heads switched off that the visitor chose."""
    PIN.hold(of=text)
    # No term is explained in it: the mask of a word is not that of attention.
    st.caption(say("Click a row of the heatmap to mask its word: a card says what the model reads there."))
    changes = format_changes(explore_controls.read_changes())
    if changes:
        controls.draw_model_changes_note(changes)
    try:
        opened = cache.compute_encoder_only_trace(name, text, changes)
    except InterventionError as error:
        st.info(escape_message(str(error)))
        changes, opened = "", cache.compute_encoder_only_trace(name, text)
    draw_screen(MaskedWordRun(opened, changes, name, text))


@dataclass(frozen=True, eq=False)
class MaskedWordRun(explore_controls.SwitchableHeads, StaticTrace):
    """The trace of an encoder that reads masked words and whose heads can be switched off."""

    name: str = ""
    text: str = ""

    @property
    def identity(self) -> str:
        return self.text

    def word_card(self) -> None:
        """Draw the card of the pinned word, else of the first mask that the text itself has."""
        masks = cache.load_masked_word_model(self.name).find_mask_positions(self.text)
        position = get_pin(self.text, "source")
        position = next(iter(masks), None) if position is None else position
        if position is None:
            return
        try:
            found = cache.compute_masked_word(self.name, self.text, position, self.changes)
            heads = cache.compute_masked_word_head_effects(self.name, self.text, position, self.changes)
        except LocalError:  # A special token, of which there is nothing to say.
            return
        close = partial(toggle_pins, self.text, {"source": position})
        with st.container(key="wordcard"):
            actions = CardActions(close, None, set_explore_head, None)
            draw_word_card(masked_word_data(found, heads), actions, key="word-card")
