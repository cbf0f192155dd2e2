"""Direct logit attribution: a logit, or the difference of two, as a sum over the parts of the residual stream.

Elhage et al. (2021), "A Mathematical Framework for Transformer Circuits": the logit is the dot product of the final
stream with a row of the output matrix, so every part has its share of it, through the final norm with its scale held.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from ..language.say import say
from ..network.transformer import Transformer
from .recording import Recording
from .residual_parts import Part, final_norm, residual_parts
from .target import Target


@dataclass(frozen=True)
class LogitPart:
    """What one part of the residual stream adds to the logit."""

    part: Part
    score: float
    held_norms: int
    """Norms between this part and the logit whose scale is held; 0 says that the part enters without any."""

    def as_json(self) -> dict[str, Any]:
        """Return name, kind, layer and head (from 0, or None) and score."""
        return {"name": self.part.name, **asdict(self.part), "score": self.score}


@dataclass(frozen=True)
class LogitParts:
    """A logit, or the difference of two, split over all parts of the residual stream."""

    word: str
    against: str | None
    parts: tuple[LogitPart, ...]
    """In the order in which they are added."""
    sum: float
    """Of all parts."""
    logit: float
    """As the model computed it, or the difference."""

    @property
    def sorted(self) -> tuple[LogitPart, ...]:
        """The parts by size, largest first."""
        return tuple(sorted(self.parts, key=lambda one: -abs(one.score)))

    @property
    def exactness(self) -> str:
        """What is exact in these numbers and what is linearised."""
        most = max(one.held_norms for one in self.parts)
        if most == 0:
            return say("Exact: no norm stands between the parts and the logit.")
        if most == 1:
            return say(
                "The sum is exact. The scale of the final norm is held at its value in this run, so what a part does "
                "to that scale is not counted."
            )
        return say(
            "The sum is exact. This model has a norm after every sublayer; the first parts pass {most} of them, each "
            "with its scale held at its value in this run, so an early part's share is a linearisation and only that "
            "of the last sublayer depends on one norm alone.",
            most=most,
        )

    def as_json(self) -> dict[str, Any]:
        """Return {"word", "against", "parts", "sum", "logit", "exactness"}."""
        facts = {"word": self.word, "against": self.against, "method": "heads"}
        parts = [one.as_json() for one in self.parts]
        return {**facts, "parts": parts, "sum": self.sum, "logit": self.logit, "exactness": self.exactness}


def logit_parts(model: Transformer, target: Target, recording: Recording) -> LogitParts:
    """Split logit X, of the first piece of X, or logit X - logit Y."""
    row = slice(target.position, target.position + 1)
    parts = residual_parts(recording, "decoder", row).through(final_norm(recording, "decoder"))
    weight, bias = model.generator.weight.detach(), model.generator.bias
    x, y = target.token_ids[0], target.against_id
    direction = weight[x].double() - (0 if y is None else weight[y].double())
    scores = parts.vectors[:, 0] @ direction
    if bias is not None:
        scores[0] += (bias[x] - (0 if y is None else bias[y])).detach().double()
    with torch.no_grad():
        logits = model.generator(recording.tensors["decoder.output"][0, target.position])
    logit = float(logits[x]) - (0.0 if y is None else float(logits[y]))
    found = zip(parts.parts, scores.tolist(), parts.norms, strict=True)
    return LogitParts(
        target.tokens[0].strip() if len(target.tokens) > 1 else target.word,
        target.against,
        tuple(LogitPart(*one) for one in found),
        float(scores.sum()),
        logit,
    )
