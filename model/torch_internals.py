"""The private parts of torch that this project reads, all of them here, checked against torch 2.13.

Each is read because torch offers no public way; each function says for what. Where a version of torch lacks a part,
TorchInternalsError names it, so that nothing is recorded wrongly in silence.
"""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn

MODULE_CALL_METHODS = ("_wrapped_call_impl", "_call_impl")
"""The methods of nn.Module that stand on the stack around every forward."""
FAST_PATH_VARIABLES: dict[type[nn.Module], str] = {
    nn.MultiheadAttention: "why_not_fast_path",
    nn.TransformerEncoderLayer: "why_not_sparsity_fast_path",
    nn.TransformerEncoder: "why_not_sparsity_fast_path",
}
"""The local variable in which the forward of these modules notes why its fused fast path is not taken."""
OVERRIDE_REASON = "some Tensor argument has_torch_function"
"""The reason noted there when it is only a TorchFunctionMode that keeps them from it."""

COMPILER_MODULE = "torch._dynamo"
"""The module that torch loads before it compiles anything; loading it takes seconds."""
_COMPILING_MODULES = (COMPILER_MODULE, "torch.nn.attention.flex_attention")
"""Modules without which nothing runs compiled; flex_attention compiles its own kernel at its first call."""
_stance_lock = threading.Lock()
_eager_blocks = 0
_stance: Any = None
"""What ends torch's stance of running nothing compiled."""


class TorchInternalsError(RuntimeError):
    """A private part of torch that this version does not have; the message names it."""

    def __init__(self, part: str, purpose: str) -> None:
        super().__init__(
            f"torch {torch.__version__} has no {part}, which is needed to {purpose}. Install another version of torch: "
            "2.13 is known to work."
        )


def get_forward_hooks(module: nn.Module) -> Mapping[int, Callable[..., Any]]:
    """Return the forward hooks registered on a module, for a module that calls them itself."""
    try:
        return module._forward_hooks
    except AttributeError as error:
        raise TorchInternalsError("nn.Module._forward_hooks", "run the hooks of a hook point") from error


def has_hooks(module: nn.Module) -> bool:
    """Whether a call of the module runs a hook of anybody, of any thread."""
    return bool(module._forward_hooks or module._forward_pre_hooks or _has_global_hooks())


def _has_global_hooks() -> bool:
    everywhere = nn.modules.module
    return bool(everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks)


def is_compiled(model: nn.Module) -> bool:
    """Whether the module is what torch.compile returned, which runs past the hooks of the module inside it."""
    return hasattr(model, "_orig_mod")


def unwrap_compiled(model: nn.Module) -> nn.Module:
    """Return the module that torch.compile was given; any other as it is."""
    inner = getattr(model, "_orig_mod", model)
    return inner if isinstance(inner, nn.Module) else model


@contextmanager
def run_eagerly() -> Iterator[None]:
    """Run what is compiled as the Python that it was compiled from, inside the block.

    torch has one stance for all threads, so compiled models run eagerly in the others too until the last block ends;
    what they have compiled stays, and is used again then.
    """
    global _eager_blocks, _stance
    if not any(name in sys.modules for name in _COMPILING_MODULES):
        yield
        return
    with _stance_lock:
        _eager_blocks += 1
        if _eager_blocks == 1:
            _stance = torch.compiler.set_stance("force_eager")
    try:
        yield
    finally:
        with _stance_lock:
            _eager_blocks -= 1
            if _eager_blocks == 0:
                _stance.__exit__(None, None, None)


def copy_without_override_check(function: Any) -> Callable[..., Any]:
    """Return a copy of a function of torch.nn.functional that never hands its call to a TorchFunctionMode.

    The mode then sees the calls that the function makes, instead of the function's own call again without end.
    """
    if "has_torch_function" not in function.__globals__:
        name = f"has_torch_function in {function.__module__}.{function.__name__}"
        raise TorchInternalsError(name, "record nn.MultiheadAttention from the inside")
    names = {**function.__globals__, "has_torch_function": lambda _: False}
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def check_frame_reading_supported(model: nn.Module) -> None:
    """Raise TorchInternalsError unless :func:`is_module_call` and :func:`is_fast_path_overridden` can read this torch.

    The notes on the fast path are needed only of the modules that have one.
    """
    for name in MODULE_CALL_METHODS:
        if not hasattr(nn.Module, name):
            raise TorchInternalsError(f"nn.Module.{name}", "say which module makes a call")
    for kind, name in FAST_PATH_VARIABLES.items():
        code = kind.forward.__code__
        noted = name in code.co_varnames and OVERRIDE_REASON in code.co_consts
        if not noted and any(isinstance(module, kind) for module in model.modules()):
            part = f"{name!r} with the reason {OVERRIDE_REASON!r} in nn.{kind.__name__}.forward"
            raise TorchInternalsError(part, "say whether observing kept it from its fast path")


