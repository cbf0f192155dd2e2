"""One sentence through a training: every head at every stop, scrubbed in the browser without asking the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.language.say import say

from ...figures.labels import KIND_NAMES, label_text
from ..bundle import component
from ..packing import pack, quantise

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from ...figures.heatmap import Rows
    from ...figures.palette import Look

_mount = component("snapshots")


@dataclass(frozen=True)
class StopShown:
    """One stop in words."""

    tick: str
    """Under the slider: "366"."""
    name: str
    """"step 366 of 7,000"."""
    text: str | None
    """What the model writes of its own there; None where only its attention is known."""
    belief: float | None
    """The probability it gives a token of the fixed translation; None where that is not known."""
    quality: str
    """"dev BLEU 12.3", or that it is not known; "" where the model has no such measure."""


@dataclass(frozen=True, eq=False)
class Scrubbed:
    """All stops of one sentence and one kind of attention."""

    shown: Sequence[StopShown]
    maps: Sequence[AttentionMap]
    """One a stop, all of one shape."""
    start: int
    """The stop it begins at, from 0."""
    place: tuple[int, int]
    """Layer and head shown large, from 0."""
    look: Look
    rows: Rows
    run: str
    """Another one starts anew."""


def snapshots(
    scrubbed: Scrubbed, *, key: str, on_stop: Callable[[int], None], on_pick: Callable[[int, int], None]
) -> None:
    """Draw it; `on_stop(number)` hears of a stop one has come to rest at, `on_pick(layer, head)` of a head opened."""
    state = lambda: st.session_state[key]  # noqa: E731  (what the browser sent, read when a callback runs)
    _mount(
        key=key,
        data=packed(scrubbed),
        on_stop_change=lambda: on_stop(int(state().stop)),
        on_pick_change=lambda: on_pick(int(state().pick["layer"]), int(state().pick["head"])),
    )


def packed(scrubbed: Scrubbed) -> bytes:
    """What snapshots.js reads: words, sizes and colours, then (stops, L, H, Q, K) bytes."""
    maps, look, rows = scrubbed.maps, scrubbed.look, scrubbed.rows
    first = maps[0]
    if len({one.weights.shape for one in maps}) != 1 or len(maps) != len(scrubbed.shown):
        raise ValueError("Every stop needs one map, and all maps must be of one shape.")
    layers, heads, queries, keys = first.weights.shape
    header = {
        "id": scrubbed.run,
        "kind": say(KIND_NAMES[first.kind]),
        "moments": [asdict(one) for one in scrubbed.shown],
        "start": scrubbed.start,
        "layers": layers,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "layer": scrubbed.place[0],
        "head": scrubbed.place[1],
        "rows": [label_text(token) for token in first.rows(rows)],
        "columns": [label_text(token) for token in first.key_tokens],
        "stops": look.stops,
        "scale": look.scale,
        "masked": look.palette.masked,
        "background": look.palette.background,
    }
    return pack(header, np.stack([quantise(one.weights, one.masks) for one in maps]).tobytes())
