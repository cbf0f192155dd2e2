"""Run a model under another mask, perturb its inputs, and compare cached with uncached attention."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..decoding.greedy_and_sampling import Constraints, compute_length_limit, decode_greedily, teacher_forced_log_probs
from ..interventions.apply import apply_changes, edit_masks
from ..interventions.changes import ModelChange
from ..language import say
from ..mask_tests.checks import run_mask_tests
from ..mask_tests.outcomes import Outcome
from ..mask_tests.subjects import PaddedIds, make_attention_kind_subject
from ..masks.rule import MaskSizes, build_mask
from ..network.abstract_model import Side, shift_right
from ..network.attention import force_attention_path
from ..network.config import PAD_ID
from ..network.hooks import hook_outputs
from ..network.transformer import Transformer
from ..runnable_model import InputError, RunnableModel
from ..trace import AttentionMap, Kind
from ..translate import Translator

# Running a model under another mask: what it writes, and its attention.
#
# The model itself is not changed: its masks are edited on their way, in the calling thread
# (:func:`model.interventions.apply.edit_masks`).
# The sentence may be padded, since many faults show only there. Decoding is done without a cache, so that an edited
# mask holds for the whole prefix at every step, as it would in training.


MaskName = Literal[
    "no mask", "no padding mask", "no causal mask", "inverted", "causal", "own place blocked", "window",
    "one word hidden", "added, not filled", "rule",
]  # fmt: skip
MASK_NAMES: tuple[MaskName, ...] = get_args(MaskName)
MASKS_BY_KIND: dict[Kind, tuple[MaskName, ...]] = {
    "encoder": ("causal", "no padding mask", "inverted", "window", "one word hidden", "added, not filled", "rule"),
    "decoder": ("no causal mask", "inverted", "own place blocked", "window", "added, not filled", "rule"),
    "cross": ("causal", "no padding mask", "inverted", "window", "one word hidden", "added, not filled", "rule"),
}
"""The masks that can be tried on each kind of attention of a model with two sides."""
DECODER_ONLY_MASKS: tuple[MaskName, ...] = (
    *MASKS_BY_KIND["decoder"][:-2],
    "one word hidden",
    *MASKS_BY_KIND["decoder"][-2:],
)
"""Those of a decoder that reads its prompt itself."""
EXTRA_TOKENS = 12
"""Tokens that a translation may be longer under a broken mask than under the right one, before it is cut off."""


@dataclass(frozen=True)
class MaskTrial:
    """One mask, in place of the model's own in every layer of one kind."""

    kind: Kind
    name: MaskName
    width: int = 3
    """The width of a window: keys nearer than so many positions are seen."""
    key: int = 0
    """The key that is hidden, from 0."""
    rule: str = "causal and padding"

    def build_mask(self, mask: np.ndarray, first: int, real: Sequence[int]) -> np.ndarray:
        """Return this mask in place of the model's own (B, 1, Q, K) bool, True = may attend, with queries from `first`.

        `real` is how many keys of each sample, or of all where it is one number, are no padding. Raises RuleError for a
        rule that cannot be read.
        """
        queries, keys = mask.shape[-2:]
        i, j = first + np.arange(queries)[:, None], np.arange(keys)
        if self.name in ("no mask", "no padding mask", "no causal mask", "added, not filled"):
            return np.ones_like(mask)
        if self.name == "inverted":
            return ~mask
        if self.name == "rule":
            lengths = real if len(real) == mask.shape[0] else real[:1]
            whole = build_mask(self.rule, MaskSizes(first + queries, keys, tuple(min(one, keys) for one in lengths)))
            return np.broadcast_to(whole[:, :, first:], mask.shape)
        return (
            mask
            & {
                "causal": j <= i,
                "own place blocked": j != i,
                "window": abs(i - j) < self.width,
                "one word hidden": (j != self.key) & (i == i),
            }[self.name]
        )


@contextmanager
def override_attention_mask(model: RunnableModel, trial: MaskTrial | None, *real: int) -> Iterator[None]:
    """Put the mask in force inside the block, in this thread; `real` source tokens of each sample are no padding."""
    if trial is None:
        yield
        return
    last: list[Tensor] = []

    def edit(mask: Tensor, first: int) -> Tensor:
        last[:] = [mask]
        keys = real if trial.kind != "decoder" else (mask.shape[-1],)
        found = trial.build_mask(mask.detach().cpu().numpy(), first, keys)
        return torch.from_numpy(np.array(found)).to(mask.device)

    def add(scores: Tensor) -> Tensor:
        return scores + last[0].to(scores.dtype)

    scores = add if trial.name == "added, not filled" else None
    with edit_masks(model.model, trial.kind, edit, scores):
        yield


