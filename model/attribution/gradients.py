"""Attribution by gradients with respect to the token embeddings: gradient x input and integrated gradients.

Baseline: every token embedding zero, all positions kept. The pieces of X themselves, where it has several, stay.
Sundararajan et al. (2017), "Axiomatic Attribution for Deep Networks", equation 1: the gradient's mean along the
straight line from the baseline, times the difference of input and baseline; the scores sum to F(x) - F(baseline).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..language import to_say
from ..network.abstract_model import AutoregressiveModel, Side
from ..network.hooks import OutputHook, hook_outputs
from .target import Target

INITIAL_CELLS, CELLS_SPLIT_PER_ROUND, MAX_ROUNDS = 24, 8, 128
"""Cells of the first round, cells that a round splits, and rounds at most."""
COMPLETENESS_TOLERANCE, MIN_TOLERANCE_NATS = 0.01, 0.001
"""The line is cut finer until the scores sum to the difference within this share of it, or within so many nats: of a
difference near zero no share would ever be reached."""
BASELINE_MESSAGE = to_say("zero token embeddings, positions kept")


@dataclass(frozen=True, eq=False)
class GradientScores:
    """Scores of the pieces and the values at both ends of the line, all float64."""

    source: Tensor
    """(S,)"""
    prefix: Tensor
    """(P,)"""
    value: float
    """F(x)"""
    baseline: float
    """F(baseline)"""

    @property
    def completeness_error(self) -> float:
        """|sum of the scores - (F(x) - F(baseline))|, relative to that difference."""
        return _relative_error(float(self.source.sum() + self.prefix.sum()), self.value - self.baseline)


class EmbeddingLine(Protocol):
    """A straight line in the space of token embeddings, and the value F along it."""

    pieces: int
    """Of the source; those of the prefix come after them."""

    def values(self, points: Tensor) -> Tensor:
        """Return F at points (N,) of the line: (N,) float64."""

    def slopes(self, points: Tensor) -> Tensor:
        """Return dF/dt at points (N,), split over the pieces: gradient x (input - baseline), (N, S + P) float64."""


def compute_gradient_x_input(model: AutoregressiveModel, target: Target) -> GradientScores:
    """Return the gradient at the input times the input: the first step of a Taylor series."""
    line = _BaselineLine(model, target)
    first, last = line.values(torch.tensor([0.0, 1.0], device="cpu")).tolist()
    scores = line.slopes(torch.ones(1, device="cpu"))[0]
    return GradientScores(scores[: line.pieces], scores[line.pieces :], last, first)


def compute_integrated_gradients(
    model: AutoregressiveModel, target: Target, tolerance: float = COMPLETENESS_TOLERANCE
) -> GradientScores:
    """Return integrated gradients by the midpoint rule on cells that are cut finer where they err most.

    F at the ends of a cell says what its integral must sum to. Networks with ReLUs have kinks along the line, where no
    fixed rule of moderate size is exact; each round splits the worst cells, the rows of one pass, until the
    completeness error is at most `tolerance`, or :data:`MIN_TOLERANCE_NATS` nats where that is more. After
    :data:`MAX_ROUNDS` rounds it ends with the error that it has.
    """
    return integrate_along_line(_BaselineLine(model, target), tolerance)


def integrate_along_line(line: EmbeddingLine, tolerance: float = COMPLETENESS_TOLERANCE) -> GradientScores:
    """Return :func:`compute_integrated_gradients` along any line."""
    even = torch.linspace(0, 1, INITIAL_CELLS + 1, dtype=torch.float64, device="cpu")
    edges = even**2  # finer at the baseline, where norms turn fast
    at_edges = line.values(edges)
    cells = _integrate_cells(line, edges[:-1], edges[1:], at_edges[:-1], at_edges[1:])
    difference = float(at_edges[-1] - at_edges[0])
    for _ in range(MAX_ROUNDS):
        if abs(float(cells.scores.sum()) - difference) <= max(tolerance * abs(difference), MIN_TOLERANCE_NATS):
            break
        cells = _split_worst_cells(line, cells)
    scores = cells.scores.sum(0)
    return GradientScores(scores[: line.pieces], scores[line.pieces :], float(at_edges[-1]), float(at_edges[0]))


@dataclass(frozen=True, eq=False)
class _LineCells:
    """Stretches of the line: their ends and F there, (N,) each, and the integrals of the slopes, (N, S + P)."""

    low: Tensor
    high: Tensor
    at_low: Tensor
    at_high: Tensor
    scores: Tensor

    def select(self, which: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.low[which], self.high[which], self.at_low[which], self.at_high[which], self.scores[which]


def _integrate_cells(line: EmbeddingLine, low: Tensor, high: Tensor, at_low: Tensor, at_high: Tensor) -> _LineCells:
    return _LineCells(low, high, at_low, at_high, line.slopes((low + high) / 2) * (high - low)[:, None])


def _split_worst_cells(line: EmbeddingLine, cells: _LineCells) -> _LineCells:
    """Split the cells whose integrals are farthest from the rise of F over them."""
    errors = (cells.at_high - cells.at_low - cells.scores.sum(1)).abs()
    worst = torch.zeros(len(errors), dtype=torch.bool, device=errors.device)
    worst[errors.topk(min(CELLS_SPLIT_PER_ROUND, len(errors))).indices] = True
    low, high, at_low, at_high, _ = cells.select(worst)
    middle = (low + high) / 2
    at_middle = line.values(middle)
    halves = ((low, middle), (middle, high), (at_low, at_middle), (at_middle, at_high))
    new = _integrate_cells(line, *map(torch.cat, halves))
    kept = cells.select(~worst)
    return _LineCells(*map(torch.cat, zip(kept, (new.low, new.high, new.at_low, new.at_high, new.scores), strict=True)))


class _BaselineLine:
    """The straight line from the baseline, at 0, to the input, at 1, and the value F along it."""

    def __init__(self, model: AutoregressiveModel, target: Target) -> None:
        self.model, self.target = model, target
        self.device = next(model.parameters()).device
        self.pieces, self.prefix = len(target.source_ids), len(target.prefix_tokens)
        self.source, self.inputs = read_token_embeddings(model, target)

    @torch.no_grad()
    def values(self, points: Tensor) -> Tensor:
        """Return F at points (N,) of the line: (N,) float64."""
        return self._run(*self._scale_embeddings(points)).cpu()

    def slopes(self, points: Tensor) -> Tensor:
        """Return dF/dt at points (N,), split over the pieces: gradient x (input - baseline), (N, S + P) float64."""
        rows = [one.requires_grad_() for one in self._scale_embeddings(points)]
        with torch.enable_grad():
            gradients = torch.autograd.grad(self._run(*rows).sum(), rows)
        pairs = zip(gradients, (self.source, self.inputs), strict=True)
        by_source, by_input = ((gradient.double() * tokens.double()).sum(-1) for gradient, tokens in pairs)
        return torch.cat([by_source, by_input[:, : self.prefix]], 1).cpu()

    def _scale_embeddings(self, points: Tensor) -> list[Tensor]:
        """Token embeddings of source (N, S, D) and decoder inputs (N, T, D); the pieces of X itself stay."""
        scale = points.to(self.device, self.source.dtype)[:, None, None]
        own = torch.arange(len(self.inputs), device=self.device) >= self.prefix
        return [self.source * scale, torch.where(own[:, None], self.inputs, self.inputs * scale)]

    def _run(self, source: Tensor, inputs: Tensor) -> Tensor:
        """F at token embeddings (N, S, D) and (N, T, D): -> (N,)"""
        return self.target.value(compute_logits_from_embeddings(self.model, self.target, source, inputs))


def compute_attention_x_gradient(model: AutoregressiveModel, target: Target) -> tuple[Tensor, Tensor]:
    """Return weights times gradients, summed over layers, heads and rows: source (S,), prefix (P,), float64.

    Source pieces are the keys of cross-attention, those of the prefix the keys of the decoder's own.
    """
    inputs = [one[None].detach().requires_grad_() for one in read_token_embeddings(model, target)]
    with torch.enable_grad(), capture_attention(model, detach=False) as capture:
        value = target.value(compute_logits_from_embeddings(model, target, *inputs))
    weights, gradients = capture.trace.maps, capture.gradients(value.sum()).maps
    by_key = {
        kind: torch.from_numpy((one.weights.astype(float) * gradients[kind].weights).sum((0, 1, 2)))
        for kind, one in weights.items()
    }
    source, own = by_key.get("cross"), by_key["decoder"]
    if source is None:
        source, own = own[: len(target.source_ids)], own[len(target.source_ids) :]
    return source, own[: len(target.prefix_tokens)]


@torch.no_grad()
def read_token_embeddings(model: AutoregressiveModel, target: Target) -> tuple[Tensor, Tensor]:
    """Return the embeddings of the source (S, D) and of the decoder's inputs (T, D), before positions are added.

    Those of a decoder alone are T - 1: the first stands for the prompt's last token.
    """
    if model.is_decoder_alone:
        whole: list[Tensor] = []
        _run_with_embedding_hooks(model, target, None, lambda tokens: whole.append(tokens[0]), 1)
        return whole[0][: len(target.source_ids)], whole[0][len(target.source_ids) :]
    found: dict[Side, Tensor] = {}

    def keep_tokens(side: Side) -> OutputHook:
        return lambda tokens: found.update({side: tokens[0]})

    _run_with_embedding_hooks(model, target, keep_tokens("source"), keep_tokens("target"), 1)
    return found["source"], found["target"]


def compute_logits_from_embeddings(
    model: AutoregressiveModel, target: Target, source: Tensor, inputs: Tensor
) -> Tensor:
    """Return the logits (N, n, V) at the n pieces of X with other token embeddings, (N, S, D) and (N, T, D)."""
    if model.is_decoder_alone:
        return _run_with_embedding_hooks(model, target, None, lambda _: torch.cat([source, inputs], 1), len(source))
    return _run_with_embedding_hooks(model, target, lambda _: source, lambda _: inputs, len(source))


def _run_with_embedding_hooks(
    model: AutoregressiveModel, target: Target, source: OutputHook | None, inputs: OutputHook, rows: int
) -> Tensor:
    """The logits of so many rows, with a function on the embeddings of each side, which may share one module.

    None for the source of a decoder alone, whose inputs are the whole text.
    """
    device = next(model.parameters()).device
    ids, input_ids = (torch.tensor([one], device=device) for one in (target.source_ids, target.input_ids))
    with hook_outputs({} if source is None else {model.token_embedding("source"): source}):
        memory = model.encode(ids.expand(rows, -1))
    with hook_outputs({model.token_embedding("target"): inputs}):
        states = model.decode(input_ids.expand(rows, -1), memory, model.source_mask(ids))
    return model.generator(states[:, target.position :])


def _relative_error(total: float, difference: float) -> float:
    return abs(total - difference) / max(abs(difference), 1e-9)
