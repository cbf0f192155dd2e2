"""Caches of model results: each is computed once for all visitors, in turns, and on the CPU where the GPU is full."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar

import streamlit as st

from attenscope.devices import OutOfMemory, leave_gpu
from attenscope.language import current_language, say
from attenscope.viz.fair_queue import COMPUTE_QUEUE, BusyError
from attenscope.viz.streamlit_internals import create_connection_probe

P = ParamSpec("P")
R = TypeVar("R")


class CachedFunction(Generic[P, R]):
    """A function whose results are cached for all visitors, with a spinner in the language of whoever waits."""

    def __init__(self, work: Callable[P, R], entries: int | None, spinner: bool | str) -> None:
        @cache
        def call_in_language(language: str) -> Any:
            """Return the cache, the same one in every language; only the text of the spinner differs."""
            text = say(spinner) if isinstance(spinner, str) else spinner
            return st.cache_resource(max_entries=entries, show_spinner=text)(work)

        self._in_language = call_in_language

    def clear(self) -> None:
        """Forget all results."""
        self._in_language(current_language()).clear()

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        found: R = self._in_language(current_language())(*arguments, **named)
        return found


class QueuedFunction(CachedFunction[P, R]):
    """A cached function whose results are computed in turns."""

    def __init__(self, work: Callable[P, R], entries: int, spinner: bool | str, is_long: bool) -> None:
        super().__init__(work, entries, spinner)
        self._is_long = is_long

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        before = COMPUTE_QUEUE.count_before(COMPUTE_QUEUE.ticket(self._is_long))
        try:
            # Another thread may be computing this result: no thread keeps its turn while it waits for that.
            with (
                COMPUTE_QUEUE.release_turn(),
                st.spinner(say("{count} before you …", count=before)) if before else nullcontext(),
            ):
                return super().__call__(*arguments, **named)
        except BusyError as error:
            st.warning(str(error))
            st.stop()


def cache_result(spinner: str, entries: int | None = None) -> Callable[[Callable[P, R]], CachedFunction[P, R]]:
    """Return a decorator that caches for all visitors, without turns; `spinner` is a message for :func:`say`."""
    return lambda work: CachedFunction(work, entries, spinner)


def queue_and_cache(
    entries: int, spinner: bool | str = False, *, is_long: bool = False
) -> Callable[[Callable[P, R]], QueuedFunction[P, R]]:
    """Return a decorator of functions that compute with a model: once for all visitors, who share the frozen result.

    Computations take turns, `is_long` ones last; a visitor whose turn does not come reads a sentence that says so.
    Where the GPU has no memory left, this and everything after it runs on the CPU. `spinner` is a message for
    :func:`say`.
    """

    def decorate(work: Callable[P, R]) -> QueuedFunction[P, R]:
        @wraps(work)
        def call_in_turn(*arguments: P.args, **named: P.kwargs) -> R:
            with COMPUTE_QUEUE.turn(COMPUTE_QUEUE.ticket(is_long), is_wanted=create_connection_probe()):
                try:
                    return work(*arguments, **named)
                except OutOfMemory:
                    leave_gpu()
                return work(*arguments, **named)

        return QueuedFunction(call_in_turn, entries, spinner, is_long)

    return decorate
