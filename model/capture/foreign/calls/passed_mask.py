"""The mask that a call of attention was given, as cells, to be set beside the one that took effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....masking.attention_call import PADDING_ARGUMENTS, Reading
from ....masking.blocked import is_blocked
from ....pytorch.torch_internals import materialize
from .call_site import CallSite
from .fused_weights import Attention
from .origin import masks_around

Sizes = tuple[int, int, int, int]
"""B, H, Q, K, without the keys that are no tokens."""
_Part = tuple[Tensor, Reading]
"""One argument as booleans that broadcast to (B, H, Q, K), True = may attend, and how it is read."""
_OF_TORCH = ("attn_mask", "key_padding_mask")


@dataclass(frozen=True, eq=False)
class PassedMask:
    """What arrived at one call."""

    allowed: Tensor | None
    """(B, H, Q, K) bool, True = may attend; None where nothing arrived, or what cannot be laid out so."""
    readings: tuple[Reading, ...] = ()
    """Which arguments arrived and how they are read; empty where none did."""


class _ShapeError(ValueError):
    """A mask that cannot be laid out as queries x keys."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(name, shape)
        self.reading: Reading = "misshaped", {"name": name, "shape": str(shape)}


@torch.no_grad()
def passed_mask(
    site: CallSite, function: Callable[..., Any], given: Mapping[str, Any] | None, attention: Attention
) -> PassedMask:
    """Return the mask that a call was given.

    ``given`` are the arguments by name of a function of torch. Where it was given no ``attn_mask``, or for a softmax,
    which takes none, the masks are read that the functions around it were given. How a boolean mask is to be read is
    known of torch's functions; of others it is a guess: the reading that contradicts fewer cells in force.
    """
    in_force, extra = attention.allowed, len(attention.extra_keys)
    samples, heads, queries, keys = in_force.shape
    sizes = (samples, heads, queries, keys - extra)
    try:
        parts = _of_torch(function, given or {}, sizes, in_force.device)
        if function is not F.multi_head_attention_forward and (given or {}).get("attn_mask") is None:
            masks, where = masks_around(site)
            parts += [_guessed(name, where, mask, in_force[..., : sizes[3]], sizes) for name, mask in masks.items()]
    except _ShapeError as error:
        return PassedMask(None, (error.reading,))
    if not parts:
        return PassedMask(None)
    whole = parts[0][0].to(in_force.device)
    for part, _ in parts[1:]:
        whole = whole & part.to(in_force.device)
    whole = whole.expand(*whole.shape[:2], *sizes[2:])
    whole = (F.pad(whole, (0, extra), value=True) if extra else whole).expand(in_force.shape)
    one, other = torch.broadcast_tensors(_without_copies(whole), _without_copies(in_force))
    same = in_force if torch.equal(one, other) else whole  # one tensor for both takes no more memory
    return PassedMask(same, tuple(reading for _, reading in parts))


def _without_copies(mask: Tensor) -> Tensor:
    """The first of every sample and head that is broadcast to all of them."""
    samples, heads = (slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride()[:2])
    return mask[samples, heads]


def _of_torch(
    function: Callable[..., Any], given: Mapping[str, Any], sizes: Sizes, device: torch.device
) -> list[_Part]:
    """What a function of torch was given, which says how it reads its masks."""
    multi_head = function is F.multi_head_attention_forward
    parts: list[_Part] = []
    for name in _OF_TORCH:
        if (value := given.get(name)) is None:
            continue
        mask = materialize(value, value.device)
        if mask.dtype == torch.bool:
            allowed, how = (~mask, "blocked") if multi_head else (mask, "attend")
        else:
            allowed, how = ~is_blocked(mask), "added"
        parts.append((_laid_out(name, allowed, sizes), (how, {"name": name})))
    if given.get("is_causal") and not (multi_head and parts):  # beside a mask it is a hint for nn.MultiheadAttention
        allowed = torch.ones(sizes[2:], dtype=torch.bool, device=device).tril()
        parts.append((allowed[None, None], ("causal", {})))
    return parts


def _guessed(name: str, where: str, mask: Tensor, in_force: Tensor, sizes: Sizes) -> _Part:
    """A mask of somebody's own function: numbers below zero are added, what else True and 1 mean is a guess."""
    laid = _laid_out(name, mask, sizes)
    read = {"name": name, "function": where}
    if bool(((laid != 0) & (laid != 1)).any()):
        return ~is_blocked(laid), ("function-added", read)
    keep = laid.bool()
    seen = _without_copies(in_force)
    wrong, turned = (int((~allowed & seen).sum()) for allowed in (keep, ~keep))
    read["one"] = "True" if mask.dtype == torch.bool else "1"
    if turned < wrong:
        return ~keep, ("guess-blocked", read)
    return keep, ("function-attend" if wrong == turned else "guess-attend", read)


def _laid_out(name: str, mask: Tensor, sizes: Sizes) -> Tensor:
    """Return a view that broadcasts to (B, H, Q, K); two axes are (Q, K) unless only (B, K) fits, or by the name."""
    samples, heads, queries, keys = sizes
    shape = tuple(mask.shape)
    view = mask
    if len(shape) == 3:
        folded = shape[0] == samples * heads and shape[0] not in (1, samples)
        view = (
            mask.unflatten(0, (samples, heads)) if folded else mask[None] if _are_heads(shape, sizes) else mask[:, None]
        )
    elif len(shape) == 2:
        padding = name in PADDING_ARGUMENTS or "padding" in name
        by_samples = shape == (samples, keys) and (padding or shape != (queries, keys))
        view = mask[:, None, None] if by_samples else mask[None, None]
    elif len(shape) == 1:
        view = mask[None, None, None]
    if view.dim() != 4 or any(own not in (1, size) for own, size in zip(view.shape, sizes, strict=True)):
        raise _ShapeError(name, shape)
    return view


def _are_heads(shape: tuple[int, ...], sizes: Sizes) -> bool:
    return shape[0] == sizes[1] and shape[0] not in (1, sizes[0])
