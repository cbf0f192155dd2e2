"""Greedy, sampled, constrained and teacher-forced decoding, one token at a time, and checks of what was decoded."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import Literal

import torch
from torch import Tensor

from ..language import join_sentences, say
from ..network.abstract_model import AutoregressiveModel, make_decoder_inputs, shift_right
from ..network.attention import AttentionPath, choose_attention_path, force_attention_path

# The distribution a token is drawn from: temperature, top-k (Fan et al. 2018), top-p (Holtzman et al. 2020).


COLDEST_TEMPERATURE = 1e-6
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
        if self.temperature < COLDEST_TEMPERATURE:
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
        """Draw one id from `distribution`, on the CPU, so that a seed means the same on every device."""
        return int(torch.multinomial(probabilities.float().cpu(), 1, generator=generator))


# Constraints: what a decoding must write, and what it may not.


@dataclass(frozen=True)
class Constraints:
    """A beginning that is forced, and token sequences that may not be written."""

    prefix: tuple[int, ...] = ()
    """The first target tokens; they have priority over what is forbidden."""
    forbidden: tuple[tuple[int, ...], ...] = ()
    """Sequences of ids: the last token of one is forbidden wherever the others have just been written."""

    uncounted: int = 0
    """So many tokens of the prefix are what every target of the model begins with: a search counts none of them in its
    sums of log-probabilities, as Hugging Face's `forced_bos_token_id`."""

    def __bool__(self) -> bool:
        return bool(self.prefix or self.forbidden)

    def banned_ids(self, written: Sequence[int]) -> list[int]:
        """The ids that may not follow `written`."""
        tail = tuple(written)
        return [ids[-1] for ids in self.forbidden if ids and tail[len(tail) - len(ids) + 1 :] == ids[:-1]]

    def merge_constraints(self, more: Constraints) -> Constraints:
        """Return these constraints with others added; a beginning that the others have goes before the one here."""
        prefix, forbidden = more.prefix or self.prefix, (*self.forbidden, *more.forbidden)
        return Constraints(prefix, forbidden, self.uncounted if prefix[: len(self.prefix)] == self.prefix else 0)

    def apply(self, log_probs: Tensor, written: Sequence[int]) -> Tensor:
        """log_probs (V,) of the next token -> the same, -inf where a token may not be written, 0 where none counts."""
        if len(written) < len(self.prefix):
            token = self.prefix[len(written)]
            only = torch.full_like(log_probs, -torch.inf)
            only[token] = log_probs[token] if len(written) >= self.uncounted else 0.0
            return only
        banned = self.banned_ids(written)
        if not banned:
            return log_probs
        return log_probs.index_fill(0, torch.tensor(banned, device=log_probs.device), -torch.inf)


NO_CONSTRAINTS = Constraints()
"""Nothing is forced and nothing forbidden."""

# Decoding token by token: each function yields its steps.


StopReason = Literal["eos", "length"]
ChooseToken = Callable[[Tensor], tuple[int, Tensor | None]]
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
    stopped: StopReason | None = None
    """Set on the last step: why decoding ended there."""
    rank: int = 1
    """1 if no token was more probable than the chosen one."""
    forced: bool = False
    """The token was given, not chosen."""


def compute_length_limit(model: AutoregressiveModel, source_tokens: int, most: int | None = None) -> int:
    """Return the tokens after which a translation is cut off: `most`, or generous for the source.

    It is never past the position table. Raises ValueError for a `most` below 1.
    """
    if most is not None and most < 1:
        raise ValueError(say("A translation has at least 1 token, so at most {most} cannot be asked for.", most=most))
    return min(model.room(source_tokens), model.usual_limit(source_tokens) if most is None else most)


def compute_length_limits(model: AutoregressiveModel, source: Tensor, most: int | None = None) -> list[int]:
    """Return the limit of each sentence of source (B, S), PAD after the end; neighbours in a batch change nothing."""
    return [compute_length_limit(model, length, most) for length in model.source_mask(source).sum((1, 2, 3)).tolist()]


def padding_mask_or_none(model: AutoregressiveModel, source: Tensor) -> Tensor | None:
    """Return the padding mask of source (B, S), or None where nothing is padded and a mask would only cost time."""
    mask = model.source_mask(source)
    return None if mask.all() else mask


