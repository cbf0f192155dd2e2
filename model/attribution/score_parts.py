"""Why a head looks there: the attention score q.k as a sum over pairs of a query part and a key part.

Both vectors are linear in the residual streams they are read from (the norm before them with its scale held), so
the score is bilinear in the parts: Elhage et al. (2021), "QK circuits". The cells sum to the score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ..language.say import say, to_say
from ..network.autoregressive import decoder_inputs
from ..trace import Kind
from ..translate import Translation, Translator
from .recording import Recording, Sublayer, record_pass, sublayers
from .residual_parts import Part, ResidualParts, final_norm, residual_parts, sublayer_input
from .target import AttributionError

_OUTSIDE = (
    to_say("There is no head {number}: this attention has {count} of them."),
    to_say("There is no row {number}: this attention has {count} of them."),
    to_say("There is no column {number}: this attention has {count} of them."),
)


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """One attention score before mask and softmax, and the pairs of parts that it is made of."""

    query_parts: tuple[Part, ...]
    """(Pq,) of the stream that the query is read from; biases of norm and projection first."""
    key_parts: tuple[Part, ...]
    """(Pk,) the same of the key."""
    cells: np.ndarray
    """(Pq, Pk) float64, summing to the score."""
    score: float
    """As the model computed it, scaled by 1 / sqrt(d) where the model does so."""
    weight: float
    """The attention weight of this cell, after mask and softmax."""

    def grouped(self) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
        """Return the matrix with the parts of one sublayer added up: labels of rows, of columns, and cells."""
        rows, columns = _groups(self.query_parts), _groups(self.key_parts)
        summed = [[self.cells[np.ix_(row, column)].sum() for column in columns.values()] for row in rows.values()]
        return tuple(one.label for one in rows), tuple(one.label for one in columns), np.array(summed)


def score_parts(
    translator: Translator,
    translation: Translation,
    kind: Kind,
    layer: int,
    head: int,
    query: int,
    key: int,
    recording: Recording | None = None,
) -> ScoreParts:
    """Split the score of one cell; all indices count from 0. Raises AttributionError for a cell that is not there."""
    model = translator.model
    if recording is None:
        recording = record_pass(model, translation.source_ids, decoder_inputs(translation.target_ids))
    sublayer = _sublayer(recording, kind, layer)
    scores, weights = (recording[f"{sublayer.path}.{name}"] for name in ("scores", "weights"))
    for message, at, count in zip(_OUTSIDE, (head, query, key), scores.shape, strict=True):
        if not 0 <= at < count:
            raise AttributionError(say(message, number=at + 1, count=count))
    attention = recording.attention(sublayer)
    own = "encoder" if kind == "encoder" else "decoder"
    queries = _read(recording, own, sublayer, query)
    keys = _read(recording, own, sublayer, key) if kind != "cross" else _memory(recording, key)
    width = attention.q_proj.out_features // attention.heads
    q, k = (
        _projected(parts, projection.weight, projection.bias, slice(head * width, (head + 1) * width))
        for parts, projection in ((queries, attention.q_proj), (keys, attention.k_proj))
    )
    cells = (q @ k.T * attention.scale).cpu().numpy()
    return ScoreParts(
        queries.parts, keys.parts, cells, float(scores[head, query, key]), float(weights[head, query, key])
    )


def _sublayer(recording: Recording, kind: Kind, layer: int) -> Sublayer:
    stack = "encoder" if kind == "encoder" else "decoder"
    found = [one for one in sublayers(recording.model, stack) if one.kind == kind]
    if not 0 <= layer < len(found):
        raise AttributionError(
            say(
                "There is no layer {number}: this model has {count} layers with this attention.",
                number=layer + 1,
                count=len(found),
            )
        )
    return found[layer]


def _read(recording: Recording, stack: str, sublayer: Sublayer, row: int) -> ResidualParts:
    parts = residual_parts(recording, stack, slice(row, row + 1), before=sublayer)
    return sublayer_input(sublayer.residual, parts)


def _memory(recording: Recording, column: int) -> ResidualParts:
    parts = residual_parts(recording, "encoder", slice(column, column + 1))
    return parts.through(final_norm(recording, "encoder"))


def _projected(parts: ResidualParts, weight: Tensor, bias: Tensor | None, rows: slice) -> Tensor:
    """The parts of one position (P, 1, D) as parts of its query or key (P, d); the bias joins the biases."""
    found = parts.vectors[:, 0] @ weight[rows].detach().double().T
    if bias is not None:
        found[0] += bias[rows].detach().double()
    return found


def _groups(parts: tuple[Part, ...]) -> dict[Part, list[int]]:
    groups: dict[Part, list[int]] = {}
    for at, part in enumerate(parts):
        groups.setdefault(part.sublayer, []).append(at)
    return groups