@dataclass(frozen=True, eq=False)
class MaskedRun:
    """A sentence through the model under one mask."""

    text: str
    ids: tuple[int, ...]
    """The translation or continuation that it writes, with its end if it wrote that."""
    log_prob: float
    """The log-probability of that text, natural logarithm."""
    log_prob_of_target: float
    """The log-probability of the text that the unchanged model writes."""
    maps: dict[Kind, AttentionMap]
    """Attention while the unchanged model's translation is fed, so that rows compare."""


@dataclass(frozen=True, eq=False)
class TrialResult:
    """A sentence under the model's own mask and under another."""

    source_tokens: tuple[str, ...]
    """The source, padding included."""
    target_tokens: tuple[str, ...]
    """What the unchanged model writes."""
    source: Tensor
    """(1, S + pads) ids."""
    real: int
    """S, the source tokens that are no padding."""
    own: MaskedRun
    """Under the model's own mask."""
    trial: MaskedRun
    """Under the mask that is tried."""

    @property
    def decoder_tokens(self) -> tuple[str, ...]:
        """The tokens that the decoder is fed behind the source: of a decoder alone, behind its prompt."""
        tokens = self.own.maps["decoder"].query_tokens
        return tokens if "cross" in self.own.maps else tokens[len(self.source_tokens) :]


def list_trial_masks(model: RunnableModel, kind: Kind) -> tuple[MaskName, ...]:
    """Return the masks that can be tried on one kind of a model's attention."""
    return MASKS_BY_KIND[kind] if model.can("translate") else DECODER_ONLY_MASKS


@torch.inference_mode()
def run_mask_trial(model: RunnableModel, text: str, trial: MaskTrial | None, pads: int = 0) -> TrialResult:
    """Translate `text`, or continue it, padded by `pads` tokens, with both masks. Raises InputError and RuleError."""
    encoded, network = model.encode(text), model.model
    real, pad = len(encoded.ids), network.pad_id
    if pads and pad is None:
        raise InputError(say("This model has no padding token of its own, so nothing can be padded."))
    if real + pads > model.max_length:
        raise InputError(
            say(
                "With {pads} padding tokens this text is longer than the {most} the model reads.",
                pads=pads,
                most=model.max_length,
            )
        )
    padding = [pad] * pads if pad is not None else []
    source = torch.tensor([[*encoded.ids, *padding]], device=model.device)
    names = (*encoded.tokens, *map(model.tokenizer.token, padding))
    steps = decode_greedily(network, source, compute_length_limit(network, real), constraints=model.forced)
    target = tuple(step.token_id for step in steps)
    targets = tuple(map(model.tokenizer.token, target))

    def run_with_mask(mask: MaskTrial | None, ids: tuple[int, ...]) -> MaskedRun:
        with override_attention_mask(model, mask, real), capture_attention(network) as capture:
            log_prob_of_target = _sum_log_prob(model, source, target)
        with override_attention_mask(model, mask, real):
            log_prob = _sum_log_prob(model, source, ids)
        maps = model.name_trace_axes(capture.trace, names, targets).maps
        return MaskedRun(model.decode_target(ids), ids, log_prob, log_prob_of_target, maps)

    own = run_with_mask(None, target)
    changed = (
        own
        if trial is None
        else run_with_mask(trial, _decode_greedily(model, source, real, trial, len(target) + EXTRA_TOKENS))
    )
    return TrialResult(names, targets, source, real, own, changed)


def _decode_greedily(model: RunnableModel, source: Tensor, real: int, trial: MaskTrial, most: int) -> tuple[int, ...]:
    """Decode greedily, without a cache, at most so many tokens."""
    network, most = model.model, min(most, compute_length_limit(model.model, real))
    written = [network.start_id]
    with override_attention_mask(model, trial, real):
        memory, mask = network.encode(source), network.source_mask(source)
        while len(written) <= most and (len(written) == 1 or written[-1] not in network.end_ids):
            states = network.decode(torch.tensor([written], device=source.device), memory, mask)
            log_probs = network.generator(states[0, -1]).log_softmax(-1)
            written.append(int(model.forced.apply(log_probs, written[1:]).argmax()))
    return tuple(written[1:])


def _sum_log_prob(model: RunnableModel, source: Tensor, ids: tuple[int, ...]) -> float:
    log_probs = teacher_forced_log_probs(model.model, source, ids)
    return float(log_probs.gather(1, torch.tensor([ids], device=source.device).T).sum())


# Perturbation under another mask: which outputs move with which input, and what the mask tests say.


INPUTS_A_BATCH = 32
"""Inputs that are changed in one batch."""