def is_module_call(frame: FrameType) -> bool:
    """Whether a frame of the stack is torch's own around a module's forward."""
    return frame.f_code.co_name in MODULE_CALL_METHODS


def is_fast_path_overridden(frame: FrameType) -> bool:
    """Whether the forward in this frame would have taken torch's fused fast path but for a TorchFunctionMode."""
    return any(frame.f_locals.get(name) == OVERRIDE_REASON for name in set(FAST_PATH_VARIABLES.values()))


def is_flex_attention(function: Callable[..., Any]) -> bool:
    """Whether a function that a TorchFunctionMode sees is what flex_attention calls in the end."""
    return type(function).__name__ == "FlexAttentionHOP"


def list_operator_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of an operator of ``torch.ops``; nothing for any other function."""
    if isinstance(function, torch._ops.OpOverloadPacket):
        names = function.overloads()
        function = getattr(function, names[0]) if len(names) == 1 else function
    schema = getattr(function, "_schema", None) if isinstance(function, torch._ops.OpOverload) else None
    return () if schema is None else tuple(argument.name for argument in schema.arguments)


@dataclass(frozen=True, eq=False)
class FlexCall:
    """What flex_attention hands to its kernel."""

    query: Tensor
    """(B, H, Q, d); key and value are (B, Hkv, K, d)."""
    key: Tensor
    value: Tensor
    score_mod: Callable[..., Tensor]
    scale: float
    blocks: tuple[Tensor | None, Tensor | None]
    """How many blocks of keys each block of queries has (B, H, blocks), and which (B, H, blocks, blocks)."""
    full_blocks: tuple[Tensor | None, Tensor | None]
    """The same of blocks of which no cell is blocked; None where they were not told apart."""
    block_size: tuple[int, int]
    """Queries and keys of a block."""
    mask_mod: Callable[..., Tensor]
    score_others: tuple[Any, ...]
    mask_others: tuple[Any, ...]
    """What the compiler took out of the two functions, to be handed to them after the cell."""


def parse_flex_attention_call(args: tuple[Any, ...]) -> FlexCall:
    """Return the arguments of what :func:`is_flex_attention` recognises."""
    query, key, value, score_mod, block_mask, scale, _, *others = args
    try:
        _, _, count, indices, full_count, full_indices, *_, rows, columns, mask_mod = block_mask
    except (TypeError, ValueError) as error:
        raise TorchInternalsError("BlockMask.as_tuple as it is known", "record flex_attention") from error
    of_score, of_mask = others or ((), ())
    blocks, full = (count, indices), (full_count, full_indices)
    return FlexCall(query, key, value, score_mod, scale, blocks, full, (rows, columns), mask_mod, of_score, of_mask)


def evaluate_flex_mod(
    function: Callable[..., Tensor],
    sizes: Sequence[int],
    device: torch.device,
    scores: Tensor | None = None,
    others: tuple[Any, ...] = (),
) -> Tensor:
    """Return a score_mod of ``scores``, or a mask_mod without them, at every cell: (B, H, Q, K)."""
    try:
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    except ImportError as error:
        raise TorchInternalsError("TransformGetItemToIndex", "evaluate a score_mod at all cells at once") from error
    first, rest = ((0,) if scores is not None else ()), (None,) * len(others)
    for axis in reversed(range(4)):
        cell = tuple(0 if at == axis else None for at in range(4))
        function = torch.vmap(function, in_dims=(*first, *cell, *rest))
    indices = [torch.arange(size, device=device) for size in sizes]
    with TransformGetItemToIndex():
        return function(*(() if scores is None else (scores,)), *indices, *others)


def materialize_mask(mask: Tensor, device: torch.device) -> Tensor:
    """Return a mask of torch.nn.attention.bias, which only describes itself, as a tensor; any other as it is."""
    return mask._materialize(device) if hasattr(mask, "_materialize") else mask


def is_function_mode_active() -> bool:
    """Whether a TorchFunctionMode of this thread sees what functions of torch are given."""
    return torch._C._len_torch_function_stack() > 0


def reorder_weight(weight: Tensor) -> Tensor | None:
    """Return a matrix (D', D) as :func:`multiply_reordered_weight` reads it; None where this torch cannot."""
    needed = "_linear_pointwise", "_reorder_linear_weight"
    known = torch.backends.mkldnn.is_available() and all(hasattr(torch.ops.mkldnn, name) for name in needed)
    if not known or platform.machine().lower() not in ("x86_64", "amd64"):
        return None
    with torch.no_grad():
        return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())


def multiply_reordered_weight(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """rows (N, D), weight of :func:`reorder_weight` -> (N, D')"""
    return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
