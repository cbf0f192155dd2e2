"""Files written beside their place and then renamed, so that no file is ever half written."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, which replaces `path` when the block ends well; else what was there before stays.

    Where `path` is no regular file, such as a pipe, it is given itself.
    """
    place = Path(os.path.realpath(path))  # A link stays one: the file that it names is replaced.
    if place.exists() and not place.is_file():
        yield place
        return
    beside = place.with_name(f".{place.name[:100]}.{uuid.uuid4().hex[:8]}.new")
    try:
        yield beside
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def whole_characters(text: str) -> str:
    """Return a text that UTF-8 can hold: half of a surrogate pair, which JSON can bring, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def write_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write bytes, or text as UTF-8 (:func:`whole_characters`), as :func:`atomic_write` does."""
    with atomic_write(path) as beside:
        beside.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
