"""Heads of anybody's attention made to do something else: which of them, and what their weights become.

Shared by what changes a model (:mod:`model.interventions.any_model`) and what watches it: a capture inside such a block
records the weights that the changed heads have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor


@dataclass(frozen=True)
class HeadEdit:
    """One head of one attention, counted from 0; see :class:`model.interventions.changes.HeadChange`."""

    head: int
    change: Literal["off", "uniform", "copy"]
    source: int | None = None

    def weights(self, weights: Tensor, allowed: Tensor) -> Tensor:
        """Return what the head's weights become, (B, Q, K), given those of all heads and their mask (B, H, Q, K)."""
        own = weights[:, self.head]
        if self.change == "off":
            return own.new_zeros(own.shape)
        if self.change == "uniform":
            open_ = allowed[:, self.head].to(own.dtype)
            return open_ / open_.sum(-1, keepdim=True).clamp(min=1)
        return weights[:, self.source]


@dataclass(eq=False)
class HeadEdits:
    """The edits of one block: by the path of a module, and by which of its calls in a run, where layers share it."""

    by_path: Mapping[str, Sequence[Sequence[HeadEdit]]]
    heads: Mapping[str, int]
    """The number of heads of each module, as it was captured."""
    made: set[str] = field(default_factory=set)
    """The paths of modules whose heads were changed at least once."""
    now: Sequence[HeadEdit] = ()
    """The edits of the call that was made last."""
    _calls: Counter[str] = field(default_factory=Counter)

    def of_call(self, path: str | None) -> Sequence[HeadEdit]:
        """Return the edits of the attention that the module at a path is about to compute; none outside of all."""
        calls = self.by_path.get(path or "", ())
        self.now = calls[self._calls[path] % len(calls)] if path and calls else ()
        if path and calls:
            self._calls[path] += 1
        return self.now


_open: ContextVar[tuple[HeadEdits, ...]] = ContextVar("head edits", default=())
_paused: ContextVar[bool] = ContextVar("head edits paused", default=False)


@contextmanager
def paused() -> Iterator[None]:
    """Make no edits inside the block: a capture computes weights there, which are no attention of the model."""
    token = _paused.set(True)
    try:
        yield
    finally:
        _paused.reset(token)


def is_paused() -> bool:
    """Whether what is computed now is a capture's own work."""
    return _paused.get()


@contextmanager
def editing(edits: HeadEdits) -> Iterator[None]:
    """Let captures of this thread know of edits that are made inside the block."""
    _open.set((*_open.get(), edits))
    try:
        yield
    finally:
        _open.set(tuple(one for one in _open.get() if one is not edits))


def edited(weights: Tensor, allowed: Tensor) -> Tensor:
    """Return weights (B, H, Q, K) as the call that was made last has used them: as they are, or with heads changed."""
    edits = [edit for one in _open.get() for edit in one.now]
    if not edits:
        return weights
    changed = weights.clone()
    for edit in edits:
        changed[:, edit.head] = edit.weights(weights, allowed)
    return changed
