"""Capture the attention over a text that is too long for whole maps: pooled maps, and chosen rows as they are.

A map of 8,192 tokens has 67 million weights, so all heads of a model would take hundreds of gigabytes. While such a
capture is open, an attention with hook points computes some of its rows at a time, and only two things are kept of
them: the largest weight of each square block of tokens, and the rows that were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ..network.hooks import OutputHook, hook_outputs
from .attention import AttentionPoints

MAP_BLOCKS = 64
"""Blocks of tokens a side that a pooled map has at most."""
WEIGHTS_AT_ONCE = 2**22
"""Weights of all heads that are computed at once: 16 MB, and as much again for scores and masks."""


@dataclass(frozen=True, eq=False)
class PooledAttention:
    """The attention of every layer and head over a text of `tokens` tokens."""

    tokens: int
    block: int
    """Tokens a side of the blocks whose largest weights `maps` are; the last block may have fewer."""
    maps: np.ndarray
    """(L, H, N, N) float32, N blocks; of no layer where only rows were asked for."""
    mask: np.ndarray
    """(L, N, N) bool, True = some token of the block may attend to some token of the other."""
    rows: dict[int, np.ndarray]
    """Each row that was asked for, by its position from 0: (L, H, tokens) float32, as the model computed it."""
    allowed: dict[int, np.ndarray]
    """For the same rows (L, tokens) bool, True = may attend."""


@dataclass
class PooledCapture:
    """What is kept while the model runs inside :func:`capture_pooled_attention`."""

    sites: tuple[AttentionPoints, ...]
    tokens: int
    rows: tuple[int, ...]
    pooled: bool
    on_rows: Callable[[], None] = lambda: None
    first_key: int = 0
    """The key of the first column of the weights that come next: an attention leaves out keys that no row may see."""
    done: dict[nn.Module, int] = field(default_factory=dict)
    """Rows that an attention has computed."""
    maps: dict[nn.Module, Tensor] = field(default_factory=dict)
    masks: dict[nn.Module, Tensor] = field(default_factory=dict)
    allowed: dict[nn.Module, Tensor] = field(default_factory=dict)
    """(1 or H, R, K): the mask of the rows that come next."""
    kept: dict[tuple[nn.Module, int], tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def block(self) -> int:
        return max(1, math.ceil(self.tokens / MAP_BLOCKS))

    @property
    def blocks(self) -> int:
        return math.ceil(self.tokens / self.block)

    def count_rows_at_once(self, heads: int, keys: int) -> int:
        """Return how many rows an attention computes at once."""
        return max(1, WEIGHTS_AT_ONCE // (heads * keys))

    def needs_weights(self, start: int, stop: int) -> bool:
        """Return whether anything is kept of the rows from `start` to `stop`: of others no weights are needed."""
        return self.pooled or any(start <= row < stop for row in self.rows)

    def skip_rows(self, points: AttentionPoints, count: int) -> None:
        """Count rows whose weights nobody needs."""
        self.done[points] = self.done.get(points, 0) + count
        self.on_rows()

    def keep_mask(self, points: AttentionPoints, allowed: Tensor) -> None:
        """Hear of the mask (1, 1 or H, R or 1, K) of the rows that come next."""
        self.allowed[points] = allowed[0]

    @torch.inference_mode()
    def keep_weights(self, points: AttentionPoints, weights: Tensor) -> None:
        """Hear of the weights (1, H, R, K) of the rows that come next."""
        start, count = self.done.get(points, 0), weights.shape[2]
        allowed = self.allowed.pop(points).any(0).expand(count, -1)
        for row in self.rows:
            if start <= row < start + count:
                kept, keys = weights[0, :, row - start].float(), allowed[row - start]
                self.kept[points, row] = self._pad_keys(kept, self.tokens), self._pad_keys(keys, self.tokens)
        if self.pooled:
            self._pool(points, start, weights[0], allowed)
        self.skip_rows(points, count)

    def _pad_keys(self, values: Tensor, keys: int) -> Tensor:
        """The same (..., K) over so many keys from the first one on; zeros where no row of these may attend."""
        return nn.functional.pad(values, (self.first_key, keys - self.first_key - values.shape[-1]))

    def _pool(self, points: AttentionPoints, start: int, weights: Tensor, allowed: Tensor) -> None:
        """Let the blocks of these rows have the largest weights; a row may share its blocks with rows before."""
        if points not in self.maps:
            self.maps[points] = weights.new_zeros(len(weights), self.blocks, self.blocks, dtype=torch.float32)
            self.masks[points] = allowed.new_zeros(self.blocks, self.blocks)
        maps, masks = self.maps[points], self.masks[points]
        stop = start + weights.shape[1]
        for block in range(start // self.block, (stop - 1) // self.block + 1):
            rows = slice(max(block * self.block, start) - start, min((block + 1) * self.block, stop) - start)
            largest = self._pool_columns(weights[:, rows].amax(1))
            maps[:, block] = torch.maximum(maps[:, block], largest)
            masks[block] |= self._pool_columns(allowed[rows].any(0).float()[None])[0].bool()

    def _pool_columns(self, values: Tensor) -> Tensor:
        """The largest number of each block of columns, (H, K) -> (H, N) float32; none is below 0."""
        padded = self._pad_keys(values.float(), self.blocks * self.block)
        return padded.unflatten(1, (self.blocks, self.block)).amax(2)

    @property
    def attention(self) -> PooledAttention:
        """What was kept, once the model has run."""
        rows = {row: self._stack_row(row) for row in self.rows}
        maps, masks = np.zeros((0, 0, 0, 0), np.float32), np.zeros((0, 0, 0), bool)
        if self.pooled:
            maps = torch.stack([self.maps[one] for one in self.sites]).cpu().numpy()
            masks = torch.stack([self.masks[one] for one in self.sites]).cpu().numpy()
        return PooledAttention(
            self.tokens,
            self.block,
            maps,
            masks,
            {row: weights for row, (weights, _) in rows.items()},
            {row: allowed for row, (_, allowed) in rows.items()},
        )

    def _stack_row(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The weights (L, H, K) and the mask (L, K) of one row."""
        weights, allowed = zip(*(self.kept[one, row] for one in self.sites), strict=True)
        return torch.stack(weights).cpu().numpy(), torch.stack(allowed).cpu().numpy()


