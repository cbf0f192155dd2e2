"""Whether a method is right: take away the pieces that it ranks first, and see what is left of the probability.

Samek et al. (2017), "Evaluating the Visualization of What a Deep Neural Network Has Learned" (pixel flipping); DeYoung
et al. (2020), ERASER, comprehensiveness. Source pieces alone are taken away, </s> included, so that every method,
cross-attention too, orders the same pieces; a random order with its band is what a method has to beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from ..attribution import foreign
from ..attribution.blocking import values_without
from ..attribution.methods import Attribution
from ..attribution.target import Target
from ..live.live_model import LiveModel
from ..live.local_model import LocalModel

RANDOM_ORDERS = 10
BAND = (10, 90)
"""Percentiles of the random orders between which the band lies."""


@dataclass(frozen=True, eq=False)
class DeletionCurves:
    """The value of the target after 0, 1, ..., S source pieces have been taken away, by the order of each method."""

    methods: Mapping[str, np.ndarray]
    """Name -> (S + 1,) log p(X), or logit X - logit Y."""
    random: np.ndarray
    """(R, S + 1) the same in random orders."""
    against: str | None

    def left(self, values: np.ndarray) -> np.ndarray:
        """Return what is left of the probability, as a share of the whole: values (..., S + 1) -> (..., S + 1).

        Of a difference of logits, the difference itself.
        """
        return values if self.against is not None else np.exp(values - values[..., :1])

    def area(self, values: np.ndarray) -> float:
        """Return the mean of what is left, over the curve after the first deletion: the smaller, the better."""
        return float(self.left(values)[..., 1:].mean())

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is left in a random order: lower percentile, mean and upper percentile, (S + 1,) each."""
        left = self.left(self.random)
        low, high = np.percentile(left, BAND, axis=0)
        return low, left.mean(0), high


def deletion_curves(
    translator: LiveModel,
    target: Target,
    attributions: Mapping[str, Attribution],
    random_orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> DeletionCurves:
    """Take the source pieces away in the order of each method, all rows of few forward passes."""
    pieces = len(target.source_ids)
    removed = _removed(attributions, pieces, random_orders, seed)
    keep = torch.from_numpy(~removed.reshape(-1, pieces))
    whole = torch.ones(len(keep), len(target.prefix_tokens), dtype=torch.bool, device="cpu")
    values = values_without(translator.model, target, keep, whole).numpy()
    return _curves(attributions, values.reshape(removed.shape[:2]), target.against)


def foreign_deletion_curves(
    model: LocalModel,
    text: str,
    word: int,
    attributions: Mapping[str, Attribution],
    random_orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> DeletionCurves:
    """The same for piece `word` (from 1) of a model that nobody here wrote: a piece away has a zero embedding.

    A forward pass for every deletion, since it is not known how such a model takes several sentences.
    """
    pieces = len(next(iter(attributions.values())).source)
    removed = _removed(attributions, pieces, random_orders, seed)
    values = foreign.values_without(model, text, word, removed.reshape(-1, pieces))
    return _curves(attributions, values.reshape(removed.shape[:2]), None)


def _removed(attributions: Mapping[str, Attribution], pieces: int, random_orders: int, seed: int) -> np.ndarray:
    """(orders, S + 1, S) bool: the pieces that are away after each deletion; random orders last."""
    generator = np.random.default_rng(seed)
    orders = [np.argsort(-one.source, kind="stable") for one in attributions.values()]
    orders += [generator.permutation(pieces) for _ in range(random_orders)]
    removed_at = np.argsort(np.array(orders), axis=1)  # (orders, S): the step at which each piece goes
    return removed_at[:, None, :] < np.arange(pieces + 1)[None, :, None]


def _curves(attributions: Mapping[str, Attribution], values: np.ndarray, against: str | None) -> DeletionCurves:
    return DeletionCurves(dict(zip(attributions, values, strict=False)), values[len(attributions) :], against)
