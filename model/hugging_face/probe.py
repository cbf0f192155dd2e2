"""A loaded folder tried once before anybody sees it: what its attention is, and whether ours computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ..capture.points import AttentionPoints
from ..language.say import say
from ..network.hooks import hook_outputs
from ..trace import Kind
from .attention import NAME, POINTS, UnknownAttentionError, finding_modules

TOLERANCE = 1e-4
"""The largest difference of an output, in units of its own size: float32 rounds to some 1e-6 of it."""

Run = Callable[[], Tensor]


class ProbeError(ValueError):
    """A model whose attention is not computed as it is known here; the message says what was seen."""


@torch.inference_mode()
def probe(model: PreTrainedModel, run: Run, source: int) -> None:
    """Put hook points into every attention module that `run` passes through, and compare its outputs with eager ones.

    Which modules these are is seen, not guessed: an attention is told the module it runs in. In `run` the source has
    `source` tokens and the target another number, so that cross-attention is told by its keys. Raises ProbeError.
    """
    try:
        with finding_modules() as calls:
            run()
    except UnknownAttentionError as error:
        raise ProbeError(str(error)) from error
    if not calls:
        raise ProbeError(say("its attention does not go through the interface of transformers"))
    if max(calls.values()) > 1:
        raise ProbeError(say("several of its layers share one attention module"))
    points = [_points(module) for module in calls]
    seen: dict[nn.Module, Tensor] = {}
    keepers: dict[nn.Module, Callable[[Tensor], None]] = {one.weights: _keeper(seen, one.weights) for one in points}
    keepers |= {one.context: _keeper(seen, one.context) for one in points}
    with _linear_inputs(model) as inputs, hook_outputs(keepers):
        output = run()
    _compare(output, _eagerly(model, run))
    _describe(model, points, {one: (seen[one.weights], seen[one.context]) for one in points}, source)
    for one in points:
        one.output_projection = _projection(inputs, seen[one.context])


def _points(module: nn.Module) -> AttentionPoints:
    found = module.get_submodule(POINTS)
    assert isinstance(found, AttentionPoints)
    return found


def _keeper(seen: dict[nn.Module, Tensor], point: nn.Module) -> Callable[[Tensor], None]:
    return lambda output: seen.update({point: output})


@contextmanager
def _linear_inputs(model: PreTrainedModel) -> Iterator[dict[nn.Module, Tensor]]:
    """What each linear layer is given inside the block."""
    found: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        found[module] = arguments[0]

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, nn.Linear | Conv1D):
                stack.callback(module.register_forward_pre_hook(keep).remove)
        yield found


def _eagerly(model: PreTrainedModel, run: Run) -> Tensor:
    model.set_attn_implementation("eager")
    try:
        return run()
    finally:
        model.set_attn_implementation(NAME)


def _compare(output: Tensor, expected: Tensor) -> None:
    difference = float((output - expected).abs().max() / expected.abs().max().clamp_min(1e-9))
    if not difference <= TOLERANCE:
        raise ProbeError(
            say("its own attention gives other outputs, {difference:.1e} of their size apart", difference=difference)
        )


def _describe(
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


def _projection(inputs: Mapping[nn.Module, Tensor], context: Tensor) -> Tensor | None:
    """W_O (D, H d) of the linear layer that was given these contexts (B, H, Q, d), their heads joined."""
    joined = context.transpose(1, 2).flatten(2)
    for module, given in inputs.items():
        if given.shape == joined.shape and torch.equal(given, joined):
            weight = module.get_parameter("weight").detach()
            return weight.T if isinstance(module, Conv1D) else weight
    return None
