"""One captured attention call of any model: its tensors, its line of code and the mask it was given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...masks.attention_call_origin import PADDING_ARGUMENTS, AttentionCall, MaskReading
from ...masks.softmax import is_blocked
from ...torch_internals import materialize_mask
from .axes import AxisLayout, CallSite
from .kernel_weights import ComputedAttention


@dataclass(frozen=True, eq=False)
class CapturedCall:
    """One attention of one module."""

    path: str
    attention: ComputedAttention
    is_cross: bool | None
    """Whether queries and keys were made of different tensors; None where that cannot be known."""
    fused: bool
    """Whether a fused kernel ran, and the weights were computed beside it."""
    fast_path: bool
    """Whether nn.MultiheadAttention would have taken its fast path had nobody observed it."""
    graph: tuple[Tensor, AxisLayout] | None = None
    """The weights as a part of the graph of gradients, and how they are laid out; of a capture that keeps the graph."""
    kernel_difference: Tensor | None = None
    """Largest absolute difference between the kernel's output and weights times values; 0-dimensional."""
    reordered: bool = False
    """Whether the keys come from samples that had changed places, as in a beam search."""
    in_beam_search: bool = False
    """Whether a method with beams in its name made it, with several hypotheses."""
    windows: int = 1
    """How many samples the module makes of an image that the model was given: windows, attended to apart."""
    origin: AttentionCall | None = None
    """Where in the code it was made, and with which masks."""
    is_other_text: bool | None = False
    """Whether its module ran before in this forward, and this call is of another text: of another length, or of nothing
    that the module gave then; None where that cannot be told."""
    run: int = 0
    """Number of the run of the model that made it."""
    forward: int = 0
    """Number of the outermost forward that made it; of several in one run, each is a layer or a step."""

    @property
    def shape(self) -> tuple[int, int]:
        """(Q, K), without the keys that are no tokens."""
        queries, keys = self.attention.weights.shape[2:]
        return queries, keys - len(self.attention.extra_keys)


# The line that calls attention, outside of torch and of this package, and the masks that arrived there.


_PROJECT_PATHS = (
    str(Path(torch.__file__).parent),
    *(str(Path(__file__).parents[2] / folder) for folder in ("capture", "network")),
)
"""Folders of torch and of this package, passed over in search of the line that calls attention."""
_KNOWN_FUNCTIONS: dict[Any, tuple[str, tuple[str, ...]]] = {
    F.scaled_dot_product_attention: ("F.scaled_dot_product_attention", ("attn_mask", "is_causal")),
    F.multi_head_attention_forward: ("nn.MultiheadAttention", ("attn_mask", "is_causal", "key_padding_mask")),
}
"""What a function is called, and its arguments for masks."""
_ARGUMENT_DEFAULTS = {"is_causal": False}
_HEAD_MASK_ARGUMENTS = frozenset({"head_mask", "layer_head_mask", "cross_attn_layer_head_mask"})
"""Arguments that switch heads off and hide no key."""


def find_call_origin(
    site: CallSite, function: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> AttentionCall:
    """Return the call being made at ``site``.

    ``given`` are the arguments by name, of a function that takes masks. A softmax takes none: then the arguments whose
    names speak of masks are read off the functions between it and its module, the innermost that has any.
    """
    if given is None:
        found = next(filter(None, map(_read_mask_arguments, _iterate_frames_to_module(site))), {})
        name = "softmax"
    else:
        name, takes = _KNOWN_FUNCTIONS[function]
        found = {one: given.get(one, _ARGUMENT_DEFAULTS.get(one)) for one in takes}
    arguments = {one: _argument_text(value) for one, value in found.items()}
    return make_call_origin(site, name, arguments)


def make_call_origin(site: CallSite, name: str, arguments: Mapping[str, str]) -> AttentionCall:
    """Return the call of a function of this name being made at ``site``, with its arguments for masks in words."""
    frame = next(_iterate_nonproject_frames(), None)
    file, line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    inside = "nn.Transformer" if _is_target_self_attention(site) else ""
    return AttentionCall(site.path, type(site.module).__name__, name, file, line, arguments, inside=inside)


def _is_target_self_attention(site: CallSite) -> bool:
    """Whether it is the self-attention of a decoder's layer of nn.Transformer: that takes its mask as tgt_mask."""
    running = [one.module for one in site.calls]
    layer = next((one for one in running if isinstance(one, nn.TransformerDecoderLayer)), None)
    whole = any(isinstance(one, nn.Transformer) for one in running)
    return whole and layer is not None and site.module is layer.self_attn


def find_surrounding_masks(site: CallSite) -> tuple[dict[str, Tensor], str]:
    """Return the masks given to the functions around a call, up to that of its module, and the function's name.

    The function is the innermost one that was given any; both are empty where none was.
    """
    for frame in _iterate_frames_to_module(site):
        found = {
            name: value
            for name, value in _read_mask_arguments(frame).items()
            if isinstance(value, Tensor) and name not in _HEAD_MASK_ARGUMENTS
        }
        if found:
            return found, frame.f_code.co_qualname
    return {}, ""


def _iterate_nonproject_frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PROJECT_PATHS):
            yield frame
        frame = frame.f_back


def _iterate_frames_to_module(site: CallSite) -> Iterator[FrameType]:
    """The functions from the call outwards to that of the module."""
    for frame in _iterate_nonproject_frames():
        yield frame
        code = frame.f_code
        if frame is site.frame or (code.co_argcount and frame.f_locals.get(code.co_varnames[0]) is site.module):
            return


def _read_mask_arguments(frame: FrameType) -> dict[str, Any]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {name: frame.f_locals.get(name) for name in names if "mask" in name or name == "is_causal"}