def decode_greedily(
    model: AutoregressiveModel,
    source: Tensor,
    max_tokens: int | None = None,
    candidates: int = 10,
    constraints: Constraints = NO_CONSTRAINTS,
) -> Iterator[DecodingStep]:
    """Always take the most probable token. source (1, S) ids -> steps up to and with </s> or the length limit."""
    return _decode_steps(
        model, source, lambda scores: (int(scores.argmax()), None), max_tokens, candidates, constraints
    )


def decode_by_sampling(
    model: AutoregressiveModel,
    source: Tensor,
    sampling: Sampling,
    generator: torch.Generator,
    max_tokens: int | None = None,
    candidates: int = 10,
    constraints: Constraints = NO_CONSTRAINTS,
) -> Iterator[DecodingStep]:
    """Draw every token. source (1, S) ids; `generator` lives on the CPU and is the only source of chance."""

    def choose(scores: Tensor) -> tuple[int, Tensor]:
        probabilities = sampling.distribution(scores)
        return sampling.draw(probabilities, generator), probabilities

    return _decode_steps(model, source, choose, max_tokens, candidates, constraints)


@dataclass(frozen=True)
class Strategy:
    """How one sentence is decoded, token after token."""

    sampling: Sampling | None = None
    """None for greedy."""
    seed: int = 0
    """Where the chance of sampling starts."""
    constraints: Constraints = NO_CONSTRAINTS

    @property
    def name(self) -> str:
        return "greedy" if self.sampling is None else f"{self.sampling}, seed {self.seed}"

    def steps(
        self, model: AutoregressiveModel, source: Tensor, max_tokens: int | None = None
    ) -> Iterator[DecodingStep]:
        """source (1, S) ids -> steps"""
        if self.sampling is None:
            return decode_greedily(model, source, max_tokens, constraints=self.constraints)
        generator = torch.Generator().manual_seed(self.seed)
        return decode_by_sampling(model, source, self.sampling, generator, max_tokens, constraints=self.constraints)


GREEDY_STRATEGY = Strategy()


class CachedDecoder:
    """The decoder on one sentence: fed a token at a time, with the keys and values of those before in a cache."""

    def __init__(self, model: AutoregressiveModel, source: Tensor) -> None:
        """source (1, S) ids"""
        self.model = model
        self.memory, self.memory_mask = model.encode(source), padding_mask_or_none(model, source)
        self.cache = model.new_cache()

    def next_log_probs(self, token: int) -> Tensor:
        """Feed in the token written last, <s> at first -> log-probabilities (V,) of the next."""
        last = torch.tensor([[token]], device=self.memory.device)
        states = self.model.decode(last, self.memory, self.memory_mask, cache=self.cache)
        return self.model.generator(states[0, -1]).log_softmax(-1)


@torch.inference_mode()
def _decode_steps(
    model: AutoregressiveModel,
    source: Tensor,
    choose: ChooseToken,
    max_tokens: int | None,
    candidates: int,
    constraints: Constraints,
) -> Iterator[DecodingStep]:
    limit = compute_length_limit(model, source.shape[1], max_tokens)
    decoder = CachedDecoder(model, source)
    written = [model.start_id]
    for position in range(limit):
        log_probs = decoder.next_log_probs(written[-1])
        token, drawn_from = choose(constraints.apply(log_probs, written[1:]))
        stopped: StopReason | None = "eos" if token in model.end_ids else "length" if position + 1 == limit else None
        banned = constraints.banned_ids(written[1:])
        yield DecodingStep(
            position,
            token,
            log_probs[token].item(),
            list_candidates(log_probs, candidates, banned, drawn_from),
            stopped=stopped,
            rank=compute_token_rank(log_probs, token),
            forced=position < len(constraints.prefix),
        )
        if stopped:
            return
        written.append(token)


def list_candidates(
    log_probs: Tensor, count: int, banned: list[int] | tuple[int, ...] = (), drawn_from: Tensor | None = None
) -> tuple[Candidate, ...]:
    """The `count` most probable tokens of log_probs (V,), best first."""
    best, ids = log_probs.topk(min(count, len(log_probs)))
    drawn = [None] * len(ids) if drawn_from is None else drawn_from[ids].tolist()
    found = zip(ids.tolist(), best.tolist(), drawn, strict=True)
    return tuple(Candidate(token, value, "", chance, token in banned) for token, value, chance in found)


def compute_token_rank(log_probs: Tensor, token: int) -> int:
    """1 if no token of log_probs (V,) is more probable."""
    return int((log_probs > log_probs[token]).sum()) + 1


