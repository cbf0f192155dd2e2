"""Attention blocks as sums of vectors: ALTI+, values without some pieces, and source shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..decoding.greedy_and_sampling import teacher_forced_log_probs
from ..interventions.apply import edit_masks
from ..network.abstract_model import AutoregressiveModel, make_decoder_inputs
from ..network.hooks import hook_outputs
from ..network.transformer import Transformer
from ..runnable_model import RunnableModel, Translation
from ..text.words import group_tokens_into_words, join_word
from ..trace import KINDS, Kind
from .logit import FixedScaleNorm, PassRecording, Sublayer, list_sublayers, record_pass
from .target import Target


@dataclass(frozen=True, eq=False)
class AttentionBlock:
    """One attention block of one pass over one text; all float64."""

    kind: Kind
    weights: Tensor
    """(H, Q, K), zero for a head that is switched off."""
    values: Tensor
    """(H, K, D) (x W_V + b_V) W_O: what a head passes on of each key."""
    bias: Tensor | None
    """(D,) b_O"""
    before: Tensor
    """(Q, D) the residual stream that the block reads and adds to."""
    after: Tensor
    """(Q, D) the residual stream behind it, in a post-norm model behind its norm."""
    norm: nn.Module | None
    """That norm; None in a pre-norm model."""

    @property
    def vectors(self) -> Tensor:
        """What each query reads from each key, weighted and summed over heads: (Q, K, D).

        Kobayashi et al. (2020), section 2; their sum over the keys and b_O is what the block adds.
        """
        return torch.einsum("hqk,hkm->qkm", self.weights, self.values)

    @property
    def contributions(self) -> Tensor:
        """The shares of the keys in what is behind the block: (T, T), or (T, S + 1) of a cross-attention, the residual
        connection last. Every row sums to 1.
        """
        vectors, residual = (
            self.vectors,
            torch.eye(len(self.before), dtype=self.before.dtype, device=self.before.device),
        )
        if self.kind == "cross":
            vectors = torch.cat([vectors, self.before[:, None]], 1)
            keys = vectors.shape[1]
            residual = torch.eye(keys, dtype=residual.dtype, device=residual.device)[-1:].expand(len(vectors), -1)
        else:
            vectors = vectors + residual[..., None] * self.before[:, None]
        if self.norm is not None:
            whole = vectors.sum(1) + (0 if self.bias is None else self.bias)
            vectors = FixedScaleNorm(self.norm, whole[:, None])(vectors)
        return compute_contribution_shares(vectors, self.after, residual)


BlockStacks = tuple[list[AttentionBlock], list[AttentionBlock]]
"""The attention blocks of encoder and decoder in the order in which they ran."""


@dataclass(frozen=True, eq=False)
class AttentionPass:
    """The attention of one pass over one text, with what is known of its blocks."""

    weights: Mapping[Kind, Tensor]
    """(L, H, Q, K) float64"""
    stacks: Callable[[], BlockStacks]
    """A decoder alone has none of an encoder. Raises AttributionError where the parts of a block are not found."""
    prompt: int = 0
    """Tokens of the prompt, of a decoder alone, whose maps are of prompt and continuation in one."""


def make_attention_pass(recording: PassRecording) -> AttentionPass:
    """Return the attention of a recorded pass."""
    weights = {
        kind: torch.stack(
            [
                recording[f"{one.path}.weights"]
                for one in list_sublayers(recording.model, "encoder" if kind == "encoder" else "decoder")
                if one.kind == kind
            ]
        )
        for kind in KINDS
    }
    return AttentionPass(weights, lambda: make_block_stacks(recording))


def compute_contribution_shares(vectors: Tensor, result: Tensor, residual: Tensor) -> Tensor:
    """Return the shares of vectors (Q, K, D) in their results (Q, D): (Q, K), rows summing to 1.

    A row in which no vector comes nearer to the result than zero does is that of `residual` (Q, K).
    """
    near = (result.abs().sum(-1)[:, None] - (result[:, None] - vectors).abs().sum(-1)).clamp_min(0)
    total = near.sum(-1, keepdim=True)
    return torch.where(total > 0, near / total.clamp_min(torch.finfo(near.dtype).tiny), residual)


def make_block_stacks(recording: PassRecording) -> BlockStacks:
    """Return the attention blocks of a recorded pass."""
    return _make_stack_blocks(recording, "encoder"), _make_stack_blocks(recording, "decoder")


def _make_stack_blocks(recording: PassRecording, stack: str) -> list[AttentionBlock]:
    before = recording[f"{'source' if stack == 'encoder' else 'target'}_embedding.stream"]
    found = []
    for sublayer in list_sublayers(recording.model, stack):
        after = recording[sublayer.residual_path]
        if sublayer.kind is not None:
            found.append(_make_block(recording, sublayer, sublayer.kind, before, after))
        before = after
    return found


def _make_block(
    recording: PassRecording, sublayer: Sublayer, kind: Kind, before: Tensor, after: Tensor
) -> AttentionBlock:
    bias = recording.attention(sublayer).out_proj.bias
    off = recording[f"{sublayer.path}.context"].abs().amax((1, 2)) == 0
    return AttentionBlock(
        kind,
        recording[f"{sublayer.path}.weights"].masked_fill(off[:, None, None], 0.0),
        recording.projected_values(sublayer),
        None if bias is None else bias.detach().double(),
        before,
        after,
        None if sublayer.residual.pre else sublayer.residual.norm,
    )


# ALTI+: how much of each position comes from each piece of the source and of the prefix.
#
# Ferrando et al. (2022), "Towards Opening the Black Box of Neural Machine Translation: Source and Target
# Interpretations of the Transformer", https://arxiv.org/abs/2205.11631. The output y of an attention block is a sum of
# transformed vectors T(x_j), the residual connection one of them; x_j contributes max(0, |y| - |y - T(x_j)|) with the
# L1 norm, rescaled so that a row sums to 1 (equations 5 and 6). Blocks are chained by matrix products, the encoder's
# through the cross-attention; feed-forward networks work on each position alone and mix nothing.


def compute_alti_shares(encoder: Sequence[AttentionBlock], decoder: Sequence[AttentionBlock]) -> tuple[Tensor, Tensor]:
    """Return the shares of decoder inputs (T, T) and of source pieces (T, S) in each decoder position.

    The attention blocks of both stacks are in the order in which they ran. A row of both together sums to 1.
    """
    own = _identity_matrix(decoder[0])
    memory = _identity_matrix(encoder[0]) if encoder else own.new_zeros(0, 0)
    for block in encoder:
        memory = block.contributions @ memory
    source = own.new_zeros(len(own), len(memory))
    for block in decoder:
        read = block.contributions
        if block.kind == "cross":
            residual = read[:, -1:]
            own, source = residual * own, residual * source + read[:, :-1] @ memory
        else:
            own, source = read @ own, read @ source
    return own, source


def _identity_matrix(block: AttentionBlock) -> Tensor:
    return torch.eye(len(block.before), dtype=block.before.dtype, device=block.before.device)


# Pieces taken away from a running model: the intervention by which every other method is judged.
#
# A piece that is taken away is blocked as a key in every mask of every layer (after the masks that other interventions
# edit), and its token embedding is zero; its position stays. The second part matters for the last input alone, whose
# own residual stream the prediction is read from.


MAX_ROWS_AT_ONCE = 256  # of one forward pass at most
MAX_CELLS_AT_ONCE = 2**22  # of the weights of one head in one forward pass at most


@torch.no_grad()
def compute_target_values_without_pieces(
    model: AutoregressiveModel, target: Target, source_keep: Tensor, prefix_keep: Tensor
) -> Tensor:
    """Return the target's value with pieces taken away, a row for each pattern.

    source_keep (B, S) and prefix_keep (B, P) bool, False = taken away -> (B,) float64.
    """
    device, pieces = next(model.parameters()).device, source_keep.shape[1]
    patterns, row_of = torch.unique(torch.cat([source_keep, prefix_keep], 1).to(device), dim=0, return_inverse=True)
    longest = max(pieces, len(target.input_ids))
    most = max(1, min(MAX_ROWS_AT_ONCE, MAX_CELLS_AT_ONCE // longest**2))
    rows = model.rows_at_once(most, len(target.input_ids))
    values = [
        _compute_masked_target_values(model, target, part[:, :pieces], part[:, pieces:])
        for part in patterns.split(rows)
    ]
    return torch.cat(values)[row_of].cpu()


@torch.no_grad()
def compute_leave_one_out(model: AutoregressiveModel, target: Target) -> tuple[Tensor, Tensor, Tensor]:
    """Return how much the value falls without each piece: value (), source (S,), prefix (P,), float64."""
    source, prefix = len(target.source_ids), len(target.prefix_tokens)
    removed = torch.eye(source + prefix, dtype=torch.bool, device="cpu")
    keep = ~torch.cat([torch.zeros_like(removed[:1]), removed])
    values = compute_target_values_without_pieces(model, target, keep[:, :source], keep[:, source:])
    falls = values[0] - values[1:]
    return values[0], falls[:source], falls[source:]


@dataclass(frozen=True, eq=False)
class WordsLeftOut:
    """What is left of a target's value without each word of the source and each that was written before it.

    Special tokens are no words.
    """

    target: Target
    value: float
    """log p(X), natural logarithm, or logit X - logit Y, with all words."""
    source_words: tuple[str, ...]
    prefix_words: tuple[str, ...]
    without: np.ndarray
    """(W,) the value without each word, those of the source first, float64."""

    @property
    def words(self) -> tuple[str, ...]:
        return self.source_words + self.prefix_words

    @property
    def by_fall(self) -> list[int]:
        """The words' numbers, from 0, that whose absence lowers the value most first."""
        return [int(at) for at in np.argsort(self.without, kind="stable")]


