"""Measure every attention head on a batch: row measures, costs, heaviest links and logit contributions."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..attribution.logit import FixedScaleNorm, list_sublayers
from ..capture.attention import AttentionPoints, AttentionSite
from ..language import to_say
from ..network.abstract_model import AutoregressiveModel
from ..network.attention import MultiHeadAttention, make_padding_mask
from ..network.config import PAD_ID
from ..network.hooks import OutputHook, hook_outputs
from ..network.transformer import Transformer
from ..text.parts_of_speech import WORD_TAGS
from ..trace import Kind
from .teacher_forced_batches import (
    MEMORY_KEY,
    PLACES,
    REPETITION_PLACES,
    Batch,
    BatchRun,
    Place,
    compute_target_log_probs,
    compute_word_order_invariance,
    find_allowed_pattern_cells,
    make_decoder_mask,
)

# Measures of every row, and their sums over the rows of a batch.
#
# A measure is a mean over the rows (queries) that have a choice, two keys or more, and for which it is defined: the
# first row has no previous token. The rows of all sentences count alike. Sentences of even and of odd numbers are
# summed apart, so that what one half of a corpus says can be held against the other.


HALF_COUNT = 2
HELD_SUFFIX, EVEN_SUFFIX = "_rows", "_even"
"""Endings: the share of rows of which a place holds more than half the weight, and would in a row spread evenly."""
HAS_SUFFIX = "_has"
"""Ending: the share of a head's rows that have a place."""
REPEATED_SUFFIX = "_repeated"
"""Ending: the same measure of a place on random tokens that are repeated."""
REPEATED_PLACES: tuple[Place, ...] = (*REPETITION_PLACES, "previous")
"""The places that are measured on them, those that name a head first."""
COST_MEASURE = "cost"
MEASURE_EXPLANATIONS: MappingProxyType[str, str] = MappingProxyType(
    {
        "entropy": to_say(
            "Entropy: entropy of a row in nats: 0 where it looks at one key, ln of their number where at all alike."
        ),
        "distance": to_say(
            "Distance: mean distance in tokens between query and key, weighted by the weights; in cross-attention from "
            "the diagonal that runs from corner to corner."
        ),
        "top": to_say("Largest weight: the largest weight of a row."),
        "stays": to_say(
            "Stays when shuffled: what of a row's weight stays on the same tokens when the words of the source change "
            "places at random: near 1 for a head that goes by words, low for one that goes by places."
        ),
        "norm": to_say(
            "Share of the norm: the head's share of what the heads of its layer add to a row, by the norm of what each "
            "adds (Kobayashi et al. 2020)."
        ),
        "logit": to_say(
            "Logit contribution: what the head adds by itself to the logit of the reference token, mean over the "
            "tokens (direct logit attribution, Elhage et al. 2021)."
        ),
        "cost": to_say(
            "Cost: how far the log-probability of a reference token falls, in nats, when this head alone is switched "
            "off; mean over the tokens. Below 0 the model is better without it."
        ),
        "same": to_say("The token itself: share of the weight on the token itself, in rows that have it."),
        "previous": to_say("Previous token: share of the weight on previous token, in rows that have it."),
        "next": to_say("Next token: share of the weight on next token, in rows that have it."),
        "first": to_say("First token: share of the weight on first token, in rows that have it."),
        "last": to_say("Last token before </s>: share of the weight on last token before </s>, in rows that have it."),
        "end": to_say("</s>: share of the weight on </s>, in rows that have it."),
        "punctuation": to_say("Punctuation: share of the weight on punctuation, in rows that have it."),
        "same_word": to_say("The same word: share of the weight on the same word, in rows that have it."),
        "later_piece": to_say(
            "Later piece of the word: share of the weight on later piece of the word, in rows that have it."
        ),
        "rare": to_say(
            "Words in several pieces: share of the weight on words in several pieces, in rows that have it."
        ),
        "aligned_predicted": to_say(
            "Alignment of the token predicted: share of the weight on alignment of the token predicted, in rows that "
            "have it."
        ),
        "aligned_fed": to_say(
            "Alignment of the token fed in: share of the weight on alignment of the token fed in, in rows that have it."
        ),
        "induction": to_say(
            "Induction: share of the weight on tokens that followed an earlier occurrence of the query's token, in "
            "rows that have it (prefix matching, Olsson et al. 2022)."
        ),
        "duplicate": to_say(
            "Duplicate token: share of the weight on earlier occurrences of the query's token, in rows that have it "
            "(Wang et al. 2022)."
        ),
        "induction_repeated": to_say(
            "Induction, random tokens: share of the weight on tokens that followed an earlier occurrence of the "
            "query's token, where random tokens stand several times in a row and nothing else tells what comes next: "
            "the prefix-matching score of Olsson et al. (2022)."
        ),
        "duplicate_repeated": to_say(
            "Duplicate token, random tokens: share of the weight on earlier occurrences of the query's token, where "
            "random tokens stand several times in a row."
        ),
        "previous_repeated": to_say(
            "Previous token, random tokens: share of the weight on previous token, where random tokens stand several "
            "times in a row."
        ),
    }
)
"""Every measure that a person chooses, with what it means."""
SHARE_MEASURES: tuple[str, ...] = (
    *PLACES,
    *(f"{place}{REPEATED_SUFFIX}" for place in REPEATED_PLACES),
    *("stays", "norm", "top"),
)
"""The measures that lie between 0 and 1."""


