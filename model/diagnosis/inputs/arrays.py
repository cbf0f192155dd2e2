"""The arrays of one attention map, in the one form that a diagnosis works on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

NAMES = ("weights", "scores", "masked_scores", "mask", "key_keep", "query_keep", "meant", "position_ids")
"""Names under which arrays are read."""
Writing = Literal["keeps", "blocks", "added"]
"""How a mask is written where it comes from: True = may attend, True = blocked, or added to the scores."""
MAX_CELLS = 2**26
"""Largest number of weights that one diagnosis accepts."""


class DiagnosisError(ValueError):
    """Arrays that cannot be judged; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Arrays:
    """The arrays of one map in one form. Everything but ``weights`` may be missing."""

    weights: np.ndarray
    """(B, L, H, Q, K) floating; the softmax of the scores or the mask where none were given."""
    given: frozenset[str]
    """Names of the arrays that were given."""
    map: str = ""
    scores: np.ndarray | None = None
    """(B, L, H, Q, K), scaled, before the mask."""
    masked_scores: np.ndarray | None = None
    """(B, L, H, Q, K), after the mask."""
    bias: np.ndarray | None = None
    """(B, L, H, Q, K), a float mask as it was given; axes may be 1."""
    mask: np.ndarray | None = None
    """(B, L, H, Q, K) bool, True = may attend; axes may be 1."""
    meant: np.ndarray | None = None
    """(B, L, H, Q, K) bool, True = may attend; axes may be 1."""
    key_keep: np.ndarray | None = None
    """(B, K) bool, True = a real token."""
    query_keep: np.ndarray | None = None
    """(B, Q) bool, True = a real token."""
    position_ids: np.ndarray | None = None
    """(B, K) whole numbers: the positions that the model gave its keys."""
    writing: Writing = "keeps"
    """How the mask was written, for fixes in the same convention; ``mask`` itself is True = may attend."""
    transposed: bool = False
    """Whether the weights came as (K, Q), by the shapes of the other arrays, and were transposed."""
    extra_keys: int = 0
    """How many of the last keys are known to be no tokens, such as a sink."""
    over_batch: bool = False
    """Whether the weights are (T, H, B, B), by the shapes of the other arrays, which are left out then."""

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, L, H, Q, K."""
        b, layers, heads, queries, keys = self.weights.shape
        return b, layers, heads, queries, keys

    @property
    def self_or_cross(self) -> Literal["self", "cross", ""]:
        """The kind of attention where the name of the map, its shape or the two paddings tell it, else empty."""
        _, _, _, queries, keys = self.sizes
        if self.map:
            return "cross" if self.map == "cross" else "self"
        if queries > keys:
            return "cross"
        if self.query_keep is None or self.key_keep is None:
            return ""
        if not np.array_equal(self.query_keep, self.key_keep[:, -queries:]):
            return "cross"
        return "" if self.key_keep.all() or queries != keys else "self"

    @property
    def real_queries(self) -> np.ndarray:
        """(B, Q) bool: queries that are no padding as far as is given; in self-attention by the keys."""
        b, _, _, queries, keys = self.sizes
        if self.query_keep is not None:
            return self.query_keep
        if self.key_keep is not None and queries == keys and self.self_or_cross != "cross":
            return self.key_keep
        return np.ones((b, queries), bool)


def as_columns(keep: np.ndarray) -> np.ndarray:
    """Return (B, K) as (B, 1, 1, 1, K), which broadcasts to the weights."""
    return keep[:, None, None, None, :]
