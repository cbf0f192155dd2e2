"""Results of a model, as pages compute them: once for all visitors, in turns, and on the CPU where the GPU is full."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar

import streamlit as st

from model.devices import OutOfMemory, leave_gpu
from model.language.current import current_language
from model.language.say import say

from .turns import TURNS, BusyError

P = ParamSpec("P")
R = TypeVar("R")


class Computed(Generic[P, R]):
    """A function whose results are cached, and computed in turns."""

    def __init__(self, cached: Callable[[str], Any], is_long: bool) -> None:
        self._cached, self._is_long = cached, is_long

    def clear(self) -> None:
        """Forget all results."""
        self._cached(current_language()).clear()

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        before = TURNS.before(TURNS.ticket(self._is_long))
        try:
            # Another thread may be computing what is asked for: nobody waits for it in their own turn.
            with TURNS.released(), st.spinner(say("{count} before you …", count=before)) if before else nullcontext():
                found: R = self._cached(current_language())(*arguments, **named)
                return found
        except BusyError as error:
            st.warning(str(error))
            st.stop()


def computed(
    entries: int, spinner: bool | str = False, *, is_long: bool = False
) -> Callable[[Callable[P, R]], Computed[P, R]]:
    """Return a decorator of what is computed with a model: once, for all visitors, who share the frozen result.

    Visitors take turns, `is_long` ones last; the page ends with a sentence for whom no turn comes. Where the GPU has no
    memory left, this and everything after it is computed on the CPU. `spinner` is a message that :func:`say` says.
    """

    def decorate(work: Callable[P, R]) -> Computed[P, R]:
        @wraps(work)
        def in_turn(*arguments: P.args, **named: P.kwargs) -> R:
            with TURNS.turn(TURNS.ticket(is_long)):
                try:
                    return work(*arguments, **named)
                except OutOfMemory:
                    leave_gpu()
                return work(*arguments, **named)

        return Computed(_in_each_language(in_turn, entries, spinner), is_long)

    return decorate


def cached(spinner: str, entries: int | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of what is kept for all visitors, without turns; `spinner` is a message for :func:`say`."""

    def decorate(work: Callable[P, R]) -> Callable[P, R]:
        in_language = _in_each_language(work, entries, spinner)

        @wraps(work)
        def kept(*arguments: P.args, **named: P.kwargs) -> R:
            found: R = in_language(current_language())(*arguments, **named)
            return found

        return kept

    return decorate


def _in_each_language(work: Callable[P, R], entries: int | None, spinner: bool | str) -> Callable[[str], Any]:
    """The same cache in every language: only what is read meanwhile is another."""

    @cache
    def in_language(language: str) -> Any:
        text = say(spinner) if isinstance(spinner, str) else spinner
        return st.cache_resource(max_entries=entries, show_spinner=text)(work)

    return in_language
