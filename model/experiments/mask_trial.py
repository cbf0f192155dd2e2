"""Another mask in a model that translates: what becomes of the translation and of the attention.

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
from ..interventions.apply import editing_masks
from ..masking.rule import Sizes, build_mask
from ..network.autoregressive import shift_right
from ..network.config import BOS_ID, EOS_ID, PAD_ID, SPECIAL_PIECES
from ..network.masks import padding_mask
from ..text.token_names import name_translation
from ..trace import AttentionMap, Kind
from ..translate import Translator

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
"""The masks that can be tried on each kind of attention."""
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
def use_mask(translator: Translator, trial: MaskTrial | None, *real: int) -> Iterator[None]:
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
    with editing_masks(translator.model, trial.kind, edit, scores):
        yield


@dataclass(frozen=True, eq=False)
class MaskedRun:
    """A sentence through the model under one mask."""

    text: str
    ids: tuple[int, ...]
    """The translation that it writes, with </s> if it wrote that."""
    log_prob: float
    """The log-probability of that translation, natural logarithm."""
    log_prob_of_target: float
    """The log-probability of the translation that the unchanged model writes."""
    maps: dict[Kind, AttentionMap]
    """Attention while the unchanged model's translation is fed, so that rows compare."""


@dataclass(frozen=True, eq=False)
class TrialResult:
    """A sentence under the model's own mask and under another."""

    source_tokens: tuple[str, ...]
    """The source, padding included."""
    target_tokens: tuple[str, ...]
    """The translation that the unchanged model writes."""
    source: Tensor
    """(1, S + pads) ids."""
    real: int
    """S, the source tokens that are no padding."""
    own: MaskedRun
    """Under the model's own mask."""
    trial: MaskedRun
    """Under the mask that is tried."""


@torch.inference_mode()
def run_trial(translator: Translator, text: str, trial: MaskTrial | None, pads: int = 0) -> TrialResult:
    """Translate `text`, padded by `pads` tokens, with both masks. Raises InputError, and RuleError for the rule."""
    encoded, model = translator.encode(text), translator.model
    source = torch.tensor([[*encoded.ids, *[PAD_ID] * pads]], device=translator.device)
    names = (*encoded.tokens, *[SPECIAL_PIECES[PAD_ID]] * pads)
    real = len(encoded.ids)
    target = tuple(step.token_id for step in greedy(model, source, length_limit(model, real)))
    targets = tuple(map(translator.tokenizer.token, target))

    def run(mask: MaskTrial | None, ids: tuple[int, ...]) -> MaskedRun:
        with use_mask(translator, mask, real), capture_attention(model) as capture:
            log_prob_of_target = _log_prob(translator, source, target)
        with use_mask(translator, mask, real):
            log_prob = _log_prob(translator, source, ids)
        maps = name_translation(capture.trace, names, targets).maps
        return MaskedRun(translator.tokenizer.decode(ids), ids, log_prob, log_prob_of_target, maps)

    own = run(None, target)
    changed = own if trial is None else run(trial, _decode(translator, source, real, trial, len(target) + LONGER))
    return TrialResult(names, targets, source, real, own, changed)


def _decode(translator: Translator, source: Tensor, real: int, trial: MaskTrial, most: int) -> tuple[int, ...]:
    """Decode greedily, without a cache, at most so many tokens."""
    written = [BOS_ID]
    with use_mask(translator, trial, real):
        memory, mask = translator.model.encode(source), padding_mask(source, PAD_ID)
        while len(written) <= min(most, length_limit(translator.model, real)) and written[-1] != EOS_ID:
            states = translator.model.decode(torch.tensor([written], device=source.device), memory, mask)
            written.append(int(translator.model.generator(states[0, -1]).argmax()))
    return tuple(written[1:])


def _log_prob(translator: Translator, source: Tensor, ids: tuple[int, ...]) -> float:
    target = torch.tensor([ids], device=source.device)
    log_probs = translator.model(source, shift_right(target))[0].log_softmax(-1)
    return float(log_probs.gather(1, target.T).sum())
