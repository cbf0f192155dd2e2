"""Eager attention of transformers with hook points, and the probe that checks its outputs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, PreTrainedModel
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

from ..capture.attention import AttentionPoints
from ..capture.pooled import PooledCapture, get_pooled_capture
from ..language import say
from ..masks.softmax import is_blocked
from ..network.attention import choose_attention_path
from ..network.hooks import hook_outputs, is_observed
from ..runnable_model import LocalError
from ..trace import Kind
from .folder import AbsentMaps
from .inline_attention import add_inline_hook_points, record_inline_attention_modules
from .networks import FolderNetwork, find_recurrent_state_layers

# The attention that a loaded folder runs with is registered under a name of its own by transformers' public interface
# (`AttentionInterface`), which hands over queries, keys, values and the mask of every attention of a model. Nothing in
# transformers is replaced.


ATTENTION_NAME = "attenscope"
POINTS_NAME = "attention_points"
"""The name of the hook points in an attention module."""
_found_modules: ContextVar[Counter[nn.Module] | None] = ContextVar("finding", default=None)


def register_attention() -> None:
    """Make the attention known to transformers; once or more often is the same."""
    AttentionInterface.register(ATTENTION_NAME, attention_forward)
    AttentionMaskInterface.register(ATTENTION_NAME, eager_mask)


@contextmanager
def add_attention_hook_points() -> Iterator[Counter[nn.Module]]:
    """Give hook points to every attention module that runs in this block, and count the calls of each, in order."""
    found: Counter[nn.Module] = Counter()
    token = _found_modules.set(found)
    try:
        yield found
    finally:
        _found_modules.reset(token)


def _find_or_add_hook_points(module: nn.Module, heads: int) -> AttentionPoints:
    finding = _found_modules.get()
    if finding is not None:
        finding[module] += 1
        if POINTS_NAME not in dict(module.named_children()):
            module.add_module(POINTS_NAME, AttentionPoints("decoder", 0, heads))
    points = module.get_submodule(POINTS_NAME)
    assert isinstance(points, AttentionPoints)
    return points


def attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """query (B, H, Q, d), key and value (B, H / G, K, d), additive mask -> (B, Q, H, d) and weights (B, H, Q, K).

    G queries' heads share one head of keys and values (grouped-query attention). `s_aux` (H,) is the score of a learned
    sink beside the keys, whose weight is not among those returned: a row then sums to less than 1. The arguments are
    those that transformers hands over. No weights where nobody looks on a GPU: then the fused kernel runs; nor where a
    pooled capture is open, for which some rows are computed at a time.
    """
    points = _find_or_add_hook_points(module, query.shape[1])
    points.has_sink = s_aux is not None
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if capture := get_pooled_capture():
        context = _run_attention_by_rows(
            capture, points, query, key, value, attention_mask, scale, position_bias, softcap, s_aux
        )
        return context.transpose(1, 2).contiguous(), None
    if choose_attention_path(query.device) == "fused" and softcap is None and s_aux is None:
        dropout = dropout if module.training else 0.0
        context = _run_fused_attention(points, query, key, value, attention_mask, scale, position_bias, dropout)
        return context.transpose(1, 2).contiguous(), None
    weights, context = _run_explicit_attention(
        points, query, key, value, attention_mask, scale, position_bias, softcap, s_aux
    )
    return context.transpose(1, 2).contiguous(), weights


def _run_fused_attention(
    points: AttentionPoints,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    position_bias: Tensor | None,
    dropout: float,
) -> Tensor:
    if not is_observed():
        bias = _sum_biases(mask, position_bias)
        return F.scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
    query = points.q(query)  # an edited mask is told its queries here
    added, allowed = _split_mask_into_bias_and_allowed(points, query, key, mask)
    empty = ~allowed.any(-1, keepdim=True)
    bias = _sum_biases(added, position_bias, torch.zeros_like(allowed, dtype=query.dtype))
    assert bias is not None
    bias = bias.masked_fill(~(allowed | empty), -math.inf)
    context = F.scaled_dot_product_attention(query, key, value, bias, dropout, scale=scale)
    return context.masked_fill(empty, 0.0)


def _run_explicit_attention(
    points: AttentionPoints,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    position_bias: Tensor | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> tuple[Tensor, Tensor]:
    query, key, value = points.q(query), points.k(key), points.v(value)
    scores = query @ key.transpose(-2, -1) * scale
    if position_bias is not None:
        scores = scores + position_bias
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = points.scores(scores)
    masked = points.masked_scores(_mask_scores(points, scores, mask))
    # A row with no key allowed would be NaN: the lowest finite number gives a uniform row, which is cleared.
    empty = (masked == -math.inf).all(-1, keepdim=True) if is_observed() else None
    weights = _softmax_with_sinks(masked.clamp_min(torch.finfo(masked.dtype).min), sinks)
    weights = points.weights(weights if empty is None else weights.masked_fill(empty, 0.0))
    return weights, points.context(weights @ value)


def _run_attention_by_rows(
    capture: PooledCapture,
    points: AttentionPoints,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scale: float,
    position_bias: Tensor | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """The context (B, H, Q, d), some rows at a time: of none of them are more weights in memory than of those."""
    at_once = capture.count_rows_at_once(query.shape[1], key.shape[2])
    can_fuse = softcap is None and sinks is None
    context = query.new_empty(*query.shape[:3], value.shape[3])  # pieces of it among large tensors part the heap
    for start in range(0, query.shape[2], at_once):
        rows = slice(start, start + at_once)
        some = query[:, :, rows]
        masked = None if mask is None else mask[..., rows, : key.shape[2]]
        keys = _find_allowed_range(masked, key.shape[2])  # of a causal mask half of all keys
        masked = None if masked is None else masked[..., keys]
        bias = None if position_bias is None else position_bias[..., rows, keys]
        of_rows = points, some, key[:, :, keys], value[:, :, keys], masked, scale, bias
        if can_fuse and not capture.needs_weights(start, start + some.shape[2]):
            context[:, :, rows] = F.scaled_dot_product_attention(*of_rows[1:4], _sum_biases(masked, bias), scale=scale)
            capture.skip_rows(points, some.shape[2])
        else:
            capture.first_key = keys.start
            context[:, :, rows] = _run_explicit_attention(*of_rows, softcap, sinks)[1]
    return context


def _find_allowed_range(mask: Tensor | None, keys: int) -> slice:
    """The first to the last key that a row may attend to under an additive mask (..., Q, K); all where it is none."""
    allowed = [] if mask is None else (~is_blocked(mask)).flatten(0, -2).any(0).nonzero()[:, 0].tolist()
    return slice(allowed[0], allowed[-1] + 1) if allowed else slice(0, keys)


def _softmax_with_sinks(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """The softmax of scores (B, H, Q, K) over their keys, and over a sink (H,) that is none of them."""
    if sinks is not None:
        beside = sinks.to(scores).reshape(1, -1, 1, 1).expand(len(scores), -1, scores.shape[2], 1)
        scores = torch.cat([scores, beside], -1)
    weights = scores.softmax(-1, dtype=torch.float32).to(scores.dtype)  # as eager attention in half precision does
    return weights if sinks is None else weights[..., :-1]


def _mask_scores(points: AttentionPoints, scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores (B, H, Q, K) under an additive mask, or the boolean one that an intervention has made of it."""
    if mask is None and not is_observed():
        return scores
    added, allowed = _split_mask_into_bias_and_allowed(points, scores, scores.mT, mask)
    return (scores if added is None else scores + added).masked_fill(~allowed, -math.inf)