@torch.inference_mode()
def decode_batch_greedily(
    model: AutoregressiveModel, source: Tensor, max_tokens: int | None = None, constraints: Constraints = NO_CONSTRAINTS
) -> list[list[int]]:
    """Decode many sentences greedily at once, ids only: source (B, S), PAD after the end -> B lists without </s>."""
    limits = compute_length_limits(model, source, max_tokens)
    memory, memory_mask = model.encode(source), padding_mask_or_none(model, source)
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
    return [_cut_at_end(row[:limit], model.end_ids) for row, limit in zip(rows, limits, strict=True)]


def _cut_at_end(ids: list[int], ends: Collection[int]) -> list[int]:
    return list(takewhile(lambda token: token not in ends, ids))


# Teacher forcing: the probabilities of a given translation, in one forward pass or token by token.


@torch.inference_mode()
def teacher_forced_log_probs(model: AutoregressiveModel, source: Tensor, target_ids: Sequence[int]) -> Tensor:
    """Read T given tokens in one forward pass: source (1, S) -> log-probabilities (T, V), row t after t tokens."""
    target = shift_right(torch.tensor([target_ids], device=source.device), model.start_id)
    return model(source, target)[0].log_softmax(-1)


@torch.inference_mode()
def compute_cached_forced_log_probs(model: AutoregressiveModel, source: Tensor, target_ids: Sequence[int]) -> Tensor:
    """Read T given tokens one at a time with a cache, as a decoding that wrote them did: log-probabilities (T, V)."""
    decoder = CachedDecoder(model, source)
    fed = make_decoder_inputs(target_ids, model.start_id)
    return torch.stack([decoder.next_log_probs(token) for token in fed])


@torch.inference_mode()
def teacher_force(
    model: AutoregressiveModel, source: Tensor, target_ids: Sequence[int], candidates: int = 10
) -> tuple[DecodingStep, ...]:
    """source (1, S), the T ids of a whole or begun translation -> T steps, each with the given token's probability.

    Raises ValueError for no tokens at all and for more than the model has positions.
    """
    most = model.room(source.shape[1]) + 1
    if not 0 < len(target_ids) <= most:
        raise ValueError(
            say(
                "A given translation has 1 to {most} tokens in this model, not {count}.",
                most=most,
                count=len(target_ids),
            )
        )
    log_probs = teacher_forced_log_probs(model, source, target_ids)
    last = len(target_ids) - 1
    return tuple(
        DecodingStep(
            position,
            token,
            row[token].item(),
            list_candidates(row, candidates),
            stopped="eos" if position == last and token in model.end_ids else None,
            rank=compute_token_rank(row, token),
            forced=True,
        )
        for position, (token, row) in enumerate(zip(target_ids, log_probs, strict=True))
    )


# Top-k of a long row, quicker than by sorting through all of it.


LONG_ROW = 2048
"""Numbers of a row from which looking at the greatest of each part first pays."""
NARROWEST_PART, WIDEST_PART = 32, 256
"""Numbers of a part."""


