"""Attention weights of fused, flex, variable-length and block kernels, computed from their arguments."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from ...language import say
from ...masks.attention_call_origin import MaskReading
from ...masks.softmax import BLOCKING_THRESHOLD, is_blocked
from ...torch_internals import FlexCall, evaluate_flex_mod, list_operator_arguments, materialize_mask
from ...trace import TraceError
from .axes import AxisLayout, CallSite, gather_axis_evidence, read_query_head_count

# The weights that a fused kernel does not give, computed beside it from the same arguments.


@dataclass(frozen=True, eq=False)
class ComputedAttention:
    """One attention as it was computed. Every tensor is (B, H, Q, K), or (B, H, Q or K, d) for q, k and v."""

    weights: Tensor
    allowed: Tensor
    """Booleans, True = may attend; a view that may be broadcast."""
    tensors: dict[str, Tensor]
    """Those of q, k, v, scores and masked_scores that are known."""
    extra_keys: tuple[str, ...] = ()
    """Names of the last keys that are no tokens, such as a sink."""
    passed: Tensor | None = None
    """Booleans (B, H, Q, K), True = may attend: the mask that the call was given; None where none can be laid out."""
    padding: int = 0
    """How many of the last rows and keys a model with blocks added to what it was given."""

    @property
    def unpadded_attention(self) -> ComputedAttention:
        """The attention of what was given; as it is where a row given attends to padding."""
        end = -self.padding or None
        if end is None or bool(self.weights[..., :end, end:].any()):
            return self
        cut = {name: tensor[..., :end, :end] for name, tensor in self.tensors.items()}
        passed = None if self.passed is None else self.passed[..., :end, :end]
        weights, allowed = self.weights[..., :end, :end], self.allowed[..., :end, :end]
        return replace(self, weights=weights, allowed=allowed, passed=passed, tensors=cut)


@torch.no_grad()
def read_softmax_attention(masked_scores: Tensor, weights: Tensor, layout: AxisLayout) -> ComputedAttention:
    """Return the attention of a softmax from its input and its output; the mask is read off the scores."""
    masked, weights = (layout(tensor.detach()) for tensor in (masked_scores, weights))
    return ComputedAttention(weights, _infer_mask_from_scores(masked), {"masked_scores": masked})


def _infer_mask_from_scores(masked: Tensor) -> Tensor:
    """Where scores (B, H, Q, K) are not blocked. The lowest tells at once where none is, but not beside a NaN."""
    lowest = masked.amin() if masked.numel() else masked.new_zeros(())
    if bool(lowest > BLOCKING_THRESHOLD):
        return torch.ones((), dtype=torch.bool, device=masked.device).expand(masked.shape)
    return compact_mask(~is_blocked(masked))


def compact_mask(allowed: Tensor) -> Tensor:
    """Return a mask (B, H, Q, K) as a view that holds only one head, or one number, where that says all."""
    if bool(allowed.all()):
        return allowed.new_ones(()).expand(allowed.shape)
    if allowed.shape[1] > 1 and bool((allowed[:, 1:] == allowed[:, :1]).all()):
        return allowed[:, :1].clone().expand(allowed.shape)
    return allowed


@torch.no_grad()
def compute_fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    layout: AxisLayout,
) -> ComputedAttention:
    """Return the attention that ``F.scaled_dot_product_attention`` computes with these arguments, before dropout.

    As there, a query with no key allowed gets a row of zeros, a causal mask starts at the top left, and keys and values
    of fewer heads are repeated.
    """
    q, k, v = query.detach(), key.detach(), value.detach()
    if enable_gqa:
        k, v = (tensor.repeat_interleave(q.shape[-3] // tensor.shape[-3], -3) for tensor in (k, v))
    with torch.autocast(q.device.type, enabled=False):  # which would round the scores again
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
        scores = (q.float() @ k.float().transpose(-1, -2)).mul_(factor)
    allowed, masked = _mask_scores(scores, attn_mask, is_causal)
    weights = masked.softmax(-1)
    if masked is not scores and _has_empty_row(masked):
        weights.nan_to_num_(nan=0.0)
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": masked}
    return ComputedAttention(
        layout(weights), layout(allowed), {name: layout(tensor) for name, tensor in tensors.items()}
    )


def run_explicit_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return what ``F.scaled_dot_product_attention`` returns, and its weights, from which it was computed.

    Both are part of the graph of gradients. Raises TraceError for weights that are dropped at random.
    """
    if dropout_p:
        raise TraceError(
            say("Weights are dropped at random here: call model.eval() before their gradients are captured.")
        )
    if enable_gqa:
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3) for one in (key, value))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    _, masked = _mask_scores((query.float() @ key.float().transpose(-1, -2)) * factor, attn_mask, is_causal)
    weights = masked.softmax(-1)
    if _has_empty_row(masked):
        weights = weights.nan_to_num(nan=0.0)
    return weights.to(value.dtype) @ value, weights


