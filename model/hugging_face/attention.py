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
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask
from transformers.pytorch_utils import Conv1D

from ..capture.attention import AttentionPoints
from ..language import say
from ..masks.softmax import is_blocked
from ..network.attention import choose_attention_path
from ..network.hooks import hook_outputs, is_observed
from ..trace import Kind

# The attention that a loaded folder runs with is registered under a name of its own by transformers' public interface
# (`AttentionInterface`), which hands over queries, keys, values and the mask of every attention of a model. Nothing in
# transformers is replaced.


ATTENTION_NAME = "attenscope"
POINTS_NAME = "attention_points"
"""The name of the hook points in an attention module."""
_found_modules: ContextVar[Counter[nn.Module] | None] = ContextVar("finding", default=None)


class UnknownAttentionError(NotImplementedError):
    """An attention with a part that is not known here; the message names it."""


def register_attention() -> None:
    """Make the attention known to transformers; once or more often is the same."""
    AttentionInterface.register(ATTENTION_NAME, attention_forward)
    AttentionMaskInterface.register(ATTENTION_NAME, eager_mask)


@contextmanager
def find_attention_modules() -> Iterator[Counter[nn.Module]]:
    """Give hook points to every attention module that runs in this block, and count the calls of each, in order."""
    found: Counter[nn.Module] = Counter()
    token = _found_modules.set(found)
    try:
        yield found
    finally:
        _found_modules.reset(token)


def _find_or_add_points(module: nn.Module, heads: int) -> AttentionPoints:
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

    G queries' heads share one head of keys and values (grouped-query attention). The arguments are those that
    transformers hands over. No weights where nobody looks on a GPU: then the fused kernel runs.
    """
    if s_aux is not None:
        raise UnknownAttentionError(say("its attention has a learned sink beside its keys"))
    points = _find_or_add_points(module, query.shape[1])
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if choose_attention_path(query.device) == "fused" and softcap is None:
        dropout = dropout if module.training else 0.0
        context = _run_fused_attention(points, query, key, value, attention_mask, scale, position_bias, dropout)
        return context.transpose(1, 2).contiguous(), None
    weights, context = _run_explicit_attention(points, query, key, value, attention_mask, scale, position_bias, softcap)
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
    added, allowed = _edit_mask(points, query, key, mask)
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
    weights = masked.clamp_min(torch.finfo(masked.dtype).min).softmax(-1)
    weights = points.weights(weights if empty is None else weights.masked_fill(empty, 0.0))
    return weights, points.context(weights @ value)


def _mask_scores(points: AttentionPoints, scores: Tensor, mask: Tensor | None) -> Tensor:
    """Scores (B, H, Q, K) under an additive mask, or the boolean one that an intervention has made of it."""
    if mask is None and not is_observed():
        return scores
    added, allowed = _edit_mask(points, scores, scores.mT, mask)
    return (scores if added is None else scores + added).masked_fill(~allowed, -math.inf)


def _edit_mask(
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

ProbeRun = Callable[[], Tensor]


class ProbeError(ValueError):
    """A model whose attention is not computed as it is known here; the message says what was seen."""


@torch.inference_mode()
def probe_attention(model: PreTrainedModel, run: ProbeRun, source: int) -> None:
    """Put hook points into every attention module that `run` passes through, and compare its outputs with eager ones.

    Which modules these are is seen, not guessed: an attention is told the module it runs in. In `run` the source has
    `source` tokens and the target another number, so that cross-attention is told by its keys. Raises ProbeError.
    """
    try:
        with find_attention_modules() as calls:
            run()
    except UnknownAttentionError as error:
        raise ProbeError(str(error)) from error
    if not calls:
        raise ProbeError(say("its attention does not go through the interface of transformers"))
    if max(calls.values()) > 1:
        raise ProbeError(say("several of its layers share one attention module"))
    points = [_get_points(module) for module in calls]
    seen: dict[nn.Module, Tensor] = {}
    keepers: dict[nn.Module, Callable[[Tensor], None]] = {
        one.weights: _make_tensor_hook(seen, one.weights) for one in points
    }
    keepers |= {one.context: _make_tensor_hook(seen, one.context) for one in points}
    with _record_linear_inputs(model) as inputs, hook_outputs(keepers):
        output = run()
    _check_same_output(output, _run_eagerly(model, run))
    _set_kinds_and_layers(model, points, {one: (seen[one.weights], seen[one.context]) for one in points}, source)
    for one in points:
        one.output_projection = _find_output_projection(inputs, seen[one.context])


def _get_points(module: nn.Module) -> AttentionPoints:
    found = module.get_submodule(POINTS_NAME)
    assert isinstance(found, AttentionPoints)
    return found


def _make_tensor_hook(seen: dict[nn.Module, Tensor], point: nn.Module) -> Callable[[Tensor], None]:
    return lambda output: seen.update({point: output})


@contextmanager
def _record_linear_inputs(model: PreTrainedModel) -> Iterator[dict[nn.Module, Tensor]]:
    """What each linear layer is given inside the block."""
    found: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        found[module] = arguments[0]

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Linear | Conv1D):
                stack.callback(module.register_forward_pre_hook(keep).remove)
        yield found


def _run_eagerly(model: PreTrainedModel, run: ProbeRun) -> Tensor:
    model.set_attn_implementation("eager")
    try:
        return run()
    finally:
        model.set_attn_implementation(ATTENTION_NAME)


def _check_same_output(output: Tensor, expected: Tensor) -> None:
    difference = float((output - expected).abs().max() / expected.abs().max().clamp_min(1e-9))
    if not difference <= PROBE_TOLERANCE:
        raise ProbeError(
            say("its own attention gives other outputs, {difference:.1e} of their size apart", difference=difference)
        )


def _set_kinds_and_layers(
    model: PreTrainedModel,
    points: Sequence[AttentionPoints],
    seen: Mapping[AttentionPoints, tuple[Tensor, Tensor]],
    source: int,
) -> None:
    """Say of each attention what it is and its layer, counted for each kind in the order in which they ran."""
    encoder = set(model.get_encoder().modules()) if model.config.is_encoder_decoder else set()
    layers: dict[Kind, int] = {}
    for one in points:
        weights, _ = seen[one]
        crosses = bool(encoder) and weights.shape[3] == source
        kind: Kind = "encoder" if one in encoder else "cross" if crosses else "decoder"
        one.kind, one.heads, one.layer = kind, weights.shape[1], layers.get(kind, 0)
        layers[kind] = one.layer + 1


def _find_output_projection(inputs: Mapping[nn.Module, Tensor], context: Tensor) -> Tensor | None:
    """W_O (D, H d) of the linear layer that was given these contexts (B, H, Q, d), their heads joined."""
    joined = context.transpose(1, 2).flatten(2)
    for module, given in inputs.items():
        if given.shape == joined.shape and torch.equal(given, joined):
            weight = module.get_parameter("weight").detach()
            return weight.T if isinstance(module, Conv1D) else weight
    return None
