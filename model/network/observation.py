"""Who is looking, per call and thread.

A model is shared by everyone in the process, so "somebody looks" may not be read from the hooks found on it. It is a
context variable instead: set while a capture or an intervention is open in *this* thread of execution, and invisible
to all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_observers: ContextVar[tuple[object, ...]] = ContextVar("observers", default=())


@contextmanager
def observing(observer: object) -> Iterator[None]:
    """Declare that `observer` looks at whatever this thread runs inside the block."""
    _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        # Not reset(token): a suspended generator may end after a later observer began, or in another context.
        _observers.set(tuple(one for one in _observers.get() if one is not observer))


def is_observed() -> bool:
    """Whether anybody looks at what the current thread runs."""
    return bool(_observers.get())


def observes(observer: object) -> bool:
    """Whether this very observer looks at what the current thread runs; a hook asks this before it acts."""
    return any(one is observer for one in _observers.get())