def partitioned_topk(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """values (B, N) -> the `count` greatest of each row, greatest first, and where they stand: (B, count) each.

    The same numbers as `topk` gives; of equal ones another may be taken. They lie in the `count` parts with the
    greatest maxima, so on a CPU only these are sorted through, which takes a third to a half of the time.
    """
    width = _choose_topk_part_width(values.shape[1], count) if values.device.type == "cpu" else 0
    if not width:
        return torch.topk(values, count)
    parts = values.view(len(values), -1, width)
    best = parts.amax(-1).topk(count).indices
    found, at = parts.gather(1, best[:, :, None].expand(-1, -1, width)).flatten(1).topk(count)
    return found, best.gather(1, at // width) * width + at % width


@cache
def _choose_topk_part_width(length: int, count: int) -> int:
    """How wide the parts of a row are, a divisor of its length; 0 where there is none that pays."""
    if length < LONG_ROW:
        return 0
    wanted = (length / count) ** 0.5  # as many maxima as numbers in the chosen parts
    widths = [one for one in range(NARROWEST_PART, WIDEST_PART + 1) if length % one == 0 and length // one >= count]
    return min(widths, key=lambda one: abs(one - wanted), default=0)


# Loops, a known fault of likelihood-maximising decoding (Holtzman et al. 2020, arXiv 1904.09751).


LEAST_REPETITIONS = 3
"""How often something must be said in a row before it counts as a loop."""


@dataclass(frozen=True)
class Repetition:
    """`length` tokens from `start`, said `times` times in a row."""

    start: int
    length: int
    times: int


def find_repetition(tokens: Sequence[Hashable]) -> Repetition | None:
    """Return the longest stretch of a sequence that repeats itself LEAST_REPETITIONS times or more, if there is one."""
    found: Repetition | None = None
    for length in range(1, len(tokens) // LEAST_REPETITIONS + 1):
        same = 0  # positions in a row that equal the one `length` before
        for at in range(length, len(tokens)):
            same = same + 1 if tokens[at] == tokens[at - length] else 0
            times = same // length + 1
            if times >= LEAST_REPETITIONS and (found is None or length * times > found.length * found.times):
                found = Repetition(at - same - length + 1, length, times)
    return found


# Whether capturing the attention of a translation changed it: a second run without hooks.


KERNEL_ROUNDING = 1e-3
"""Log-probabilities of float32 that two kernels compute differ by less, in nats."""


@dataclass(frozen=True)
class ObserverCheck:
    """The log-probabilities that came out of a captured run, compared with those of the same run without capture."""

    path: AttentionPath
    """The attention that ran without capture: with it, ``explicit`` always runs."""
    difference: float
    """Largest absolute difference of a log-probability, in nats; 0 where all are bitwise equal."""
    by_capture: float
    """The same against a run without capture that takes the explicit path as well: what is left is the hooks' doing."""
    compared: int
    """How many log-probabilities: at every step those of the token written and of the candidates kept."""

    @property
    def sentence(self) -> str:
        """The verdict in a few words."""
        if self.difference == 0:
            return say("outputs unchanged by looking")
        if self.by_capture == 0:
            return say(
                "looking replaced the {path} kernel: log-probabilities moved by {difference:.1e}",
                path=self.path,
                difference=self.difference,
            )
        return say(
            "looking changed the outputs: log-probabilities moved by {difference:.1e}", difference=self.by_capture
        )

    @property
    def explanation(self) -> str:
        """What was compared with what, the outcome, and on a GPU whether it is more than the kernels' rounding."""
        compared = say(
            "{count} log-probabilities, as they came out while the attention shown was recorded, and again with no "
            "hook and the {path} attention: {outcome}.",
            count=self.compared,
            path=self.path,
            outcome=say("bitwise equal")
            if self.difference == 0
            else say("largest difference {difference:.1e}", difference=self.difference),
        )
        if self.path == "explicit" or self.difference == 0 or self.by_capture != 0:
            return compared
        if self.difference > KERNEL_ROUNDING:
            more = say(
                "That is more than the rounding of two kernels explains, which stays below {rounding}.",
                rounding=KERNEL_ROUNDING,
            )
            return join_sentences(compared, more)
        return join_sentences(
            compared, say("This is expected: the two kernels add in another order, and round otherwise.")
        )


def check_observer(
    model: AutoregressiveModel, source: Tensor, steps: Sequence[DecodingStep], *, one_pass: bool
) -> ObserverCheck:
    """Run source (1, S) again as the `steps` were made, without capture, and compare all that they kept.

    `one_pass`: they were read by teacher forcing; otherwise they were decoded one at a time with a cache, and are
    again, on the tokens that were written. A single forward pass over those would be cheaper but rounds otherwise, so
    that no difference below its rounding could be told from none. Interventions open in this thread take part.
    """
    again = teacher_forced_log_probs if one_pass else compute_cached_forced_log_probs
    ids, kept = [step.token_id for step in steps], _collect_log_probs(steps)
    path, found = choose_attention_path(source.device), again(model, source, ids)
    difference = by_capture = _largest_log_prob_difference(kept, found)
    if path != "explicit" and difference:
        with force_attention_path("explicit"):
            by_capture = _largest_log_prob_difference(kept, again(model, source, ids))
    return ObserverCheck(path, difference, by_capture, len(kept))


def _collect_log_probs(steps: Sequence[DecodingStep]) -> dict[tuple[int, int], float]:
    """Return (step, token) -> log-probability, for every token that the T steps name."""
    found = {(row, one.token_id): one.log_prob for row, step in enumerate(steps) for one in step.candidates}
    return found | {(row, step.token_id): step.log_prob for row, step in enumerate(steps)}


def _largest_log_prob_difference(kept: Mapping[tuple[int, int], float], log_probs: Tensor) -> float:
    """Return the largest difference between the kept log-probabilities and log_probs (T, V)."""
    rows, tokens = zip(*kept, strict=True)
    values = torch.tensor(list(kept.values()), dtype=torch.float64, device="cpu")
    return (log_probs[list(rows), list(tokens)].double().cpu() - values).abs().max().item()
