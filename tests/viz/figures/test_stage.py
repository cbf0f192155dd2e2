"""Figures as they are projected: no small type, every name, no number wider than its cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import Look
from attenscope.viz.figures.heatmap import heatmap, make_head_grid, plot_weight_grid
from attenscope.viz.figures.presentation_sizes import LEAST_FONT_SIZE, enlarge_fonts_for_projection


def map_of(tokens: int) -> AttentionMap:
    names = tuple(f" t{at}" for at in range(tokens))
    weights = np.random.default_rng(tokens).dirichlet(np.ones(tokens), (1, 1, tokens)).astype(np.float32)
    return AttentionMap("encoder", weights, names, names, np.ones((tokens, tokens), dtype=bool))


def sizes(found: Any) -> list[float]:
    if isinstance(found, dict):
        own = [value["size"] for name, value in found.items() if name.endswith("font") and "size" in (value or {})]
        return own + [one for value in found.values() for one in sizes(value)]
    return [one for value in found for one in sizes(value)] if isinstance(found, (list, tuple)) else []


@pytest.mark.parametrize("tokens", [2, 7, 20, 60, 200])
def test_no_type_is_smaller_and_every_name_stays(tokens: int) -> None:
    grid = make_head_grid(map_of(tokens), 0, 0, "predicted")
    figure = plot_weight_grid(grid, Look(), pinned=1, numbers=True)  # As a page draws it.
    shown = enlarge_fonts_for_projection(figure)
    found = sizes(shown.to_dict())
    assert found
    assert min(np.ravel(one).min() for one in found) >= LEAST_FONT_SIZE
    for axis, before in ((shown.layout.xaxis, figure.layout.xaxis), (shown.layout.yaxis, figure.layout.yaxis)):
        assert abs(axis.range[1] - axis.range[0]) == tokens
        assert (axis.tickvals, axis.ticktext) == (before.tickvals, before.ticktext)
        assert all(name in (f"t{at}", f"<b>t{at}</b>") for at, name in zip(axis.tickvals, axis.ticktext, strict=True))
    assert "<b>t1</b>" in shown.layout.yaxis.ticktext
    assert (shown.data[-1].texttemplate is not None) == (tokens <= 12)


def test_the_figure_itself_stays_as_it_is() -> None:
    figure = heatmap(map_of(60), 0, 0)
    before = figure.to_json()
    enlarge_fonts_for_projection(figure)
    assert figure.to_json() == before


def test_what_says_nothing_of_its_type_has_the_least() -> None:
    shown = enlarge_fonts_for_projection(go.Figure(go.Scatter(x=[1], y=[2], textfont={"size": [8, 20]})))
    assert shown.layout.font.size == LEAST_FONT_SIZE
    assert list(shown.data[0].textfont.size) == [LEAST_FONT_SIZE, 20]


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 3), (7, 7), (60, 60), (4, 40), (300, 300)])
def test_a_heatmap_of_its_own_is_as_large_as_its_cells(queries: int, keys: int) -> None:
    weights = np.full((1, 1, queries, keys), 1 / keys, np.float32)
    tokens = tuple(map(str, range(max(queries, keys))))
    found = AttentionMap("cross", weights, tokens[:queries], tokens[:keys], np.ones((queries, keys), bool))
    layout = heatmap(found, 0, 0).layout
    across = layout.width - layout.margin.l - layout.margin.r
    down = layout.height - layout.margin.t - layout.margin.b
    assert layout.width <= 1100
    assert down / queries >= 3
    assert across / keys >= 3
    assert tuple(layout.xaxis.range) == (-0.5, keys - 0.5)  # No room is left for cells that are not there.
    assert tuple(layout.yaxis.range) == (queries - 0.5, -0.5)
