"""Whether a file can be written, asked before the work that is to fill it."""

from __future__ import annotations

from pathlib import Path


class WritableError(ValueError):
    """A file that cannot be written; the message says why and what to do."""


def check_writable(path: Path) -> None:
    """Nothing is changed: a file that is there stays as it is. Raises WritableError."""
    if path.is_dir():
        raise WritableError(f"'{path}' is a folder; name a file to write.")
    if not path.parent.is_dir():
        raise WritableError(f"There is no folder '{path.parent}' to write {path.name} into; make it first.")
    there = path.exists()
    try:
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise WritableError(f"'{path}' cannot be written: {error.strerror}.") from error
