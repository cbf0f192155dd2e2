"""Translate with changed heads or masks, and measure the effect of each head and the facts of each word."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..analysis.attention_steps import read_output_projections, weight_by_value_norms
from ..attribution.target import Target
from ..capture.attention import AttentionSite, find_attention_sites
from ..decoding.greedy_and_sampling import GREEDY_STRATEGY, Strategy
from ..interventions.apply import apply_changes
from ..interventions.changes import ModelChange, format_changes
from ..language import say
from ..network.abstract_model import AutoregressiveModel, make_decoder_inputs
from ..network.hooks import OutputHook, hook_outputs
from ..runnable_model import RunnableModel, Translation
from ..text.words import (
    SPECIAL_TOKENS,
    WordChange,
    compare_texts_by_word,
    get_special_tokens,
    group_tokens_into_words,
    join_word,
)
from ..trace import Head, Kind
from .lens import LogitLens, run_logit_lens

# Translating with a changed model, and comparing: the words, and the probability of the old translation.


@dataclass(frozen=True, eq=False)
class Comparison:
    """A translation, the same sentence translated by the changed model, and what the change did."""

    before: Translation
    after: Translation
    changes: tuple[ModelChange, ...]
    words: tuple[WordChange, ...]
    log_probs_before: tuple[float, ...]
    """The log-probability of each token of the old translation, teacher-forced through the unchanged model."""
    log_probs_after: tuple[float, ...]
    """The same tokens through the changed model."""

    @property
    def log_prob_change(self) -> float:
        """How much more (or, below 0, less) probable the old translation is to the changed model, in nats."""
        return sum(self.log_probs_after) - sum(self.log_probs_before)

    @property
    def sentence(self) -> str:
        odds = {
            "before": sum(self.log_probs_before),
            "after": sum(self.log_probs_after),
            "change": self.log_prob_change,
        }
        if is_teacher_forced(self.before):
            return say(
                "The log-probability of the given translation is {before:.2f} without the changes and {after:.2f} with "
                "them ({change:+.2f}).",
                **odds,
            )
        if self.before.target_ids == self.after.target_ids:
            return say(
                "The translation stays the same. Its log-probability is {before:.2f} without the changes and "
                "{after:.2f} with them ({change:+.2f}).",
                **odds,
            )
        return say(
            "The translation changes. The log-probability of the one before is {before:.2f} without the changes and "
            "{after:.2f} with them ({change:+.2f}).",
            **odds,
        )


def translate_with_changes(
    translator: RunnableModel,
    text: str,
    changes: Sequence[ModelChange],
    strategy: Strategy = GREEDY_STRATEGY,
    capture: bool = True,
) -> Translation:
    """Translate with the changes made; the trace shows the changed attention and its settings name the changes.

    Raises InputError for the text and InterventionError for changes the model cannot make.
    """
    with apply_changes(translator.model, changes):
        return _add_change_settings(translator.translate(text, strategy, capture=capture), changes)


def teacher_force_with_changes(
    translator: RunnableModel,
    text: str,
    target: str | Sequence[int],
    changes: Sequence[ModelChange],
    capture: bool = True,
    tensors: Collection[str] = (),
) -> Translation:
    """Read a given translation with the changes made; `tensors` as in `Translator.force`.

    Raises InputError and InterventionError.
    """
    with apply_changes(translator.model, changes):
        return _add_change_settings(translator.force(text, target, capture=capture, tensors=tensors), changes)


def compare_with_changes(
    translator: RunnableModel, before: Translation, changes: Sequence[ModelChange], strategy: Strategy = GREEDY_STRATEGY
) -> Comparison:
    """Make the changes, translate the same sentence again and weigh the old translation. Raises InterventionError.

    A translation that was given is not made again but read again.
    """
    if is_teacher_forced(before):
        after = teacher_force_with_changes(translator, before.source, before.target_ids, changes)
    else:
        after = translate_with_changes(translator, before.source, changes, strategy)
    # Both by teacher forcing, so that no change at all is a difference of exactly zero.
    forced = [
        teacher_force_with_changes(translator, before.source, before.target_ids, made, capture=False)
        for made in ((), changes)
    ]
    as_it_was, as_it_is = (tuple(step.log_prob for step in one.steps) for one in forced)
    difference = compare_texts_by_word(before.text, after.text)
    return Comparison(before, after, tuple(changes), difference, as_it_was, as_it_is)


def is_teacher_forced(translation: Translation) -> bool:
    """Whether the model only read this translation, by teacher forcing, and wrote none of it."""
    return all(step.forced for step in translation.steps)


def _add_change_settings(translation: Translation, changes: Sequence[ModelChange]) -> Translation:
    if translation.captured is None or not changes:
        return translation
    settings = {**translation.captured.settings, "changes": format_changes(changes)}
    return dataclasses.replace(translation, captured=dataclasses.replace(translation.captured, settings=settings))


# The effect of each head: the change of a translation's log-probabilities when that head alone is switched off.
#
# All heads are rows of a few forward passes by teacher forcing. Michel et al. (2019), "Are Sixteen Heads Really Better
# than One?", section 3.2, remove one head at a time in the same way and measure BLEU; here it is the log-probability
# of one translation, token by token.


TOKENS_A_PASS = 2400
"""Source and target tokens of all rows of one forward pass: more makes no row faster, and none shows how far it is."""


@dataclass(frozen=True, eq=False)
class HeadEffects:
    """How switching off each head changes the log-probability of every token of a translation, in nats.

    Below 0: the token is less probable without the head, so the head speaks for it. From
    :func:`measure_head_effects_on_word` it is the value of one word that changes, and T is 1.
    """

    changes: Mapping[Kind, np.ndarray]
    """(L, H, T) for each kind of attention."""

    def total(self, kind: Kind, token: int | None = None) -> np.ndarray:
        """Return the change of the whole translation, or of one token of it from 0 -> (L, H)."""
        changes = self.changes[kind]
        return changes.sum(-1) if token is None else changes[..., token]

    def strongest(self, token: int | None = None) -> list[tuple[Head, float]]:
        """All heads and their changes, the largest in either direction first."""
        found = [
            ((kind, *place), float(value))
            for kind in self.changes
            for place, value in np.ndenumerate(self.total(kind, token))
        ]
        return sorted(found, key=lambda one: -abs(one[1]))


@dataclass(frozen=True, eq=False)
class WordWithoutHeads:
    """How far the value of one word falls without each head."""

    target: Target
    effects: HeadEffects

    def as_json(self) -> dict[str, Any]:
        """Return {"word", "against", "method", "heads"}: kind, layer and head (from 0) and fall, the largest first."""
        heads = [
            {"kind": kind, "layer": layer, "head": head, "fall": -change}
            for (kind, layer, head), change in self.effects.strongest()
        ]
        return {"word": self.target.word, "against": self.target.against, "method": "heads-off", "heads": heads}


def ablate_heads_for_word(model: AutoregressiveModel, target: Target) -> WordWithoutHeads:
    """Switch off every head of the model, one at a time, and read the word again."""
    passes = plan_ablation_batches(model, len(target.source_ids), len(target.input_ids))
    return WordWithoutHeads(
        target, join_effects(passes, [measure_head_effects_on_word(model, target, heads) for heads in passes])
    )


def head_effects(model: AutoregressiveModel, source_ids: Sequence[int], target_ids: Sequence[int]) -> HeadEffects:
    """Switch off every head of the model, one at a time, and read the T target ids of the source again."""
    passes = plan_ablation_batches(model, len(source_ids), len(target_ids))
    return join_effects(
        passes, [measure_head_effects_in_batch(model, source_ids, target_ids, heads) for heads in passes]
    )


def plan_ablation_batches(model: nn.Module, source_length: int, target_length: int) -> tuple[tuple[Head, ...], ...]:
    """Return the heads of each forward pass. Those of the encoder have their own, since the others share its output."""
    sites = find_attention_sites(model)
    rows = max(1, TOKENS_A_PASS // (source_length + target_length) - 1)
    encoder, decoder = (
        [head for site in sites if (site.kind == "encoder") is inside for head in _list_site_heads(site)]
        for inside in (True, False)
    )
    return tuple(tuple(part) for heads in (encoder, decoder) for part in _split_evenly(heads, rows))


def join_effects(passes: Sequence[Sequence[Head]], changes: Sequence[np.ndarray]) -> HeadEffects:
    """Put together what :func:`measure_head_effects_in_batch` gave for each pass."""
    heads = [head for part in passes for head in part]
    found = dict(zip(heads, np.concatenate(changes), strict=True))
    stacked: dict[Kind, np.ndarray] = {}
    for kind in dict.fromkeys(kind for kind, _, _ in heads):
        stacked[kind] = _stack_heads({head[1:]: row for head, row in found.items() if head[0] == kind})
    return HeadEffects(stacked)


@torch.inference_mode()
def measure_head_effects_in_batch(
    model: AutoregressiveModel, source_ids: Sequence[int], target_ids: Sequence[int], heads: Sequence[Head]
) -> np.ndarray:
    """Return the changes for some heads, from one forward pass: (heads, T).

    Row 0 of the batch is the model with all heads, so that both sides of each difference are rounded alike. Changes
    that are open in this thread take part. Raises ValueError for heads of the encoder beside others.
    """
    log_probs = model.generator(
        _compute_decoder_states_without_heads(model, source_ids, make_decoder_inputs(target_ids, model.start_id), heads)
    )
    log_probs = log_probs.log_softmax(-1)
    tokens = torch.tensor(target_ids, device=log_probs.device).expand(len(log_probs), -1)
    found = log_probs.gather(-1, tokens[..., None])[..., 0].double().cpu().numpy()
    return found[1:] - found[0]


@torch.inference_mode()
def measure_head_effects_on_word(model: AutoregressiveModel, target: Target, heads: Sequence[Head]) -> np.ndarray:
    """Return the changes of the value of one word, log p(X) or logit X - logit Y, from one forward pass: (heads, 1).

    All else is as in :func:`measure_head_effects_in_batch`.
    """
    states = _compute_decoder_states_without_heads(model, target.source_ids, target.input_ids, heads)[
        :, target.position :
    ]
    found = target.value(model.generator(states)).cpu().numpy()
    return (found[1:] - found[0])[:, None]


def _compute_decoder_states_without_heads(
    model: AutoregressiveModel, source_ids: Sequence[int], input_ids: Sequence[int], heads: Sequence[Head]
) -> Tensor:
    """The decoder's states: in row 0 of the model with all heads, in row i + 1 without head i."""
    in_encoder = {kind == "encoder" for kind, _, _ in heads}
    if len(in_encoder) != 1:
        raise ValueError("One pass switches off heads of the encoder or of the decoder, not of both.")
    rows, device = len(heads) + 1, next(model.parameters()).device
    source, inputs = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    with hook_outputs(_make_one_head_per_row_silencing_hooks(model, heads)):
        memory = model.encode(source.expand(rows, -1) if in_encoder == {True} else source)
        memory = memory.expand(rows, *memory.shape[1:])
        return model.decode(inputs.expand(rows, -1), memory, model.source_mask(source))