class RowMeasure(NamedTuple):
    """A measure of every row."""

    name: str
    values: Tensor
    """(B, L, H, Q), or (B, 1, 1, Q) where all heads have the same."""
    counted: Tensor
    """(B, 1 or L, 1 or H, Q) bool"""


class RowSums(NamedTuple):
    """Sums of measures over rows, and how many rows."""

    total: np.ndarray
    """(2, L, H), a half of the corpus each, float64"""
    rows: np.ndarray
    """(2, L, H)"""


class BatchMeasures(NamedTuple):
    """What is measured of a batch."""

    sums: dict[Kind, dict[str, RowSums]]
    costs: dict[Kind, np.ndarray]
    """(B, L, H, T) the fall of each token's log-probability with the head off, in nats; NaN at padding."""
    cells: dict[Kind, Tensor]


def measure_heads(model: AutoregressiveModel, found: BatchRun, with_costs: bool = True) -> BatchMeasures:
    """Measure every head on a batch."""
    halves = torch.tensor([one.line % HALF_COUNT for one in found.batch.sentences], device="cpu")
    overlaps, logits = compute_word_order_invariance(model, found), compute_logit_contributions(model, found)
    changes = compute_head_ablation_effects(model, found) if with_costs else {}
    real = found.batch.real("decoder")[0][:, None, None]
    sums: dict[Kind, dict[str, RowSums]] = {}
    cells = {kind: find_allowed_pattern_cells(found, kind) for kind in found.kinds}
    for kind in found.kinds:
        rows = [*_measure_entropy_and_distance(found, kind), *_measure_pattern_shares(found, kind, cells[kind])]
        counted = _find_batch_multi_key_rows(found, kind)[:, None, None]
        if kind in overlaps:
            rows.append(RowMeasure("stays", overlaps[kind], counted & ~overlaps[kind].isnan()))
        shares = compute_head_output_norm_shares(found, kind)
        if shares is not None:
            rows.append(RowMeasure("norm", shares, counted))
        if kind in logits:
            rows.append(RowMeasure("logit", logits[kind], real))
        if kind in changes:
            rows.append(RowMeasure(COST_MEASURE, -changes[kind], real))
        heads = found.weights(kind).shape[1:3]
        sums[kind] = {one.name: _sum_rows_by_half(one, halves, heads) for one in rows}
    costs = {kind: torch.where(real, -one, torch.nan).cpu().numpy() for kind, one in changes.items()}
    return BatchMeasures(sums, costs, cells)


