"""Where large weights are kept: behind each other, so that a map of all layers is a view of them and no copy."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

LARGE = 2**20
"""Bytes from which weights are laid down behind each other; smaller ones are stacked in no time."""
MOST = 2**30
"""Bytes of one block of memory. What is never written in it takes none."""
MOST_SPARE = 2**28
"""Bytes of the largest block that is kept for the next capture once nobody reads it any more."""

_spare: deque[np.ndarray] = deque(maxlen=1)
"""Memory of a trace that is gone. Fresh memory costs more than what is written into it: its pages come one by one."""


def release_spare() -> None:
    """Give the memory that no trace uses any more back to the system."""
    _spare.clear()


class _Lent:
    """Memory as an array's base: it is spare again when the last array that looks into it is gone."""

    def __init__(self, memory: np.ndarray) -> None:
        self.__array_interface__ = memory.__array_interface__
        if memory.nbytes <= MOST_SPARE:
            weakref.finalize(self, _spare.append, memory).atexit = False
        else:
            self.memory = memory


def _block(shape: tuple[int, ...]) -> np.ndarray:
    """An array of float32 whose values are whatever stood in its memory."""
    try:
        spare = _spare.pop()  # at once, so that no other thread has it too
    except IndexError:
        spare = np.empty(0, np.float32)
    fits = spare.shape == shape
    return np.asarray(_Lent(spare if fits else np.empty(shape, np.float32)))


class LayerStore:
    """The weights of one capture, copied once, so that the model's own can go as soon as it has used them."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, ...], tuple[np.ndarray, Tensor, int]] = {}
        """Shape -> a block of memory with a row for each layer, the same as a tensor, and the rows that are taken."""

    def kept(self, weights: Tensor, layers: int) -> Tensor:
        """Return a copy of weights of which `layers` of this shape are expected; large ones lie behind each other."""
        size = weights.numel() * weights.element_size()
        if weights.device.type != "cpu" or weights.dtype is not torch.float32 or size < LARGE:
            return weights.clone()
        shape = tuple(weights.shape)
        block, rows, taken = self._open.get(shape, (None, None, 0))
        if block is None or rows is None or taken == len(block):
            block = _block((max(1, min(layers, MOST // size)), *shape))
            rows, taken = torch.from_numpy(block), 0
        block[taken] = weights.detach().numpy()  # on one thread: many would wait for each other on a busy machine
        self._open[shape] = block, rows, taken + 1
        return rows[taken]


def as_view(layers: Sequence[Tensor]) -> np.ndarray | None:
    """Return layers (H, Q, K) as (L, H, Q, K) without a copy where they lie evenly spaced in one block, else None."""
    first = layers[0]
    if first.device.type != "cpu" or first.dtype is not torch.float32:
        return None
    block = first.untyped_storage().data_ptr()
    if any(one.untyped_storage().data_ptr() != block or one.stride() != first.stride() for one in layers):
        return None
    places = [one.storage_offset() for one in layers]
    step = places[1] - places[0] if len(places) > 1 else first.numel()
    if step <= 0 or places != list(range(places[0], places[0] + step * len(places), step)):
        return None
    return first.as_strided((len(layers), *first.shape), (step, *first.stride())).numpy()