@dataclass(frozen=True, eq=False)
class Perturbation:
    """How far the T outputs, next-token distributions, move when one input at a time is another token."""

    change: np.ndarray
    """(T, S + F) total variation distance of the distributions, 0 where not even a logit moved; of source and fed
    target tokens: F is T, or T - 1 of a decoder alone, whose prompt stands in place of a start."""
    allowed: np.ndarray
    """(T, S + F) bool, True = this output may depend on this input."""


@torch.inference_mode()
def perturb_each_input_token(model: RunnableModel, result: TrialResult, trial: MaskTrial | None) -> Perturbation:
    """Change every token of the sentence (padding too) and of what is fed behind it, one at a time, under a mask.

    It is the embedding that is exchanged, so that padding stays padding to the mask. The same batch is run unchanged
    beside it: rows of equal batches are equal to the last bit, so that what does not depend does not move at all.
    """
    network, source, ids = model.model, result.source, result.own.ids
    fed = shift_right(torch.tensor([ids], device=source.device), network.start_id)
    outputs, sources = len(ids), source.shape[1]
    inputs = torch.arange(sources + len(result.decoder_tokens), device=source.device)
    first = sources if model.can("translate") else 0  # the input that stands first in what the decoder embeds
    found = []
    for places in inputs.split(INPUTS_A_BATCH):
        many, decoded = source.expand(len(places), -1), fed.expand(len(places), -1)
        with force_attention_path("explicit"), override_attention_mask(model, trial, result.real):
            before = network(many, decoded)
            with _replace_one_token_per_row(model, "source", places, 0):
                memory = network.encode(many)
            with _replace_one_token_per_row(model, "target", places, first):
                after = network.generator(network.decode(decoded, memory, network.source_mask(many)))
        moved = (before != after).any(-1)
        distance = (before.softmax(-1) - after.softmax(-1)).abs().sum(-1) / 2
        found.append(torch.where(moved, distance.clamp_min(1e-9), 0.0))
    if first:
        of_source = np.arange(sources)[None].repeat(outputs, 0) < result.real
        allowed = np.concatenate([of_source, np.tri(outputs, dtype=bool)], 1)
    else:
        allowed = np.tri(outputs, len(inputs), sources - 1, dtype=bool)
    return Perturbation(torch.cat(found).T.cpu().numpy(), allowed)


def _replace_one_token_per_row(
    model: RunnableModel, side: Side, places: Tensor, first: int
) -> AbstractContextManager[None]:
    """Row b of the batch gets another token at places[b], counted from `first`, if this side has that place."""

    def exchange(embedded: Tensor) -> Tensor:
        mine = (places >= first) & (places < first + embedded.shape[1])
        rows, at = torch.arange(len(places), device=places.device)[mine], (places - first)[mine]
        changed, own = embedded.clone(), embedded[rows, at]
        changed[rows, at] = own.roll(1, -1).masked_fill((own == 0).all(-1, keepdim=True), 1.0)  # a start can be zero
        return changed

    return hook_outputs({model.model.token_embedding(side): exchange})


