"""Models of a folder that read a sound or a picture: a file stands in the place of a sentence."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..language import join_items, say, to_say
from ..runnable_model import LocalError, LocalModel
from ..text.patches import Patches
from ..trace import AttentionTrace

Medium = Literal["sound", "picture"]
CANNOT_READ_MESSAGES: Mapping[Medium, str] = {
    "sound": to_say("{file} cannot be read as sound: a WAV file of whole numbers is (PCM, 8, 16 or 32 bits)."),
    "picture": to_say("{file} cannot be read as a picture: PNG, JPEG and WebP are, of at most 50 million pixels."),
}
FILE_MISSING_MESSAGES: Mapping[Medium, str] = {
    "sound": to_say(
        "{folder} reads sound: in place of a sentence, name one of the files in its folder ({files}), or upload one."
    ),
    "picture": to_say(
        "{folder} reads pictures: in place of a sentence, name one of the files in its folder ({files}), or upload one."
    ),
}
NO_FILES_MESSAGES: Mapping[Medium, str] = {
    "sound": to_say("{folder} reads sound: upload a WAV file, or put one into its folder."),
    "picture": to_say("{folder} reads pictures: upload a PNG, JPEG or WebP file, or put one into its folder."),
}


@dataclass(frozen=True)
class MediaReading:
    """What a model attended to while it read a file."""

    trace: AttentionTrace
    patches: Patches | None = None
    """The keys of its encoder's map, or of its cross-attention, where they are the patches of a picture."""


@dataclass(frozen=True, eq=False)
class MediaModel(LocalModel):
    """A model that is given the name of a file in its folder, or the bytes of another."""

    folder: Path = field(default_factory=Path)
    medium: ClassVar[Medium]
    suffixes: ClassVar[tuple[str, ...]]
    """How the names of its files end."""
    unreadable_errors: ClassVar[tuple[type[Exception], ...]]
    """What is raised for a file that is damaged, or of another kind."""

    def trace(self, text: str) -> AttentionTrace:
        """Return the attention while a file of the folder is read, by its name. Raises LocalError."""
        return self.read(text).trace

    def read(self, name: str, data: bytes | None = None) -> MediaReading:
        """Return what it attends to while it reads a file of the folder, or one of this name that holds `data`.

        Raises LocalError for a file that is not there, or is none that can be read.
        """
        raise NotImplementedError

    def decode_file(self, file: io.BytesIO) -> Any:
        """Return the samples of a sound, or a picture. Raises one of `unreadable_errors`."""
        raise NotImplementedError

    def list_files(self) -> list[str]:
        """Return the names of the files in the folder that it can read."""
        return sorted(path.name for path in self.folder.iterdir() if path.suffix.lower() in self.suffixes)

    def load_input(self, name: str, data: bytes | None = None) -> Any:
        """Return what is in a file of the folder, or in `data`, decoded.

        Raises LocalError for a file that is not there, with those that are, and for one that cannot be read.
        """
        file = io.BytesIO(self._read_bytes(name) if data is None else data)
        try:
            return self.decode_file(file)
        except self.unreadable_errors as error:
            raise LocalError(say(CANNOT_READ_MESSAGES[self.medium], file=name.strip())) from error

    def _read_bytes(self, name: str) -> bytes:
        there = self.list_files()
        if name.strip() in there:
            return (self.folder / name.strip()).read_bytes()
        messages = FILE_MISSING_MESSAGES if there else NO_FILES_MESSAGES
        raise LocalError(say(messages[self.medium], folder=self.folder.name, files=join_items(there)))
