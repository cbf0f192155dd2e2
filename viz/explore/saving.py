"""The files that Explore can save: the sentence and its translation, all heads, one view, the weights, the trace."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from attenscope.analysis.heads import HeadPlace
from attenscope.language import say
from attenscope.trace import AttentionTrace
from attenscope.viz.explore.view_data import Scene, TokenDisplay
from attenscope.viz.export.browser_model_file import list_live_files
from attenscope.viz.export.parts import Chart, Columns, Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts, register_savable_view
from attenscope.viz.figures.figure_style import KIND_NAMES, Look, Palette
from attenscope.viz.figures.heatmap import pooling_block_size
from attenscope.viz.ui import cache
from attenscope.viz.ui.style import add_fragment_style
from attenscope.viz.web.maps import encode_heads_overview
from attenscope.viz.web.page_components import is_presenting

COLUMN_SHARES = (0.42, 0.58)
"""Widths of the overview and of the view beside it, as on the page."""
SINGLE_VIEW_STYLE = Path(__file__).parent / "alone.css"
"""The style of a scene whose view is not of the head that the overview chooses."""


@dataclass(frozen=True)
class DrawnView:
    """A view on the page, as it can be drawn again in a file."""

    parts: Callable[[Look], Sequence[Part]]
    """The parts of the view, in any look."""
    numbers: Callable[[], pd.DataFrame] | None = None
    """The table behind it; that of the chosen head where there is no other."""
    follows: bool = False
    """Whether it can follow the overview beside it and show any head."""
    displays: Mapping[str, TokenDisplay] = field(default_factory=dict)
    """The maps in it that may have merged pieces or hidden tokens, by name; a view of captured numbers has none."""


def build_chart_view(
    draw: Callable[..., go.Figure],
    text: str,
    numbers: Callable[[], pd.DataFrame],
    displays: Mapping[str, TokenDisplay],
    moments: Callable[..., Sequence[go.Figure]] = lambda look: (),
) -> DrawnView:
    """A view that is one figure, drawn by `draw(look=...)`, with `text` under it.

    Where it moves, `moments(look=...)` are the figures of its film.
    """
    chart = lambda look: Chart(draw(look=look), text, moments=moments(look=look))  # noqa: E731
    return DrawnView(lambda look: [chart(look), Words(text)], numbers, displays=displays)


def offer_view_download(view: DrawnView, scene: Scene, name: str) -> None:
    """Let the view `name` be saved. On the whole screen the view stands alone where it does in the file."""
    if is_presenting() and not view.follows:
        add_fragment_style("view-alone", SINGLE_VIEW_STYLE.read_text(encoding="utf-8"))
    register_savable_view(lambda: build_saveable_view(view, scene, name))


def build_saveable_view(view: DrawnView, scene: Scene, name: str) -> SavedView:
    """Return what can be saved of the view `name`."""
    trace = scene.trace
    # What is pinned and switched off belongs to the session, which a download no longer knows.
    texts, changed = scene.source.saved_texts(), scene.source.changed_heads(scene.kind)
    live = list_live_files(cache.load_runnable_model(scene.source.run.model)) if scene.source.run else {}
    return SavedView(
        f"{scene.kind}-layer{scene.layer + 1}-head{scene.head + 1}-{name}",
        lambda palette: [*texts, *build_view_parts(view, scene, palette, changed)],
        view.numbers or (lambda: head_weights_table(scene)),
        f"{say(KIND_NAMES[scene.kind])} · {scene.source.model}"
        if includes_all_heads_in_file(view, scene)
        else scene.title,
        collect_trace_facts(trace, view=name),
        {"trace.safetensors": (say("The whole trace (safetensors)"), lambda: encode_trace_file(trace))} | live,
    )


def build_view_parts(view: DrawnView, scene: Scene, palette: Palette, changed: Collection[HeadPlace]) -> Sequence[Part]:
    """The view; all heads beside it where it can show any of them, the `changed` ones (layer, head) marked."""
    look = replace(scene.look, palette=palette)
    if not includes_all_heads_in_file(view, scene):
        return view.parts(look)
    tiles = encode_heads_overview(scene.attention, scene.layer, scene.head, look, (), changed)
    return [Columns(([Component("overview", tiles, "heads", follows=True)], view.parts(look)), COLUMN_SHARES)]


def includes_all_heads_in_file(view: DrawnView, scene: Scene) -> bool:
    """Whether the file has all heads, to open any of them; tiles of a long map are too coarse to be opened."""
    return view.follows and pooling_block_size(*scene.attention.mask.shape) == 1


def head_weights_table(scene: Scene) -> pd.DataFrame:
    """The weights of the displayed head with its special tokens, a row a query; a masked cell is empty."""
    attention = scene.tokens.whole
    weights = attention.weights[scene.layer, scene.head]
    return build_weight_matrix_table(weights, attention.mask, attention.rows(scene.rows), attention.key_tokens)


def build_weight_matrix_table(
    weights: np.ndarray, mask: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> pd.DataFrame:
    """Weights (R, C) with their tokens, a row a query; what `mask` (R, C) forbids is empty."""
    return pd.DataFrame(weights, index=pd.Index(rows, name="query"), columns=list(columns)).where(mask)


def encode_trace_file(trace: AttentionTrace) -> bytes:
    """The bytes that :meth:`AttentionTrace.save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.safetensors"
        trace.save(path)
        return path.read_bytes()
