"""All attribution methods as one function with one result, and the scores that attention alone gives.

    target = make_word_target(translator, translation, 3)
    attribute_target(translator, target, "leave-one-out").source

Every method scores the pieces of the source; all but plain attention score those of the prefix too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..analysis.flow import compute_rollout
from ..language import join_items, say, to_say
from ..network.abstract_model import AutoregressiveModel
from ..network.transformer import Transformer
from ..runnable_model import RunnableModel
from ..trace import KINDS, AttentionMap, AttentionTrace, Kind
from .alti_and_leave_one_out import (
    AttentionBlock,
    AttentionPass,
    compute_alti_shares,
    compute_leave_one_out,
    compute_target_values_without_pieces,
    make_attention_pass,
)
from .gradients import (
    BASELINE_MESSAGE,
    GradientScores,
    compute_attention_x_gradient,
    compute_gradient_x_input,
    compute_integrated_gradients,
)
from .logit import PassRecording, record_pass
from .target import AttributionError, Target

# What attention alone says of a word. A row of attention does not know which word is predicted from it, so these scores
# are the same for every X at one place.


def average_last_attention(seen: AttentionPass) -> tuple[Tensor, Tensor]:
    """Return the weights of the last cross-attention, their mean over heads: (T, 0), and those of the source (T, S).

    Of a decoder alone those of its last attention, for the prefix (T, T - 1) and the prompt (T, S).
    """
    if seen.prompt:
        return split_scores_at_prompt(seen.weights["decoder"][-1].mean(0), seen.prompt)
    source = seen.weights["cross"][-1].mean(0)
    return source.new_zeros(len(source), 0), source


def split_scores_at_prompt(scores: Tensor, prompt: int) -> tuple[Tensor, Tensor]:
    """Split scores (N, N) of a whole text at the end of its prompt: of the rows that predict, what they give to the
    continuation (T, T - 1) and to the prompt (T, S).
    """
    rows = scores[prompt - 1 :]
    return rows[:, prompt:], rows[:, :prompt]


def compute_last_self_and_cross_norms(decoder: Sequence[AttentionBlock]) -> tuple[Tensor, Tensor]:
    """Return the norms of what the last layer reads from each decoder input (T, T) and from the memory (T, S).

    Kobayashi et al. (2020), "Attention is Not Only a Weight", section 2, the heads added up before the norm is taken:
    the norm of the sum over heads of alpha (x W_V + b_V) W_O. `decoder` are its attention blocks; without
    cross-attention the second is (T, 0).
    """
    norms = {one.kind: one.vectors.norm(dim=-1) for one in decoder}
    return norms["decoder"], norms.get("cross", norms["decoder"][:, :0])


def compute_last_rollout(seen: AttentionPass) -> tuple[Tensor, Tensor]:
    """Return the rollout of decoder inputs (T, T) and source pieces (T, S) at the last layer."""
    encoder, decoder, cross = (
        _make_attention_map(seen.weights, kind) if kind in seen.weights else None for kind in KINDS
    )
    found = compute_rollout(AttentionTrace(encoder, decoder, cross))
    assert found.decoder is not None
    if seen.prompt:
        return split_scores_at_prompt(torch.from_numpy(found.decoder.weights[-1, 0]), seen.prompt)
    assert found.cross is not None
    return torch.from_numpy(found.decoder.weights[-1, 0]), torch.from_numpy(found.cross.weights[-1, 0])


def _make_attention_map(seen: Mapping[Kind, Tensor], kind: Kind) -> AttentionMap:
    weights = seen[kind].float().cpu().numpy()
    rows, columns = ([str(at + 1) for at in range(count)] for count in weights.shape[-2:])
    return AttentionMap(kind, weights, tuple(rows), tuple(columns), np.ones(weights.shape[-2:], dtype=bool))


# All methods as one function.


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each piece of the source and of the prefix contributed to a word, by one method."""

    method: str
    source: np.ndarray
    """(S,) float64, one score for each piece of ``target.source_tokens``."""
    prefix: np.ndarray
    """(P,) for ``target.prefix_tokens``, the start first; empty for a method that says nothing of the prefix."""
    total: float
    """The sum of all scores."""
    target: Target
    target_value: float
    """log p(X), natural logarithm, or logit X - logit Y."""
    completeness_error: float | None = None
    """How far the total is from F(x) - F(baseline), relative to it; of integrated gradients, else None."""
    baseline: str | None = None
    """The input from which gradients are integrated, a message."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of the sentence before any score is read."""
        return self.target.notes

    @property
    def scores(self) -> np.ndarray:
        """(S + P,), or (S,) for a method that says nothing of the prefix."""
        return np.concatenate([self.source, self.prefix])

    def as_json(self) -> dict[str, Any]:
        """Return what the command line prints with --json."""

        def list_scores(pieces: tuple[str, ...], scores: np.ndarray) -> list[dict[str, Any]]:
            return [{"piece": one, "score": score} for one, score in zip(pieces, scores.tolist(), strict=False)]

        return {
            "word": self.target.word,
            "against": self.target.against,
            "method": self.method,
            "source": list_scores(self.target.source_tokens, self.source),
            "prefix": list_scores(self.target.prefix_tokens, self.prefix),
            "target_value": self.target_value,
            "completeness_error": self.completeness_error,
            "notes": list(self.notes),
        }


