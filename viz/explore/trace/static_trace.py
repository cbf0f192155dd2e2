"""A trace without a model to run: one that a visitor has opened, or that of a user's own model."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from model.analysis.attention_flow import attention_flow
from model.analysis.head_statistics import Measure, head_statistics
from model.analysis.value_norm import value_weighted_trace
from model.language.say import say
from model.trace import AttentionMap, TraceError
from viz.explore.token_display import Display, TokenDisplay, display_tokens
from viz.export.parts import Part, Words
from viz.traces.session import remember

if TYPE_CHECKING:
    from model.analysis.head_statistics import Place
    from model.experiments.logit_lens import Lens
    from model.trace import AttentionTrace, Kind
    from model.untrusted_trace import OpenedTrace

    from ..run_key import RunKey

TILE_CELLS = 2**22
"""Cells that all tiles of the overview have together at most."""


@dataclass(frozen=True, eq=False)
class StaticTrace:
    """An opened trace as the screen of Explore shows it. Implements `TraceSource`.

    It belongs to one visitor, so what is computed of it is kept in that visitor's session.
    """

    opened: OpenedTrace
    run: ClassVar[None] = None
    first_row: ClassVar[int] = 0
    view_errors: ClassVar[tuple[type[Exception], ...]] = (ValueError, IndexError, KeyError)

    @property
    def trace(self) -> AttentionTrace:
        return self.opened.drawable

    @property
    def whole_trace(self) -> AttentionTrace:
        return self.opened.drawable

    def value_weighted(self) -> AttentionTrace:
        return value_weighted_trace(self.trace)

    @property
    def model(self) -> str:
        return self.opened.model

    @property
    def identity(self) -> str:
        return self.opened.identity

    def statistics(self, kind: Kind) -> Mapping[Measure, np.ndarray]:
        attention = self.trace.maps[kind]
        return remember(self.opened, f"statistics-{kind}", None, lambda: head_statistics(attention))

    def display_tokens(self, kind: Kind, display: Display) -> TokenDisplay:
        attention, choices = self.trace.maps[kind], {"merge": display.merge, "hide": display.hide}
        arguments = kind, display.rows, *choices.values()
        return remember(self.opened, "tokens", arguments, lambda: display_tokens(attention, display.rows, **choices))

    def tiles(self, attention: AttentionMap) -> AttentionMap:
        return remember(self.opened, "tiles", id(attention), lambda: pool(attention, TILE_CELLS))

    def lens(self) -> Lens:
        raise TraceError(
            say("What each layer would write needs a running model of this project: a trace holds attention only.")
        )

    def attention_flow(self, trace: AttentionTrace, kind: Kind, layer: int, *, weighted: bool) -> AttentionMap:
        arguments = kind, layer, weighted
        return remember(self.opened, "attention flow", arguments, lambda: attention_flow(trace, kind, layer))

    def of_run(self, run: RunKey) -> NoReturn:
        raise TraceError(say("This trace has no model that could run another sentence."))

    def effects(self, kind: Kind) -> None:
        return None

    def word_card(self) -> None:
        pass

    def changed_heads(self, kind: Kind) -> Collection[Place]:
        return ()

    def what_to_see(self, kind: Kind, layer: int, head: int) -> str:
        return ""

    def head_controls(self, attention: AttentionMap, layer: int, head: int) -> None:
        """Draw nothing: there is no model to change."""

    def saved_texts(self) -> list[Part]:
        sides = (("sentence", self.trace.source), ("translation", self.trace.target))
        return [Words(text, role, "large") for role, text in sides if text]


def pool(attention: AttentionMap, cells: int) -> AttentionMap:
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
