"""Whether a file can be written, asked before the work that is to fill it."""

from __future__ import annotations

from pathlib import Path

from ..language.say import say


class WritableError(ValueError):
    """A file that cannot be written; the message says why and what to do."""


def check_writable(path: Path) -> None:
    """Nothing is changed: a file that is there stays as it is. Raises WritableError."""
    if path.is_dir():
        raise WritableError(say("'{path}' is a folder; name a file to write.", path=path))
    if not path.parent.is_dir():
        raise WritableError(
            say(
                "There is no folder '{parent}' to write {path} into; make it first.", parent=path.parent, path=path.name
            )
        )
    there = path.exists()
    try:
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise WritableError(
            say("'{path}' cannot be written: {strerror}.", path=path, strerror=error.strerror)
        ) from error