def measure_repeated_token_attention(found: BatchRun) -> dict[str, RowSums]:
    """Measure the places of repetition in a decoder's map of random tokens that are repeated."""
    halves = torch.tensor([one.line % HALF_COUNT for one in found.batch.sentences], device="cpu")
    heads = found.weights("decoder").shape[1:3]
    named = {
        f"{place}{end}": f"{place}{REPEATED_SUFFIX}{end}"
        for place in REPEATED_PLACES
        for end in ("", HELD_SUFFIX, EVEN_SUFFIX)
    }
    rows = _measure_pattern_shares(found, "decoder", find_allowed_pattern_cells(found, "decoder"))
    return {named[one.name]: _sum_rows_by_half(one, halves, heads) for one in rows if one.name in named}


def _find_batch_multi_key_rows(found: BatchRun, kind: Kind) -> Tensor:
    """(B, Q) bool: the rows with two allowed keys or more."""
    return found.batch.allowed_cells(kind).sum(-1) > 1


def _measure_entropy_and_distance(found: BatchRun, kind: Kind) -> Iterator[RowMeasure]:
    """Entropy, distance and top weight."""
    weights, counted = found.weights(kind), _find_batch_multi_key_rows(found, kind)[:, None, None]
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
    yield RowMeasure("entropy", -(weights * logs).sum(-1), counted)
    queries, keys = (torch.arange(size, device=weights.device) for size in weights.shape[-2:])
    if kind == "cross":
        real_queries, real_keys = (real.sum(-1)[:, None, None] for real in found.batch.real(kind))
        apart = ((queries[None, :, None] + 0.5) * real_keys / real_queries - (keys[None, None, :] + 0.5)).abs()
    else:
        apart = (queries[:, None] - keys[None, :]).abs()[None]
    yield RowMeasure("distance", (weights * apart[:, None, None]).sum(-1), counted)
    yield RowMeasure("top", weights.max(-1).values, counted)


def _measure_pattern_shares(found: BatchRun, kind: Kind, cells: Tensor) -> Iterator[RowMeasure]:
    """The share of each place, whether it holds more than a half, and whether it would in an even row."""
    masses = torch.einsum("blhqk,bqkp->plhbq", found.weights(kind), cells.to(torch.float32))
    allowed, choosing = found.batch.allowed_cells(kind).sum(-1), _find_batch_multi_key_rows(found, kind)
    for number, place in enumerate(PLACES):
        held = cells[..., number].sum(-1)
        counted = (choosing & (held > 0))[:, None, None]
        if counted.any():
            mass = masses[number].permute(2, 0, 1, 3)
            yield RowMeasure(place, mass, counted)
            yield RowMeasure(f"{place}{HELD_SUFFIX}", (mass > 0.5).double(), counted)
            yield RowMeasure(f"{place}{EVEN_SUFFIX}", (2 * held > allowed).double()[:, None, None], counted)


def _sum_rows_by_half(rows: RowMeasure, halves: Tensor, heads: tuple[int, ...]) -> RowSums:
    shape = (len(halves), *heads, rows.values.shape[-1])
    counted = rows.counted.expand(shape)
    values = torch.where(counted, rows.values.expand(shape).double(), 0.0).sum(-1).cpu()
    numbers = counted.sum(-1).cpu()
    totals = [
        torch.stack([one[halves == half].sum(0) for half in range(HALF_COUNT)]).numpy() for one in (values, numbers)
    ]
    return RowSums(*totals)


# Costs: one forward pass switches off every head of a layer, each in its own copy of the rows.


TOKENS_A_PASS = 2400
"""Source and target tokens of all rows of one forward pass; more makes no row faster."""