def run_trial_tests(
    model: RunnableModel, result: TrialResult, kind: Kind, trial: MaskTrial | None
) -> tuple[Outcome, ...]:
    """Return the outcomes of the mask tests on the part of the model in which `kind` stands.

    They run on a batch of the sentence and, padded, its first half.
    """
    network = model.model
    source = result.source[0, : result.real]
    target = shift_right(torch.tensor(result.own.ids, device=source.device), network.start_id)
    if not model.can("translate"):  # its first token stands for the source, and the rest is fed behind it
        source, target = source[:1], torch.cat([source, target[1:]])
    lengths = (len(source), max(1, len(source) // 2))

    def apply_mask() -> AbstractContextManager[None]:
        return override_attention_mask(model, trial, *lengths)

    padded = _add_half_padded_sample(network.pad_id, source), _add_half_padded_sample(network.pad_id, target)
    return run_mask_tests(make_attention_kind_subject(network, kind, *padded, apply_mask))


def _add_half_padded_sample(pad: int | None, ids: Tensor) -> PaddedIds:
    """(T,) -> two samples: the same, and its first half padded."""
    keep = torch.ones(2, len(ids), dtype=torch.bool, device=ids.device)
    keep[1, max(1, len(ids) // 2) :] = False
    return PaddedIds(torch.where(keep, ids, 0 if pad is None else pad), keep)


# Three ways to the attention of a translation, which must agree: cached, in one forward pass, as in training.
#
# They run in float64. In float32 the ways round differently, and how far that moves a weight depends on the
# scores: `preset-torch_like` has scores of nearly 600 and up to 2e-5 between the ways, the other released models 2e-6.
# In float64 they agree to the last digit of a weight that is kept as float32, so that a fault of the cache or a mask
# stands out.


PADDING_COLUMNS = 3
"""Columns of padding after the sentence in the batch of the third way."""
CAPTURE_WAYS = ("cached", "full", "teacher-forced")
AGREEMENT_TOLERANCE = 1e-6
"""Two weights computed in float64 and kept as float32 may round to neighbours, which lie 6e-8 apart at most."""


@dataclass(frozen=True)
class CacheAgreement:
    """The largest absolute difference of any attention weight between each two of the three ways."""

    differences: Mapping[tuple[str, str], Mapping[Kind, float]]

    @property
    def largest(self) -> float:
        """NaN if there is one."""
        return float(np.max([value for one in self.differences.values() for value in one.values()]))

    @property
    def is_within_tolerance(self) -> bool:
        return self.largest <= AGREEMENT_TOLERANCE


def measure_cache_agreement(
    translator: Translator, source_ids: Sequence[int], target_ids: Sequence[int], changes: Sequence[ModelChange] = ()
) -> CacheAgreement:
    """Return the agreement of a translation, given as the ids of its source and of what was written."""
    return compare_attention_across_passes(
        translator.model, torch.tensor([source_ids], device=translator.device), target_ids, changes
    )


@torch.inference_mode()
def compare_attention_across_passes(
    model: Transformer, source: Tensor, target_ids: Sequence[int], changes: Sequence[ModelChange] = ()
) -> CacheAgreement:
    """Run source (1, S) with the T target ids in each of :data:`CAPTURE_WAYS` and compare all attention weights.

    `changes` are made to the model in all of them. Raises InterventionError for those that it cannot make.

    ``cached``: one token at a time with a key/value cache, as decoding does. ``full``: one forward pass over the
    finished translation. ``teacher-forced``: as in training, in a batch beside another sentence and with padding.
    """
    exact = _copy_in_float64(model)
    source = source.to(next(exact.parameters()).device)
    target = shift_right(torch.tensor([target_ids], device=source.device))
    with apply_changes(exact, changes):
        runs = (
            _capture_cached_decoding(exact, source, target_ids),
            _capture_full_pass(exact, source, target),
            _capture_padded_batch(exact, source, target),
        )
    maps = dict(zip(CAPTURE_WAYS, runs, strict=True))
    pairs = combinations(CAPTURE_WAYS, 2)
    return CacheAgreement({pair: _largest_weight_difference_by_kind(maps[pair[0]], maps[pair[1]]) for pair in pairs})


def _copy_in_float64(model: Transformer) -> Transformer:
    """A copy without hooks: those that the model has now may be other threads', and may change while it is copied."""
    without_hooks = {id(module._forward_hooks): type(module._forward_hooks)() for module in model.modules()}
    made = copy.deepcopy(model, without_hooks)
    return made.to("cpu" if next(model.parameters()).device.type == "mps" else None, torch.float64)  # MPS has none


def _capture_cached_decoding(model: Transformer, source: Tensor, target_ids: Sequence[int]) -> dict[Kind, AttentionMap]:
    with capture_attention(model) as recording:
        list(decode_greedily(model, source, len(target_ids), candidates=1, constraints=Constraints(tuple(target_ids))))
    return recording.trace.maps


def _capture_full_pass(model: Transformer, source: Tensor, target: Tensor) -> dict[Kind, AttentionMap]:
    with capture_attention(model) as recording:
        model(source, target)
    return recording.trace.maps


def _capture_padded_batch(model: Transformer, source: Tensor, target: Tensor) -> dict[Kind, AttentionMap]:
    """The sentence, padded, is row 1 of a batch of two; row 0 is made of its own tokens in reverse, and longer."""
    room = min(PADDING_COLUMNS, model.config.max_length - max(source.shape[1], target.shape[1]))
    with capture_attention(model) as recording:
        model(_batch_with_reversed_sentence(source, room), _batch_with_reversed_sentence(target, room))
    return recording.sample(1).maps


def _batch_with_reversed_sentence(ids: Tensor, room: int) -> Tensor:
    """ids (1, N) -> (2, N + room)"""
    other = torch.cat([ids.flip(1), ids[:, :1].expand(-1, room)], 1)
    return torch.cat([other, torch.nn.functional.pad(ids, (0, room), value=PAD_ID)])


def _largest_weight_difference_by_kind(
    one: Mapping[Kind, AttentionMap], other: Mapping[Kind, AttentionMap]
) -> dict[Kind, float]:
    """Compare the rows and columns that both have: padding makes the third way's maps larger."""
    return {kind: _largest_shared_cell_difference(one[kind].weights, other[kind].weights) for kind in one}


def _largest_shared_cell_difference(one: np.ndarray, other: np.ndarray) -> float:
    queries, keys = min(one.shape[2], other.shape[2]), min(one.shape[3], other.shape[3])
    return float(np.abs(one[:, :, :queries, :keys] - other[:, :, :queries, :keys]).max())
