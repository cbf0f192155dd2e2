"""Memory that nobody uses any more goes back to the system, so that a server of many days does not grow."""

from __future__ import annotations

import ctypes
from typing import Any

MMAP_THRESHOLD, ARENA_MAX = -3, -8
"""Parameters of glibc's mallopt, as malloc.h numbers them."""
LARGE = 2**22
"""Bytes from which an array has pages of its own, which go back when it is freed."""
POOLS = 2
"""Pools of small pieces. Every thread may ask for one, and what is free in one is of no use to the others."""


def _library() -> Any:
    """The C library where it is glibc, else None."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


def keep_little() -> None:
    """Let glibc keep less of what is freed; by itself it keeps the more, the larger the arrays are that are freed."""
    if (library := _library()) is not None:
        library.mallopt(MMAP_THRESHOLD, LARGE)
        library.mallopt(ARENA_MAX, POOLS)


def give_back() -> None:
    """Give back what is free now."""
    if (library := _library()) is not None:
        library.malloc_trim(0)
