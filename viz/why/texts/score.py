"""What the view Score says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from viz.figures.labels import KIND_NAMES, quoted, readable, signed

if TYPE_CHECKING:
    from model.attribution.score_parts import ScoreParts
    from model.trace import AttentionMap
    from viz.ui.addresses.why import Cell

EXPLAINED = (
    "Each cell is the dot product of one part of the query with one part of the key, scaled as the model scales it; "
    "the heads of a sublayer are added up here, and by themselves in the CSV. In the first layer of self-attention the "
    "parts are words, positions and biases alone. The sum is exact; the scale of every norm before the score is held "
    "at its value in this run. Indigo raises the score, orange lowers it."
)


def row_name(attention: AttentionMap, row: int) -> str:
    """A row by its number and token; one of the decoder by the token fed and the one it predicts."""
    name = f"{row + 1} · {readable(attention.query_tokens[row])}"
    return f"{name} → {readable(attention.predicted_tokens[row])}" if attention.predicted_tokens else name


def pair(attention: AttentionMap, cell: Cell) -> str:
    """The row and the column of a cell by their tokens."""
    return f"{quoted(attention.query_tokens[cell.query])} looks at {quoted(attention.key_tokens[cell.key])}"


def score(found: ScoreParts, attention: AttentionMap, cell: Cell) -> str:
    """The score, the sum of its parts and the weight that it became."""
    masked = (
        "" if attention.mask[cell.query, cell.key] else " The cell is masked, so its weight is 0 whatever its score."
    )
    return (
        f"{pair(attention, cell)}: the cells sum to {signed(float(found.cells.sum()), 3)}, the model's score is "
        f"{signed(found.score, 3)}, and the weight after softmax {found.weight:.2f}.{masked}"
    )


def largest(found: ScoreParts) -> str:
    """The largest cell of the matrix, and the row and the column with the largest sums."""
    rows, columns, cells = found.grouped()
    row, column = np.unravel_index(int(np.abs(cells).argmax()), cells.shape)
    by_row, by_column = cells.sum(1), cells.sum(0)
    query, key = int(np.abs(by_row).argmax()), int(np.abs(by_column).argmax())
    return (
        f"The largest cell: {rows[row]} of the query with {columns[column]} of the key, "
        f"{signed(float(cells[row, column]), plus=True)}. Over all key parts, {rows[query]} of the query adds "
        f"{signed(float(by_row[query]), plus=True)}; over all query parts, {columns[key]} of the key adds "
        f"{signed(float(by_column[key]), plus=True)}."
    )


def outside(cell: Cell, attention: AttentionMap) -> str:
    """Why a cell of the address cannot be shown."""
    layers, heads, rows, columns = attention.weights.shape
    return (
        f"{KIND_NAMES[cell.kind]} has {layers} layers, {heads} heads, {rows} rows and {columns} columns here, so there "
        f"is no layer {cell.layer + 1}, head {cell.head + 1}, row {cell.query + 1}, column {cell.key + 1}. Shown "
        "instead: the head that matters most for the word."
    )
