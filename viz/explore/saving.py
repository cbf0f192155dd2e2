"""The files that Explore can save: the sentence and its translation, all heads, one view, the weights, the trace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from model.language.say import say
from viz.components.overview import packed as packed_overview
from viz.components.presenter import presenting
from viz.export.live_file import live_files
from viz.export.parts import Chart, Columns, Component, Part, Words
from viz.export.save import SavedView, facts_of, save
from viz.figures.labels import KIND_NAMES
from viz.figures.pooled import block
from viz.ui import cache
from viz.ui.theme import fragment_style

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.analysis.head_statistics import Place
    from model.trace import AttentionTrace
    from viz.figures.palette import Look, Palette

    from .scene import Scene
    from .token_display import TokenDisplay

SHARES = (0.42, 0.58)
"""Widths of the overview and of the view beside it, as on the page."""
ALONE = Path(__file__).parent / "alone.css"
"""The style of a scene whose view is not of the head that the overview chooses."""


@dataclass(frozen=True)
class DrawnView:
    """A view on the page, as it can be drawn again in a file."""

    parts: Callable[[Look], Sequence[Part]]
    """The parts of the view, in any look."""
    numbers: Callable[[], pd.DataFrame] | None = None
    """The table behind it; that of the chosen head where there is no other."""
    follows: bool = False
    """Whether it can show any head of an overview beside it."""
    displays: Mapping[str, TokenDisplay] = field(default_factory=dict)
    """The maps in it that may have merged pieces or hidden tokens, by name; a view of captured numbers has none."""


def chart_view(
    draw: Callable[..., go.Figure],
    text: str,
    numbers: Callable[[], pd.DataFrame],
    displays: Mapping[str, TokenDisplay],
) -> DrawnView:
    """A view that is one figure, drawn by `draw(look=...)`, with `text` under it."""
    return DrawnView(lambda look: [Chart(draw(look=look), text), Words(text)], numbers, displays=displays)


def offer(view: DrawnView, scene: Scene, name: str) -> None:
    """Draw the menu; `name` is that of the view. On the whole screen it stands alone where it does in the file."""
    if presenting() and not view.follows:
        fragment_style("view-alone", ALONE.read_text(encoding="utf-8"))
    trace = scene.trace
    # What is pinned and switched off belongs to the session, which a download no longer knows.
    texts, changed = scene.source.saved_texts(), scene.source.changed_heads(scene.kind)
    live = live_files(cache.live(scene.source.run.model)) if scene.source.run else {}
    save(
        SavedView(
            f"{scene.kind}-layer{scene.layer + 1}-head{scene.head + 1}-{name}",
            lambda palette: [*texts, *parts(view, scene, palette, changed)],
            view.numbers or (lambda: table(scene)),
            f"{say(KIND_NAMES[scene.kind])} · {scene.source.model}" if has_all_heads(view, scene) else scene.title,
            facts_of(trace, view=name),
            {"trace.safetensors": (say("The whole trace (safetensors)"), lambda: file_of(trace))} | live,
        )
    )


def parts(view: DrawnView, scene: Scene, palette: Palette, changed: Collection[Place]) -> Sequence[Part]:
    """The view; all heads beside it where it can show any of them, the `changed` ones (layer, head) marked."""
    look = replace(scene.look, palette=palette)
    if not has_all_heads(view, scene):
        return view.parts(look)
    tiles = packed_overview(scene.attention, scene.layer, scene.head, look, (), changed)
    return [Columns(([Component("overview", tiles, "heads", follows=True)], view.parts(look)), SHARES)]


def has_all_heads(view: DrawnView, scene: Scene) -> bool:
    """Whether the file has all heads, to open any of them; tiles of a long map are too coarse to be opened."""
    return view.follows and block(*scene.attention.mask.shape) == 1


def table(scene: Scene) -> pd.DataFrame:
    """The weights of the displayed head, a row a query; a masked cell is empty."""
    attention = scene.attention
    weights = attention.weights[scene.layer, scene.head]
    return grid_table(weights, attention.mask, attention.rows(scene.rows), attention.key_tokens)


def grid_table(weights: np.ndarray, mask: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """Weights (R, C) with their tokens, a row a query; what `mask` (R, C) forbids is empty."""
    return pd.DataFrame(weights, index=pd.Index(rows, name="query"), columns=list(columns)).where(mask)


def file_of(trace: AttentionTrace) -> bytes:
    """The bytes that :meth:`AttentionTrace.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        trace.save(path)
        return path.read_bytes()
