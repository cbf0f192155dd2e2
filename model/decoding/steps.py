"""Making a translation token by token. Decoding yields its steps; whoever calls displays them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

import torch
from torch import Tensor

from ..language.say import say
from ..network.autoregressive import AutoregressiveModel
from .constraints import FREE, Constraints
from .sampling import Sampling

Stopped = Literal["eos", "length"]
Choose = Callable[[Tensor], tuple[int, Tensor | None]]
"""Log-probabilities (V,), -inf where forbidden -> the id to write and, if it was drawn, the distribution (V,)."""


@dataclass(frozen=True)
class Candidate:
    """One token the model considered."""

    token_id: int
    log_prob: float
    """Natural logarithm of the probability the model gives it, whatever the strategy does with it."""
    token: str = ""
    """As people read it; filled in by the translator."""
    drawn: float | None = None
    """The probability with which sampling draws it; None where nothing is drawn."""
    forbidden: bool = False


@dataclass(frozen=True)
class DecodingStep:
    """One step: the token chosen at `position` (0 is the first target token) and what else was considered."""

    position: int
    token_id: int
    log_prob: float
    """Natural logarithm of the probability of the chosen token."""
    candidates: tuple[Candidate, ...] = field(default=())
    """The most probable next tokens, best first."""
    token: str = ""
    stopped: Stopped | None = None
    """Set on the last step: why decoding ended there."""
    rank: int = 1
    """1 if no token was more probable than the chosen one."""
    forced: bool = False
    """The token was given, not chosen."""


def length_limit(model: AutoregressiveModel, source_tokens: int, most: int | None = None) -> int:
    """Tokens after which a translation is cut off: generous for the source, or `most`; never past the position table.

    ValueError for a `most` below 1.
    """
    if most is not None and most < 1:
        raise ValueError(say("A translation has at least 1 token, so at most {most} cannot be asked for.", most=most))
    return min(model.room(source_tokens), model.usual_limit(source_tokens) if most is None else most)


def length_limits(model: AutoregressiveModel, source: Tensor, most: int | None = None) -> list[int]:
    """The same for each of source (B, S), PAD after the end: neighbours in a batch change nothing."""
    return [length_limit(model, length, most) for length in model.source_mask(source).sum((1, 2, 3)).tolist()]


def padding_where_any(model: AutoregressiveModel, source: Tensor) -> Tensor | None:
    """The padding mask of source (B, S), or None where nothing is padded and a mask would only cost time."""
    mask = model.source_mask(source)
    return None if mask.all() else mask


def greedy(
    model: AutoregressiveModel,
    source: Tensor,
    max_tokens: int | None = None,
    candidates: int = 10,
    constraints: Constraints = FREE,
) -> Iterator[DecodingStep]:
    """Always take the most probable token. source (1, S) ids -> steps up to and with </s> or the length limit."""
    return _decode(model, source, lambda scores: (int(scores.argmax()), None), max_tokens, candidates, constraints)


def sample(
    model: AutoregressiveModel,
    source: Tensor,
    sampling: Sampling,
    generator: torch.Generator,
    max_tokens: int | None = None,
    candidates: int = 10,
    constraints: Constraints = FREE,
) -> Iterator[DecodingStep]:
    """Draw every token. source (1, S) ids; `generator` lives on the CPU and is the only source of chance."""

    def choose(scores: Tensor) -> tuple[int, Tensor]:
        probabilities = sampling.distribution(scores)
        return sampling.draw(probabilities, generator), probabilities

    return _decode(model, source, choose, max_tokens, candidates, constraints)


@dataclass(frozen=True)
class Strategy:
    """How one sentence is decoded, token after token."""

    sampling: Sampling | None = None
    """None for greedy."""
    seed: int = 0
    """Where the chance of sampling starts."""
    constraints: Constraints = FREE

    @property
    def name(self) -> str:
        return "greedy" if self.sampling is None else f"{self.sampling}, seed {self.seed}"

    def steps(
        self, model: AutoregressiveModel, source: Tensor, max_tokens: int | None = None
    ) -> Iterator[DecodingStep]:
        """source (1, S) ids -> steps"""
        if self.sampling is None:
            return greedy(model, source, max_tokens, constraints=self.constraints)
        generator = torch.Generator().manual_seed(self.seed)
        return sample(model, source, self.sampling, generator, max_tokens, constraints=self.constraints)


GREEDY = Strategy()


class CachedDecoder:
    """One sentence under way: fed a token at a time, with the keys and values of those before in a cache."""

    def __init__(self, model: AutoregressiveModel, source: Tensor) -> None:
        """source (1, S) ids"""
        self.model = model
        self.memory, self.memory_mask = model.encode(source), padding_where_any(model, source)
        self.cache = model.new_cache()

    def next_log_probs(self, token: int) -> Tensor:
        """Feed in the token written last, <s> at first -> log-probabilities (V,) of the next."""
        last = torch.tensor([[token]], device=self.memory.device)
        states = self.model.decode(last, self.memory, self.memory_mask, cache=self.cache)
        return self.model.generator(states[0, -1]).log_softmax(-1)


@torch.inference_mode()
def _decode(
    model: AutoregressiveModel,
    source: Tensor,
    choose: Choose,
    max_tokens: int | None,
    candidates: int,
    constraints: Constraints,
) -> Iterator[DecodingStep]:
    limit = length_limit(model, source.shape[1], max_tokens)
    decoder = CachedDecoder(model, source)
    written = [model.start_id]
    for position in range(limit):
        log_probs = decoder.next_log_probs(written[-1])
        token, drawn_from = choose(constraints.apply(log_probs, written[1:]))
        stopped: Stopped | None = "eos" if token in model.end_ids else "length" if position + 1 == limit else None
        banned = constraints.banned(written[1:])
        yield DecodingStep(
            position,
            token,
            log_probs[token].item(),
            considered(log_probs, candidates, banned, drawn_from),
            stopped=stopped,
            rank=rank(log_probs, token),
            forced=position < len(constraints.prefix),
        )
        if stopped:
            return
        written.append(token)


def considered(
    log_probs: Tensor, count: int, banned: list[int] | tuple[int, ...] = (), drawn_from: Tensor | None = None
) -> tuple[Candidate, ...]:
    """The `count` most probable tokens of log_probs (V,), best first."""
    best, ids = log_probs.topk(min(count, len(log_probs)))
    drawn = [None] * len(ids) if drawn_from is None else drawn_from[ids].tolist()
    found = zip(ids.tolist(), best.tolist(), drawn, strict=True)
    return tuple(Candidate(token, value, "", chance, token in banned) for token, value, chance in found)


def rank(log_probs: Tensor, token: int) -> int:
    """1 if no token of log_probs (V,) is more probable."""
    return int((log_probs > log_probs[token]).sum()) + 1


@torch.inference_mode()
def greedy_batch(
    model: AutoregressiveModel, source: Tensor, max_tokens: int | None = None, constraints: Constraints = FREE
) -> list[list[int]]:
    """The same for many sentences at once, ids only: source (B, S), PAD after the end -> B lists without </s>."""
    limits = length_limits(model, source, max_tokens)
    memory, memory_mask = model.encode(source), padding_where_any(model, source)
    cache = model.new_cache()
    chosen = torch.full((len(source), 1), model.start_id, device=source.device)
    ends = torch.tensor(list(model.end_ids), device=source.device)
    finished = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    columns: list[Tensor] = []
    for _ in range(max(limits)):
        logits = model.generator(model.decode(chosen, memory, memory_mask, cache=cache)[:, -1])
        if constraints:
            written = torch.cat(columns, 1).tolist() if columns else [[]] * len(source)
            logits = torch.stack([constraints.apply(*row) for row in zip(logits, written, strict=True)])
        chosen = logits.max(-1, keepdim=True).indices.masked_fill(finished[:, None], ends[0])
        finished |= torch.isin(chosen[:, 0], ends)
        columns.append(chosen)
        if finished.all():
            break
    rows = torch.cat(columns, 1).tolist()
    return [_until_end(row[:limit], model.end_ids) for row, limit in zip(rows, limits, strict=True)]


def _until_end(ids: list[int], ends: Collection[int]) -> list[int]:
    return list(takewhile(lambda token: token not in ends, ids))
