"""Score: why a head looks there, as pairs of a query part and a key part that sum to the attention score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from model.language.say import say, sentences, to_say
from model.trace import KINDS
from viz.components.chart import chart
from viz.export.parts import Chart, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.labels import KIND_NAMES, readable
from viz.figures.why.score_parts import score_matrix
from viz.ui import widgets
from viz.ui.addresses.pins import pin
from viz.ui.addresses.why import CELL, Cell
from viz.ui.captions import caption
from viz.ui.links import follow, open_on_explore

from .. import cache
from ..texts import score as texts
from .heads import head_of, strongest_head

if TYPE_CHECKING:
    from model.attribution.score_parts import ScoreParts
    from model.trace import AttentionMap
    from viz.figures.palette import Palette
    from viz.ui.addresses.pins import Place

    from ..controls import Question

FIELDS = ("kind", "layer", "head", "query", "key")
LABELS = (to_say("Attention"), to_say("Layer"), to_say("Head"), to_say("Row"), to_say("Column"))
WIDTHS: tuple[Any, ...] = (250, 120, 120, 230, 200)


def show(question: Question, palette: Palette) -> SavedView:
    """Draw the controls of the cell, and the matrix of its score."""
    follow()
    maps = question.result.trace.maps
    cell = CELL.hold(of=question.result.source)
    if cell is not None and not fits(cell, maps[cell.kind]):
        st.info(texts.outside(cell, maps[cell.kind]))
        cell = None
    cell = choose_cell(question, cell or strongest_cell(question))
    found = cache.score_parts(question.key.reading, cell)
    attention = maps[cell.kind]
    lead = texts.score(found, attention, cell)
    title = texts.title(attention, cell)
    with st.container(key="lead"):
        caption(lead)
    rows, columns, cells = found.grouped()
    with st.container(key="picture"):
        chart(score_matrix(rows, columns, cells, palette), title, key="score-parts", on_cell=lambda _, __: None)
    says = [texts.largest(found), say(texts.EXPLAINED)]
    caption(sentences(*says))

    def parts(of: Palette) -> list[Part]:
        drawn = Chart(score_matrix(rows, columns, cells, of), title)
        return [*question.saved_texts, Words(title, size="heading"), Words(lead), drawn, *map(Words, says)]

    facts = facts_of(question.result.trace, **question.facts, cell=CELL.write(cell))
    return SavedView("why-score", parts, lambda: numbers(found), title, facts, width=1100)


def strongest_cell(question: Question) -> Cell:
    """The strongest key of the head that matters most for the word, at the row of its first piece."""
    head = head_of(strongest_head(cache.logit_parts(question.key)))
    assert head is not None
    kind, layer, number = head
    row = question.result.trace.maps[kind].weights[layer, number, question.key.position]
    return Cell(kind, layer, number, question.key.position, int(row.argmax()))


def fits(cell: Cell, attention: AttentionMap) -> bool:
    """Whether a map has this cell."""
    return all(at < size for at, size in zip(cell[1:], attention.weights.shape, strict=True))


def choose_cell(question: Question, cell: Cell) -> Cell:
    """Draw the controls of the cell, which stand at `cell`; a change goes into the address."""
    maps, text = question.result.trace.maps, question.result.source
    attention = maps[cell.kind]
    layers, heads, rows, columns = map(range, attention.weights.shape)
    options = (KINDS, layers, heads, rows, columns)
    names = (
        lambda kind: say(KIND_NAMES[kind]),
        lambda at: str(at + 1),
        lambda at: str(at + 1),
        lambda at: texts.row_name(attention, at),
        lambda at: f"{at + 1} · {readable(attention.key_tokens[at])}",
    )
    for field, at in zip(FIELDS, cell, strict=True):
        st.session_state[f"cell-{field}"] = at

    def chosen() -> None:
        made = Cell(*(st.session_state[f"cell-{field}"] for field in FIELDS))
        CELL.set(_inside(made, maps[made.kind]), of=text)

    with st.container(key="cell", horizontal=True, vertical_alignment="center"):
        for field, label, listed, name, width in zip(FIELDS, LABELS, options, names, WIDTHS, strict=True):
            widgets.offer(
                st.selectbox, say(label), listed, format_func=name, key=f"cell-{field}", on_change=chosen, width=width
            )
        st.button(say("Open this head on Explore"), key="open", type="tertiary", on_click=lambda: _open(text, cell))
    return cell


def numbers(found: ScoreParts) -> pd.DataFrame:
    """Every pair of parts, heads by themselves; rows are parts of the query, columns of the key."""
    index = pd.Index([one.name for one in found.query_parts], name="query part")
    return pd.DataFrame(found.cells, index, [one.name for one in found.key_parts])


def _inside(cell: Cell, attention: AttentionMap) -> Cell:
    """The cell moved into a map that is smaller than the one before."""
    inside = (min(at, size - 1) for at, size in zip(cell[1:], attention.weights.shape, strict=True))
    return Cell(cell.kind, *inside)


def _open(text: str, cell: Cell) -> None:
    places: dict[str, tuple[Place, Place]] = {
        "encoder": ("source", "source_key"),
        "decoder": ("target", "target_key"),
        "cross": ("target", "source"),
    }
    query, key = places[cell.kind]
    pin(text, {query: cell.query, key: cell.key})
    open_on_explore((cell.kind, cell.layer, cell.head))
