"""A device that is not the CPU, on a machine that has none: its tensors compute, and refuse to meet those of the CPU.

Torch's own stand-ins hold no values (``meta``, FakeTensorMode), so that a decoding, which reads what it has computed,
cannot run on them. Here every tensor of the device wraps one of the CPU with the values in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

ELSEWHERE = torch.device("meta")
"""The name under which the device goes: torch knows it on every machine and asks no driver for it."""

_CROSSING = (
    "aten::_to_copy",
    "aten::copy_",
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
)
"""Operators that a real device, too, lets take tensors of both: copies, and indices that are on the CPU."""


class _Elsewhere(Tensor):
    """A tensor that says it is on the device; `values` are on the CPU."""

    values: Tensor  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, values: Tensor) -> _Elsewhere:
        layout: dict[str, Any] = {"strides": values.stride(), "storage_offset": values.storage_offset()}
        with torch.inference_mode(False):  # a view of an ordinary tensor is one, in inference mode too
            made = Tensor._make_wrapper_subclass(cls, values.shape, **layout, dtype=values.dtype, device=ELSEWHERE)
        made.values = values
        return made

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:  # type: ignore[override]
        return _run(operator, arguments, named or {})


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, operator: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        return _run(operator, arguments, named or {})


class _BeforeDispatch(TorchFunctionMode):
    """What torch does below its dispatcher, where no wrapper can follow, done in steps that it can."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = dict(named or {})
        if function in (torch.tensor, torch.as_tensor) and str(named.get("device")) == str(ELSEWHERE):
            return function(*arguments, **named | {"device": "cpu"}).to(ELSEWHERE)
        if function is Tensor.tolist and isinstance(arguments[0], _Elsewhere):
            return arguments[0].values.tolist()
        if function is F.linear and arguments[0].dim() == 1:  # reshaped in place
            return function(arguments[0][None], *arguments[1:], **named)[0]
        if function in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(arguments[0], _Elsewhere):
            arguments = (arguments[0], _lists_moved(arguments[1]), *arguments[2:])
        return function(*arguments, **named)


def _lists_moved(index: Any) -> Any:
    """An index, or a tuple of them, with a tensor of the device for every list."""
    if isinstance(index, tuple):
        return tuple(_lists_moved(one) for one in index)
    return torch.tensor(index).to(ELSEWHERE) if isinstance(index, list) else index


def _run(operator: Any, arguments: Any, named: dict[str, Any]) -> Any:
    tensors = [one for one in tree_flatten((arguments, named))[0] if isinstance(one, Tensor)]
    there = [one for one in tensors if isinstance(one, _Elsewhere)]
    here = [one for one in tensors if not isinstance(one, _Elsewhere) and one.dim()]
    name = operator._schema.name
    if lost := [one for one in here if one.device == ELSEWHERE]:
        raise NotImplementedError(
            f"{name} got a tensor that was moved where no mode sees it, and lost its values: {lost}"
        )
    if there and here and name not in _CROSSING:
        raise RuntimeError(f"Expected all tensors to be on the same device, but {name} got both")
    device = named.get("device")
    stays = there and device is None
    if device is not None:
        named = named | {"device": torch.device("cpu")}
    result = operator(*tree_map(_values, arguments), **tree_map(_values, named))
    if writes := [one for one in operator._schema.arguments if one.alias_info and one.alias_info.is_write]:
        return arguments[0] if len(writes) == 1 and writes[0].name == "self" else result
    if stays or (device is not None and torch.device(device) == ELSEWHERE):
        return tree_map(lambda one: _Elsewhere(one) if isinstance(one, Tensor) else one, result)
    return result


def _values(one: Any) -> Any:
    return one.values if isinstance(one, _Elsewhere) else one


@contextmanager
def elsewhere(*modules: nn.Module) -> Iterator[torch.device]:
    """The modules moved to the device, in place, for one block of code, which runs where the device is known."""
    # Autocast asks by name, and does not know this one.
    with _Mode(), _BeforeDispatch(), _swapped_parameters(), patch.object(torch, "is_autocast_enabled", lambda _: False):
        for module in modules:
            _move(module)
        yield ELSEWHERE


def _move(module: nn.Module) -> None:
    moved: dict[int, Tensor] = {}  # tied weights stay tied
    for owner in module.modules():
        for table in (owner._parameters, owner._buffers):
            for name, one in table.items():
                if one is None:
                    continue
                if id(one) not in moved:
                    values = _Elsewhere(one.detach())
                    is_parameter = isinstance(one, nn.Parameter)
                    moved[id(one)] = nn.Parameter(values, one.requires_grad) if is_parameter else values
                table[name] = moved[id(one)]  # type: ignore[assignment]


@contextmanager
def _swapped_parameters() -> Iterator[None]:
    """`module.double()` makes new parameters, instead of putting other data into those that wrap the old."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        yield
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