def compute_words_left_out(model: AutoregressiveModel, target: Target) -> WordsLeftOut:
    """Return what is left without each word, all of its pieces taken away at once.

    Interventions open in this thread take part.
    """
    source, prefix = (
        _list_text_word_ranges(one, target.special_tokens) for one in (target.source_tokens, target.prefix_tokens)
    )
    sources = len(target.source_ids)
    keep = torch.ones(
        1 + len(source) + len(prefix), sources + len(target.prefix_tokens), dtype=torch.bool, device="cpu"
    )
    for row, group in enumerate(source, start=1):
        keep[row, group.start : group.stop] = False
    for row, group in enumerate(prefix, start=1 + len(source)):
        keep[row, sources + group.start : sources + group.stop] = False
    values = compute_target_values_without_pieces(model, target, keep[:, :sources], keep[:, sources:]).numpy()
    return WordsLeftOut(
        target,
        float(values[0]),
        tuple(join_word(target.source_tokens[one.start : one.stop]) for one in source),
        tuple(join_word(target.prefix_tokens[one.start : one.stop]) for one in prefix),
        values[1:],
    )


def _list_text_word_ranges(tokens: Sequence[str], special: AbstractSet[str]) -> list[range]:
    return [one for one in group_tokens_into_words(tokens, special) if tokens[one.start] not in special]


