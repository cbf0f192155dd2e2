"""The store of files that visitors keep for their talks, which scenes on the stage, sessions of their own, read.

An item is found by a key that nobody can guess, so no visitor finds another's. The bytes of one visitor and of all
together are limited; an item that nobody has asked for in a while is dropped. A counter limits the arrays in uploads.
"""

from __future__ import annotations

import secrets
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from attenscope.language import say, to_say
from attenscope.viz.serving.middleware import MEGABYTE, ServerSettings

KEEP_SECONDS = 12 * 3600.0
"""Seconds after which an item is dropped that nobody has asked for."""
VISITOR_FULL_TEXT = to_say("Files beside your talks may have {most} MB together, so this one is not kept.")
VISITOR_ARRAYS_FULL_TEXT = to_say(
    "The arrays in your files may have {most} MB together, unpacked: remove a file, then try again."
)
SERVER_ARRAYS_FULL_TEXT = to_say(
    "The arrays in the files of all visitors may have {most} MB together, unpacked: please try again later."
)
SERVER_FULL_TEXT = to_say("The files beside all visitors' talks may have {most} MB together, so this one is not kept.")


def create_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_urlsafe(24)


class UploadStoreError(ValueError):
    """There is no place for an item; the message says why."""


@dataclass
class _StoredItem:
    owner: str
    value: Any
    size: int
    asked: float


class UploadStore:
    """Items by their keys. Safe to be used by the sessions of all visitors at once."""

    def __init__(self, of_one: int, of_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        """At most `of_one` bytes of one owner, and `of_all` together."""
        self._of_one, self._of_all, self._clock = of_one, of_all, clock
        self._items: dict[str, _StoredItem] = {}
        self._lock = threading.Lock()

    def put(self, owner: str, value: Any, size: int, key: str = "") -> str:
        """Keep a value of `size` bytes and return its key. Raises UploadStoreError where there is no place for it.

        With a `key` the value replaces what was kept there. A weak reference is kept for as long as its object lives.
        """
        with self._lock:
            self._drop_expired_items()
            self._items.pop(key, None)
            own = sum(one.size for one in self._items.values() if one.owner == owner)
            everybody = sum(one.size for one in self._items.values())
            for used, limit, full in (
                (own, self._of_one, VISITOR_FULL_TEXT),
                (everybody, self._of_all, SERVER_FULL_TEXT),
            ):
                if used + size > limit:
                    raise UploadStoreError(say(full, most=limit // MEGABYTE))
            key = key or create_key()
            self._items[key] = _StoredItem(owner, value, size, self._clock())
            return key

    def get(self, key: str) -> Any:
        """What is kept under a key; None where there is nothing, or no longer."""
        with self._lock:
            self._drop_expired_items()
            found = self._items.get(key)
            if found is None:
                return None
            found.asked = self._clock()
            return found.value() if isinstance(found.value, weakref.ref) else found.value

    def drop(self, key: str) -> None:
        """Forget what is kept under a key."""
        with self._lock:
            self._items.pop(key, None)

    def _drop_expired_items(self) -> None:
        oldest = self._clock() - KEEP_SECONDS
        for key, one in [*self._items.items()]:
            if one.asked < oldest or (isinstance(one.value, weakref.ref) and one.value() is None):
                del self._items[key]


class ArrayBytesCounter:
    """Bytes that the arrays of visitors' files take, counted for as long as somebody holds the arrays."""

    def __init__(self, of_one: int, of_all: int) -> None:
        """At most `of_one` bytes of one owner, and `of_all` together."""
        self._of_one, self._of_all = of_one, of_all
        self._held: Counter[str] = Counter()
        self._lock = threading.RLock()  # A value may be finalized, and counted off, while this very thread counts.

    def count_free_bytes(self, owner: str) -> int:
        """How many bytes more the owner may hold."""
        with self._lock:
            return min(self._of_one - self._held[owner], self._of_all - self._held.total())

    def count_held_bytes(self, owner: str) -> int:
        """How many bytes the owner holds."""
        with self._lock:
            return self._held[owner]

    def refusal(self, owner: str) -> UploadStoreError:
        """Return the error that says whose limit is reached, once :meth:`left` is too small."""
        with self._lock:
            own = self._of_one - self._held[owner] <= self._of_all - self._held.total()
        limit, message = (self._of_one, VISITOR_ARRAYS_FULL_TEXT) if own else (self._of_all, SERVER_ARRAYS_FULL_TEXT)
        return UploadStoreError(say(message, most=limit // MEGABYTE))

    def count(self, owner: str, value: object, size: int) -> None:
        """Count `size` bytes for as long as `value` lives. Raises UploadStoreError where there is no place for them."""
        with self._lock:
            if size > self.count_free_bytes(owner):
                raise self.refusal(owner)
            self._held[owner] += size
        weakref.finalize(value, self._release_bytes, owner, size)

    def _release_bytes(self, owner: str, size: int) -> None:
        with self._lock:
            self._held[owner] -= size
            if not self._held[owner]:
                del self._held[owner]


@cache
def get_array_bytes_counter() -> ArrayBytesCounter:
    """Return the counter of this process, with its limits for uploads."""
    settings = ServerSettings.from_process_environment()
    return ArrayBytesCounter(settings.session_uploads, settings.server_uploads)


@cache
def get_upload_store() -> UploadStore:
    """Return the store of this process, with its limits for uploads."""
    settings = ServerSettings.from_process_environment()
    return UploadStore(settings.session_uploads, settings.server_uploads)