def _argument_text(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return str(value) if value is None or isinstance(value, bool) else type(value).__name__


# The mask that a call of attention was given, as cells, to be set beside the one that took effect.


AttentionSizes = tuple[int, int, int, int]
"""B, H, Q, K, without the keys that are no tokens."""
_MaskPart = tuple[Tensor, MaskReading]
"""One argument as booleans that broadcast to (B, H, Q, K), True = may attend, and how it is read."""
_TORCH_MASK_ARGUMENTS = ("attn_mask", "key_padding_mask")


@dataclass(frozen=True, eq=False)
class PassedMask:
    """What arrived at one call."""

    allowed: Tensor | None
    """(B, H, Q, K) bool, True = may attend; None where nothing arrived, or what cannot be laid out so."""
    readings: tuple[MaskReading, ...] = ()
    """Which arguments arrived and how they are read; empty where none did."""


class _MaskShapeError(ValueError):
    """A mask that cannot be laid out as queries x keys."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(name, shape)
        self.reading: MaskReading = "misshaped", {"name": name, "shape": str(shape)}


@torch.no_grad()
def read_passed_mask(
    site: CallSite, function: Callable[..., Any], given: Mapping[str, Any] | None, attention: ComputedAttention
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
        parts = _read_torch_masks(function, given or {}, sizes, in_force.device)
        if function is not F.multi_head_attention_forward and (given or {}).get("attn_mask") is None:
            masks, where = find_surrounding_masks(site)
            parts += [
                _guess_mask_part(name, where, mask, in_force[..., : sizes[3]], sizes) for name, mask in masks.items()
            ]
    except _MaskShapeError as error:
        return PassedMask(None, (error.reading,))
    if not parts:
        return PassedMask(None)
    whole = parts[0][0].to(in_force.device)
    for part, _ in parts[1:]:
        whole = whole & part.to(in_force.device)
    whole = whole.expand(*whole.shape[:2], *sizes[2:])
    whole = (F.pad(whole, (0, extra), value=True) if extra else whole).expand(in_force.shape)
    one, other = torch.broadcast_tensors(_drop_broadcast_copies(whole), _drop_broadcast_copies(in_force))
    same = in_force if torch.equal(one, other) else whole  # one tensor for both takes no more memory
    return PassedMask(same, tuple(reading for _, reading in parts))


def _drop_broadcast_copies(mask: Tensor) -> Tensor:
    """The first of every sample and head that is broadcast to all of them."""
    samples, heads = (slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride()[:2])
    return mask[samples, heads]


def _read_torch_masks(
    function: Callable[..., Any], given: Mapping[str, Any], sizes: AttentionSizes, device: torch.device
) -> list[_MaskPart]:
    """The masks given to a function of torch, of which it is known how it reads them."""
    multi_head = function is F.multi_head_attention_forward
    parts: list[_MaskPart] = []
    for name in _TORCH_MASK_ARGUMENTS:
        if (value := given.get(name)) is None:
            continue
        mask = materialize_mask(value, value.device)
        if mask.dtype == torch.bool:
            allowed, how = (~mask, "blocked") if multi_head else (mask, "attend")
        else:
            allowed, how = ~is_blocked(mask), "added"
        parts.append((_view_as_attention_mask(name, allowed, sizes), (how, {"name": name})))
    if given.get("is_causal") and not (multi_head and parts):  # beside a mask it is a hint for nn.MultiheadAttention
        allowed = torch.ones(sizes[2:], dtype=torch.bool, device=device).tril()
        parts.append((allowed[None, None], ("causal", {})))
    return parts


def _guess_mask_part(name: str, where: str, mask: Tensor, in_force: Tensor, sizes: AttentionSizes) -> _MaskPart:
    """A mask of somebody's own function: numbers below zero are added, what else True and 1 mean is a guess."""
    laid = _view_as_attention_mask(name, mask, sizes)
    read = {"name": name, "function": where}
    if bool(((laid != 0) & (laid != 1)).any()):
        return ~is_blocked(laid), ("function-added", read)
    keep = laid.bool()
    seen = _drop_broadcast_copies(in_force)
    wrong, turned = (int((~allowed & seen).sum()) for allowed in (keep, ~keep))
    read["one"] = "True" if mask.dtype == torch.bool else "1"
    if turned < wrong:
        return ~keep, ("guess-blocked", read)
    return keep, ("function-attend" if wrong == turned else "guess-attend", read)


def _view_as_attention_mask(name: str, mask: Tensor, sizes: AttentionSizes) -> Tensor:
    """Return a view that broadcasts to (B, H, Q, K); two axes are (Q, K) unless only (B, K) fits, or by the name."""
    samples, heads, queries, keys = sizes
    shape = tuple(mask.shape)
    view = mask
    if len(shape) == 3:
        folded = shape[0] == samples * heads and shape[0] not in (1, samples)
        view = (
            mask.unflatten(0, (samples, heads))
            if folded
            else mask[None]
            if _has_head_axis(shape, sizes)
            else mask[:, None]
        )
    elif len(shape) == 2:
        padding = name in PADDING_ARGUMENTS or "padding" in name
        by_samples = shape == (samples, keys) and (padding or shape != (queries, keys))
        view = mask[:, None, None] if by_samples else mask[None, None]
    elif len(shape) == 1:
        view = mask[None, None, None]
    if view.dim() != 4 or any(own not in (1, size) for own, size in zip(view.shape, sizes, strict=True)):
        raise _MaskShapeError(name, shape)
    return view


def _has_head_axis(shape: tuple[int, ...], sizes: AttentionSizes) -> bool:
    return shape[0] == sizes[1] and shape[0] not in (1, sizes[0])