def _compute_masked_target_values(
    model: AutoregressiveModel, target: Target, source_keep: Tensor, prefix_keep: Tensor
) -> Tensor:
    if model.is_decoder_alone:
        return _compute_decoder_only_target_values(model, target, torch.cat([source_keep, prefix_keep], 1))
    rows, device = len(source_keep), source_keep.device
    source, inputs = (torch.tensor([ids], device=device) for ids in (target.source_ids, target.input_ids))
    patterns, row_of = torch.unique(source_keep, dim=0, return_inverse=True)  # a sentence is encoded once
    with mask_attention_keys(model, "encoder", patterns):
        memory = model.encode(source.expand(len(patterns), -1))[row_of]
    own = torch.ones(rows, len(target.input_ids) - prefix_keep.shape[1], dtype=torch.bool, device=device)
    input_keep = torch.cat([prefix_keep, own], 1)

    def zero(tokens: Tensor) -> Tensor:
        return tokens * input_keep[..., None]

    zeroed = hook_outputs({model.token_embedding("target"): zero})
    with mask_attention_keys(model, "decoder", input_keep), mask_attention_keys(model, "cross", source_keep), zeroed:
        states = model.decode(inputs.expand(rows, -1), memory, model.source_mask(source))
    return target.value(model.generator(states[:, target.position :]))


