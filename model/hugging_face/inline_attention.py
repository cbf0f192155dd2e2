"""Hook points inside attention that a module of transformers computes itself, rather than by the interface.

GPT-J, Falcon, Bloom and others multiply, mask and normalise in their own forward method. What they call is watched
there, in the thread that runs it: the product of queries and keys, the mask that is put on it, the softmax, and the
product with the values. Nothing in transformers is replaced, and what nobody changes stays the number that it was.
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..capture.any_model.watcher import SOFTMAX_FUNCTIONS
from ..capture.attention import AttentionPoints
from ..masks.softmax import is_blocked
from ..network.hooks import HookPoint, is_observed

PRODUCTS = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)
PRODUCTS_WITH_BIAS = (torch.baddbmm, Tensor.baddbmm)
ADDITIONS = (torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, Tensor.__iadd__, Tensor.add_)
FILLS = (torch.masked_fill, Tensor.masked_fill, Tensor.masked_fill_)
CHOICES = (torch.where, Tensor.where)


def add_inline_hook_points(module: nn.Module, name: str, heads: int) -> None:
    """Give hook points, as a child of this name, to an attention module that computes its weights by itself."""
    points = AttentionPoints("decoder", 0, heads)
    points.computes_all_rows_at_once = True
    module.add_module(name, points)

    # A copy of the module has these hooks too, so they look its hook points up.
    def enter(own: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        points = own.get_submodule(name)
        assert isinstance(points, AttentionPoints)
        watched = _InlineAttention(points, _list_mask_arguments(own, given, named))
        watched.__enter__()
        _running.calls.append(watched)

    def leave(*_: Any) -> None:
        _running.calls.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(enter, with_kwargs=True)
    module.register_forward_hook(leave, always_call=True)


class _RunningCalls(threading.local):
    """The calls of such modules that this thread is in."""

    def __init__(self) -> None:
        self.calls: list[_InlineAttention] = []


_running = _RunningCalls()


def _list_mask_arguments(module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any]) -> list[Tensor]:
    """The tensors that a call is given as a mask, by the names of its arguments."""
    names = _read_argument_names(type(module).forward)
    pairs = [*zip(names, given, strict=False), *named.items()]
    return [one for name, one in pairs if "mask" in name and isinstance(one, Tensor)]


@functools.cache
def _read_argument_names(forward: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(forward).parameters)[1:]


class _InlineAttention(TorchFunctionMode):
    """What one call of an attention module computes, let through the hook points."""

    def __init__(self, points: AttentionPoints, masks: list[Tensor]) -> None:
        super().__init__()
        self.points = points
        self.masks = {one.untyped_storage().data_ptr() for one in masks}
        self.scores: Tensor | None = None
        """Queries times keys with what is added to them before the mask, as it was last seen."""
        self.allowed: Tensor | None = None
        """What the module itself lets through, of a mask that is none of its arguments."""
        self.is_masked = False
        self.weights: Tensor | None = None

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func in PRODUCTS or func in PRODUCTS_WITH_BIAS:
            return self._intercept_matrix_product(func, args, named)
        if self.scores is not None and self.weights is None:
            if func in SOFTMAX_FUNCTIONS and self._is_score_tensor(args[0]):
                return self._intercept_softmax(func, args, named)
            if not self.is_masked and (masked := self._mask(func, args, named)) is not None:
                return masked
        return func(*args, **named)

    def _intercept_matrix_product(self, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        output = func(*args, **named)
        first, second = _read_matrix_product_operands(func, args, named)
        if second.dim() < 3:  # weights of the module
            return output
        if self.weights is not None and first.dim() >= 3 and first.numel() == self.weights.numel():
            self.weights = None
            self.points.v(self._split_heads(second))
            return self.points.context(self._split_heads(output)).reshape(output.shape)
        if self.scores is None and output.dim() >= 3 and output.shape[-2] == first.shape[-2]:
            self.points.q(self._split_heads(first))
            self.points.k(self._split_heads(second).mT)
            self.scores = output
        return output

    def _mask(self, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Tensor | None:
        """The scores after a mask, where this call puts one on them; None where it does something else."""
        if func in CHOICES and len(args) == 3 and self._is_score_tensor(args[1]):
            condition = args[0]
            if isinstance(condition, Tensor) and condition.dtype == torch.bool:
                self.allowed, self.scores = condition, args[1]
                return args[1]
        if func in FILLS and self._is_score_tensor(args[0]) and self._is_mask(args[1]):
            return self._apply_mask(args[0], torch.zeros((), dtype=args[0].dtype, device=args[0].device), ~args[1])
        if func in ADDITIONS and len(args) == 2:
            for scores, mask in ((args[0], args[1]), (args[1], args[0])):
                if self._is_score_tensor(scores) and self._is_mask(mask):
                    blocked = is_blocked(mask)
                    return self._apply_mask(scores, mask.masked_fill(blocked, 0.0), ~blocked)
        return None

    def _apply_mask(self, scores: Tensor, added: Tensor, allowed: Tensor) -> Tensor:
        self.is_masked = True
        if self.allowed is not None:
            allowed = allowed & self.allowed
        shown = self._split_heads(scores)
        allowed = self.points.mask(allowed if allowed.dim() == 4 else allowed.broadcast_to(shown.shape))
        masked = (self.points.scores(shown) + added).masked_fill(~allowed, -math.inf)
        return self.points.masked_scores(masked).reshape(scores.shape)

    def _intercept_softmax(self, func: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        scores = args[0]
        if not self.is_masked:
            shown = self._split_heads(scores)
            one = torch.ones(1, 1, *shown.shape[-2:], dtype=torch.bool, device=scores.device)
            scores = self._apply_mask(scores, torch.zeros((), dtype=scores.dtype, device=scores.device), one)
        empty = (scores == -math.inf).all(-1, keepdim=True) if is_observed() else None
        lowest = torch.finfo(scores.dtype).min
        weights = func(scores.clamp_min(lowest), *args[1:], **named)
        shown = self._split_heads(weights if empty is None else weights.masked_fill(empty, 0.0))
        self.weights = self.points.weights(shown).reshape(weights.shape)
        return self.weights

    def _is_score_tensor(self, one: Any) -> bool:
        return isinstance(one, Tensor) and self.scores is not None and one.numel() == self.scores.numel()

    def _is_mask(self, one: Any) -> bool:
        return isinstance(one, Tensor) and one.untyped_storage().data_ptr() in self.masks

    def _split_heads(self, one: Tensor) -> Tensor:
        """(B H, N, M) -> (B, H, N, M), or as it is; of one that all heads share, H copies."""
        if one.dim() == 4:
            return one if one.shape[1] == self.points.heads else one.expand(-1, self.points.heads, -1, -1)
        return one.reshape(-1, self.points.heads, *one.shape[-2:])


def _read_matrix_product_operands(
    func: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    if func in PRODUCTS_WITH_BIAS:
        first, second = (args[at] if len(args) > at else named[f"batch{at}"] for at in (1, 2))
        return first, second
    return args[0], args[1] if len(args) > 1 else next(iter(named.values()))


# Which modules compute their attention by themselves: seen in one run.


@contextmanager
def record_inline_attention_modules(model: nn.Module) -> Iterator[dict[nn.Module, int]]:
    """Note the modules that multiply, normalise and multiply again, each with its heads, as they ran.

    One text has to run. A module that normalises more than once in a call, as where attention goes by blocks, is not
    among them when the block ends.
    """
    found: dict[nn.Module, int] = {}
    running: list[nn.Module] = []
    seen: Counter[nn.Module] = Counter()
    finder = _InlineFinder(running, seen, found)

    def enter(module: nn.Module, *_: Any) -> None:
        running.append(module)
        finder.products.pop(module, None)

    def leave(*_: Any) -> None:
        running.pop()

    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, HookPoint):  # which torch does not call
                continue
            stack.callback(module.register_forward_pre_hook(enter).remove)
            stack.callback(module.register_forward_hook(leave).remove)
        with finder:
            yield found
    for module, count in seen.items():
        if count != 1:
            found.pop(module, None)


class _InlineFinder(TorchFunctionMode):
    def __init__(self, running: list[nn.Module], seen: Counter[nn.Module], found: dict[nn.Module, int]) -> None:
        super().__init__()
        self.running, self.seen, self.found = running, seen, found
        self.products: dict[nn.Module, Tensor] = {}
        self.weights: dict[nn.Module, Tensor] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        output = func(*args, **dict(kwargs or {}))
        if not self.running:
            return output
        module = self.running[-1]
        if func in PRODUCTS or func in PRODUCTS_WITH_BIAS:
            _, second = _read_matrix_product_operands(func, args, dict(kwargs or {}))
            if second.dim() >= 3 and module not in self.products:
                self.products[module] = output
        elif func in SOFTMAX_FUNCTIONS and isinstance(output, Tensor) and output.dim() >= 3:
            product = self.products.get(module)
            if product is not None and product.numel() == output.numel():
                self.found[module] = output.shape[1] if output.dim() == 4 else output.shape[0]
            self.seen[module] += 1
        return output
