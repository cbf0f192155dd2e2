"""Which axes of an attention are samples, heads, queries and keys: by what its module says and was called with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from .call_site import CallSite

HEADS = ("num_heads", "n_heads", "num_attention_heads", "nhead", "n_head", "heads", "h")
"""Attributes in which modules hold their number of heads."""
_ORDER = (0, 1, 2)
"""Samples, heads, queries."""
_OTHER_ORDERS = ((0, 2, 1), (1, 0, 2))
"""Which of the first three axes are those, where queries or heads come before."""
_SEQUENCE_FIRST = (1, 2, 0)
""":data:`_OTHER_ORDERS` where keys are not the last axis: (Q, K, B, H)."""


@dataclass(frozen=True)
class Evidence:
    """What is known of the axes before the weights are seen."""

    heads: int | None = None
    """The number of heads that the module says, or one around it; None where none says it."""
    groups: int = 1
    """Query heads that share one head of keys, which a module may keep beside each other as rows."""
    sides: frozenset[tuple[int, int]] = frozenset()
    """(B, length) of the inputs of the module and of the outermost one, in every order that they may be meant in."""
    partitions: frozenset[int] = frozenset()
    """B * length of inputs with two axes of positions, as of an image, that a module may cut into windows."""
    width: int = 0
    """The width of one head: so many rows, where there are not so many tokens, are features."""

    @property
    def batches(self) -> set[int]:
        return {batch for batch, _ in self.sides}

    def may_be_batch(self, size: int, queries: int) -> bool:
        """Whether an axis of this size may be the samples, or the windows that an image is cut into."""
        return not self.sides or size in self.batches or size * queries in self.partitions


@dataclass(frozen=True)
class Layout:
    """How a tensor becomes one of (B, H, Q, K)."""

    axis: int = -1
    """The axis of the keys, which is moved to the end."""
    shape: tuple[int, ...] = ()
    """(B, H), where they are not axes of their own or are more of them; empty to leave the axes as they are."""
    order: tuple[int, ...] = _ORDER
    """Which of the three are the samples, the heads and the queries."""

    def __call__(self, tensor: Tensor) -> Tensor:
        moved = tensor.movedim(self.axis, -1)
        return moved.reshape(*self.shape, -1, moved.shape[-1]) if self.shape else moved.permute(*self.order, 3)


def evidence_of(site: CallSite) -> Evidence:
    """Return what the module at a site, those around it and their inputs say of the axes."""
    heads = next((found for module in _modules(site) if (found := heads_of(module)) > 1), None)
    if heads is None:
        heads = next((found for module in _modules(site) if (found := _configured_heads(module)) > 1), None)
    called = [call.inputs for call in site.calls if any(tensor.dim() > 1 for tensor in call.inputs)]
    own, outer = (called[0], called[-1] if len(called) > 1 else ()) if called else ((), ())
    sides = {side for tensor in own for side in _sides(tensor, heads)} | {side for one in outer for side in _outer(one)}
    return Evidence(
        heads,
        getattr(site.module, "num_key_value_groups", 1),
        frozenset(sides),
        frozenset(size for tensor in (*own, *outer) for size in _partitions(tensor, heads)),
        max((tensor.shape[-1] for tensor in own if tensor.is_floating_point()), default=0) // (heads or 1),
    )


def heads_of(module: nn.Module) -> int:
    """Return how many heads a module says that it has; 1 where it does not say."""
    said = (getattr(module, name, None) for name in HEADS)
    return next((number for number in said if isinstance(number, int) and number > 0), 1)


def query_heads_of(module: nn.Module) -> int:
    """Return :func:`heads_of`, or the number in the module's configuration where only that says it."""
    return heads_of(module) if heads_of(module) > 1 else _configured_heads(module)


def added_keys(module: nn.Module) -> tuple[str, ...]:
    """Return the names of the columns that nn.MultiheadAttention adds after those of the keys."""
    if not isinstance(module, nn.MultiheadAttention):
        return ()
    return ("bias",) * (module.bias_k is not None) + ("zero",) * module.add_zero_attn


def layout_of(shape: tuple[int, ...], axis: int, evidence: Evidence, fused: bool = False) -> Layout | None:
    """Return how weights of this shape, softmax over `axis`, become (B, H, Q, K); None where the axes do not tell.

    In a fused kernel the queries are the axis before the keys.
    """
    axis = axis % len(shape) - len(shape)
    keys, others = shape[axis], (*shape[:axis], *(shape[axis + 1 :] if axis < -1 else ()))
    if len(others) == 1:
        return Layout(axis, (1, 1)) if axis == -1 and (fused or others == (1,)) else None
    if len(others) == 2:
        return _of_two(others, keys, axis, evidence)
    if len(others) == 3:
        return _of_three(others, keys, axis, evidence, fused)
    samples, heads, rows = others[0], prod(others[1:-1]), others[-1]
    if len(others) > 3 and heads != (evidence.heads or 1):
        return None
    fits = axis == -1 and _may_be(samples, heads, rows, keys, evidence)
    return Layout(axis, (samples, heads)) if fits else None


