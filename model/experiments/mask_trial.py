"""Another mask in a model that writes: what becomes of what it writes and of its attention.

Nothing on the model is changed: the masks are edited on their way, in the thread that asks (:mod:`.interventions`).
The sentence may be padded, since many faults show only there. Decoding is done without a cache, so that an edited
mask holds for the whole prefix at every step, as it would in training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ..capture.attention import capture_attention
from ..decoding.steps import greedy, length_limit
from ..decoding.teacher_forcing import forced_log_probs
from ..interventions.apply import editing_masks
from ..language.say import say
from ..live.live_model import LiveModel
from ..live.translation import InputError
from ..masking.rule import Sizes, build_mask
from ..trace import AttentionMap, Kind

MaskName = Literal[
    "no mask", "no padding mask", "no causal mask", "inverted", "causal", "own place blocked", "window",
    "one word hidden", "added, not filled", "rule",
]  # fmt: skip
NAMES: tuple[MaskName, ...] = get_args(MaskName)
OF_KIND: dict[Kind, tuple[MaskName, ...]] = {
    "encoder": ("causal", "no padding mask", "inverted", "window", "one word hidden", "added, not filled", "rule"),
    "decoder": ("no causal mask", "inverted", "own place blocked", "window", "added, not filled", "rule"),
    "cross": ("causal", "no padding mask", "inverted", "window", "one word hidden", "added, not filled", "rule"),
}
"""The masks that can be tried on each kind of attention of a model with two sides."""
OF_DECODER_ALONE: tuple[MaskName, ...] = (*OF_KIND["decoder"][:-2], "one word hidden", *OF_KIND["decoder"][-2:])
"""Those of a decoder that reads its prompt itself."""
LONGER = 12
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

    def allowed(self, mask: np.ndarray, first: int, real: Sequence[int]) -> np.ndarray:
        """The model's own (B, 1, Q, K) bool, True = may attend, with queries from `first` on -> this one.

        So many keys of each sample, or of all where one number is given, are no padding. Raises RuleError for a rule
        that cannot be read.
        """
        queries, keys = mask.shape[-2:]
        i, j = first + np.arange(queries)[:, None], np.arange(keys)
        if self.name in ("no mask", "no padding mask", "no causal mask", "added, not filled"):
            return np.ones_like(mask)
        if self.name == "inverted":
            return ~mask
        if self.name == "rule":
            lengths = real if len(real) == mask.shape[0] else real[:1]
            whole = build_mask(self.rule, Sizes(first + queries, keys, tuple(min(one, keys) for one in lengths)))
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
def use_mask(model: LiveModel, trial: MaskTrial | None, *real: int) -> Iterator[None]:
    """Put the mask in force inside the block, in this thread; `real` source tokens of each sample are no padding."""
    if trial is None:
        yield
        return
    last: list[Tensor] = []

    def edit(mask: Tensor, first: int) -> Tensor:
        last[:] = [mask]
        keys = real if trial.kind != "decoder" else (mask.shape[-1],)
        found = trial.allowed(mask.detach().cpu().numpy(), first, keys)
        return torch.from_numpy(np.array(found)).to(mask.device)

    def add(scores: Tensor) -> Tensor:
        return scores + last[0].to(scores.dtype)

    scores = add if trial.name == "added, not filled" else None
    with editing_masks(model.model, trial.kind, edit, scores):
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
    def fed(self) -> tuple[str, ...]:
        """The tokens that the decoder is fed behind the source: of a decoder alone, behind its prompt."""
        tokens = self.own.maps["decoder"].query_tokens
        return tokens if "cross" in self.own.maps else tokens[len(self.source_tokens) :]


def masks_of(model: LiveModel, kind: Kind) -> tuple[MaskName, ...]:
    """Return the masks that can be tried on one kind of a model's attention."""
    return OF_KIND[kind] if model.can("translate") else OF_DECODER_ALONE


@torch.inference_mode()
def run_trial(model: LiveModel, text: str, trial: MaskTrial | None, pads: int = 0) -> TrialResult:
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
    steps = greedy(network, source, length_limit(network, real), constraints=model.forced)
    target = tuple(step.token_id for step in steps)
    targets = tuple(map(model.tokenizer.token, target))

    def run(mask: MaskTrial | None, ids: tuple[int, ...]) -> MaskedRun:
        with use_mask(model, mask, real), capture_attention(network) as capture:
            log_prob_of_target = _log_prob(model, source, target)
        with use_mask(model, mask, real):
            log_prob = _log_prob(model, source, ids)
        maps = model.named(capture.trace, names, targets).maps
        return MaskedRun(model.written(ids), ids, log_prob, log_prob_of_target, maps)

    own = run(None, target)
    changed = own if trial is None else run(trial, _decode(model, source, real, trial, len(target) + LONGER))
    return TrialResult(names, targets, source, real, own, changed)


def _decode(model: LiveModel, source: Tensor, real: int, trial: MaskTrial, most: int) -> tuple[int, ...]:
    """Decode greedily, without a cache, at most so many tokens."""
    network, most = model.model, min(most, length_limit(model.model, real))
    written = [network.start_id]
    with use_mask(model, trial, real):
        memory, mask = network.encode(source), network.source_mask(source)
        while len(written) <= most and (len(written) == 1 or written[-1] not in network.end_ids):
            states = network.decode(torch.tensor([written], device=source.device), memory, mask)
            log_probs = network.generator(states[0, -1]).log_softmax(-1)
            written.append(int(model.forced.apply(log_probs, written[1:]).argmax()))
    return tuple(written[1:])


def _log_prob(model: LiveModel, source: Tensor, ids: tuple[int, ...]) -> float:
    log_probs = forced_log_probs(model.model, source, ids)
    return float(log_probs.gather(1, torch.tensor([ids], device=source.device).T).sum())
