"""One query of one head, step by step: q, k, their product, scores, mask, softmax, weighted values. No torch.

The steps are the model's own tensors, and each is recomputed here from the one before it: what is shown is what ran.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..language.say import listed, say
from ..masking.softmax import softmax
from ..trace import TENSORS, AttentionMap, Kind, TraceError

TOLERANCE = 1e-3
"""Largest difference between a captured and a recomputed step, as a share of the largest score (at least 1): half
precision passes, another scale, mask or softmax does not."""


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Every step of softmax(q K^T * scale) V for one query; Vaswani et al. (2017), eq. (1)."""

    kind: Kind
    layer: int
    head: int
    query: int
    query_token: str
    key_tokens: tuple[str, ...]
    """(K,)"""
    q: np.ndarray
    """(d,)"""
    k: np.ndarray
    """(K, d)"""
    product: np.ndarray
    """(K, d) q * k, element by element."""
    dot: np.ndarray
    """(K,) q . k, the sums of the products."""
    scale: float
    """1 / sqrt(d), or 1 in a model that does not scale."""
    scores: np.ndarray
    """(K,) dot * scale."""
    mask: np.ndarray
    """(K,) bool, True = may attend."""
    masked_scores: np.ndarray
    """(K,) the scores, -inf where masked."""
    weights: np.ndarray
    """(K,) softmax of the masked scores; all zero if every key is masked."""
    v: np.ndarray
    """(K, d)"""
    weighted_values: np.ndarray
    """(K, d) weights * v, a row a key."""
    context: np.ndarray
    """(d,) the sum of the weighted values: what the head passes on."""
    difference: float
    """Largest absolute difference of a captured step from the same step recomputed."""


def pipeline(attention: AttentionMap, layer: int, head: int, query: int, scale: float | None = None) -> Pipeline:
    """Return the steps of one query, all counted from 0. The scale is read off the scores unless it is given.

    TraceError when the trace was made without its tensors, when there is no such query, and when the steps do not
    follow from each other.
    """
    if missing := [name for name in TENSORS if name not in attention.tensors]:
        raise TraceError(
            say(
                "This trace was made without {missing}; capture it with tensors={tensors}.",
                missing=listed(missing),
                tensors=TENSORS,
            )
        )
    place = layer, head, query
    if not all(0 <= one < limit for one, limit in zip(place, attention.weights.shape[:3], strict=True)):
        layers, heads, queries = attention.weights.shape[:3]
        raise TraceError(
            say(
                "There are layers 1 to {layers}, heads 1 to {heads} and queries 1 to {queries}.",
                layers=layers,
                heads=heads,
                queries=queries,
            )
        )
    q, scores, masked = (attention.tensors[name][place] for name in ("q", "scores", "masked_scores"))
    k, v = (attention.tensors[name][layer, head] for name in ("k", "v"))
    product = q * k
    dot = product.sum(-1)
    # A key that did not exist yet when a cached decoding made this row has no score: it is what it would have been.
    scale = _scale(dot, scores, len(q)) if scale is None else scale
    scores = np.where(np.isnan(scores), dot * scale, scores)
    mask, weights = attention.mask_of(layer, head)[query], attention.weights[place]
    weighted = weights[:, None] * v
    return Pipeline(
        attention.kind,
        *place,
        attention.query_tokens[query],
        attention.key_tokens,
        q=q,
        k=k,
        product=product,
        dot=dot,
        scale=scale,
        scores=scores,
        mask=mask,
        masked_scores=masked,
        weights=weights,
        v=v,
        weighted_values=weighted,
        context=weighted.sum(0),
        difference=_checked(dot * scale, scores, mask, masked, weights),
    )


def _scale(dot: np.ndarray, scores: np.ndarray, width: int) -> float:
    """The scale that the scores were made with, of the two in use."""
    return float(min((width**-0.5, 1.0), key=lambda scale: np.nanmax(np.abs(dot * scale - scores), initial=0.0)))


def _checked(
    scaled: np.ndarray, scores: np.ndarray, mask: np.ndarray, masked: np.ndarray, weights: np.ndarray
) -> float:
    """The largest difference; TraceError naming the step whose difference is too large."""
    steps = {
        say("scores"): np.abs(scaled - scores).max(initial=0.0),
        say("masked scores"): np.abs(masked - scores).max(initial=0.0, where=mask),
        say("weights"): np.abs(softmax(np.where(mask, masked, -np.inf)) - weights).max(initial=0.0),
    }
    if not np.isneginf(masked[~mask]).all():
        raise TraceError(say("Some masked keys have a finite score: this model masks in another way than with -inf."))
    limit = TOLERANCE * max(1.0, float(np.abs(scores).max(initial=0.0)))
    for name, difference in steps.items():
        if not difference <= limit:
            raise TraceError(
                say(
                    "The {step} of this query do not follow from the step before (largest difference "
                    "{difference:.2g}). They were replaced on the way, by a changed head for example, or come from "
                    "another kind of attention.",
                    step=name,
                    difference=float(difference),
                )
            )
    return float(max(steps.values()))