def _of_two(others: tuple[int, ...], keys: int, axis: int, evidence: Evidence) -> Layout | None:
    """(B * H, Q, K), one query of each head (B, H, K), or one head (B, Q, K)."""
    first, rows = others
    heads = evidence.heads or 1
    if axis != -1:  # a square may be (Q, K, H) of one sample
        return Layout(axis, (first, 1)) if axis == -2 and heads == 1 and keys != rows else None
    splits = [(first // heads, heads), (first, 1)] if first % heads == 0 else [(first, 1)]
    if not evidence.sides:
        return Layout(axis, splits[0])
    splits += [(batch, first // batch) for batch in sorted(evidence.batches) if heads == 1 and first % batch == 0]
    known = [split for split in splits if (split[0], rows) in evidence.sides]
    if not known and rows == heads and first in evidence.batches:
        return Layout(axis, (first, heads))
    known = known or [split for split in splits[:2] if evidence.may_be_batch(split[0], rows)]
    return Layout(axis, known[0]) if known else None


def _of_three(others: tuple[int, ...], keys: int, axis: int, evidence: Evidence, fused: bool) -> Layout | None:
    """(B, H, Q, K), or another order of the first three where only that fits."""
    if axis != -1 and evidence.heads is None:
        return None
    fits: dict[tuple[int, ...], int] = {}
    for order in (_ORDER, *_OTHER_ORDERS, *([_SEQUENCE_FIRST] if axis != -1 else ())):
        samples, heads, rows = (others[place] for place in order)
        known = ((samples, rows) in evidence.sides) + ((samples, keys) in evidence.sides)
        standard = order == _ORDER and _may_be(samples, heads, rows, keys, evidence)
        if standard or (known == 2 and heads == evidence.heads and not (fused and order[2] != 2)):
            fits[order] = known
    best = [order for order, known in fits.items() if known == max(fits.values())]
    if _ORDER in best and axis == -1:
        return Layout(axis)
    return Layout(axis, order=best[0]) if len(best) == 1 else None


def _may_be(samples: int, heads: int, rows: int, keys: int, evidence: Evidence) -> bool:
    """Whether these may be the sizes of (B, H, Q, K)."""
    if _is_whole(samples, rows, keys, evidence):
        return True
    if rows == evidence.width and (samples, rows) not in evidence.sides:
        return False
    if evidence.heads is None:  # an axis beside the samples that is a sequence is not the heads
        return evidence.may_be_batch(samples, rows) and (
            (samples, rows) in evidence.sides or (samples, heads) not in evidence.sides
        )
    folded = heads * evidence.groups == evidence.heads and rows == evidence.groups
    return (heads == evidence.heads or folded) and evidence.may_be_batch(samples, rows)


def _is_whole(samples: int, rows: int, keys: int, evidence: Evidence) -> bool:
    """Whether queries and keys are whole sequences of the inputs, so that an axis between is heads, said or not."""
    return (samples, rows) in evidence.sides and (samples, keys) in evidence.sides


def _modules(site: CallSite) -> Iterator[nn.Module]:
    yield site.module
    yield from (call.module for call in site.calls)


def _configured_heads(module: nn.Module) -> int:
    said = getattr(getattr(module, "config", None), "num_attention_heads", None)
    return said if isinstance(said, int) else 1


def _positions(tensor: Tensor) -> tuple[int, ...]:
    """The axes of a tensor without its features; a tensor of integers, such as ids, has none."""
    return tuple(tensor.shape[:-1] if tensor.is_floating_point() else tensor.shape)


def _sides(tensor: Tensor, heads: int | None) -> set[tuple[int, int]]:
    """(B, length) in every order that the axes of an input may be meant in."""
    sizes = _positions(tensor)
    if not sizes or (tensor.dtype == torch.bool and len(sizes) > 2):  # a time of each sample, or a mask
        return set()
    if len(sizes) == 1:
        return {(1, sizes[0]), (sizes[0], 1)}
    if len(sizes) == 2:
        return {sizes, sizes[::-1]}
    found = {(prod(sizes[:cut]), prod(sizes[cut:])) for cut in range(1, len(sizes))}
    found |= {(sizes[0], prod(tensor.shape[2:]))}  # features first, as of an image
    if len(sizes) == 3:
        found |= {(sizes[0], sizes[1])} if sizes[2] == heads else {(sizes[0], sizes[2])}  # heads apart already
        found |= {(sizes[2], sizes[0]), (sizes[2], sizes[1])} if heads not in sizes else set()  # an alignment
    return found


def _outer(tensor: Tensor) -> set[tuple[int, int]]:
    """The same of what a model was given: of an image or a video, whose sides are no sequence, the batch."""
    if tensor.is_floating_point() and tensor.dim() > 3:
        return {(len(tensor), prod(tensor.shape[2:]))}
    return _sides(tensor, None)


def _partitions(tensor: Tensor, heads: int | None) -> set[int]:
    sizes = _positions(tensor)
    if len(sizes) < 3 or heads in sizes[1:]:
        return set()
    return {prod(sizes), sizes[0] * prod(tensor.shape[2:])}
