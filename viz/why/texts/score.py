"""What the view Score says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.language.say import say, sentences, to_say
from viz.figures.labels import KIND_NAMES, quoted, readable, signed

if TYPE_CHECKING:
    from model.attribution.score_parts import ScoreParts
    from model.trace import AttentionMap
    from viz.ui.addresses.why import Cell

EXPLAINED = to_say(
    "Each cell is the dot product of one part of the query with one part of the key, scaled as the model scales it; "
    "the heads of a sublayer are added up here, and by themselves in the CSV. In the first layer of self-attention the "
    "parts are words, positions and biases alone. The sum is exact; the scale of every norm before the score is held "
    "at its value in this run. Indigo raises the score, orange lowers it."
)


def row_name(attention: AttentionMap, row: int) -> str:
    """A row by its number and token; one of the decoder by the token fed and the one it predicts."""
    name = f"{row + 1} · {readable(attention.query_tokens[row])}"
    return f"{name} → {readable(attention.predicted_tokens[row])}" if attention.predicted_tokens else name


def title(attention: AttentionMap, cell: Cell) -> str:
    """The head of a cell, and its row and column by their tokens."""
    return say(
        "{attention}, layer {layer}, head {head}: {query} looks at {key}",
        attention=say(KIND_NAMES[cell.kind]),
        layer=cell.layer + 1,
        head=cell.head + 1,
        query=quoted(attention.query_tokens[cell.query]),
        key=quoted(attention.key_tokens[cell.key]),
    )


def score(found: ScoreParts, attention: AttentionMap, cell: Cell) -> str:
    """The score, the sum of its parts and the weight that it became."""
    masked = say("The cell is masked, so its weight is 0 whatever its score.")
    said = say(
        "{query} looks at {key}: the cells sum to {sum}, the model's score is {score}, and the weight after softmax "
        "{weight:.2f}.",
        query=quoted(attention.query_tokens[cell.query]),
        key=quoted(attention.key_tokens[cell.key]),
        sum=signed(float(found.cells.sum()), 3),
        score=signed(found.score, 3),
        weight=found.weight,
    )
    return sentences(said, "" if attention.mask[cell.query, cell.key] else masked)


def largest(found: ScoreParts) -> str:
    """The largest cell of the matrix, and the row and the column with the largest sums."""
    rows, columns, cells = found.grouped()
    row, column = np.unravel_index(int(np.abs(cells).argmax()), cells.shape)
    by_row, by_column = cells.sum(1), cells.sum(0)
    query, key = int(np.abs(by_row).argmax()), int(np.abs(by_column).argmax())
    return say(
        "The largest cell: {row} of the query with {column} of the key, {score}. Over all key parts, {query} of the "
        "query adds {query_sum}; over all query parts, {key} of the key adds {key_sum}.",
        row=rows[row],
        column=columns[column],
        score=signed(float(cells[row, column]), plus=True),
        query=rows[query],
        query_sum=signed(float(by_row[query]), plus=True),
        key=columns[key],
        key_sum=signed(float(by_column[key]), plus=True),
    )


def outside(cell: Cell, attention: AttentionMap) -> str:
    """Why a cell of the address cannot be shown."""
    layers, heads, rows, columns = attention.weights.shape
    return say(
        "{attention} has {layers} layers, {heads} heads, {rows} rows and {columns} columns here, so there is no layer "
        "{layer}, head {head}, row {row}, column {column}. Shown instead: the head that matters most for the word.",
        attention=say(KIND_NAMES[cell.kind]),
        layers=layers,
        heads=heads,
        rows=rows,
        columns=columns,
        layer=cell.layer + 1,
        head=cell.head + 1,
        row=cell.query + 1,
        column=cell.key + 1,
    )
