"""Figures as they are projected: no small type, every name, no number wider than its cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from attenscope.trace import AttentionMap
from attenscope.viz.figures.heatmap import heatmap
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
    figure = heatmap(map_of(tokens), 0, 0, pinned=1, numbers=True)
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