@torch.inference_mode()
def compute_head_ablation_effects(model: AutoregressiveModel, found: BatchRun) -> dict[Kind, Tensor]:
    """Return how each target token's log-probability changes with one head off: (B, L, H, T) for each map, in nats.

    The batched form of :func:`model.experiments.ablation.head_effects`. In a model of this project a pass begins at the
    layer of its heads, since what comes before is unchanged; in any other, at the encoder or at the decoder.
    """
    return {
        kind: torch.stack([_compute_site_ablation_effects(model, found, site) for site in found.sites_of_kind(kind)], 1)
        for kind in found.kinds
    }


def _compute_site_ablation_effects(model: AutoregressiveModel, found: BatchRun, site: AttentionSite) -> Tensor:
    """(B, H, T)"""
    heads = site.module.heads
    assert isinstance(heads, int)
    parts = []
    for rows in _chunk_row_slices(found.batch, heads):
        batch = found.batch.select_rows(rows)
        falls = []
        for off in _chunk_head_ranges(model, batch, heads):
            with hook_outputs({site.module.get_submodule("context"): _make_silencing_hook(off)}):
                if isinstance(model, Transformer):
                    states = _rerun_ablated_from_layer(model, found, site, rows, batch, len(off))
                else:
                    states = _rerun_ablated_from_start(model, found, site, rows, batch, len(off))
            real = batch.real("decoder")[0].repeat(len(off), 1)
            log_probs = compute_target_log_probs(model, states, batch.target_out.repeat(len(off), 1), real)
            falls.append(log_probs.unflatten(0, (len(off), -1)).transpose(0, 1) - found.log_probs[rows][:, None])
        parts.append(torch.cat(falls, 1))
    return torch.cat(parts)


def _rerun_ablated_from_layer(
    model: Transformer, found: BatchRun, site: AttentionSite, rows: slice, batch: Batch, heads: int
) -> Tensor:
    """The decoder's output for every head's copy of the rows, one head after the other: (H B, T, D)"""
    source_mask = make_padding_mask(batch.source, PAD_ID).repeat(heads, 1, 1, 1)
    side = "source" if site.kind == "encoder" else "target"
    stack = model.encoder if site.kind == "encoder" else model.decoder
    path = f"{'encoder' if site.kind == 'encoder' else 'decoder'}.layers.{site.layer - 1}.after_feed_forward.stream"
    x = found.tensors[path if site.layer else f"{side}_embedding.stream"][rows].repeat(heads, 1, 1)
    if site.kind == "encoder":
        for layer in stack.layers[site.layer :]:
            x = layer(x, source_mask)
        memory = stack.output(stack.final_norm(x))
        return model.decode(batch.target_in.repeat(heads, 1), memory, source_mask)
    memory = found.tensors[MEMORY_KEY][rows].repeat(heads, 1, 1)
    mask = make_decoder_mask(batch)
    mask = None if mask is None else mask.repeat(heads, 1, 1, 1)
    for layer in stack.layers[site.layer :]:
        x = layer(x, memory, mask, source_mask, None)
    return stack.output(stack.final_norm(x))


def _rerun_ablated_from_start(
    model: AutoregressiveModel, found: BatchRun, site: AttentionSite, rows: slice, batch: Batch, heads: int
) -> Tensor:
    """The same for any model, from the beginning of a stack on."""
    mask = model.source_mask(batch.source).repeat(heads, 1, 1, 1)
    if site.kind == "encoder":
        memory = model.encode(batch.source.repeat(heads, 1), mask)
    else:
        memory = torch.cat([found.tensors[MEMORY_KEY][rows]] * heads)
    return model.decode(batch.target_in.repeat(heads, 1), memory, mask)


def _make_silencing_hook(off: range) -> OutputHook:
    """Set the context of each of these heads to zero in its copy of the rows."""

    def silence_heads(context: Tensor) -> Tensor:
        changed = context.unflatten(0, (len(off), -1)).clone()
        for copy, head in enumerate(off):
            changed[copy, :, head] = 0.0
        return changed.flatten(0, 1)

    return silence_heads