def unfold_heads(attention: ComputedAttention, module: nn.Module) -> ComputedAttention:
    """Return the attention with one row a head, where a module decodes one query with the heads of a group as rows.

    Hugging Face does so with grouped queries: head h stands in row h % groups of the keys' head h // groups.
    """
    heads, groups = read_query_head_count(module), getattr(module, "num_key_value_groups", 1)
    folded, rows = attention.weights.shape[1:3]
    if not (groups == rows > 1 and folded * groups == heads):
        return attention

    def unfold_heads(name: str, tensor: Tensor) -> Tensor:
        if name in ("k", "v"):
            return tensor.repeat_interleave(groups, 1)
        return tensor.reshape(tensor.shape[0], heads, 1, -1)

    tensors = {name: unfold_heads(name, tensor) for name, tensor in attention.tensors.items()}
    weights, allowed = unfold_heads("weights", attention.weights), unfold_heads("allowed", attention.allowed)
    return replace(attention, weights=weights, allowed=allowed, tensors=tensors)


def _mask_scores(scores: Tensor, mask: Tensor | None, is_causal: bool) -> tuple[Tensor, Tensor]:
    """(allowed, masked scores), both of the shape of the scores."""
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is None:
        return torch.ones((), dtype=torch.bool, device=scores.device).broadcast_to(scores.shape), scores
    mask = materialize_mask(mask, scores.device)
    if mask.dtype == torch.bool:
        return mask.broadcast_to(scores.shape), scores.masked_fill(~mask, -math.inf)
    return (~is_blocked(mask)).broadcast_to(scores.shape), scores + mask.float()


def _has_empty_row(masked: Tensor) -> bool:
    return bool((masked.amax(-1) == -math.inf).any())


# flex_attention (Dong et al. 2024, "Flex Attention"): its weights, by evaluating score_mod and mask_mod beside it.


NO_BLOCKS_SIZE = 2**20
"""From this size of its blocks on, a BlockMask stands for none."""