ATTRIBUTION_METHODS = {
    "leave-one-out": to_say("how far the value falls when the piece is blocked in every mask"),
    "integrated-gradients": to_say(
        "gradients along the way from the baseline (zero token embeddings, positions kept), times the input"
    ),
    "gradient-x-input": to_say("the gradient at the input, times the input"),
    "attention": to_say("the last cross-attention, of a decoder alone its last attention, mean of its heads"),
    "attention-norm": to_say(
        "norm of what the last layer's attention reads from the piece, output projection included"
    ),
    "rollout": to_say("attention of all layers multiplied, half of each layer being the residual connection"),
    "alti": to_say("share of the piece in each layer's output, chained through all layers (ALTI+)"),
}
"""Name -> what the score is, a message."""
BLOCK_METHODS = ("attention-norm", "alti")
"""The methods that need the parts of every attention block."""
ATTENTION_X_GRADIENT_METHOD = {
    "attention-x-gradient": to_say("how far the value falls, to first order, as all weights on the piece become zero")
}
"""The same for the method that is not measured over sentences."""

DEFAULT_METHOD = "leave-one-out"


def attribute_target(
    translator: RunnableModel, target: Target, method: str = DEFAULT_METHOD, seen: AttentionPass | None = None
) -> Attribution:
    """Return the scores of one method; interventions open in this thread take part.

    `seen` is the attention of the pass in which the target is predicted, with the same interventions; of a model that
    is not of this project it has to be given. Raises AttributionError for an unknown method, and where the probability
    of X is zero, so that there is nothing to attribute.
    """
    if method not in ATTRIBUTION_METHODS | ATTENTION_X_GRADIENT_METHOD:
        raise AttributionError(
            say(
                "There is no method {method!r}; the methods are {methods}.",
                method=method,
                methods=join_items(ATTRIBUTION_METHODS),
            )
        )
    model = translator.model
    if method == "leave-one-out":
        value, source, prefix = compute_leave_one_out(model, target)
        return _make_attribution(method, target, float(value), source, prefix)
    if method in _GRADIENT_METHODS:
        found = _GRADIENT_METHODS[method](model, target)
        error = found.completeness_error if method == "integrated-gradients" else None
        return _make_attribution(method, target, found.value, found.source, found.prefix, error, BASELINE_MESSAGE)
    if method in ATTENTION_X_GRADIENT_METHOD:
        return _make_attribution(
            method, target, compute_target_value(model, target), *compute_attention_x_gradient(model, target)
        )
    own, source = _MAP_METHODS[method](seen or _record_attention_pass(model, target))
    # Several pieces of X: the mean of their rows, but where X is compared with Y, its first is.
    rows = slice(target.position, None if target.against_id is None else target.position + 1)
    prefix = own[rows, : len(target.prefix_tokens)].mean(0)
    return _make_attribution(method, target, compute_target_value(model, target), source[rows].mean(0), prefix)