def _split_mask_into_bias_and_allowed(
    points: AttentionPoints, query: Tensor, key: Tensor, mask: Tensor | None
) -> tuple[Tensor | None, Tensor]:
    """What a mask adds where it blocks nothing, and what may be attended to, (1 or B, 1 or H, Q, K) bool, as edited."""
    if mask is None:
        allowed = torch.ones(1, 1, query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
        return None, points.mask(allowed)
    mask = mask[..., : key.shape[-2]]
    allowed = ~is_blocked(mask)
    return mask.masked_fill(~allowed, 0.0), points.mask(allowed)


def _sum_biases(*biases: Tensor | None) -> Tensor | None:
    found = [bias for bias in biases if bias is not None]
    return sum(found[1:], found[0]) if found else None


# The probe: a loaded folder is run once to see what its attention is, and whether ours computes the same.


PROBE_TOLERANCE = 1e-4
"""The largest difference of an output, in units of its own size: float32 rounds to some 1e-6 of it."""
PROBE_ROUNDINGS = 8
"""The same for a coarser format, in units of its rounding."""

ProbeRun = Callable[[], Tensor]


class ProbeError(LocalError):
    """A model whose attention is not computed as it is known here; the message says what was seen."""


@torch.inference_mode()
def install_and_verify_hook_points(model: PreTrainedModel, run: ProbeRun, source: int) -> None:
    """Put hook points into every attention module that `run` passes through, and compare its outputs with eager ones.

    Which modules these are is seen, not guessed: an attention is told the module it runs in, or is found by what its
    module multiplies. `model` is loaded with eager attention. In `run` the source has `source` tokens and the target
    another number, so that cross-attention is told by its keys. Raises ProbeError.
    """
    expected = run()
    model.set_attn_implementation(ATTENTION_NAME)
    with add_attention_hook_points() as calls:
        run()
    if max(calls.values(), default=0) > 1:
        raise ProbeError(say("one of its attention modules runs more than once for one text"))
    modules = [*calls, *_hook_inline_attention_modules(model, run, set(calls))]
    if not modules:
        raise _make_no_attention_error(model)
    points = [_get_hook_points(module) for module in modules]
    seen: dict[nn.Module, Tensor] = {}
    kept = [point for one in points for point in (one.weights, one.context, one.mask)]
    with _record_linear_inputs(model) as inputs, hook_outputs({one: _make_output_recorder(seen, one) for one in kept}):
        output = run()
    _check_same_output(output, expected, _get_tolerance(model))
    _set_kinds_and_layers(model, points, {one: seen[one.weights] for one in points}, source)
    for one in points:
        _check_causal_mask(one, seen[one.weights], seen.get(one.mask))
        one.output_projection = _find_output_projection(inputs, seen[one.context])


def _hook_inline_attention_modules(model: PreTrainedModel, run: ProbeRun, known: set[nn.Module]) -> list[nn.Module]:
    """The modules beside those known that compute attention by themselves, now with hook points."""
    with record_inline_attention_modules(model) as found:
        run()
    inside = {module for one in known for module in one.modules()}
    added = {module: heads for module, heads in found.items() if module not in inside}
    for module, heads in added.items():
        add_inline_hook_points(module, POINTS_NAME, heads)
    return [*added]


def _make_no_attention_error(model: PreTrainedModel) -> LocalError:
    if any("attention" in type(module).__name__.lower() for module in model.modules()):
        return ProbeError(say("its attention is computed in a way that is not known here"))
    return LocalError(say("{model} has no attention: none of its modules is one.", model=type(model).__name__))


def _check_causal_mask(points: AttentionPoints, weights: Tensor, mask: Tensor | None) -> None:
    """Refuse a decoder that hides what comes later by a mask that was not seen: what it may attend to is then unknown.

    Weights (1, H, Q, K) of one pass without a cache.
    """
    if points.kind != "decoder":
        return
    later = torch.ones(weights.shape[-2:], dtype=torch.bool, device=weights.device).triu(1)
    allowed = later if mask is None else (later & mask).any(1)
    if bool(allowed.any()) and not bool(weights.sum(1).masked_select(allowed).any()):
        raise ProbeError(say("it hides later tokens by a mask that is not known here"))


def _get_hook_points(module: nn.Module) -> AttentionPoints:
    found = module.get_submodule(POINTS_NAME)
    assert isinstance(found, AttentionPoints)
    return found


def _make_output_recorder(seen: dict[nn.Module, Tensor], point: nn.Module) -> Callable[[Tensor], None]:
    return lambda output: seen.update({point: output})


@contextmanager
def _record_linear_inputs(model: PreTrainedModel) -> Iterator[dict[nn.Module, Tensor]]:
    """What each linear layer is given inside the block."""
    found: dict[nn.Module, Tensor] = {}

    def keep_input(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        found[module] = arguments[0]

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Linear | Conv1D):
                stack.callback(module.register_forward_pre_hook(keep_input).remove)
        yield found


def _measure_difference(output: Tensor, expected: Tensor) -> float:
    return float((output - expected).abs().max() / expected.abs().max().clamp_min(1e-9))


def _get_tolerance(model: nn.Module) -> float:
    return max(PROBE_TOLERANCE, PROBE_ROUNDINGS * torch.finfo(next(model.parameters()).dtype).eps)


def _check_same_output(output: Tensor, expected: Tensor, tolerance: float) -> None:
    difference = _measure_difference(output, expected)
    if not difference <= tolerance:
        raise ProbeError(
            say("its own attention gives other outputs, {difference:.1e} of their size apart", difference=difference)
        )


def _set_kinds_and_layers(
    model: PreTrainedModel,
    points: Sequence[AttentionPoints],
    weights: Mapping[AttentionPoints, Tensor],
    source: int,
) -> None:
    """Say of each attention what it is and its layer, counted for each kind in the order in which they ran."""
    encoder = set(model.get_encoder().modules()) if model.config.is_encoder_decoder else set()
    layers: dict[Kind, int] = {}
    for one in points:
        crosses = bool(encoder) and weights[one].shape[3] == source
        kind: Kind = "encoder" if one in encoder else "cross" if crosses else "decoder"
        one.kind, one.heads, one.layer = kind, weights[one].shape[1], layers.get(kind, 0)
        layers[kind] = one.layer + 1


def _find_output_projection(inputs: Mapping[nn.Module, Tensor], context: Tensor) -> Tensor | None:
    """W_O (D, H d) of the linear layer that was given these contexts (B, H, Q, d), their heads joined."""
    joined = context.transpose(1, 2).flatten(2)
    for module, given in inputs.items():
        if given.shape == joined.shape and torch.equal(given, joined):
            weight = module.get_parameter("weight").detach()
            return (weight.T if isinstance(module, Conv1D) else weight).float()
    return None


CACHED_STEPS = 2


@torch.inference_mode()
def check_cached_decoding(network: FolderNetwork, source: Tensor, target: Tensor) -> None:
    """Decode a target (1, T) some steps with a cache, and compare with the whole of it. Raises ProbeError."""
    memory, mask, cache = network.encode(source), network.source_mask(source), network.new_cache()
    whole = network.decode(target[:, :CACHED_STEPS], memory, mask)
    steps = [network.decode(target[:, at : at + 1], memory, mask, cache=cache) for at in range(CACHED_STEPS)]
    difference = _measure_difference(torch.cat(steps, 1), whole)
    if not difference <= _get_tolerance(network):
        raise ProbeError(
            say(
                "step by step it gives other outputs than at once, {difference:.1e} of their size apart",
                difference=difference,
            )
        )


def has_known_output_projections(network: FolderNetwork) -> bool:
    """Return whether each attention's output projection was found: not where a gate stands before it."""
    points = [one for one in network.modules() if isinstance(one, AttentionPoints)]
    return all(one.output_projection is not None for one in points)


def find_absent_maps(network: FolderNetwork) -> AbsentMaps:
    """Return what the maps of a probed model leave out."""
    points = [one for one in network.modules() if isinstance(one, AttentionPoints)]
    layers = network.layers("decoder")
    bare = {
        at for at, layer in enumerate(layers) if not any(isinstance(one, AttentionPoints) for one in layer.modules())
    }
    cache = network.new_cache().past
    states = set(find_recurrent_state_layers(cache)) if isinstance(cache, DynamicCache) else set()
    return AbsentMaps(
        encoder=network.model.config.is_encoder_decoder and not any(one.kind == "encoder" for one in points),
        bare_layers=tuple(sorted(bare)),
        mixed_layers=tuple(sorted(states - bare)),
        sinks=any(one.has_sink for one in points),
    )
