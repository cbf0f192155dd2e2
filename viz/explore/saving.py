"""What can be saved of Explore: the sentence and its translation, all heads, one view, the weights, the trace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from viz.components.overview import packed as packed_overview
from viz.components.tokens import pieces
from viz.export.parts import Columns, Component, Part, Words
from viz.export.save import Saved, facts_of, save
from viz.figures.labels import KIND_NAMES
from viz.figures.pooled import block

from . import interventions

if TYPE_CHECKING:
    from model.trace import AttentionTrace
    from viz.figures.palette import Look, Palette

    from .scene import Scene

SHARES = (0.42, 0.58)
"""Of the overview and the view beside it, as on the page."""


@dataclass(frozen=True)
class Shown:
    """What a view has put on the page."""

    parts: Callable[[Look], Sequence[Part]]
    """What it is made of, in any look."""
    numbers: Callable[[], pd.DataFrame] | None = None
    """The table behind it; that of the chosen head where there is no other."""
    follows: bool = False
    """Whether it can show any head of an overview beside it."""


def offer(shown: Shown, scene: Scene, name: str) -> None:
    """The menu; `name` is of the view."""
    trace = scene.result.trace
    above = text(scene)  # What is pinned and switched off belongs to the session, which a download no longer knows.
    changed = interventions.changed_heads(scene.arranged.captured)
    save(
        Saved(
            f"{scene.kind}-layer{scene.layer + 1}-head{scene.head + 1}-{name}",
            lambda palette: [*above, *parts(shown, scene, palette, changed)],
            shown.numbers or (lambda: table(scene)),
            f"{KIND_NAMES[scene.kind]} · {scene.model.name}" if has_all_heads(shown, scene) else scene.title,
            facts_of(trace, view=name),
            {"The whole trace (safetensors)": ("trace.safetensors", lambda: file_of(trace))},
        )
    )


def text(scene: Scene) -> list[Part]:
    """The sentence, its translation, and what changes did to it."""
    again = interventions.said(scene.reading) if scene.reading.changes else []
    shown = {"pieces": pieces(scene.result.steps), "pinned": scene.position}
    return [Words(scene.result.trace.source, "sentence", "large"), Component("tokens", shown, "translation"), *again]


def parts(shown: Shown, scene: Scene, palette: Palette, changed: frozenset[tuple[int, int]]) -> Sequence[Part]:
    """The view; all heads beside it where it can show any of them, the `changed` ones (layer, head) marked."""
    look = replace(scene.look, palette=palette)
    if not has_all_heads(shown, scene):
        return shown.parts(look)
    tiles = packed_overview(scene.attention, scene.layer, scene.head, look, (), changed)
    return [Columns(([Component("overview", tiles, "heads", follows=True)], shown.parts(look)), SHARES)]


def has_all_heads(shown: Shown, scene: Scene) -> bool:
    """Whether the file has all heads, to open any of them; tiles of a long map are too coarse to be opened."""
    return shown.follows and block(*scene.attention.mask.shape) == 1


def table(scene: Scene) -> pd.DataFrame:
    """The weights of the head as shown, a row a query; a masked cell is empty."""
    attention = scene.attention
    weights = attention.weights[scene.layer, scene.head]
    return grid_table(weights, attention.mask, attention.rows(scene.rows), attention.key_tokens)


def grid_table(weights: np.ndarray, mask: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Weights (R, C) with their tokens, a row a query; what `mask` (R, C) forbids is empty."""
    return pd.DataFrame(weights, index=pd.Index(rows, name="query"), columns=list(columns)).where(mask)


def file_of(trace: AttentionTrace) -> bytes:
    """What :meth:`AttentionTrace.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        trace.save(path)
        return path.read_bytes()
