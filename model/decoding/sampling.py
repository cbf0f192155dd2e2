"""The distribution a token is drawn from: temperature, top-k (Fan et al. 2018), top-p (Holtzman et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..language.say import say

COLDEST = 1e-6
"""Below this temperature nothing but the most probable token is left, and logits divided by it overflow."""


@dataclass(frozen=True)
class Sampling:
    """How the model's distribution is reshaped before a token is drawn, in the order of the fields."""

    temperature: float = 1.0
    """The logits are divided by it: below 1 sharper, above 1 flatter, 0 always the most probable token."""
    top_k: int = 0
    """Only the k most probable tokens; 0 for all."""
    top_p: float = 1.0
    """Only the fewest tokens whose probabilities together reach p."""

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < math.inf:
            raise ValueError(say("A temperature is a number of 0 or above, not {value}.", value=self.temperature))
        if self.top_k < 0:
            raise ValueError(say("top-k is a count of tokens, or 0 for all, not {value}.", value=self.top_k))
        if not 0 < self.top_p <= 1:
            raise ValueError(say("top-p is a probability above 0 and at most 1, not {value}.", value=self.top_p))

    def distribution(self, log_probs: Tensor) -> Tensor:
        """log_probs (V,) or logits, -inf where forbidden -> the probabilities (V,) to draw with."""
        if self.temperature < COLDEST:
            return torch.zeros_like(log_probs).index_fill(0, log_probs.argmax(), 1.0)
        scores = log_probs / self.temperature
        if 0 < self.top_k < len(scores):
            scores = scores.masked_fill(scores < scores.topk(self.top_k).values[-1], -torch.inf)
        probabilities = scores.softmax(0)
        if self.top_p < 1:
            ordered, ids = probabilities.sort(descending=True)
            before = ordered.cumsum(0) - ordered
            probabilities[ids[before >= self.top_p]] = 0.0
            probabilities /= probabilities.sum()
        return probabilities

    def draw(self, probabilities: Tensor, generator: torch.Generator) -> int:
        """One id from `distribution`. On the CPU, so that a seed means the same on every device."""
        return int(torch.multinomial(probabilities.float().cpu(), 1, generator=generator))