def _make_one_head_per_row_silencing_hooks(model: nn.Module, heads: Sequence[Head]) -> dict[nn.Module, OutputHook]:
    """Hooks that set the context of head i to zero in row i + 1 of the batch, and leave row 0 as it is."""
    hooks: dict[nn.Module, OutputHook] = {}
    for site in find_attention_sites(model):
        places = enumerate(heads, 1)
        off = [(row, head) for row, (kind, layer, head) in places if (kind, layer) == (site.kind, site.layer)]
        if off:
            hooks[site.module.get_submodule("context")] = _make_silencing_hook(*zip(*off, strict=True))
    return hooks


def _make_silencing_hook(rows: tuple[int, ...], heads: tuple[int, ...]) -> OutputHook:
    def silence_heads(context: Tensor) -> Tensor:
        changed = context.clone()
        changed[list(rows), list(heads)] = 0.0
        return changed

    return silence_heads


def _list_site_heads(site: AttentionSite) -> Iterator[Head]:
    count = site.module.heads
    assert isinstance(count, int)
    return ((site.kind, site.layer, head) for head in range(count))


def _split_evenly(heads: Sequence[Head], rows: int) -> Iterator[Sequence[Head]]:
    """Split the heads into as few parts as have at most `rows` heads each, of like size."""
    count = -(-len(heads) // rows)
    return (heads[at * len(heads) // count : (at + 1) * len(heads) // count] for at in range(count))


def _stack_heads(rows: Mapping[tuple[int, int], np.ndarray]) -> np.ndarray:
    """(layer, head) -> (T,) as one array (L, H, T)."""
    layers, heads = (max(place) + 1 for place in zip(*rows, strict=True))
    return np.array([[rows[layer, head] for head in range(heads)] for layer in range(layers)])


# Facts about each word of a translation: the source words that attention lay on, and the layer that decided it.
#
# A token's attention is told over all heads of all layers, each weight times the norm of what its key adds to the
# residual stream (Kobayashi et al. 2020). It says where the model looked, not what made it write the token.


@dataclass(frozen=True)
class SourceShare:
    """A word of the source and its share of a row of attention, 0 to 1."""

    text: str
    share: float
    pieces: range
    """Its positions in the source."""


@dataclass(frozen=True, eq=False)
class WordFacts:
    """The facts about each of the T tokens of a translation of S source pieces."""

    source_tokens: tuple[str, ...]
    """(S,) of a decoder alone prompt and continuation in one."""
    attention: np.ndarray
    """(T, S) cross-attention by norm, of a decoder alone its own, the mean of all heads and layers; a row sums to 1."""
    lens: LogitLens
    special_tokens: AbstractSet[str] = SPECIAL_TOKENS

    def rank_source_attention_shares(self, position: int) -> tuple[SourceShare, ...]:
        """Return the words of the source by their share of a token's attention, the largest first."""
        row = self.attention[position]
        shares = [
            SourceShare(join_word(self.source_tokens[group.start : group.stop]), float(row[group].sum()), group)
            for group in group_tokens_into_words(self.source_tokens, self.special_tokens)
        ]
        return tuple(sorted(shares, key=lambda one: -one.share))

    def find_deciding_lens_layer(self, position: int) -> str | None:
        """Return the first place of the lens from which on the token written is the most probable one to the end.

        None where the model would have written another token.
        """
        others = np.flatnonzero(self.lens.ranks[:, position] > 1)
        first = int(others[-1]) + 1 if others.size else 0
        return self.lens.places[first] if first < len(self.lens.places) else None


def read_word_facts(
    translator: RunnableModel, text: str, target_ids: Sequence[int], changes: Sequence[ModelChange] = ()
) -> WordFacts:
    """Read a translation of `text` again, by its ids, with the changes made. Raises InputError, InterventionError."""
    found = teacher_force_with_changes(translator, text, target_ids, changes, tensors=("v",))
    attention = found.trace.cross or found.trace.decoder
    assert attention is not None
    weighted = weight_by_value_norms(attention, read_output_projections(translator.model, attention.kind))
    with apply_changes(translator.model, changes):
        lens = run_logit_lens(translator, found)
    rows = weighted.weights.mean((0, 1), dtype=np.float64)[found.first_row :]
    return WordFacts(attention.key_tokens, rows, lens, get_special_tokens(attention))