def attribute_all_methods(translator: RunnableModel, target: Target) -> dict[str, Attribution]:
    """Return the scores of every method by its name, of a model of this project."""
    seen = _record_attention_pass(translator.model, target)
    return {method: attribute_target(translator, target, method, seen) for method in ATTRIBUTION_METHODS}


def record_target_pass(model: Transformer, target: Target) -> PassRecording:
    """Record the pass in which the target is predicted."""
    return record_pass(model, target.source_ids, target.input_ids)


def compute_target_value(model: AutoregressiveModel, target: Target) -> float:
    """Return log p(X), or logit X - logit Y."""
    sides = (target.source_ids, target.prefix_tokens)
    keep = (torch.ones(1, len(one), dtype=torch.bool, device="cpu") for one in sides)
    return float(compute_target_values_without_pieces(model, target, *keep)[0])


def require_nonzero_target_probability(target: Target, value: float) -> None:
    """Raise AttributionError where the probability of X is zero, as heads that are switched off may make it."""
    if math.isfinite(value) and (target.against is not None or math.exp(value) > 0):
        return
    raise AttributionError(
        say(
            "The probability of {word!r} is zero in this model, with the changes made to it: there is nothing to "
            "attribute. Undo a change, or choose another word.",
            word=target.word,
        )
    )


def rank_correlation(first: Attribution, second: Attribution) -> float:
    """Return Spearman's rank correlation of two methods over the pieces that both score; NaN where one is constant."""
    count = min(len(first.scores), len(second.scores))
    x, y = (_rank_values(one.scores[:count]) for one in (first, second))
    spread = x.std() * y.std()
    return float(((x - x.mean()) * (y - y.mean())).mean() / spread) if spread else math.nan


def _rank_values(values: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values share the mean of theirs."""
    less = (values[:, None] > values).sum(1)
    return less + ((values[:, None] == values).sum(1) - 1) / 2


def _record_attention_pass(model: AutoregressiveModel, target: Target) -> AttentionPass:
    assert isinstance(model, Transformer)
    return make_attention_pass(record_target_pass(model, target))


_GRADIENT_METHODS: dict[str, Callable[[AutoregressiveModel, Target], GradientScores]] = {
    "integrated-gradients": compute_integrated_gradients,
    "gradient-x-input": compute_gradient_x_input,
}


def _score_by_blocks(
    seen: AttentionPass, scores: Callable[[list[AttentionBlock], list[AttentionBlock]], tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    own, source = scores(*seen.stacks())
    return split_scores_at_prompt(own, seen.prompt) if seen.prompt else (own, source)


_MAP_METHODS: dict[str, Callable[[AttentionPass], tuple[Tensor, Tensor]]] = {
    "attention": average_last_attention,
    "attention-norm": lambda seen: _score_by_blocks(
        seen, lambda _, decoder: compute_last_self_and_cross_norms(decoder)
    ),
    "rollout": compute_last_rollout,
    "alti": lambda seen: _score_by_blocks(seen, compute_alti_shares),
}


def _make_attribution(
    method: str,
    target: Target,
    value: float,
    source: Tensor,
    prefix: Tensor,
    error: float | None = None,
    baseline: str | None = None,
) -> Attribution:
    require_nonzero_target_probability(target, value)
    by_source, by_prefix = (one.double().cpu().numpy() for one in (source, prefix))
    total = float(by_source.sum() + by_prefix.sum())
    return Attribution(method, by_source, by_prefix, total, target, value, error, baseline)
