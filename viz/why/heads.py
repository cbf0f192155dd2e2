"""The views of Why about heads: parts of the logit, heads switched off, and parts of an attention score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from attenscope.analysis.heads import head_name
from attenscope.attribution.logit import LogitPart, LogitParts, ScoreParts
from attenscope.experiments.ablation import HeadEffects
from attenscope.language import join_sentences, say, to_say
from attenscope.trace import AttentionMap, Head, Kind
from attenscope.viz.export.parts import Chart, Columns, Part, Words
from attenscope.viz.export.share_menu import SavedView, collect_trace_facts
from attenscope.viz.figures.figure_style import Palette, readable_token
from attenscope.viz.figures.why import (
    list_layer_rows_by_attention,
    plot_attention_score_parts,
    plot_head_ablation_effects,
    plot_largest_logit_parts,
    plot_logit_parts_by_sublayer,
    plot_signed_bars,
)
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls
from attenscope.viz.ui.addresses.shared import PinPlace, add_pins
from attenscope.viz.ui.addresses.why import WHY_HEAD_MEASURE, WHY_SCORE_CELL, AttentionCell
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.ui.links import compute_effects_in_batches, open_head_in_explore, switch_to_requested_page
from attenscope.viz.web.charts import draw_chart
from attenscope.viz.why import cache as why_cache
from attenscope.viz.why import texts
from attenscope.viz.why.cache import WordKey
from attenscope.viz.why.controls import Question, open_head_on_explore

# The logit of the word as a sum over heads, feed-forward networks, embedding, position and biases.


MAX_PART_BARS = 16
"""The largest parts that have a bar of their own."""
PARTS_COLUMN_WIDTHS = (0.42, 0.58)


@dataclass(frozen=True, eq=False)
class _ListedParts:
    """The parts with bars of their own, and the sum of the others."""

    shown: Sequence[LogitPart]
    rest: float


def draw_heads_view(question: Question, palette: Palette) -> SavedView:
    """Draw what the heads do for the word in one of two ways; a click on a head opens it on Explore."""
    switch_to_requested_page()
    by = "switched off"
    if question.model.can("parts"):
        by = controls.segmented_control(say("Heads by"), WHY_HEAD_MEASURE)
    return draw_head_ablation_view(question, palette) if by == "switched off" else _draw_logit_parts(question, palette)


def _draw_logit_parts(question: Question, palette: Palette) -> SavedView:
    """Draw the parts by layer and one by one."""
    found = why_cache.compute_logit_parts(question.key)
    listed = _ListedParts(
        found.parts_by_size[:MAX_PART_BARS], sum(one.score for one in found.parts_by_size[MAX_PART_BARS:])
    )
    lead, alts = texts.describe_logit_sum(found), (say("The logit by layer"), say("The largest parts of the logit"))

    def open_clicked(row: int) -> None:
        if row < len(listed.shown) and (head := find_head_of_part(listed.shown[row])):
            open_head_on_explore(question, head)

    nodes = [(row, 0, one.part.label) for row, one in enumerate(listed.shown) if find_head_of_part(one)]
    with st.container(key="lead"):
        draw_caption(lead)
    with st.container(key="picture"):
        left, right = st.columns(PARTS_COLUMN_WIDTHS, gap="large")
        with left:
            draw_chart(
                plot_logit_parts_by_sublayer(found.parts, palette), alts[0], key="by-layer", on_cell=lambda _, __: None
            )
        with right:
            figure = plot_largest_logit_parts(listed.shown, listed.rest, palette)
            draw_chart(figure, alts[1], key="parts", on_cell=lambda row, _: open_clicked(row), nodes=nodes)
    says = [texts.describe_largest_head(found), found.exactness]
    draw_caption(join_sentences(*says, say(texts.OPEN_HEAD_HINT)))

    def build_parts(of: Palette) -> list[Part]:
        drawn = (
            Chart(plot_logit_parts_by_sublayer(found.parts, of), alts[0]),
            Chart(plot_largest_logit_parts(listed.shown, listed.rest, of), alts[1]),
        )
        return [
            *question.saved_texts,
            Words(lead),
            Columns(([drawn[0]], [drawn[1]]), PARTS_COLUMN_WIDTHS),
            *map(Words, says),
        ]

    facts = collect_trace_facts(question.result.trace, **question.facts)
    title = say("The logit of {word} by heads and layers", word=found.word)
    return SavedView("why-heads", build_parts, lambda: tabulate_logit_parts(found), title, facts, width=1280)


def tabulate_logit_parts(found: LogitParts) -> pd.DataFrame:
    """Every part in the order in which it is added; layers and heads count from 1."""
    rows = [
        (one.part.name, one.part.kind, *(None if at is None else at + 1 for at in (one.part.layer, one.part.head)))
        for one in found.parts
    ]
    table = pd.DataFrame(rows, columns=["part", "kind", "layer", "head"]).astype({"layer": "Int64", "head": "Int64"})
    return table.assign(score=[one.score for one in found.parts])


def find_head_of_part(part: LogitPart) -> Head | None:
    """The head that a part is, None where it is none."""
    kind, layer, head = part.part.kind, part.part.layer, part.part.head
    if layer is None or head is None or kind not in ("encoder", "decoder", "cross"):
        return None
    return kind, layer, head


def find_strongest_head(found: LogitParts) -> LogitPart:
    """The head that adds most to the logit, or takes most from it."""
    return next(one for one in found.parts_by_size if find_head_of_part(one))


# Heads switched off: how far the word falls without each head of the model.


MAX_FALL_BARS = 16
"""The heads that have a bar of their own."""
FALLS_COLUMN_WIDTHS = (0.5, 0.5)


def draw_head_ablation_view(question: Question, palette: Palette) -> SavedView:
    """Draw the fall without each head, all of them and the largest one by one."""
    found = compute_all_head_effects(question)
    falls = {kind: -found.total(kind) for kind in found.changes}
    largest = found.strongest()[:MAX_FALL_BARS]
    rows, lead = list_layer_rows_by_attention(falls), texts.describe_largest_head_effect(found, question.target)
    titles = say("Fall without each head"), say("The largest")

    def open_clicked(row: int, column: int) -> None:
        if 0 <= row < len(rows) and (place := rows[row]) and column < falls[place[0]].shape[1]:
            open_head_on_explore(question, (*place, column))

    def opened_bar(row: int) -> None:
        if row < len(largest):
            open_head_on_explore(question, largest[row][0])

    def draw_figure(of: Palette) -> tuple[go.Figure, go.Figure]:
        names, scores = [head_name(head) for head, _ in largest], [-change for _, change in largest]
        return plot_head_ablation_effects(falls, titles[0], of), plot_signed_bars(names, scores, titles[1], of)

    with st.container(key="lead"):
        draw_caption(lead)
    with st.container(key="picture"):
        for column, figure, at in zip(
            st.columns(FALLS_COLUMN_WIDTHS, gap="large"), draw_figure(palette), (0, 1), strict=True
        ):
            with column:
                if at:
                    nodes = [(row, 0, head_name(head)) for row, (head, _) in enumerate(largest)]
                    draw_chart(
                        figure, titles[1], key="largest-falls", on_cell=lambda row, _: opened_bar(row), nodes=nodes
                    )
                else:
                    draw_chart(figure, titles[0], key="falls", on_cell=open_clicked, nodes=_list_head_nodes(falls))
    explained = texts.explain_head_ablation_colours(question.target)
    draw_caption(explained)

    def build_parts(of: Palette) -> list[Part]:
        both = [[Chart(figure, title)] for figure, title in zip(draw_figure(of), titles, strict=True)]
        return [*question.saved_texts, Words(lead), Columns((both[0], both[1]), FALLS_COLUMN_WIDTHS), Words(explained)]

    title = say("{word} without each head", word=question.target.word)
    facts = collect_trace_facts(question.result.trace, **question.facts)
    return SavedView(
        "why-heads-off", build_parts, lambda: tabulate_head_ablation_effects(found), title, facts, width=1280
    )


def _list_head_nodes(falls: Mapping[Kind, np.ndarray]) -> list[tuple[int, int, str]]:
    """Row, column and name of every head of the picture."""
    return [
        (row, head, head_name((*place, head)))
        for row, place in enumerate(list_layer_rows_by_attention(falls))
        if place
        for head in range(falls[place[0]].shape[1])
    ]


def compute_all_head_effects(question: Question) -> HeadEffects:
    """How the value of the word changes without each head. Raises AttributionError where its probability is zero."""
    key: WordKey = question.key
    why_cache.compute_target_value(key)
    target = why_cache.load_explained_target(key)
    passes = ui_cache.plan_ablation_batches(key.reading.model, len(target.source_ids), len(target.input_ids))
    return compute_effects_in_batches(passes, lambda at: why_cache.compute_head_effects(key, passes[at]))


def tabulate_head_ablation_effects(found: HeadEffects) -> pd.DataFrame:
    """The fall without each head; layers and heads count from 1."""
    rows = [(kind, layer + 1, head + 1, -change) for (kind, layer, head), change in found.strongest()]
    return pd.DataFrame(rows, columns=["attention", "layer", "head", "fall"])


# The attention score as a sum over pairs of a query part and a key part.


CELL_FIELDS = ("query", "key")
CELL_LABELS = (to_say("Row"), to_say("Column"))
CELL_WIDTHS: tuple[Any, ...] = (230, 200)


def draw_attention_score_view(question: Question, palette: Palette) -> SavedView:
    """Draw the controls of the cell, and the matrix of its score."""
    switch_to_requested_page()
    maps = question.result.trace.maps
    cell = WHY_SCORE_CELL.hold(of=question.result.source)
    if cell is not None and not has_cell(cell, maps[cell.kind]):
        st.info(texts.describe_missing_cell(cell, maps[cell.kind]))
        cell = None
    cell = draw_cell_selector(question, cell or find_strongest_cell(question))
    found = why_cache.compute_score_parts(question.key.reading, cell)
    attention = maps[cell.kind]
    lead = texts.describe_attention_score(found, attention, cell)
    title = texts.make_attention_cell_title(attention, cell)
    with st.container(key="lead"):
        draw_caption(lead)
    rows, columns, cells = found.group_by_sublayer()
    with st.container(key="picture"):
        draw_chart(
            plot_attention_score_parts(rows, columns, cells, palette),
            title,
            key="score-parts",
            on_cell=lambda _, __: None,
        )
    says = [texts.describe_largest_score_part(found), say(texts.SCORE_EXPLANATION)]
    draw_caption(join_sentences(*says))

    def build_parts(of: Palette) -> list[Part]:
        drawn = Chart(plot_attention_score_parts(rows, columns, cells, of), title)
        return [*question.saved_texts, Words(title, size="heading"), Words(lead), drawn, *map(Words, says)]

    facts = collect_trace_facts(question.result.trace, **question.facts, cell=WHY_SCORE_CELL.write(cell))
    return SavedView("why-score", build_parts, lambda: tabulate_score_parts(found), title, facts, width=1100)


def find_strongest_cell(question: Question) -> AttentionCell:
    """The strongest key of the head that matters most for the word, at the row of its first piece."""
    head = find_head_of_part(find_strongest_head(why_cache.compute_logit_parts(question.key)))
    assert head is not None
    kind, layer, number = head
    row = question.result.trace.maps[kind].weights[layer, number, question.key.position]
    return AttentionCell(kind, layer, number, question.key.position, int(row.argmax()))


def has_cell(cell: AttentionCell, attention: AttentionMap) -> bool:
    """Whether a map has this cell."""
    return all(at < size for at, size in zip(cell[1:], attention.weights.shape, strict=True))


def draw_cell_selector(question: Question, cell: AttentionCell) -> AttentionCell:
    """Draw the controls of the cell, which stand at `cell`; a change goes into the address."""
    maps, text = question.result.trace.maps, question.result.source
    attention = maps[cell.kind]
    options = map(range, attention.weights.shape[2:])
    names = (
        lambda at: texts.format_row_name(attention, at),
        lambda at: f"{at + 1} · {readable_token(attention.key_tokens[at])}",
    )
    for field, at in zip(CELL_FIELDS, cell[3:], strict=True):
        st.session_state[f"cell-{field}"] = at

    def choose(**chosen: Any) -> None:
        made = cell._replace(**{field: value for field, value in chosen.items() if value is not None})
        WHY_SCORE_CELL.set(_clamp_cell(made, maps[made.kind]), of=text)

    def handle_choice() -> None:
        choose(**{field: st.session_state[f"cell-{field}"] for field in CELL_FIELDS})

    def handle_place(kind: Kind | None, layer: int | None, head: int | None) -> None:
        choose(kind=kind, layer=layer, head=head)

    with st.container(key="cell", horizontal=True, vertical_alignment="center"):
        controls.draw_transformer_selector(cell[:3], question.result.trace.sizes, handle_place)
        for field, label, listed, name, width in zip(
            CELL_FIELDS, CELL_LABELS, options, names, CELL_WIDTHS, strict=True
        ):
            controls.draw_untranslated_choice(
                st.selectbox,
                say(label),
                listed,
                format_func=name,
                key=f"cell-{field}",
                on_change=handle_choice,
                width=width,
            )
        st.button(
            say("Open this head on Explore"),
            key="open",
            type="tertiary",
            on_click=lambda: _open_cell_on_explore(text, cell),
        )
    return cell


def tabulate_score_parts(found: ScoreParts) -> pd.DataFrame:
    """Every pair of parts, heads by themselves; rows are parts of the query, columns of the key."""
    index = pd.Index([one.name for one in found.query_parts], name="query part")
    return pd.DataFrame(found.cells, index, [one.name for one in found.key_parts])


def _clamp_cell(cell: AttentionCell, attention: AttentionMap) -> AttentionCell:
    """The cell moved into a map that is smaller than the one before."""
    inside = (min(at, size - 1) for at, size in zip(cell[1:], attention.weights.shape, strict=True))
    return AttentionCell(cell.kind, *inside)


def _open_cell_on_explore(text: str, cell: AttentionCell) -> None:
    places: dict[str, tuple[PinPlace, PinPlace]] = {
        "encoder": ("source", "source_key"),
        "decoder": ("target", "target_key"),
        "cross": ("target", "source"),
    }
    query, key = places[cell.kind]
    add_pins(text, {query: cell.query, key: cell.key})
    open_head_in_explore((cell.kind, cell.layer, cell.head))
