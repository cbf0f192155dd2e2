"""Faults put into the masks of a model that somebody else wrote: what its attention modules are given is changed.

A hook before every attention module spoils the mask among its arguments, whichever name and convention that has.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attenscope.trace import Kind

Change = Callable[[Sequence[Tensor], int], Tensor]
"""The masks of all layers (..., Q, K), True = may attend, and the number of one, to the mask that this one gets."""
_MASKS, _BIASES = ("attention_mask", "mask"), ("position_bias",)
_BLOCKED = -1e4


@dataclass(frozen=True)
class Plant:
    """One fault, and what a diagnosis may call it."""

    name: str
    codes: tuple[str, ...]
    """The code that names it; several where they leave the same weights."""
    change: Change
    layer: int | None = None
    """The layer in which it is made; None for all."""


def plants(meant: str, layers: int, own_triangle: bool = False) -> list[Plant]:
    """Return the faults that an attention meant so can have; with a triangle of its own only its padding is spoiled."""
    mixed, windowed = "/" in meant, "window" in meant
    causal = "causal" in meant and not own_triangle
    lost = ("mask-ignored", "future-visible") if causal else ("mask-ignored", "padding-visible")
    found = [Plant("dropped", lost, _dropped)]
    if own_triangle:
        return [*found, Plant("shifted", ("mask-shifted",), _padding_later)]
    found.append(Plant("inverted", ("inverted",), _inverted))
    if not windowed:
        shifted = ("future-visible", _one_key_ahead) if causal else ("mask-shifted", _padding_later)
        found += [Plant("shifted", shifted[:1], shifted[1]), Plant("one layer", lost, _dropped, layers - 1)]
    if mixed:
        found.append(Plant("layers exchanged", ("wrong-layer-pattern",), _of_next_layer))
        found.append(Plant("one mask for all layers", ("wrong-layer-pattern",), _of_first_layer))
    elif windowed:
        found.append(Plant("window lost", ("window-missing",), _without_window))
    return found


def _dropped(masks: Sequence[Tensor], layer: int) -> Tensor:
    return torch.ones_like(masks[layer])


def _inverted(masks: Sequence[Tensor], layer: int) -> Tensor:
    return ~masks[layer]


def _one_key_ahead(masks: Sequence[Tensor], layer: int) -> Tensor:
    """The triangle one diagonal too high: each query has the mask of the next."""
    own = masks[layer]
    return own | torch.cat([own[..., 1:, :], own[..., -1:, :]], -2)


def _padding_later(masks: Sequence[Tensor], layer: int) -> Tensor:
    """The padding one key later than it is."""
    keep = masks[layer].any(-2, keepdim=True)
    moved = torch.cat([keep[..., :1], keep[..., :-1]], -1)
    return (masks[layer] & moved) | (moved & ~keep)


def _without_window(masks: Sequence[Tensor], layer: int) -> Tensor:
    own = masks[layer]
    causal = torch.ones(own.shape[-2:], dtype=torch.bool).tril(own.shape[-1] - own.shape[-2])
    return own.any(-2, keepdim=True) & causal


def _of_next_layer(masks: Sequence[Tensor], layer: int) -> Tensor:
    return masks[(layer + 1) % len(masks)]


def _of_first_layer(masks: Sequence[Tensor], layer: int) -> Tensor:
    return masks[0]


@dataclass
class _Masks:
    """The masks that arrive at the layers of one kind, and what becomes of them."""

    plant: Plant | None = None
    clean: list[Tensor] = field(default_factory=list)
    layer: int = 0

    def before(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Read the mask of the next layer, or change it."""
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
        names = [name for name in (*_MASKS, *_BIASES) if _is_mask(bound.arguments.get(name), name)]
        layer, self.layer = self.layer, self.layer + 1
        if self.plant is None:
            self.clean.append(_allowed(bound.arguments[names[0]]))
            return None
        for name in names:
            if self.plant.layer == layer or (self.plant.layer is None and name in _MASKS):
                changed = self.plant.change(self.clean, layer)
                bound.arguments[name] = _written(changed, bound.arguments[name])
        return bound.args, bound.kwargs


def _is_mask(value: Any, name: str) -> bool:
    return isinstance(value, Tensor) and value.dim() == 4 and (name in _MASKS or bool((value < _BLOCKED).any()))


def _allowed(mask: Tensor) -> Tensor:
    if mask.is_floating_point():
        return mask > _BLOCKED
    return mask.bool() if mask[0, 0, 0, 0] else ~mask.bool()


def _written(allowed: Tensor, like: Tensor) -> Tensor:
    """Booleans as the mask ``like`` is written; a bias in it is kept where both leave a cell open."""
    if like.is_floating_point():
        opened = torch.where(like > _BLOCKED, like, torch.zeros_like(like))
        return opened.masked_fill(~allowed, torch.finfo(like.dtype).min)
    return (allowed if like[0, 0, 0, 0] else ~allowed).to(like.dtype)


@contextmanager
def _hooked(model: nn.Module, paths: Mapping[Kind, Sequence[str]], masks: Mapping[Kind, _Masks]) -> Iterator[None]:
    with ExitStack() as stack:
        for kind, own in paths.items():
            for path in dict.fromkeys(own):
                before = partial(_Masks.before, masks[kind])
                handle = model.get_submodule(path).register_forward_pre_hook(before, with_kwargs=True)
                stack.callback(handle.remove)
        yield


@contextmanager
def planted(
    model: nn.Module, paths: Mapping[Kind, Sequence[str]], kind: Kind, plant: Plant, run: Callable[[], object]
) -> Iterator[None]:
    """Make one fault in the attention of one kind, inside the block; ``run`` runs the model once, to see its masks.

    ``paths`` are those of the layers of that kind, in order, as a trace tells them.
    """
    own, clean = {kind: paths[kind]}, _Masks()
    with _hooked(model, own, {kind: clean}):
        run()
    with _hooked(model, own, {kind: _Masks(plant, clean.clean)}):
        yield
