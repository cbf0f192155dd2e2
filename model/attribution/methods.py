"""Every way of saying what made the model write a word, as one function and one result.

target = target_word(translator, translation, 3)
attribute(translator, target, "leave-one-out").source
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..language.say import listed, say, to_say
from ..live.live_model import LiveModel
from ..network.autoregressive import AutoregressiveModel
from ..network.transformer import Transformer
from .alti import alti
from .attention_scores import last_cross_attention, norms_of_last, rolled_out
from .blocking import leave_one_out, values_without
from .blocks import SeenAttention, seen_of
from .gradients import BASELINE, GradientScores, attention_x_gradient, gradient_x_input, integrated_gradients
from .recording import Recording, record_pass
from .target import AttributionError, Target


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

        def listed(pieces: tuple[str, ...], scores: np.ndarray) -> list[dict[str, Any]]:
            return [{"piece": one, "score": score} for one, score in zip(pieces, scores.tolist(), strict=False)]

        return {
            "word": self.target.word,
            "against": self.target.against,
            "method": self.method,
            "source": listed(self.target.source_tokens, self.source),
            "prefix": listed(self.target.prefix_tokens, self.prefix),
            "target_value": self.target_value,
            "completeness_error": self.completeness_error,
            "notes": list(self.notes),
        }


METHODS = {
    "leave-one-out": to_say("how far the value falls when the piece is blocked in every mask"),
    "integrated-gradients": to_say(
        "gradients along the way from the baseline (zero token embeddings, positions kept), times the input"
    ),
    "gradient-x-input": to_say("the gradient at the input, times the input"),
    "attention": to_say("the last cross-attention, mean of its heads"),
    "attention-norm": to_say(
        "norm of what the last layer's attention reads from the piece, output projection included"
    ),
    "rollout": to_say("attention of all layers multiplied, half of each layer being the residual connection"),
    "alti": to_say("share of the piece in each layer's output, chained through all layers (ALTI+)"),
}
"""Name -> what the score is, a message."""
OF_BLOCKS = ("attention-norm", "alti")
"""Those that need the parts of every attention block."""
ATTENTION_X_GRADIENT = {
    "attention-x-gradient": to_say("how far the value falls, to first order, as all weights on the piece become zero")
}
"""The same of what is not among the methods that are measured over sentences."""

DEFAULT_METHOD = "leave-one-out"


def attribute(
    translator: LiveModel, target: Target, method: str = DEFAULT_METHOD, seen: SeenAttention | None = None
) -> Attribution:
    """Return the scores of one method; interventions open in this thread take part.

    `seen` is the attention of the pass in which the target is predicted, with the same interventions; of a model that
    is not of this project it has to be given. Raises AttributionError for an unknown method, and where the probability
    of X is zero, so that there is nothing to attribute.
    """
    if method not in METHODS | ATTENTION_X_GRADIENT:
        raise AttributionError(
            say("There is no method {method!r}; the methods are {methods}.", method=method, methods=listed(METHODS))
        )
    model = translator.model
    if method == "leave-one-out":
        value, source, prefix = leave_one_out(model, target)
        return _attribution(method, target, float(value), source, prefix)
    if method in _GRADIENTS:
        found = _GRADIENTS[method](model, target)
        error = found.completeness_error if method == "integrated-gradients" else None
        return _attribution(method, target, found.value, found.source, found.prefix, error, BASELINE)
    if method in ATTENTION_X_GRADIENT:
        return _attribution(method, target, target_value(model, target), *attention_x_gradient(model, target))
    own, source = _MAPS[method](seen or _recorded(model, target))
    # Several pieces of X: the mean of their rows, but where X is compared with Y, its first is.
    rows = slice(target.position, None if target.against_id is None else target.position + 1)
    prefix = own[rows, : len(target.prefix_tokens)].mean(0)
    return _attribution(method, target, target_value(model, target), source[rows].mean(0), prefix)


def attribute_all(translator: LiveModel, target: Target) -> dict[str, Attribution]:
    """Return the scores of every method by its name, of a model of this project."""
    seen = _recorded(translator.model, target)
    return {method: attribute(translator, target, method, seen) for method in METHODS}


def record_target(model: Transformer, target: Target) -> Recording:
    """Record the pass in which the target is predicted."""
    return record_pass(model, target.source_ids, target.input_ids)


def target_value(model: AutoregressiveModel, target: Target) -> float:
    """Return log p(X), or logit X - logit Y."""
    sides = (target.source_ids, target.prefix_tokens)
    keep = (torch.ones(1, len(one), dtype=torch.bool, device="cpu") for one in sides)
    return float(values_without(model, target, *keep)[0])


def check_value(target: Target, value: float) -> None:
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
    x, y = (_ranks(one.scores[:count]) for one in (first, second))
    spread = x.std() * y.std()
    return float(((x - x.mean()) * (y - y.mean())).mean() / spread) if spread else math.nan


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values share the mean of theirs."""
    less = (values[:, None] > values).sum(1)
    return less + ((values[:, None] == values).sum(1) - 1) / 2


def _recorded(model: AutoregressiveModel, target: Target) -> SeenAttention:
    assert isinstance(model, Transformer)
    return seen_of(record_target(model, target))


_GRADIENTS: dict[str, Callable[[AutoregressiveModel, Target], GradientScores]] = {
    "integrated-gradients": integrated_gradients,
    "gradient-x-input": gradient_x_input,
}


def _attention(seen: SeenAttention) -> tuple[Tensor, Tensor]:
    source = last_cross_attention(seen)
    return source.new_zeros(len(source), 0), source


_MAPS: dict[str, Callable[[SeenAttention], tuple[Tensor, Tensor]]] = {
    "attention": _attention,
    "attention-norm": lambda seen: norms_of_last(seen.stacks()[1]),
    "rollout": rolled_out,
    "alti": lambda seen: alti(*seen.stacks()),
}


def _attribution(
    method: str,
    target: Target,
    value: float,
    source: Tensor,
    prefix: Tensor,
    error: float | None = None,
    baseline: str | None = None,
) -> Attribution:
    check_value(target, value)
    by_source, by_prefix = (one.double().cpu().numpy() for one in (source, prefix))
    total = float(by_source.sum() + by_prefix.sum())
    return Attribution(method, by_source, by_prefix, total, target, value, error, baseline)