@torch.no_grad()
def compute_flex_attention(call: FlexCall) -> ComputedAttention:
    """Return the attention that a call computes.

    As there, keys and values of fewer heads are repeated, and a query with no key allowed gets a row of zeros.
    """
    heads, query = call.query.shape[1], call.query.float()
    key, value = (one.repeat_interleave(heads // one.shape[1], 1) for one in (call.key, call.value))
    with torch.autocast(query.device.type, enabled=False):
        scores = query @ key.float().transpose(-1, -2) * call.scale
    sizes = scores.shape
    modified = evaluate_flex_mod(call.score_mod, sizes, scores.device, scores, others=call.score_others)
    kept = evaluate_flex_mod(call.mask_mod, sizes, scores.device, others=call.mask_others).expand(sizes)
    masked = modified.masked_fill(~kept, -math.inf)
    weights = masked.softmax(-1)
    if _has_empty_row(masked):
        weights = weights.nan_to_num(nan=0.0)
    open_scores = ~is_blocked(modified)
    allowed, passed = kept & open_scores, _expand_block_mask(call, kept) & open_scores
    tensors = {"q": call.query, "k": key, "v": value, "scores": scores, "masked_scores": masked}
    arrived = None if bool(passed.all()) else compact_mask(passed)
    return ComputedAttention(weights, compact_mask(allowed), tensors, passed=arrived)


def apply_layout(attention: ComputedAttention, layout: AxisLayout) -> ComputedAttention:
    """Return an attention with every tensor in a layout."""
    passed = None if attention.passed is None else layout(attention.passed)
    tensors = {name: layout(tensor) for name, tensor in attention.tensors.items()}
    return ComputedAttention(layout(attention.weights), layout(attention.allowed), tensors, passed=passed)


def describe_flex_arguments(call: FlexCall) -> dict[str, str]:
    """Return what masked a call, by the names of its arguments, in words."""
    size = call.block_size
    blocks = "None" if max(size) >= NO_BLOCKS_SIZE else f"BlockMask in blocks of {size[0]} x {size[1]}"
    name = getattr(call.score_mod, "__name__", type(call.score_mod).__name__)
    return {"block_mask": blocks, "score_mod": "None" if name == "_identity" else name}


def list_flex_mask_readings(arguments: dict[str, str], attention: ComputedAttention) -> tuple[MaskReading, ...]:
    """Return which arguments arrived and how they are read; empty where they hide no cell."""
    if attention.passed is None:
        return ()
    name, *others = [name for name, value in arguments.items() if value != "None"]
    return (("both-evaluated", {"name": name, "other": others[0]}) if others else ("evaluated", {"name": name}),)


def _expand_block_mask(call: FlexCall, kept: Tensor) -> Tensor:
    """The block mask as cells: what mask_mod keeps in the blocks that it lists, and all of its full blocks."""
    if max(call.block_size) >= NO_BLOCKS_SIZE:
        return kept
    partial, full = (_expand_listed_blocks(*one, call.block_size, kept) for one in (call.blocks, call.full_blocks))
    return (partial & kept) | full


def _expand_listed_blocks(counts: Tensor | None, indices: Tensor | None, size: Sequence[int], cells: Tensor) -> Tensor:
    """(B, H, Q, K) bool: the cells of the blocks of keys that are listed for each block of queries."""
    if counts is None or indices is None:
        return torch.zeros_like(cells)
    columns = indices.shape[-1]
    used = torch.arange(columns, device=indices.device) < counts[..., None]
    dense = torch.zeros(*indices.shape[:-1], columns + 1, dtype=torch.bool, device=indices.device)
    dense.scatter_(-1, torch.where(used, indices, columns).long(), True)
    whole = dense[..., :columns].repeat_interleave(size[0], -2).repeat_interleave(size[1], -1)
    return whole[..., : cells.shape[-2], : cells.shape[-1]].expand(cells.shape)


# Kernels of packed sequences of any length: what they attend to, read off their arguments, by name.
#
# Every operator of torch with cumulative lengths is known by its signature, such as ``torch.nn.attention.varlen`` and
# the operators of FlashAttention. All sequences of a call are one map with a block for each.


_LENGTHS_ARGUMENT = re.compile(r"cum?_seq\w*_([qk])")
_KNOWN_ARGUMENT = re.compile(
    r"(q|k|v|query|key|value|max_?(seq_?len)?_?\w*|(is_)?causal|(softmax_)?scale|window_size(_left|_right)?|enable_gqa|"
    r"num_splits|return_\w+|out|deterministic|zero_tensors|gen_?|cum?_seq\w*_[qk])"
)
"""Arguments that change no weight, or that are read here."""
_NEUTRAL_VALUES = (None, False, 0, 0.0)
"""Values with which any other argument does nothing."""


class UnknownArgumentError(ValueError):
    """A call whose weights are not known, and the argument that changes them."""

    def __init__(self, reason: str, **values: str) -> None:
        """`reason`: one of :data:`~.modules.REASON_MESSAGES`, whose field `kernel` is left to fill."""
        super().__init__(reason, values)
        self.reason, self.values = reason, values


def read_varlen_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments by name of an operator that takes cumulative lengths; nothing of any other function."""
    names = list_operator_arguments(function)
    if sum(bool(_LENGTHS_ARGUMENT.fullmatch(name)) for name in names) < 2:
        return {}
    return dict(zip(names, args, strict=False)) | dict(given)


@torch.no_grad()
def compute_varlen_attention(arguments: Mapping[str, Any]) -> ComputedAttention:
    """Return the attention of all sequences as one sample, (1, H, T, T'), with a block for each.

    As in FlashAttention from 2.1 on, a causal mask and a window are aligned at the last query and the last key of each
    sequence, and a window includes both ends. Raises UnknownArgumentError.
    """
    odd = [
        name
        for name, value in arguments.items()
        if not _KNOWN_ARGUMENT.fullmatch(name) and (isinstance(value, Tensor) or value not in _NEUTRAL_VALUES)
    ]
    ends_q, ends_k = (_read_cumulative_lengths(arguments, side) for side in "qk")
    query, key, value = (_find_argument(arguments, *names) for names in (("query", "q"), ("key", "k"), ("value", "v")))
    shaped = all(isinstance(one, Tensor) and one.dim() == 3 for one in (query, key, value))
    if odd or not shaped or ends_q is None or ends_k is None:
        raise UnknownArgumentError("argument", arguments=", ".join(odd)) if odd else UnknownArgumentError("lengths")
    q, k, v = (one.transpose(0, 1)[None] for one in (query, key, value))
    k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], 1) for one in (k, v))
    scale = _find_argument(arguments, "scale", "softmax_scale")
    scores = q.float() @ k.float().mT * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    grid = _make_varlen_mask(ends_q, ends_k, len(query), len(key), *_read_sliding_window_sizes(arguments))
    allowed = grid.to(scores.device)[None, None].expand(scores.shape)
    masked = scores.masked_fill(~allowed, -math.inf)
    weights = masked.softmax(-1).nan_to_num(nan=0.0)
    tensors = {"q": q, "k": k, "v": v, "scores": scores, "masked_scores": masked}
    return ComputedAttention(weights, allowed, tensors, passed=allowed)


def describe_varlen_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return what masked a call, by the names of its arguments."""
    lengths = {name: str(value.tolist()) for name, value in arguments.items() if _LENGTHS_ARGUMENT.fullmatch(name)}
    left, right = _read_sliding_window_sizes(arguments)
    return {name: text if len(text) < 60 else f"{text[:57]}..." for name, text in lengths.items()} | {
        "causal": str(right == 0),
        "window": "None" if left is None else str(left + 1 + (right or 0)),
    }


def _find_argument(arguments: Mapping[str, Any], *names: str) -> Any:
    return next((arguments[name] for name in names if arguments.get(name) is not None), None)


def _read_cumulative_lengths(arguments: Mapping[str, Any], side: str) -> Tensor | None:
    """(N + 1,) where the sequences of one side begin, and the end of the last."""
    found = [
        value for name, value in arguments.items() if (match := _LENGTHS_ARGUMENT.fullmatch(name)) and match[1] == side
    ]
    return found[0].cpu().long() if found and isinstance(found[0], Tensor) else None


def _read_sliding_window_sizes(arguments: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """How many keys before and after its own place a query sees; None for all."""
    sizes = _find_argument(arguments, "window_size")
    left, right = sizes if sizes is not None else (arguments.get(f"window_size_{end}") for end in ("left", "right"))
    causal = bool(_find_argument(arguments, "is_causal", "causal"))
    ends = [None if end is None or end < 0 else int(end) for end in (left, right)]
    return ends[0], 0 if causal else ends[1]


def _make_varlen_mask(
    starts_q: Tensor, starts_k: Tensor, queries: int, keys: int, left: int | None, right: int | None
) -> Tensor:
    """(T, T') bool, True = may attend."""
    device = starts_q.device
    grid = torch.zeros(queries, keys, dtype=torch.bool, device=device)
    for first, end, key_first, key_end in zip(starts_q, starts_q[1:], starts_k, starts_k[1:], strict=False):
        rows, columns = (torch.arange(int(size), device=device) for size in (end - first, key_end - key_first))
        offset = columns - rows[:, None] - (len(columns) - len(rows))
        near = torch.ones_like(offset, dtype=torch.bool) if left is None else offset >= -left
        grid[first:end, key_first:key_end] = near if right is None else near & (offset <= right)
    return grid


# Attention over blocks and windows of keys, laid out as queries x keys: of the modules whose layout is known.


BlockRows = tuple[Callable[[Tensor], Tensor], Tensor, int]
"""How scores become (B, H, Q, columns), which key each column is (broadcast; outside of 0 .. K-1: none), and K."""
_NO_KEY = -1


@torch.no_grad()
def read_block_attention(
    site: CallSite, scores: Tensor, weights: Tensor, before: ComputedAttention | None
) -> ComputedAttention | None:
    """Return the attention of a softmax in a module of a known block layout; None in any other.

    `before` is what the same call of the module has computed so far: some compute a few rows at a time.
    """
    layout = _BLOCK_LAYOUTS.get(type(site.module).__name__)
    return None if layout is None else layout(site, scores.detach(), weights.detach(), before)


def _read_longformer(
    site: CallSite, scores: Tensor, weights: Tensor, before: ComputedAttention | None
) -> ComputedAttention | None:
    """A band (B, L, H, global keys + 2 w + 1), then whole rows (B * H, global queries, L) of the global queries."""
    masked, is_global = (
        _read_local_variable(site.module, name) for name in ("is_index_masked", "is_index_global_attn")
    )
    width = getattr(site.module, "one_sided_attn_window_size", 0)
    if masked is None or is_global is None or not width:
        return None
    batch, length = masked.shape
    if scores.dim() == 3 and before is not None:
        return _replace_global_rows(
            before, scores.unflatten(0, (batch, -1)), weights.unflatten(0, (batch, -1)), is_global
        )
    globals_ = scores.shape[-1] - 2 * width - 1
    if scores.dim() != 4 or scores.shape[:2] != masked.shape or globals_ < 0:
        return None
    positions = torch.arange(length, device=scores.device)
    band = positions[:, None] + torch.arange(-width, width + 1, device=scores.device)
    first = torch.full((batch, 1, length, globals_), _NO_KEY, device=scores.device)
    for sample in range(batch):
        keys = is_global[sample].nonzero()[:, 0]
        first[sample, :, :, : len(keys)] = keys
    keys = torch.cat([first, band.expand(batch, 1, -1, -1)], -1)
    found = _scatter_to_keys((lambda tensor: tensor.transpose(1, 2), keys, length), scores, weights)
    found.weights.masked_fill_(masked[:, None, :, None], 0.0)  # as the module does with the rows of padding
    return replace(found, padding=_count_added_block_padding(site, batch, length))


def _replace_global_rows(
    before: ComputedAttention, scores: Tensor, weights: Tensor, is_global: Tensor
) -> ComputedAttention:
    """Replace the rows of global queries, which the band holds as fillers."""
    rows = _make_masked_attention(weights.to(before.weights.dtype), scores.float())
    for sample, row in enumerate(is_global):
        places = row.nonzero()[:, 0]
        for whole, part in _pair_attention_tensors(before, rows):
            whole[sample, :, places] = part[sample, :, : len(places)]
    return before


def _read_longt5(
    site: CallSite, scores: Tensor, weights: Tensor, before: ComputedAttention | None
) -> ComputedAttention | None:
    """(B, blocks, H, block, 3 blocks), and keys that are summaries of `global_block_size` tokens each."""
    block = getattr(site.module, "block_len", 0)
    states = next(iter(site.calls[0].inputs), None)
    if scores.dim() != 5 or scores.shape[3] != block or states is None or states.dim() != 3:
        return None
    blocks, length, summaries = scores.shape[1], states.shape[1], scores.shape[-1] - 3 * block
    keys = _list_neighbour_keys(blocks, block, 1, 1, scores.device)
    keys = torch.where((keys < 0) | (keys >= length), _NO_KEY, keys)
    last = torch.arange(length, length + summaries, device=scores.device).expand(len(keys), -1)
    keys = torch.cat([keys, last], -1)[None, None]
    found = _scatter_to_keys(
        (lambda tensor: tensor.transpose(1, 2).flatten(2, 3), keys, length + summaries), scores, weights, length
    )
    return replace(found, extra_keys=tuple(f"summary {number + 1}" for number in range(summaries)))


def _read_local_windows(
    site: CallSite, scores: Tensor, weights: Tensor, before: ComputedAttention | None
) -> ComputedAttention | None:
    """(B * H, windows, window, neighbouring windows) of the package local-attention."""
    module, query = site.module, next(iter(site.calls[0].inputs), None)
    names = ("look_backward", "look_forward")
    backward, forward = (getattr(module, name, -1) for name in names)
    if scores.dim() != 4 or query is None or min(backward, forward) < 0:
        return None
    merged, windows, size, columns = scores.shape
    length = query.shape[-2]
    if columns != size * (1 + backward + forward) or not 0 <= windows * size - length < size:
        return None
    batch = query.shape[0] if query.dim() == 4 else merged // (gather_axis_evidence(site).heads or 1)
    if batch == 0 or merged % batch or query.shape[:-2].numel() != merged:
        return None
    keys = _list_neighbour_keys(windows, size, backward, forward, scores.device)
    keys = torch.where(keys >= length, _NO_KEY, keys)[None, None]
    return _scatter_to_keys(
        (lambda tensor: tensor.flatten(1, 2).unflatten(0, (batch, -1)), keys, length), scores, weights, length
    )


def _read_big_bird(
    site: CallSite, scores: Tensor, weights: Tensor, before: ComputedAttention | None
) -> ComputedAttention | None:
    """Rows in five parts: the ends of the text over all keys, others over neighbours, both ends and random blocks."""
    random = _read_local_variable(site.module, "rand_attn")
    if random is None or not 4 <= scores.dim() <= 5:
        return None
    block, count = scores.shape[-2], random.shape[2] + 2
    first = 0 if before is None else before.weights.shape[2] // block
    step = scores.shape[2] if scores.dim() == 5 else 1
    parts = [_list_big_bird_blocks(number, count, random) for number in range(first, first + step)]
    within = torch.arange(block, device=scores.device)
    keys = torch.stack([(part[..., None] * block + within).flatten(-2) for part in parts], 2)
    if keys.shape[-1] != scores.shape[-1]:
        return None
    keys = keys.repeat_interleave(block, 2)
    found = _scatter_to_keys((lambda tensor: tensor.flatten(2, -2), keys, count * block), scores, weights)
    if before is None:
        return replace(found, padding=_count_added_block_padding(site, len(weights), count * block))
    weights, allowed, *masked = (torch.cat(pair, 2) for pair in _pair_attention_tensors(before, found))
    return replace(before, weights=weights, allowed=allowed, tensors={"masked_scores": masked[0]} if masked else {})


def _list_big_bird_blocks(number: int, count: int, random: Tensor) -> Tensor:
    """(B, H, blocks): the blocks of keys that block `number` of the queries attends to, in the module's order."""
    if number in (0, count - 1):
        return torch.arange(count, device=random.device).expand(*random.shape[:2], -1)
    chosen = random[:, :, number - 1]

    def blocks(*numbers: int) -> Tensor:
        return torch.tensor(numbers, device=random.device).expand(*random.shape[:2], -1)

    if number == 1:
        return torch.cat([blocks(0, 1, 2, count - 1), chosen], -1)
    if number == count - 2:
        return torch.cat([blocks(0, count - 3, count - 2, count - 1), chosen], -1)
    return torch.cat([blocks(0, number - 1, number, number + 1), chosen, blocks(count - 1)], -1)


def _pair_attention_tensors(first: ComputedAttention, second: ComputedAttention) -> list[tuple[Tensor, Tensor]]:
    """The weights, masks and scores of two parts of an attention; the scores where both hold them."""
    pairs = [(first.weights, second.weights), (first.allowed, second.allowed)]
    return pairs + [(tensor, second.tensors[name]) for name, tensor in first.tensors.items()]


def _list_neighbour_keys(windows: int, size: int, backward: int, forward: int, device: torch.device) -> Tensor:
    """(windows * size, columns): the keys of every query, those of its window and of those beside it."""
    first = (torch.arange(windows, device=device) - backward) * size
    columns = torch.arange(size * (1 + backward + forward), device=device)
    return (first[:, None] + columns).repeat_interleave(size, 0)


def _scatter_to_keys(rows: BlockRows, scores: Tensor, weights: Tensor, queries: int | None = None) -> ComputedAttention:
    """Scatter columns to their keys; where a query has no column for a key, its weight is 0 and its score -inf."""
    lay, keys, count = rows
    laid = [lay(tensor)[:, :, :queries] for tensor in (weights, scores.float())]
    place = torch.where((keys < 0) | (keys >= count), count, keys)[:, :, :queries].expand(laid[0].shape)
    empty = laid[0].new_zeros(*laid[0].shape[:3], count + 1)
    dense = empty.scatter_add(-1, place, laid[0])[..., :count]
    masked = torch.full_like(empty, -torch.inf, dtype=torch.float32).scatter_reduce(-1, place, laid[1], "amax")
    return _make_masked_attention(dense, masked[..., :count])


def _count_added_block_padding(site: CallSite, batch: int, length: int) -> int:
    """How many positions a model has added, for whole blocks, to what its outermost call was given."""
    given = [tensor.shape[1] for tensor in site.calls[-1].inputs if tensor.dim() > 1 and len(tensor) == batch]
    return length - max((size for size in given if size <= length), default=length)


def _read_local_variable(module: nn.Module, name: str) -> Tensor | None:
    """The variable of this name in a method of the module that is running; None where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        own = code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is module
        if own and isinstance(found := frame.f_locals.get(name), Tensor):
            return found
        frame = frame.f_back
    return None


def _make_masked_attention(weights: Tensor, masked_scores: Tensor) -> ComputedAttention:
    return ComputedAttention(weights, ~is_blocked(masked_scores), {"masked_scores": masked_scores})


_BLOCK_LAYOUTS: dict[str, Callable[[CallSite, Tensor, Tensor, ComputedAttention | None], ComputedAttention | None]] = {
    "LongformerSelfAttention": _read_longformer,
    "LEDEncoderSelfAttention": _read_longformer,
    "LongT5LocalAttention": _read_longt5,
    "LongT5TransientGlobalAttention": _read_longt5,
    "LocalAttention": _read_local_windows,
    "BigBirdBlockSparseAttention": _read_big_bird,
}
"""Class in transformers or local-attention -> its reader, which gives None for shapes that it does not know."""
