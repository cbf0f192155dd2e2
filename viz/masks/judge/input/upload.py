"""Files that a person uploads: a sentence for each that cannot be read, and the map chosen of those that can."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.diagnosis.inputs.argument_names import is_known
from model.diagnosis.readers.binary import TooLargeError
from model.diagnosis.readers.files import ENDINGS, MAX_BINARY, Contents, UnreadableError, read
from model.language.say import listed, say

from ....traces.kept import KeptError, unpacked
from ....traces.session import MOST_CELLS, UPLOADED_MASKS, current_arrays, owner
from ....turns import READING, BusyError
from ....ui import widgets
from ....ui.captions import caption, plain
from . import from_trace
from .interpretation import interpret
from .mask_input import MaskInput

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

MOST_FILES, MEGABYTES = 32, 64
SHORT = 2**16
"""Bytes of a file that is read before longer ones that came earlier."""


def mask_input() -> MaskInput | None:
    """Draw the place to drop files, a sentence for each that cannot be read, and the choice among all maps."""
    if handed := current_arrays():
        files = [handed]
    else:
        files = widgets.file_uploader(
            say("Files"), MEGABYTES, accept_multiple_files=True, key=UPLOADED_MASKS, label_visibility="collapsed"
        )
    most = min(MEGABYTES, widgets.largest_file())
    caption(
        say(
            "Read are {endings} and saved traces, up to {most} MB. Nothing in a file is ever executed.",
            endings=listed(ENDINGS),
            most=most,
        )
    )
    _forget_removed(files[:MOST_FILES])
    found, refused = _sorted(files[:MOST_FILES])
    if len(files) > MOST_FILES:
        refused.append(say("{count} files were given; the first {most} are read.", count=len(files), most=MOST_FILES))
    if refused:
        st.error("  \n".join(plain(one) for one in refused))
    if not found:
        return None
    chosen = next(iter(found))
    if len(found) > 1:
        _choose_newest(files, found)
        chosen = widgets.offer(st.selectbox, say("File"), list(found), key="mask_file", width=420) or chosen
    contents = found[chosen]
    for note in contents.notes:
        caption(plain(note))
    if contents.tokens[1]:
        caption(say("This is a saved trace: Explore shows it as well."))
    return interpret(contents, f"file {chosen} {[one.file_id for one in files]}")


def _choose_newest(files: list[UploadedFile], found: dict[str, Contents]) -> None:
    """Choose the first map of a file that was not there before, and leave a choice that is still there alone."""
    seen = st.session_state.get("mask_files_seen", frozenset())
    st.session_state["mask_files_seen"] = frozenset(file.file_id for file in files)
    new = [file.name for file in files if file.file_id not in seen]
    names = [name for name in found if new and name.startswith(new[-1])]
    if names or st.session_state.get("mask_file") not in found:
        st.session_state["mask_file"] = names[0] if names else next(iter(found))


def _sorted(files: list[UploadedFile]) -> tuple[dict[str, Contents], list[str]]:
    """The maps of all files by a name for each, and a sentence for every file that cannot be read."""
    found: dict[str, Contents] = {}
    refused = []
    for file in files:
        try:
            maps = _contents(file, len(files) == 1)
        except UnreadableError as error:
            refused.append(say("{file}: {error}", file=file.name, error=error))
            continue
        for one in maps:
            name = f"{file.name} · {one.map}" if one.map else file.name
            found[name if name not in found else f"{name} ({len(found) + 1})"] = one
    return found, refused


def _contents(file: UploadedFile, alone: bool) -> list[Contents]:
    """The maps of an uploaded file; what was read is kept for this visitor as long as the file is.

    Of a file that is refused its sentence alone is kept: an error would keep everything that was read until then.
    """
    kept = st.session_state["mask_read"]
    if file.file_id not in kept:
        try:
            kept[file.file_id] = _read(file, alone)
        except (KeptError, BusyError) as error:  # Another time there may be place.
            raise UnreadableError(str(error)) from None
        except UnreadableError as error:
            kept[file.file_id] = str(error)
    found = kept[file.file_id]
    if isinstance(found, str):
        raise UnreadableError(found)
    return found


def _forget_removed(files: list[UploadedFile]) -> None:
    """Let go of what was read of files that are no longer there; at once: a new value would leave the old one in the
    session until the run ends."""
    kept = st.session_state.setdefault("mask_read", {})
    for name in kept.keys() - {file.file_id for file in files}:
        del kept[name]


def _read(file: UploadedFile, alone: bool) -> list[Contents]:
    """Through a file of our own naming: the visitor's name is never a path. UnreadableError, KeptError, BusyError."""
    given = Path(file.name)
    ending = given.suffix if re.fullmatch(r"\.\w{1,16}", given.suffix) else ""
    stem = given.stem if is_known(given.stem) else "array"
    with tempfile.TemporaryDirectory() as folder, READING.turn(READING.ticket(is_long=len(file.getbuffer()) > SHORT)):
        path = Path(folder) / f"{stem}{ending}"
        path.write_bytes(file.getbuffer())
        left = unpacked().left(owner())
        try:
            maps = read(path, left, MOST_CELLS)
        except UnreadableError as error:
            if isinstance(error.__cause__, TooLargeError) and left < MAX_BINARY:
                raise unpacked().refusal(owner()) from None
            raise
        for one in maps:
            for name, array in one.arrays.items():
                if array.dtype.kind not in "biuf" or not array.size:
                    raise UnreadableError(say("{name} holds no numbers.", name=name))
            unpacked().count(owner(), one, sum(array.nbytes for array in one.arrays.values()))
    if maps[0].tokens[1]:
        from_trace.share(file.name, file.getbuffer(), alone=alone)
    return maps
