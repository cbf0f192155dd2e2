"""The line that calls attention, outside of torch and of this package, and the masks that arrived there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ....masking.attention_call import AttentionCall
from .call_site import CallSite

_OURS = (str(Path(torch.__file__).parent), *(str(Path(__file__).parents[3] / room) for room in ("capture", "network")))
_NAMES: dict[Any, tuple[str, tuple[str, ...]]] = {
    F.scaled_dot_product_attention: ("F.scaled_dot_product_attention", ("attn_mask", "is_causal")),
    F.multi_head_attention_forward: ("nn.MultiheadAttention", ("attn_mask", "is_causal", "key_padding_mask")),
}
"""What a function is called, and its arguments for masks."""
_DEFAULTS = {"is_causal": False}
_OF_HEADS = frozenset({"head_mask", "layer_head_mask", "cross_attn_layer_head_mask"})
"""Arguments that switch heads off and hide no key."""


def origin_of(site: CallSite, function: Callable[..., Any], given: Mapping[str, Any] | None = None) -> AttentionCall:
    """Return the call being made at ``site``.

    ``given`` are the arguments by name, of a function that takes masks. A softmax takes none: then the arguments whose
    names speak of masks are read off the functions between it and its module, the innermost that has any.
    """
    if given is None:
        found = next(filter(None, map(_mask_arguments, _within(site))), {})
        name = "softmax"
    else:
        name, takes = _NAMES[function]
        found = {one: given.get(one, _DEFAULTS.get(one)) for one in takes}
    arguments = {one: _in_words(value) for one, value in found.items()}
    return origin_with(site, name, arguments)


def origin_with(site: CallSite, name: str, arguments: Mapping[str, str]) -> AttentionCall:
    """Return the call of a function of this name being made at ``site``, with its arguments for masks in words."""
    frame = next(_outside(), None)
    file, line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    return AttentionCall(site.path, type(site.module).__name__, name, file, line, arguments)


def masks_around(site: CallSite) -> tuple[dict[str, Tensor], str]:
    """Return the masks given to the functions around a call, up to that of its module, and the function's name.

    The innermost function that was given any; nothing where none was.
    """
    for frame in _within(site):
        found = {
            name: value
            for name, value in _mask_arguments(frame).items()
            if isinstance(value, Tensor) and name not in _OF_HEADS
        }
        if found:
            return found, frame.f_code.co_qualname
    return {}, ""


def _outside() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OURS):
            yield frame
        frame = frame.f_back


def _within(site: CallSite) -> Iterator[FrameType]:
    """The functions from the call outwards to that of the module."""
    for frame in _outside():
        yield frame
        if frame is site.frame or (frame.f_code.co_argcount and _first(frame) is site.module):
            return


def _first(frame: FrameType) -> Any:
    return frame.f_locals.get(frame.f_code.co_varnames[0])


def _mask_arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: frame.f_locals.get(name) for name in names if "mask" in name or name == "is_causal"}


def _in_words(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return str(value) if value is None or isinstance(value, bool) else type(value).__name__
