"""Which cross-attention head aligns? Every head held against the average of all heads. No torch.

The average over heads as a soft alignment goes back to Garg et al. (2019), "Jointly Learning to Align and Translate
with Transformer Models", section 4.1; that single heads can align better than the average is known, so the ranking
says who agrees with the average, not who is right.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..text.words import SPECIAL_TOKENS
from ..trace import AttentionMap, TraceError

EXPLAINED = (
    "The weights of all cross-attention heads of all layers are averaged, the end-of-sentence token left out, and the "
    "strongest source token of each row is taken as that row's alignment. A head's score is the weight it puts on "
    "these tokens, averaged over the rows. It says which head agrees with the others, not which is right."
)


@dataclass(frozen=True)
class HeadAlignment:
    """How well one cross-attention head agrees with the averaged alignment."""

    layer: int
    head: int
    mass: float
    """Mean weight on the source token the average points to, 0 to 1."""
    agreeing: int
    """Rows in which the head's own strongest token is that token."""
    rows: int

    @property
    def sentence(self) -> str:
        return (
            f"Head {self.head + 1} of layer {self.layer + 1} puts {self.mass:.0%} of its mass on the token that all "
            f"heads together point to; it points there itself in {self.agreeing} of {self.rows} rows."
        )


def averaged_alignment(cross: AttentionMap) -> np.ndarray:
    """The mean over layers and heads, special source tokens set to 0 and each row rescaled -> (Q, K)."""
    if cross.kind != "cross":
        raise TraceError(f"An alignment is read from cross-attention; this is the {cross.kind} map.")
    mean = cross.weights.mean((0, 1), dtype=np.float64)
    special = np.array([token in SPECIAL_TOKENS for token in cross.key_tokens])
    if not special.all():
        mean[:, special] = 0
    total = mean.sum(-1, keepdims=True)
    return np.divide(mean, total, out=np.zeros_like(mean), where=total > 0)


def mass_on_alignment(cross: AttentionMap, average: np.ndarray) -> np.ndarray:
    """Each head's mean weight on the average's strongest key, over the rows that predict text -> (L, H)."""
    rows = _text_rows(cross)
    return cross.weights[:, :, rows, average.argmax(-1)[rows]].mean(-1, dtype=np.float64)


def rank_alignment(cross: AttentionMap) -> tuple[HeadAlignment, ...]:
    """All cross-attention heads, the best aligned first."""
    average = averaged_alignment(cross)
    rows, mass = _text_rows(cross), mass_on_alignment(cross, average)
    # A head is compared where the average is: among the tokens that stand for text.
    own = (cross.weights * (average > 0).any(0)).argmax(-1)[..., rows]
    agreeing = (own == average.argmax(-1)[rows]).sum(-1)
    found = [
        HeadAlignment(layer, head, float(mass[layer, head]), int(agreeing[layer, head]), len(rows))
        for layer in range(cross.layers)
        for head in range(cross.heads)
    ]
    return tuple(sorted(found, key=lambda one: (-one.mass, -one.agreeing)))


def _text_rows(cross: AttentionMap) -> np.ndarray:
    """The rows that predict text and may attend to something; every row if there is none."""
    rows = [row for row, token in enumerate(cross.rows("predicted")) if token not in SPECIAL_TOKENS]
    return np.array(rows or range(len(cross.query_tokens)))
