"""Attention computed step by step, weighted by value norms, and compared between two maps. No torch at import."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import numpy as np

from ..language import join_items, say, to_say
from ..masks.softmax import softmax
from ..text.words import RowLabel
from ..trace import TENSOR_NAMES, AttentionMap, AttentionTrace, Kind, TraceError

if TYPE_CHECKING:
    from torch import nn

# One query of one head, step by step: q, k, their product, scores, mask, softmax, weighted values.
#
# The steps are the model's own tensors. Each is also recomputed from the one before it, so what is shown is what ran.


STEP_TOLERANCE = 1e-3
"""Largest difference between a captured and a recomputed step, as a share of the largest score (at least 1): half
precision passes, another scale, mask or softmax does not."""


@dataclass(frozen=True, eq=False)
class AttentionPipeline:
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


def compute_attention_steps(
    attention: AttentionMap, layer: int, head: int, query: int, scale: float | None = None
) -> AttentionPipeline:
    """Return the steps of one query, all counted from 0. The scale is read off the scores unless it is given.

    Raises TraceError when the trace was made without its tensors, when there is no such query, and when the steps do
    not follow from each other.
    """
    if missing := [name for name in TENSOR_NAMES if name not in attention.tensors]:
        raise TraceError(
            say(
                "This trace was made without {missing}; capture it with tensors={tensors}.",
                missing=join_items(missing),
                tensors=TENSOR_NAMES,
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
    scale = _infer_scale(dot, scores, len(q)) if scale is None else scale
    scores = np.where(np.isnan(scores), dot * scale, scores)
    mask, weights = attention.mask_of(layer, head)[query], attention.weights[place]
    weighted = weights[:, None] * v
    return AttentionPipeline(
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
        difference=_verify_and_measure_step_error(dot * scale, scores, mask, masked, weights),
    )


def _infer_scale(dot: np.ndarray, scores: np.ndarray, width: int) -> float:
    """The scale that the scores were made with, of the two in use."""
    return float(min((width**-0.5, 1.0), key=lambda scale: np.nanmax(np.abs(dot * scale - scores), initial=0.0)))


def _verify_and_measure_step_error(
    scaled: np.ndarray, scores: np.ndarray, mask: np.ndarray, masked: np.ndarray, weights: np.ndarray
) -> float:
    """Return the largest difference. Raises TraceError, naming the step, where one is too large."""
    steps = {
        say("scores"): np.abs(scaled - scores).max(initial=0.0),
        say("masked scores"): np.abs(masked - scores).max(initial=0.0, where=mask),
        say("weights"): np.abs(softmax(np.where(mask, masked, -np.inf)) - weights).max(initial=0.0),
    }
    if not np.isneginf(masked[~mask]).all():
        raise TraceError(say("Some masked keys have a finite score: this model masks in another way than with -inf."))
    limit = STEP_TOLERANCE * max(1.0, float(np.abs(scores).max(initial=0.0)))
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


# Weighting by value norms: a large weight on a short value vector passes little on.
#
# Kobayashi et al. (2020), "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", section 2: a
# head adds the sum of alpha f(x) with f(x) = (x W_V + b_V) W_O, and the norm of alpha f(x) is what a key contributes.


PROJECTION_NORM_EXPLANATION = to_say(
    "Weights are multiplied by the norm of what each key adds through the output projection (Kobayashi et al. 2020)."
)
VALUE_NORM_EXPLANATION = to_say(
    "Weights are multiplied by the norm of each key's value vector alone: a saved trace does not hold the output "
    "projection, which Kobayashi et al. (2020) include."
)


def weight_by_value_norms(attention: AttentionMap, output: np.ndarray | None = None) -> AttentionMap:
    """Return the weights times ||f(x)|| of each key, each row rescaled to sum to 1; a row of zeros stays.

    Args:
        attention: a map captured with tensors=("v",): v (L, H, K, d) is x W_V + b_V.
        output: (L, H, d, D) the heads' slices of W_O (:func:`read_output_projections`). None for a saved trace,
            which holds value vectors and no projection: then the norm is that of v alone, and not the paper's.

    Raises:
        TraceError: for a trace made without v.
    """
    if "v" not in attention.tensors:
        raise TraceError(say('This trace was made without the value vectors; capture it with tensors=("v",).'))
    values = attention.tensors["v"] if output is None else attention.tensors["v"] @ output
    contributions = attention.weights * np.linalg.norm(values, axis=-1)[:, :, None, :]
    total = contributions.sum(-1, keepdims=True)
    shares = np.divide(contributions, total, out=np.zeros_like(contributions), where=total > 0)
    return dataclasses.replace(attention, weights=shares, tensors={})


def weight_trace_by_value_norms(trace: AttentionTrace, model: nn.Module | None = None) -> AttentionTrace:
    """Return the trace with every map weighted by value norms, by the output projections of the `model` that made it.

    Without a model, by the value vectors alone, as :func:`weight_by_value_norms` does.
    """
    maps: dict[str, Any] = {
        kind: weight_by_value_norms(attention, None if model is None else read_output_projections(model, kind))
        for kind, attention in trace.maps.items()
    }
    return dataclasses.replace(trace, **maps)


def read_output_projections(model: nn.Module, kind: Kind) -> np.ndarray:
    """Return every head's slice of W_O of one kind of attention (L, H, d, D), of a model with hook points.

    Raises TraceError where it is not known which layer of a model from elsewhere joins the heads.
    """
    from torch import Tensor  # a saved trace is weighted without torch

    from ..capture.attention import find_attention_sites
    from ..network.attention import MultiHeadAttention

    slices = []
    for site in find_attention_sites(model):
        if site.kind == kind:
            own = isinstance(site.module, MultiHeadAttention)
            found = site.module.get_parameter("out_proj.weight") if own else site.module.output_projection
            if not isinstance(found, Tensor):
                unknown = say("Where this model joins its heads is not known, so norms of values cannot weigh in.")
                raise TraceError(unknown)
            projection, heads = found.detach().float().cpu().numpy(), site.module.heads
            assert isinstance(heads, int)
            slices.append(projection.T.reshape(heads, -1, projection.shape[0]))
    return np.stack(slices)


# Comparing two maps: what one attends to more than the other, on the tokens both have.


PositionPairs = tuple[tuple[int, int], ...]
"""(Position in the first, position in the second), rising."""


@dataclass(frozen=True, eq=False)
class MapDifference:
    """Two maps cut down to their shared rows and columns; the rows no longer sum to 1, for nothing is rescaled."""

    first: AttentionMap
    second: AttentionMap
    queries: PositionPairs
    """Rows of the two maps as they were given that are shared: (row of the first, row of the second)."""
    keys: PositionPairs
    """The same of the columns."""

    @property
    def weights(self) -> np.ndarray:
        """(L, H, Q, K) second minus first, -1 to 1."""
        return self.second.weights - self.first.weights

    @property
    def mask(self) -> np.ndarray:
        """(Q, K) bool: allowed in both."""
        return self.first.mask & self.second.mask

    @property
    def mean_moved_weight_share(self) -> float:
        """The share of a row that lies elsewhere in the second map, 0 to 1, averaged over all rows with a choice.

        Total variation distance where both maps have the same columns; a lower bound where some are not shared.
        """
        weights = np.where(self.mask, self.weights, 0)
        apart = np.maximum(weights.clip(min=0).sum(-1), -weights.clip(max=0).sum(-1))
        rows = self.mask.sum(-1) > 1
        return float(apart[..., rows].mean()) if rows.any() else 0.0

    @property
    def largest(self) -> tuple[int, int, int, int]:
        """Layer, head, row and column, from 0, of the greatest change."""
        weights = np.abs(self.weights)
        layer, head, row, column = np.unravel_index(int(weights.argmax()), weights.shape)
        return int(layer), int(head), int(row), int(column)


def compare_maps(first: AttentionMap, second: AttentionMap, rows: RowLabel = "fed") -> MapDifference:
    """Align the tokens of two maps of one kind, in order, and keep what both have; rows by the chosen label.

    Raises TraceError for different kinds, different numbers of layers or heads, and for sentences that share no token.
    """
    if first.kind != second.kind:
        raise TraceError(
            say(
                "Only maps of one kind can be compared; these are {first} and {second} attention.",
                first=first.kind,
                second=second.kind,
            )
        )
    if first.weights.shape[:2] != second.weights.shape[:2]:
        raise TraceError(
            say(
                "The first model has {layers} layers of {heads} heads, the second {other_layers} of {other_heads}: "
                "there is no head-by-head difference. Average over heads and layers first.",
                layers=first.layers,
                heads=first.heads,
                other_layers=second.layers,
                other_heads=second.heads,
            )
        )
    queries, keys = match_rows_and_columns(first, second, rows)
    if not queries or not keys:
        raise TraceError(say("The two sentences share no token, so there is nothing to take the difference of."))
    return MapDifference(
        _select_rows_and_columns(first, [one for one, _ in queries], [one for one, _ in keys]),
        _select_rows_and_columns(second, [two for _, two in queries], [two for _, two in keys]),
        queries,
        keys,
    )


def match_rows_and_columns(
    first: AttentionMap, second: AttentionMap, rows: RowLabel = "fed"
) -> tuple[PositionPairs, PositionPairs]:
    """Return the rows and the columns that two maps have in common, whatever their kinds; either may be none.

    Maps of different kinds have a common axis only where it counts the same tokens: the decoder's and the cross map's
    rows, the encoder's and the cross map's columns.
    """
    same = first.kind == second.kind
    kinds = {first.kind, second.kind}
    queries = match_common_tokens(first.rows(rows), second.rows(rows)) if same or "encoder" not in kinds else []
    keys = match_common_tokens(first.key_tokens, second.key_tokens) if same or "decoder" not in kinds else []
    return tuple(queries), tuple(keys)


def match_common_tokens(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of tokens that both have in the same order: [(in the first, in the second), ...]."""
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [(block.a + step, block.b + step) for block in blocks for step in range(block.size)]


def _select_rows_and_columns(attention: AttentionMap, queries: list[int], keys: list[int]) -> AttentionMap:
    predicted = attention.predicted_tokens
    return dataclasses.replace(
        attention,
        weights=attention.weights[:, :, queries][..., keys],
        query_tokens=tuple(attention.query_tokens[row] for row in queries),
        key_tokens=tuple(attention.key_tokens[column] for column in keys),
        predicted_tokens=tuple(predicted[row] for row in queries) if predicted else (),
        mask=attention.mask[np.ix_(queries, keys)],
        layer_masks=None if attention.layer_masks is None else attention.layer_masks[:, :, queries][..., keys],
        passed_masks=None,
        tensors={},
    )
