"""The interface between the screen of Explore and what it shows: a live run of a model, or a saved trace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

    from model.analysis.head_statistics import Measure, Place
    from model.experiments.logit_lens import Lens
    from model.trace import AttentionMap, AttentionTrace, Kind
    from viz.export.parts import Part

    from .run_key import RunKey
    from .token_display import Display, TokenDisplay


class TraceSource(Protocol):
    """A trace, and what can be computed of it.

    Implemented by `live.run.LiveRun` and `trace.static_trace.StaticTrace`.
    """

    @property
    def trace(self) -> AttentionTrace:
        """The maps; at least one."""

    @property
    def whole_trace(self) -> AttentionTrace:
        """The maps with queries, keys, values and scores, as far as these are known."""

    def value_weighted(self) -> AttentionTrace:
        """Return the maps weighted by value norms: with the output projection where there is a model that holds it.

        Raises TraceError for a trace without value vectors.
        """

    @property
    def model(self) -> str:
        """The name of the model."""

    @property
    def identity(self) -> str:
        """What pinned positions belong to: the sentence, or the identity of a saved trace."""

    @property
    def run(self) -> RunKey | None:
        """The run, which can be made again with something changed; None where there is no model to run."""

    @property
    def first_row(self) -> int:
        """The row of the decoder's maps that predicts the first token written: 0 but after a prompt."""

    @property
    def view_errors(self) -> tuple[type[Exception], ...]:
        """What a view may raise because arrays from elsewhere do not fit each other; () for a model of this project."""

    def statistics(self, kind: Kind) -> Mapping[Measure, np.ndarray]:
        """Return every measure of every head of a map, each (L, H)."""

    def display_tokens(self, kind: Kind, display: Display) -> TokenDisplay:
        """Return a map in pieces or words, with or without special tokens."""

    def tiles(self, attention: AttentionMap) -> AttentionMap:
        """Return a map with few enough cells for the overview of all heads."""

    def lens(self) -> Lens:
        """Return what each layer would write. Raises TraceError where there is no model to run."""

    def attention_flow(self, trace: AttentionTrace, kind: Kind, layer: int, *, weighted: bool) -> AttentionMap:
        """Return the attention flow of `trace` through `layer`: this trace, `weighted` by values or not."""

    def changed_heads(self, kind: Kind) -> Collection[Place]:
        """Return the heads of a map that the visitor has changed."""

    def what_to_see(self, kind: Kind, layer: int, head: int) -> str:
        """Return what an example wants seen at this head, from 0, and the pinned row; "" where nothing is known."""

    def head_controls(self, attention: AttentionMap, layer: int, head: int) -> None:
        """Draw what can be done to a head, counted from 0."""

    def effects(self, kind: Kind) -> tuple[np.ndarray, str] | None:
        """Return what switching off each head changes (L, H), in nats, and of which words; None without a model."""

    def of_run(self, run: RunKey) -> TraceSource:
        """Return the same of another run. Raises TraceError where there is no model to run."""

    def word_card(self) -> None:
        """Draw the card of the pinned word of the translation, if there is one and a model to ask."""

    def saved_texts(self) -> list[Part]:
        """Return what stands above the pictures in a saved file: the sentence and its translation."""
