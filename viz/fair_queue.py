"""A queue of computations: a few at a time, short ones first, so that one visitor does not block the others."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from attenscope.language import say, to_say

TURN_TIMEOUT = 60.0
"""Seconds that a visitor waits for a turn before they are told that the server is busy."""
LOOK_SECONDS = 1.0
"""Seconds between two looks whether a visitor who waits is still there."""

BUSY_TEXT = to_say(
    "So many compute here at the moment that your turn has not come in {seconds:.0f} seconds. Please try again."
)


class BusyError(RuntimeError):
    """A turn that did not come in time; the message is the sentence to show."""


@dataclass(order=True)
class Ticket:
    """The place of one computation: short ones go first, then those that came first."""

    is_long: bool
    number: int


class FairQueue:
    """Lets at most `places` threads compute at once. A thread that has its turn may ask for one again and keeps it."""

    def __init__(self, places: int) -> None:
        self._places = self._free = places
        self._count = 0
        self._queue: list[Ticket] = []
        self._changed = threading.Condition()
        self._own = threading.local()

    def ticket(self, is_long: bool = False) -> Ticket:
        """Return the place of a computation that comes now."""
        with self._changed:
            self._count += 1
            return Ticket(is_long, self._count)

    @contextmanager
    def turn(
        self, ticket: Ticket, patience: float = TURN_TIMEOUT, is_wanted: Callable[[], bool] = lambda: True
    ) -> Iterator[None]:
        """Wait for the ticket's turn, and have it for one block of code.

        Raises BusyError after `patience` seconds, or once it is no longer wanted.
        """
        if self._current_thread_ticket is not None:
            yield
            return
        self._begin(ticket, patience, is_wanted)
        try:
            yield
        finally:
            self._end()

    def yield_to_earlier_tickets(self) -> None:
        """Let shorter and earlier computations go first; called between two steps of a long one."""
        ticket = self._current_thread_ticket
        if ticket is None:
            return
        with self._changed:
            goes_on = not self._queue or ticket < self._queue[0]
        if not goes_on:
            self._end()
            self._begin(ticket, patience=float("inf"))

    @contextmanager
    def release_turn_temporarily(self) -> Iterator[None]:
        """Give up the thread's turn for a block in which it waits for what another thread may be computing."""
        ticket = self._current_thread_ticket
        if ticket is None:
            yield
            return
        self._end()
        try:
            yield
        finally:
            self._begin(ticket, patience=float("inf"))

    def count_before(self, ticket: Ticket) -> int:
        """Return how many computations are before a waiting ticket; 0 where its turn can come at once."""
        with self._changed:
            running = self._places - self._free
            return 0 if self._free else running + sum(one < ticket for one in self._queue)

    @property
    def _current_thread_ticket(self) -> Ticket | None:
        return getattr(self._own, "ticket", None)

    def _begin(self, ticket: Ticket, patience: float, is_wanted: Callable[[], bool] = lambda: True) -> None:
        end = time.monotonic() + patience
        with self._changed:
            heapq.heappush(self._queue, ticket)
            while not (self._free and self._queue[0] is ticket):
                left = end - time.monotonic()
                if left <= 0 or not is_wanted():
                    self._queue.remove(ticket)
                    heapq.heapify(self._queue)
                    self._changed.notify_all()
                    raise BusyError(say(BUSY_TEXT, seconds=patience))
                self._changed.wait(min(left, LOOK_SECONDS))
            heapq.heappop(self._queue)
            self._free -= 1
            self._changed.notify_all()
        self._own.ticket = ticket

    def _end(self) -> None:
        self._own.ticket = None
        with self._changed:
            self._free += 1
            self._changed.notify_all()


COMPUTE_QUEUE = FairQueue(max(1, (os.cpu_count() or 1) - 1))
"""The queue of this process; one core is left to the server itself."""
