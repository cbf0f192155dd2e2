"""Tensors of torch as arrays of numpy. Torch is not imported: a tensor is known by its methods."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...language.say import say
from .arrays import MAX_CELLS, DiagnosisError


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch."""
    return hasattr(value, "detach") and hasattr(value, "numel")


def from_tensor(name: str, tensor: Any) -> np.ndarray:
    """Return a dense tensor, on whatever device, as an array; bfloat16, which numpy lacks, is widened.

    A view may promise more cells than are held, so they are counted before anything is copied.

    Raises:
        DiagnosisError: for a tensor that is sparse, quantized, complex or too large.
    """
    if str(tensor.layout) != "torch.strided" or tensor.is_quantized or tensor.is_complex():
        raise DiagnosisError(
            say("{name} is not a plain array of numbers; give a dense tensor of real numbers.", name=name)
        )
    _check_cells(name, tensor.numel())
    plain = tensor.detach().cpu()
    return (plain.float() if str(plain.dtype).startswith(("torch.bfloat16", "torch.float8")) else plain).numpy()


def is_block_mask(value: Any) -> bool:
    """Whether this is a BlockMask of flex_attention."""
    return hasattr(value, "mask_mod") and hasattr(value, "kv_num_blocks")


def from_block_mask(name: str, block_mask: Any) -> np.ndarray:
    """Return a BlockMask opened to its cells, (B, H, Q, K) bool, True = may attend, by its mask_mod.

    Raises:
        DiagnosisError: for one whose function is lost, as that of a slice is, or that is too large.
    """
    _check_cells(name, math.prod(block_mask.shape))
    flex_attention = sys.modules[type(block_mask).__module__]
    try:
        device = block_mask.kv_num_blocks.device
        cells = flex_attention.create_mask(block_mask.mask_mod, *block_mask.shape, device=device)
    except (RuntimeError, TypeError, IndexError) as error:
        raise DiagnosisError(
            say("{name} is a BlockMask whose mask_mod cannot be evaluated: {error}.", name=name, error=error)
        ) from error
    return from_tensor(name, cells)


def from_layers(name: str, layers: Sequence[Any]) -> np.ndarray:
    """Return (B, L, H, Q, K) from one tensor (B, H, Q, K) a layer, as Hugging Face returns attentions.

    Raises:
        DiagnosisError: for anything else in the list, and for tensors of different shapes.
    """
    if others := [layer for layer in layers if not is_tensor(layer)]:
        kind = type(others[0]).__name__
        raise DiagnosisError(
            say(
                "{name} is a list that holds {kind}; a list is read as one tensor for each layer.", name=name, kind=kind
            )
        )
    shapes = list(dict.fromkeys(tuple(layer.shape) for layer in layers))
    if len(shapes) > 1:
        raise DiagnosisError(
            say(
                "{name} has layers of different shapes, {one} and {other}; give them apart.",
                name=name,
                one=shapes[0],
                other=shapes[1],
            )
        )
    if len(shapes[0]) != 4:
        raise DiagnosisError(
            say(
                "{name} is a list of tensors of the shape {shape}; a list is read as one tensor for each layer, with "
                "the axes (batch, heads, queries, keys). Stack other lists into one tensor.",
                name=name,
                shape=shapes[0],
            )
        )
    _check_cells(name, sum(layer.numel() for layer in layers))
    return np.stack([from_tensor(name, layer) for layer in layers], axis=1)


def from_steps(name: str, steps: Sequence[Sequence[Any]]) -> np.ndarray:
    """Return (B, L, H, Q, K) from the tuple of ``generate()``: for each step one tensor (B, H, q, k) a layer.

    The first step holds the prompt, each later one a new query; keys that a query came before are zero.

    Raises:
        DiagnosisError: for steps that do not follow each other.
    """
    made = [from_layers(name, step) for step in steps]
    keys = max(step.shape[-1] for step in made)
    rows = sum(step.shape[-2] for step in made)
    if len({step.shape[:3] for step in made}) > 1 or rows * keys * made[0][..., 0, 0].size > MAX_CELLS:
        raise DiagnosisError(
            say("{name} has steps of different shapes, or too many of them; give one step.", name=name)
        )
    whole = [np.pad(step, [(0, 0)] * 4 + [(0, keys - step.shape[-1])]) for step in made]
    return np.concatenate(whole, axis=-2)


def _check_cells(name: str, cells: int) -> None:
    if cells > MAX_CELLS:
        raise DiagnosisError(
            say(
                "{name} has {cells:,} cells; at most {most:,} are read. Give fewer layers or samples.",
                name=name,
                cells=cells,
                most=MAX_CELLS,
            )
        )
