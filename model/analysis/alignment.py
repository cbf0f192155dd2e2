"""Which cross-attention head aligns? Every head held against the average of all heads, at two readings. No torch.

The average over heads as a soft alignment goes back to Garg et al. (2019), "Jointly Learning to Align and Translate
with Transformer Models", section 4.1; that single heads can align better than the average is known, so the ranking
says who agrees with the average, not who is right. A row can be read in two ways: as the alignment of the token that
it predicts, or of the token that was just fed in (Chen et al. 2020, "Accurate Word Alignment Induction from Neural
Machine Translation", arXiv 2004.14837, who find the second the better one in many models).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..language.say import say, to_say
from ..text.words import SPECIAL_TOKENS
from ..trace import AttentionMap, TraceError

Reading = Literal["predicted", "fed"]
READINGS: tuple[Reading, ...] = ("predicted", "fed")
"""The token of a row that an alignment is of."""

EXPLAINED = to_say(
    "The weights of all cross-attention heads of all layers are averaged, the end-of-sentence token left out, and the "
    "strongest source token of each row is taken as the alignment of the token that the row predicts. A head's score "
    "is the weight it puts on these tokens, averaged over the rows: on that of the same row (it aligns the token "
    "predicted) or on that of the row before (it aligns the token just fed in), whichever is more. It says which head "
    "agrees with the others, not which is right."
)
_POINTED = {
    "predicted": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its mass on the token that all heads together point to; its "
        "own strongest token is that one in {agreeing} of {rows} rows."
    ),
    "fed": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its mass on the token that all heads together pointed to one "
        "row earlier, so it aligns the token just fed in; its own strongest token is that one in {agreeing} of {rows} "
        "rows."
    ),
}
_POINTED_OR_SPECIAL = {
    "predicted": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its mass on the token that all heads together point to; its "
        "own strongest token is that one in {agreeing} of {rows} rows, and at a special token such as </s> in "
        "{elsewhere}."
    ),
    "fed": to_say(
        "Head {head} of layer {layer} puts {mass:.0%} of its mass on the token that all heads together pointed to one "
        "row earlier, so it aligns the token just fed in; its own strongest token is that one in {agreeing} of {rows} "
        "rows, and at a special token such as </s> in {elsewhere}."
    ),
}


@dataclass(frozen=True)
class HeadAlignment:
    """How well one cross-attention head agrees with the averaged alignment."""

    layer: int
    head: int
    reading: Reading
    """The token of a row that the head aligns: the one predicted, or the one just fed in."""
    mass: float
    """Mean weight on the expected source token, 0 to 1."""
    agreeing: int
    """Rows in which the head's own strongest token is the expected one."""
    elsewhere: int
    """Rows in which the head's own strongest token is a special one, such as ``</s>``."""
    rows: int

    @property
    def sentence(self) -> str:
        return say(
            (_POINTED_OR_SPECIAL if self.elsewhere else _POINTED)[self.reading],
            head=self.head + 1,
            layer=self.layer + 1,
            mass=self.mass,
            agreeing=self.agreeing,
            rows=self.rows,
            elsewhere=self.elsewhere,
        )


def mean_alignment(cross: AttentionMap) -> np.ndarray:
    """The mean over layers and heads, special source tokens set to 0 and each row rescaled -> (Q, K)."""
    if cross.kind != "cross":
        raise TraceError(say("An alignment is read from cross-attention; this is the {kind} map.", kind=cross.kind))
    mean = cross.weights.mean((0, 1), dtype=np.float64)
    special = _special(cross)
    if not special.all():
        mean[:, special] = 0
    total = mean.sum(-1, keepdims=True)
    return np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)


def alignment_cells(cross: AttentionMap, reading: Reading) -> np.ndarray:
    """(Q, K) bool: in each row that counts, the key to which the average of all heads aligns its token.

    A token predicted at one row is fed in at the next: read at the token fed in, a row has the key of the row before.
    """
    rows = _text_rows(cross)
    keys = mean_alignment(cross).argmax(-1)[rows]
    if reading == "fed":
        inside = rows + 1 < len(cross.query_tokens)
        rows, keys = rows[inside] + 1, keys[inside]
    cells = np.zeros(cross.mask.shape, dtype=bool)
    cells[rows, keys] = True
    return cells


def rank_alignment(cross: AttentionMap, readings: tuple[Reading, ...] = READINGS) -> tuple[HeadAlignment, ...]:
    """All cross-attention heads, the best aligned first, each at the reading at which it aligns better."""
    cells = {reading: alignment_cells(cross, reading) for reading in readings}
    ranking = [
        max((_held_against(cross, layer, head, reading, cells[reading]) for reading in readings), key=_merit)
        for layer, head in np.ndindex(cross.weights.shape[:2])
    ]
    return tuple(sorted(ranking, key=_merit, reverse=True))


def _held_against(cross: AttentionMap, layer: int, head: int, reading: Reading, cells: np.ndarray) -> HeadAlignment:
    """One head against the cells (Q, K) that it is expected to look at."""
    rows = np.flatnonzero(cells.any(-1))
    weights = cross.weights[layer, head, rows]
    own, special = weights.argmax(-1), _special(cross)
    mass = float((weights * cells[rows]).sum(-1).mean(dtype=np.float64)) if rows.size else 0.0
    elsewhere = 0 if special.all() else int(special[own].sum())
    return HeadAlignment(layer, head, reading, mass, int(cells[rows, own].sum()), elsewhere, len(rows))


def _merit(alignment: HeadAlignment) -> tuple[float, int]:
    return alignment.mass, alignment.agreeing


def _special(cross: AttentionMap) -> np.ndarray:
    """(K,) bool: the source tokens that stand for no text."""
    return np.array([token in SPECIAL_TOKENS for token in cross.key_tokens])


def _text_rows(cross: AttentionMap) -> np.ndarray:
    """The rows that predict text and may attend to something; every row if there is none."""
    rows = [row for row, token in enumerate(cross.rows("predicted")) if token not in SPECIAL_TOKENS]
    return np.array(rows or range(len(cross.query_tokens)))
