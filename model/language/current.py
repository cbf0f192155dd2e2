"""Whose language it is that is spoken: a block of code's own, else that of the visitor for whom this thread runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from .catalogue import SOURCE, catalogue

P = ParamSpec("P")
R = TypeVar("R")

_SPOKEN: ContextVar[str | None] = ContextVar("the language that is spoken", default=None)
_of_visitor: Callable[[], str] = lambda: SOURCE  # noqa: E731


def current_language() -> str:
    """The language of what is said now."""
    return _SPOKEN.get() or _of_visitor()


def speak(language: str) -> None:
    """Say everything in a language from here on, in a thread that runs for one visitor alone."""
    _SPOKEN.set(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Say everything in a language for one block of code. Raises ValueError where there is no catalogue of it."""
    catalogue(language)
    token = _SPOKEN.set(language)
    try:
        yield
    finally:
        _SPOKEN.reset(token)


def in_this_language(work: Callable[P, R]) -> Callable[P, R]:
    """`work` that says everything in the language of now, whenever and in whatever thread it is called."""
    language = current_language()

    def spoken(*arguments: P.args, **named: P.kwargs) -> R:
        with speaking(language):
            return work(*arguments, **named)

    return spoken


def ask(of_visitor: Callable[[], str]) -> None:
    """Take the language from `of_visitor` where none is spoken yet: it knows for whom the calling thread runs.

    An app that serves visitors calls this once; everything else speaks English.
    """
    global _of_visitor
    _of_visitor = of_visitor