def _compute_decoder_only_target_values(model: AutoregressiveModel, target: Target, keep: Tensor) -> Tensor:
    """The same of a decoder alone: keep (B, S + P) bool, of prompt and prefix in one."""
    device = keep.device
    source, inputs = (torch.tensor([ids], device=device) for ids in (target.source_ids, target.input_ids))
    own = torch.ones(len(keep), len(target.token_ids) - 1, dtype=torch.bool, device=device)
    whole = torch.cat([keep, own], 1)
    zeroed = hook_outputs({model.token_embedding("target"): lambda tokens: tokens * whole[..., None]})
    with mask_attention_keys(model, "decoder", whole), zeroed:
        memory = model.encode(source).expand(len(keep), -1)
        states = model.decode(inputs.expand(len(keep), -1), memory, model.source_mask(source))
    return target.value(model.generator(states[:, target.position :]))


@contextmanager
def mask_attention_keys(model: AutoregressiveModel, kind: Kind, keep: Tensor) -> Iterator[None]:
    """Block the keys where keep (B, K) is False in all layers of one kind of attention."""
    with edit_masks(model, kind, lambda mask, first: mask & keep[:, None, None, :]):
        yield


# Source or prefix: how much of each word of a translation comes from the source, and whether it has come loose.
#
# Two measures. The share by ALTI+ (:func:`compute_alti_shares`) says where the vectors come from; Dale et al. (2022),
# "Detecting and Mitigating Hallucinations in Machine Translation", find hallucinations by it. The effect is an
# intervention: how much more probable a piece is than without the source. The alarm goes by the effect, which tells
# true from shuffled pairs far better (`python -m model attribution` measures both).


@dataclass(frozen=True, eq=False)
class SourceShares:
    """Where each piece of a translation comes from, (T,) each."""

    tokens: tuple[str, ...]
    """The pieces predicted."""
    source: np.ndarray
    """The share that comes from the source; the rest is from the prefix, its start included."""
    by_piece: np.ndarray
    """(T, S) the same for each source piece."""
    by_input: np.ndarray
    """(T, T) the share of each decoder input, the start first."""
    effect: np.ndarray
    """log p of the piece less log p with all source pieces blocked, natural logarithm; below 0 the source speaks
    against the piece."""
    end_attention: np.ndarray
    """The weight on the source's last piece, mean of all layers and heads of the cross-attention."""
    end: str
    """That piece, </s>."""

    @property
    def prefix(self) -> np.ndarray:
        """1 - source"""
        return 1 - self.source

    @property
    def mean_effect(self) -> float:
        """The mean effect of the source over the pieces: low where a translation has come loose."""
        return float(self.effect.mean())


def compute_source_shares(
    translator: RunnableModel, translation: Translation, seen: AttentionPass | None = None
) -> SourceShares:
    """Return the shares of a translation, read by teacher forcing; interventions open in this thread take part.

    `seen` as in :func:`.methods.attribute_target`. Raises AttributionError where the parts of a block are not found.
    """
    seen = seen or make_attention_pass(record_translation(translator, translation))
    own, source = (one.cpu().numpy() for one in compute_alti_shares(*seen.stacks()))
    end = seen.weights["cross"][..., -1].mean((0, 1)).cpu().numpy()
    effect = compute_source_effect(translator, translation)
    return SourceShares(
        translation.target_tokens, source.sum(-1), source, own, effect, end, translation.source_tokens[-1]
    )


def compute_source_effect(translator: RunnableModel, translation: Translation) -> np.ndarray:
    """Return log p of each piece less log p with all source pieces blocked in every mask: (T,) float64."""
    ids, model = translation.target_ids, translator.model
    source = torch.tensor([translation.source_ids], device=translator.device)
    with_source = teacher_forced_log_probs(model, source, ids)
    nothing = torch.zeros_like(source, dtype=torch.bool)
    with mask_attention_keys(model, "encoder", nothing), mask_attention_keys(model, "cross", nothing):
        without = teacher_forced_log_probs(model, source, ids)
    own = torch.tensor(ids, device=translator.device)[:, None]
    return (with_source - without).gather(1, own)[:, 0].double().cpu().numpy()


def record_translation(translator: RunnableModel, translation: Translation) -> PassRecording:
    """Record the pass in which a whole translation is read, of a model of this project."""
    assert isinstance(translator.model, Transformer)
    return record_pass(translator.model, translation.source_ids, make_decoder_inputs(translation.target_ids))
