"""The attention blocks of a model that nobody here wrote, found in one pass, each part checked by its numbers.

What a block is made of is not known from outside, so it is looked for among the tensors of the pass: the projection
that was given weights times values, and the norm that reads the sum of its output and the residual stream. What is not
found is refused, and so is a model in which anything but attention mixes positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...capture.attention import capture_attention
from ...capture.sites import attention_sites
from ...language.say import say
from ...trace import AttentionMap, AttentionTrace
from ..blocks import Block
from ..recording import HeldNorm
from ..target import AttributionError
from .reading import Reading, hooked, logits_of

CLOSE = 1e-4
"""The largest difference of two tensors that are taken for the same, relative to the largest number of either."""


class Call(NamedTuple):
    """One call of a module: its tensors (1, N, width), and what came out."""

    module: nn.Module
    given: tuple[Tensor, ...]
    output: Tensor


@dataclass(frozen=True, eq=False)
class _Found:
    """A block, and the tensors of the pass that it reads and makes, parts of the graph of gradients."""

    block: Block
    before: Tensor
    after: Tensor
    memory: Tensor | None
    """What a cross-attention reads."""


def foreign_blocks(reading: Reading, position: int) -> tuple[list[Block], list[Block]]:
    """Return the attention blocks of encoder and decoder, in the order in which they ran.

    Raises AttributionError where a part of a block is not found, or positions are mixed beside attention.
    """
    calls: list[Call] = []
    embedded: dict[int, Tensor] = {}

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        first = output[0] if isinstance(output, tuple) and output else output
        tensors = tuple(one for one in (*given, *named.values()) if isinstance(one, Tensor) and one.ndim == 3)
        if isinstance(first, Tensor) and first.ndim == 3 and tensors:
            calls.append(Call(module, tensors, first))

    def leaf(side: int) -> Any:
        def changed(tensor: Tensor) -> Tensor:
            embedded[side] = tensor.detach().requires_grad_()
            return embedded[side]

        return changed

    model = reading.model
    with (
        torch.enable_grad(),
        capture_attention(model, ("v",)) as capture,
        hooked([one for one in model.modules() if next(one.parameters(), None) is not None], note),
    ):
        logits_of(reading, {side: leaf(side) for side in (0, 1)}, position)
    found = _blocks(model, capture.trace, calls)
    encoder, decoder = ([one for one in found if (one.block.kind == "encoder") == side] for side in (True, False))
    if not encoder or {one.block.kind for one in decoder} != {"decoder", "cross"}:
        raise AttributionError(_refusal(say("it has not attention of each kind")))
    _check_stack(embedded[0], encoder)
    _check_stack(embedded[1], decoder)
    _check_mixing([(encoder[-1].after, one.memory) for one in decoder if one.memory is not None])
    return [one.block for one in encoder], [one.block for one in decoder]


def _refusal(reason: str) -> str:
    return say("What its attention passes on cannot be followed: {reason}.", reason=reason)


def _blocks(model: nn.Module, trace: AttentionTrace, calls: Sequence[Call]) -> list[_Found]:
    """The blocks of all maps, in the order in which their modules ran."""
    found: list[tuple[int, _Found]] = []
    for kind, attention in trace.maps.items():
        paths = attention.layer_paths or tuple(site.path for site in attention_sites(model) if site.kind == kind)
        for layer, path in enumerate(paths):
            places = _places_of(model, path, calls)
            again = paths[:layer].count(path)
            if len(places) <= again:
                raise AttributionError(_refusal(say("{path} takes or returns no stream", path=path)))
            place = places[again]
            found.append((place, _found(attention, layer, path, calls[place], calls)))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _places_of(model: nn.Module, path: str, calls: Sequence[Call]) -> list[int]:
    """Where the module at a path was called; hook points are not, but the module that they stand in is."""
    while path:
        module = model.get_submodule(path)
        if places := [place for place, call in enumerate(calls) if call.module is module]:
            return places
        path = path.rpartition(".")[0]
    return []


def _found(attention: AttentionMap, layer: int, path: str, call: Call, calls: Sequence[Call]) -> _Found:
    if "v" not in attention.tensors:
        raise AttributionError(_refusal(say("the values of {path} are not seen", path=path)))
    weights, values = (torch.from_numpy(one[layer]).double() for one in (attention.weights, attention.tensors["v"]))
    projection, output, off = _projection(path, call, (weights @ values).transpose(0, 1), calls)
    weights = weights.masked_fill(off[:, None, None], 0.0)
    slices = projection.weight.detach().double().cpu().T.reshape(len(values), values.shape[-1], -1)
    read = call.given[0]
    before, after, norm = _residual(path, read, output, calls)
    others = [one for one in call.given if one is not read and one.shape[1] == values.shape[1]]
    if attention.kind == "cross" and not others:
        raise AttributionError(_refusal(say("what {path} reads of the source is not seen", path=path)))
    bias = None if projection.bias is None else projection.bias.detach().double().cpu()
    projected = torch.einsum("hkd,hdm->hkm", values, slices)
    stream, behind = (one[0].detach().double().cpu() for one in (before, after))
    block = Block(attention.kind, weights, projected, bias, stream, behind, norm)
    return _Found(block, before, after, others[0] if attention.kind == "cross" else None)


def _projection(path: str, call: Call, context: Tensor, calls: Sequence[Call]) -> tuple[nn.Linear, Tensor, Tensor]:
    """The linear map that was given the heads' results (Q, H, d) beside each other, what it made of them (1, Q, D), and
    which heads are switched off (H,), their results zero.

    nn.MultiheadAttention applies its map without calling it as a module.
    """
    inside = set(call.module.modules())
    for one in calls:
        if one.module in inside and isinstance(one.module, nn.Linear) and one.given[0][0].numel() == context.numel():
            off = one.given[0][0].detach().cpu().reshape(context.shape).abs().amax((0, 2)) == 0
            if _same(one.given[0], context.masked_fill(off[:, None], 0.0).flatten(1)[None]):
                return one.module, one.output, off
    if isinstance(call.module, nn.MultiheadAttention):
        projection = call.module.out_proj
        if _same(projection(context.flatten(1).to(projection.weight))[None], call.output):
            none = torch.zeros(context.shape[1], dtype=torch.bool, device=context.device)
            return projection, call.output, none
    raise AttributionError(_refusal(say("no linear map of {path} was given its weights times its values", path=path)))


def _residual(
    path: str, read: Tensor, output: Tensor, calls: Sequence[Call]
) -> tuple[Tensor, Tensor, nn.Module | None]:
    """The residual stream before and behind a block that read `read` and added `output`, and the norm behind it."""
    norms = [one for one in calls if "norm" in type(one.module).__name__.lower() and one.given[0].shape == read.shape]
    for one in norms:
        if _same(one.given[0], read + output):
            return read, one.output, _held(path, one)
    for before in (one.given[0] for one in norms if one.output is read):
        for one in norms:
            if _same(one.given[0], before + output):
                return before, one.given[0], None
    raise AttributionError(_refusal(say("what {path} adds is added to no stream that a norm reads", path=path)))


def _held(path: str, call: Call) -> nn.Module:
    """The norm behind a block, if holding its scale makes it the linear map that :class:`HeldNorm` knows."""
    norm, read = call.module, call.given[0].detach().double()
    try:
        held = HeldNorm(norm, read)
        known = _same(held(read) + held.bias, call.output)
    except (AttributeError, AssertionError):
        known = False
    if not known:
        raise AttributionError(_refusal(say("the norm behind {path} is none that is known here", path=path)))
    return norm


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors hold the same numbers but for rounding."""
    if one.shape != other.shape:
        return False
    one, other = (tensor.detach().double().cpu() for tensor in (one, other))
    return float((one - other).abs().max()) <= CLOSE * max(float(one.abs().max()), float(other.abs().max()))


def _check_stack(embedded: Tensor, found: Sequence[_Found]) -> None:
    """Refuse a stack in which anything but its blocks lets one position read another."""
    _check_mixing(zip([embedded, *(one.after for one in found)], (one.before for one in found), strict=False))


def _check_mixing(steps: Iterable[tuple[Tensor, Tensor]]) -> None:
    """Refuse steps (from, to), both (1, N, D), in which a position of the second depends on another of the first.

    The first and the last position are tried, in a random direction each.
    """
    for earlier, later in steps:
        if later is earlier:
            continue
        for row in (0, later.shape[1] - 1):
            direction = torch.randn(later.shape[-1], generator=torch.Generator("cpu").manual_seed(0), device="cpu")
            value = later[0, row] @ direction.to(later)
            (slope,) = torch.autograd.grad(value, earlier, retain_graph=True, allow_unused=True)
            size = torch.zeros(later.shape[1], device="cpu") if slope is None else slope[0].abs().amax(-1).cpu()
            if float(size[row]) == 0 or float(size.sum() - size[row]) > CLOSE * float(size[row]):
                raise AttributionError(_refusal(say("positions are mixed beside its attention")))