_open_capture: ContextVar[PooledCapture | None] = ContextVar("pooled capture", default=None)


def get_pooled_capture() -> PooledCapture | None:
    """Return the capture that is open in this thread, for which an attention computes some rows at a time."""
    return _open_capture.get()


@contextmanager
def capture_pooled_attention(
    sites: Collection[AttentionPoints],
    tokens: int,
    rows: Collection[int] = (),
    *,
    pooled: bool = True,
    on_rows: Callable[[], None] = lambda: None,
) -> Iterator[PooledCapture]:
    """Keep pooled maps, and `rows` (from 0) as they are, of a text of `tokens` tokens that runs inside the block.

    Args:
        sites: the attention that is looked at, in the order of its layers: each runs once, on one text, and computes
            `tokens` rows over as many keys (:func:`attenscope.hugging_face.attention.attention_forward`).
        tokens: the length of the text.
        rows: positions of the queries whose weights are kept for all layers and heads.
        pooled: whether maps are kept: without them, a fused kernel computes what is not asked for.
        on_rows: called after every few rows, such as to let others go first.
    """
    capture = PooledCapture(tuple(sites), tokens, tuple(dict.fromkeys(rows)), pooled, on_rows)
    functions: dict[nn.Module, OutputHook] = {}
    for one in capture.sites:
        functions[one.mask] = _make_hook(capture.keep_mask, one)
        functions[one.weights] = _make_hook(capture.keep_weights, one)
    token = _open_capture.set(capture)
    try:
        with hook_outputs(functions):
            yield capture
    finally:
        _open_capture.reset(token)


def _make_hook(keep: Callable[[AttentionPoints, Tensor], None], points: AttentionPoints) -> OutputHook:
    return lambda output: keep(points, output)
