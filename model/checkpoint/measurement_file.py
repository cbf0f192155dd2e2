"""What was measured of a model, in a JSON file beside it, read only for the very weights that it was measured of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..language.say import say


class Measured(Protocol):
    """What a file holds: it says of which model it is."""

    @property
    def model(self) -> str: ...

    @property
    def model_hash(self) -> str: ...


M = TypeVar("M", bound=Measured)


def pairs_sha256(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of sentences and their translations: UTF-8, a pair a line, a tab between its two sides."""
    digest = hashlib.sha256()
    for source, target in pairs:
        digest.update(f"{source}\t{target}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class MeasurementFile:
    """One kind of file, and how its faults are told."""

    name: str
    format: str
    error: type[ValueError]
    command: str
    """What makes the file, for a message; ``{model}`` stands for the checkpoint's name."""
    missing: str
    """The message where there is no file; ``{model}`` and ``{how}``, the command, may stand in it."""

    def read(self, folder: Path, model: str, model_hash: str, made: Callable[[dict[str, Any]], M]) -> M:
        """Return what `made` makes of the file in a folder.

        Raises the error of this kind where there is no file, for one of another model or version, and where `made`
        raises: then the file is damaged.
        """
        path, how = folder / self.name, self.command.format(model=model)
        try:
            found: Any = json.loads(path.read_text(encoding="utf-8"))
            if found.pop("format") != self.format:
                raise self.error(
                    say(
                        "{path} was written by another version of this project: measure again with `{how}`.",
                        path=path,
                        how=how,
                    )
                )
            measured = made(found)
        except FileNotFoundError as error:
            raise self.error(say(self.missing, model=model, how=how)) from error
        except (OSError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
            if isinstance(error, self.error):
                raise
            raise self.error(
                say("{path} is damaged ({error}): measure again with `{how}`.", path=path, error=repr(error), how=how)
            ) from error
        if measured.model_hash != model_hash:
            raise self.error(
                say(
                    "{path} is of {of} with the hash {of_hash}; the model here is {model} with {hash}: measure again "
                    "with `{how}`.",
                    path=path,
                    of=measured.model,
                    of_hash=measured.model_hash,
                    model=model,
                    hash=model_hash,
                    how=how,
                )
            )
        return measured
