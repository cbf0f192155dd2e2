"""What is worked out once of an opened trace: it is one visitor's own, so it is kept in that visitor's session."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import streamlit as st

from model.analysis.head_statistics import Measure, head_statistics
from model.trace import AttentionMap, Kind
from viz.explore.token_display import Arranged, arrange

if TYPE_CHECKING:
    from model.untrusted_trace import Opened
    from viz.explore.choices import Display

Found = TypeVar("Found")
TILE_CELLS = 2**22
"""Cells that all tiles of the overview have together at most."""


def kept(opened: Opened, what: str, how: Hashable, make: Callable[[], Found]) -> Found:
    """What `make` gives; of each `what` the last is kept, and with another trace none."""
    of, memory = st.session_state.get("opened-kept", (None, {}))
    if of != opened.identity:
        memory = {}
        st.session_state["opened-kept"] = (opened.identity, memory)
    if what not in memory or memory[what][0] != how:
        memory[what] = (how, make())
    return memory[what][1]


def statistics(opened: Opened, kind: Kind) -> dict[Measure, np.ndarray]:
    """Of every head of one map."""
    one = opened.shown.maps[kind]
    return kept(opened, f"statistics-{kind}", kind, lambda: head_statistics(one))


def arranged(opened: Opened, kind: Kind, display: Display) -> Arranged:
    """A map in words or pieces, with or without special tokens."""
    one, how = opened.shown.maps[kind], (kind, display.rows, display.merge, display.hide)
    return kept(opened, "arranged", how, lambda: arrange(one, display.rows, merge=display.merge, hide=display.hide))


def tiles(opened: Opened, shown: AttentionMap) -> AttentionMap:
    """A map for the overview: of a large one each tile has fewer cells, the largest weight of those that they were."""
    return kept(opened, "tiles", id(shown), lambda: smaller(shown, TILE_CELLS))


def smaller(attention: AttentionMap, cells: int) -> AttentionMap:
    """The map with so many tokens on a side made one that it has at most `cells` cells."""
    step = int(np.ceil(np.sqrt(attention.weights.size / cells)))
    if step < 2:
        return attention
    weights = _largest(_largest(np.where(attention.mask, attention.weights, 0), step, 2), step, 3)
    return dataclasses.replace(
        attention,
        weights=weights,
        query_tokens=attention.query_tokens[::step],
        key_tokens=attention.key_tokens[::step],
        predicted_tokens=attention.predicted_tokens[::step],
        mask=_largest(_largest(attention.mask, step, 0), step, 1),
        tensors={},
    )


def _largest(array: np.ndarray, step: int, axis: int) -> np.ndarray:
    return np.maximum.reduceat(array, np.arange(0, array.shape[axis], step), axis)
