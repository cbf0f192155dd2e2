"""The view of the page Positions for a folder whose attention itself knows distances: scores against distance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from attenscope.language import format_number, join_sentences, say, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.viz.export.parts import Component, Part, Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view
from attenscope.viz.figures.curves import Curves
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.figures.positions import plot_scores_by_distance
from attenscope.viz.ui import controls as ui_controls
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.ui.links import draw_next_page_link
from attenscope.viz.web.charts import draw_curves, encode_curves

if TYPE_CHECKING:
    from attenscope.hugging_face.distances import DistanceScores

LAYOUT_TEXTS = {
    "halves": to_say("A pair is one dimension of each half."),
    "neighbours": to_say("A pair is two neighbouring dimensions."),
}


def draw_distances_page(model: RunnableModel, stacks: Sequence[DistanceScores]) -> None:
    """Draw what a head of the first layer makes of distance, measured and by the formula."""
    ui_controls.hide_sentence_box()
    kind, _, head = ui_controls.draw_attention_head_selector({one.kind: (1, len(one.measured)) for one in stacks})
    found = next(one for one in stacks if one.kind == kind)
    names = {"model": model.name, "kind": KIND.label(kind), "head": head + 1}
    title = say("Score by distance · {model}, {kind}, head {head}", **names)

    def draw_figure(palette: Palette) -> Curves:
        formula = None if found.formula is None else found.formula[head]
        return plot_scores_by_distance(found.distances, found.measured[head], formula, title, palette)

    says = describe_distance_scores(found, head)
    with st.container(key="picture"):
        draw_curves(draw_figure(style.get_palette()), key="distances", on_point=lambda _, __: None)
    draw_caption(says)

    def build_parts(palette: Palette) -> list[Part]:
        return [Component("curves", encode_curves(draw_figure(palette))), Words(says)]

    table = partial(tabulate_distance_scores, found)
    register_savable_view(SavedView("positions-distance", build_parts, table, title, width=1100))
    draw_next_page_link("positions")


def tabulate_distance_scores(found: DistanceScores) -> pd.DataFrame:
    """A row a distance; a column a head, measured and by the formula."""
    columns = {f"head {head + 1}": row for head, row in enumerate(found.measured)}
    if found.formula is not None:
        columns |= {f"head {head + 1}, formula": row for head, row in enumerate(found.formula)}
    return pd.DataFrame(columns, index=pd.Index(found.distances, name="distance"))


def describe_distance_scores(found: DistanceScores, head: int) -> str:
    """How the curve was measured, which formula it follows, and how near."""
    measured = say(
        "Measured in the first layer, on one token repeated {count} times: its queries and keys are alike everywhere, "
        "so only their distance moves a score. Zero is the score of a token with itself.",
        count=int(found.distances.max()) + 1,
    )
    if found.formula is None:
        unknown = say("It follows none of the formulas that are known here (rotary, ALiBi, relative bias).")
        return join_sentences(measured, unknown)
    near = say("Measured and computed differ by {error:.1e} at most, over all heads.", error=found.error)
    return join_sentences(_describe_formula(found, head), measured, "" if found.form == "none" else near)


def _describe_formula(found: DistanceScores, head: int) -> str:
    assert found.formula is not None
    if found.form == "none":
        return say("The first layer knows no distance: its scores are the same wherever a key stands.")
    if found.form == "alibi":
        assert found.formula.shape[1] > 1
        at = int(np.flatnonzero(found.distances == 1)[0])
        slope = -float(found.formula[head, at])
        return say(
            "ALiBi: every token of distance takes {slope:.4g} from a score of this head (Press et al. 2022).",
            slope=slope,
        )
    if found.form == "bias":
        return say(
            "Relative bias: a learned number for each of {buckets} ranges of distance, the last from {most} tokens on, "
            "is added to the score (Raffel et al. 2020).",
            buckets=found.facts["buckets"],
            most=found.facts["most"],
        )
    base, dimensions = float(found.facts["base"]), int(found.facts["dimensions"])
    turns = (
        say(
            "Rotary positions: pair i of the {count} turned dimensions of queries and keys turns by "
            "{base}^(−2i/{count}) a token (Su et al. 2021).",
            count=dimensions,
            base=format_number(base, ",.6g"),
        )
        if base
        else say(
            "Rotary positions: each pair of the {count} turned dimensions of queries and keys turns by an angle a "
            "token that the folder's configuration scales (Su et al. 2021).",
            count=dimensions,
        )
    )
    return join_sentences(turns, say(LAYOUT_TEXTS[str(found.facts["layout"])]))
