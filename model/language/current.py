"""Whose language it is that is spoken: a block of code's own, else that of the visitor for whom this thread runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

from .catalogue import SOURCE, catalogue

P = ParamSpec("P")
R = TypeVar("R")

_OF_BLOCK: ContextVar[str | None] = ContextVar("language of a block", default=None)
_of_visitor: Callable[[], str] = lambda: SOURCE  # noqa: E731


def current_language() -> str:
    """The language of what is said now."""
    return _OF_BLOCK.get() or _of_visitor()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Say everything in a language for one block of code. Raises ValueError where there is no catalogue of it."""
    catalogue(language)
    token = _OF_BLOCK.set(language)
    try:
        yield
    finally:
        _OF_BLOCK.reset(token)


def in_this_language(work: Callable[P, R]) -> Callable[P, R]:
    """`work` that says everything in the language of now, whenever and in whatever thread it is called."""
    language = current_language()

    def spoken(*arguments: P.args, **named: P.kwargs) -> R:
        with speaking(language):
            return work(*arguments, **named)

    return spoken


def ask(of_visitor: Callable[[], str]) -> None:
    """Take the language from `of_visitor` where no block says one: it knows for whom the calling thread runs.

    An app that serves visitors calls this once; everything else speaks English.
    """
    global _of_visitor
    _of_visitor = of_visitor