def _chunk_row_slices(batch: Batch, heads: int) -> Iterator[slice]:
    """The rows of the batch in slices of which one pass can hold a copy for each head."""
    width = batch.source.shape[1] + batch.target_in.shape[1]
    rows = max(1, TOKENS_A_PASS // (heads * width))
    return (slice(at, at + rows) for at in range(0, len(batch.sentences), rows))


def _chunk_head_ranges(model: AutoregressiveModel, batch: Batch, heads: int) -> Iterator[range]:
    """The heads in slices for which the model can return the logits of all rows."""
    rows, tokens = batch.target_in.shape
    most = max(1, model.rows_at_once(heads * rows, tokens) // rows)
    return (range(at, min(at + most, heads)) for at in range(0, heads, most))


# Links: the heaviest keys of every row; and the weight between parts of speech.


KEYS_A_ROW = 3
WEIGHT_STEPS = 250
"""Weights are kept in steps of 0.004, which packs well; a key with less than half a step is no link."""


class MapLinks(NamedTuple):
    """Links of one map, a column each; all (N,)."""

    sentence: np.ndarray
    """The number of its line, from 0."""
    layer: np.ndarray
    head: np.ndarray
    query: np.ndarray
    key: np.ndarray
    weight: np.ndarray
    """In steps of 1 / WEIGHT_STEPS."""


class TagMass(NamedTuple):
    """The weight that goes from one part of speech to another, all summed over rows."""

    mass: np.ndarray
    """(L, H, G, G) from the tag of the query to that of the key."""
    even: np.ndarray
    """(G, G) the same of a head that spreads every row evenly."""
    rows: np.ndarray
    """(G,)"""


def find_strongest_attention_links(found: BatchRun, least: float = 0.0) -> dict[Kind, MapLinks]:
    """Return the heaviest keys of each row that has a choice, by map; none below a weight of `least`."""
    lines = np.array([one.line for one in found.batch.sentences])
    return {kind: _find_map_links(found, kind, lines, max(1, round(least * WEIGHT_STEPS))) for kind in found.kinds}


def _find_map_links(found: BatchRun, kind: Kind, lines: np.ndarray, least: int) -> MapLinks:
    weights = found.weights(kind)
    best = weights.topk(min(KEYS_A_ROW, weights.shape[-1]), dim=-1)
    steps = (best.values * WEIGHT_STEPS).round().short()
    choosing = (found.batch.allowed_cells(kind).sum(-1) > 1)[:, None, None, :, None]
    kept = ((steps >= least) & choosing).cpu().numpy()
    sentence, layer, head, query, _ = (axis.astype(np.int32) for axis in np.nonzero(kept))
    keys, values = (one.cpu().numpy()[kept] for one in (best.indices, steps))
    return MapLinks(lines[sentence], layer, head, query, keys.astype(np.int32), values)


def compute_tag_mass(found: BatchRun, kind: Kind) -> TagMass:
    """Sum a map's weights over the parts of speech of queries and keys, rows without a choice left out."""
    batch = found.batch
    allowed = batch.allowed_cells(kind)
    choosing = allowed.sum(-1) > 1
    shapes = [(*one.shape, len(WORD_TAGS)) for one in batch.real(kind)]
    queries, keys = (torch.zeros(shape, dtype=torch.float64, device=allowed.device) for shape in shapes)
    for row, sentence in enumerate(batch.sentences):
        for hot, side in zip((queries, keys), sentence.sides(kind), strict=True):
            hot[row, np.arange(len(side.tags)), [WORD_TAGS.index(tag) for tag in side.tags]] = 1.0
    queries = queries * choosing[..., None]
    mass = _sum_by_tags(found.weights(kind).double(), queries, keys)
    evenly = allowed.double() / allowed.sum(-1, keepdim=True).clamp_min(1)
    even = _sum_by_tags(evenly[:, None, None], queries, keys)[0, 0]
    return TagMass(mass.cpu().numpy(), even.cpu().numpy(), queries.sum((0, 1)).cpu().numpy())


def _sum_by_tags(weights: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """weights (B, L, H, Q, K), queries (B, Q, G), keys (B, K, G) -> (L, H, G, G)"""
    return torch.einsum("blhqj,bqi->lhij", torch.einsum("blhqk,bkj->blhqj", weights, keys), queries)


# What heads add to the residual stream: its size, and its part of the logit of the reference token.


@torch.inference_mode()
def compute_head_output_norm_shares(found: BatchRun, kind: Kind) -> Tensor | None:
    """Return each head's share of what the heads of its layer add to a row: (B, L, H, Q), 0 to 1.

    None where it is not known which layer joins the heads. The size of what a head adds is the norm of sum alpha f(x),
    Kobayashi et al. (2020), section 2, output projection included and its bias left out.
    """
    shares = []
    for site in found.sites_of_kind(kind):
        slices = _slice_output_projection(site.module)
        if slices is None:
            return None
        added = torch.einsum("bhqd,hdm->bhqm", found.tensors[f"{site.path}.context"], slices).norm(dim=-1)
        shares.append(added / added.sum(1, keepdim=True).clamp_min(torch.finfo(added.dtype).tiny))
    return torch.stack(shares, 1)


@torch.inference_mode()
def compute_logit_contributions(model: AutoregressiveModel, found: BatchRun) -> dict[Kind, Tensor]:
    """Return what the decoder's heads add to the logit of each target token: (B, L, H, T) for decoder and cross.

    Empty for a model that is not of this project, whose norms are not known one by one.

    Direct logit attribution (Elhage et al. 2021), as :func:`model.attribution.logit.split_logit` does for one
    word: norms between a head and the logit have the scale that they have in this run. The direction of the logit is
    carried back through those norms instead of every head forward.
    """
    if not isinstance(model, Transformer):
        return {}
    stack, blocks = model.decoder, list_sublayers(model, "decoder")
    direction = model.generator.weight[found.batch.target_out].double()
    direction = _backpropagate_direction_through_norm(
        stack.final_norm, found.tensors[blocks[-1].residual_path], direction
    )
    rows: dict[tuple[Kind, int], Tensor] = {}
    before = ["target_embedding.stream", *(block.residual_path for block in blocks)]
    for block, stream in reversed(list(zip(blocks, before, strict=False))):
        if not block.residual.pre:
            normed = found.tensors[stream] + found.tensors[block.path]
            direction = _backpropagate_direction_through_norm(block.residual.norm, normed, direction)
        if block.kind is not None:
            slices = _slice_output_projection(model.get_submodule(block.path))
            assert slices is not None
            context = found.tensors[f"{block.path}.context"].double()
            wanted = torch.einsum("btm,hdm->bhtd", direction, slices.double())
            rows[block.kind, block.layer] = (context * wanted).sum(-1)
    return {
        kind: torch.stack([rows[kind, layer] for layer in sorted(at for one, at in rows if one == kind)], 1)
        for kind in dict.fromkeys(kind for kind, _ in rows)
    }


def _backpropagate_direction_through_norm(norm: nn.Module, x: Tensor, direction: Tensor) -> Tensor:
    """Carry a direction (B, T, D) from the output of a norm to its input x, by the transpose, its scale held."""
    held = FixedScaleNorm(norm, x.double())
    if held.identity:
        return direction
    scaled = held.gain * direction / held.scale
    return scaled - scaled.mean(-1, keepdim=True)


def _slice_output_projection(attention: nn.Module) -> Tensor | None:
    """Every head's slice of W_O: (H, d, D); None where it is not known."""
    if isinstance(attention, MultiHeadAttention):
        weight: Tensor | None = attention.out_proj.weight
    else:
        assert isinstance(attention, AttentionPoints)
        weight = attention.output_projection
    return None if weight is None else weight.T.reshape(attention.heads, -1, weight.shape[0])
