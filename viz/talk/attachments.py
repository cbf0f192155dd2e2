"""The files beside a talk: traces and arrays that its scenes name, checked like uploads and stored for the stage."""

from __future__ import annotations

import io
import re
import secrets
import tempfile
import weakref
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import streamlit as st

from attenscope.language import say
from attenscope.masks.read_files import FILE_ENDINGS, UnreadableError, read_array_file
from attenscope.untrusted_trace import MAX_FILE_MEGABYTES, OpenedTrace, OpenError, clean_text
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.serving.middleware import ServerSettings
from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.traces.session import (
    MOST_ARRAY_CELLS,
    UPLOADED_FILE_KEY,
    StageValues,
    UploadedFile,
    build_opened_file_session_values,
    read_trace_maybe_in_worker,
)
from attenscope.viz.traces.upload_store import UploadStoreError, create_key, get_upload_store
from attenscope.viz.worker_process import call_in_worker

FILE_NAME_PATTERN = re.compile(r"[\w+()=-][\w .+()=-]{0,100}\.\w{1,16}")
TALK_ENDING, ZIP_ENDING, TRACE_ENDING = ".toml", ".zip", ".safetensors"
MOST_TALK_FILES = 40
"""Files beside a talk."""
LARGEST_BROWSER_FILE = 10 * 2**20
"""Bytes of a file that the visitor's browser keeps as well."""
_FILE_KEYS, _OWNER_KEY, _STAGE_KEY, _STAGE_VALUE = "talk-files", "talk-owner", "stage-key", "stage-value"


@dataclass(frozen=True, eq=False)
class ArraysFile:
    """A file with a mask or weights, as it was brought; the page Masks reads it as one that was uploaded to it."""

    name: str
    file_id: str
    data: bytes

    def getbuffer(self) -> memoryview:
        return memoryview(self.data)


AttachedFile = OpenedTrace | ArraysFile


def read_attachment(name: str, data: bytes) -> AttachedFile:
    """A file as a scene shows it. ValueError with a sentence for one that cannot be read."""
    if not FILE_NAME_PATTERN.fullmatch(name):
        raise ValueError(
            say(
                "{name} is no plain name of a file: use letters, digits, spaces and - _ . + ( ) =.",
                name=clean_text(name, 80),
            )
        )
    if len(data) > MAX_FILE_MEGABYTES * 2**20:
        size = len(data) / 2**20
        raise ValueError(
            say("{name} has {size:.0f} MB; at most {most} MB are read.", name=name, size=size, most=MAX_FILE_MEGABYTES)
        )
    try:
        return _parse_attachment(name, data)
    except (UnreadableError, BusyError) as error:
        raise ValueError(f"{name}: {error}") from error


def _parse_attachment(name: str, data: bytes) -> AttachedFile:
    if name.endswith(TRACE_ENDING):
        return read_trace_maybe_in_worker(name, data)
    with tempfile.TemporaryDirectory() as folder:  # The visitor's name is never a path.
        path = Path(folder) / f"array{Path(name).suffix}"
        path.write_bytes(data)
        call_in_worker(read_array_file, path, cells=MOST_ARRAY_CELLS)
    return ArraysFile(name, secrets.token_hex(8), data)


def expand_zip_files(files: Iterable[tuple[str, bytes]]) -> tuple[dict[str, bytes], list[str]]:
    """Return files by name, those in a zip in place of the zip; and a sentence for each zip that cannot be opened."""
    found: dict[str, bytes] = {}
    problems = []
    for name, data in files:
        if not name.lower().endswith(ZIP_ENDING):
            found[name] = data
            continue
        try:
            found |= _read_zip_members(data)
        except Exception as error:  # whatever damaged data makes zipfile or a decompressor raise
            reason = str(error) if isinstance(error, ZipLimitError) else say("it is damaged or encrypted")
            problems.append(say("{name} cannot be opened: {reason}.", name=clean_text(name, 80), reason=reason))
    return found, problems


class ZipLimitError(ValueError):
    """A zip holds more than is read; the message says what of."""


def _read_zip_members(data: bytes) -> dict[str, bytes]:
    """The files in a zip by their last names. ZipLimitError where it holds more than is read."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [one for one in archive.infolist() if not one.is_dir()]
        if len(members) > MOST_TALK_FILES + 1:
            raise ZipLimitError(
                say("it holds {count} files, at most {most} are read", count=len(members), most=MOST_TALK_FILES + 1)
            )
        left = MAX_FILE_MEGABYTES * 2**20
        for one in members:
            with archive.open(one) as member:
                content = member.read(left + 1)  # Whatever size it claims to have.
            left -= len(content)
            if left < 0:
                raise ZipLimitError(say("it unpacks to more than {most} MB", most=MAX_FILE_MEGABYTES))
            found[re.split(r"[/\\]", one.filename)[-1]] = content
    return found


def attach_files_and_list_problems(files: Mapping[str, bytes]) -> list[str]:
    """Keep files beside the visitor's talk; returns a sentence for each that cannot be."""
    problems = []
    for name, data in list(files.items())[:MOST_TALK_FILES]:
        try:
            _store_file(name, read_attachment(name, data), len(data))
        except (OpenError, UploadStoreError, ValueError) as error:
            problems.append(str(error))
    if len(files) > MOST_TALK_FILES:
        problems.append(
            say("{count} files were given; the first {most} are read.", count=len(files), most=MOST_TALK_FILES)
        )
    return problems


def attach_trace(opened: OpenedTrace) -> str:
    """Keep the visitor's opened trace beside their talk, and return its name there. Raises UploadStoreError."""
    same = lambda there: isinstance(there, OpenedTrace) and there.identity == opened.identity  # noqa: E731
    name = _find_free_name(Path(opened.name).stem, TRACE_ENDING, same)
    if name not in get_attached_files():
        _store_file(name, opened, sum(map(_count_map_bytes, opened.trace.maps.values())))
    return name


def attach_arrays(given: str, data: bytes) -> str:
    """Keep a file that the visitor has uploaded beside their talk, and return its name there.

    Raises UploadStoreError, ValueError.
    """
    file = read_attachment(f"array{Path(given).suffix}", data)  # The visitor's name may be none that a file can have.
    if not isinstance(file, ArraysFile):
        raise ValueError(say("A scene of Masks shows no saved trace: open it on Explore and add it there."))
    name = _find_free_name(
        Path(given).stem, Path(given).suffix, lambda there: isinstance(there, ArraysFile) and there.data == data
    )
    if name not in get_attached_files():
        _store_file(name, replace(file, name=name), len(data))
    return name


def _find_free_name(stem: str, ending: str, same: Callable[[AttachedFile], bool]) -> str:
    """A name for a file beside the talk that no other there has; that of the same file if it is there."""
    plain = re.sub(r"[^\w+()=-]+", "-", stem).strip("-")[:80] or "file"
    there = get_attached_files()
    names = (f"{plain}{'' if number == 1 else f'-{number}'}{ending}" for number in count(1))
    return next(name for name in names if name not in there or same(there[name]))


def share_trace_with_stage(opened: OpenedTrace) -> str:
    """Return the key under which the stage finds the trace that the visitor looks at. Raises UploadStoreError."""
    if get_upload_store().get(get_stage_key()) is not opened:
        share_with_stage(opened, sum(map(_count_map_bytes, opened.trace.maps.values())))
    return get_stage_key()


def share_upload_with_stage(file: UploadedFile) -> str:
    """Return the key under which the stage finds the sound or picture of the visitor. Raises UploadStoreError."""
    shared = get_upload_store().get(get_stage_key())
    if not isinstance(shared, StageValues) or shared.values.get(UPLOADED_FILE_KEY) is not file:
        share_with_stage(StageValues({UPLOADED_FILE_KEY: file}), len(file.data))
    return get_stage_key()


def get_stage_key() -> str:
    """The key under which the stage finds what the visitor looks at."""
    return str(st.session_state.setdefault(_STAGE_KEY, create_key()))


def share_with_stage(value: OpenedTrace | StageValues, size: int) -> None:
    """Store what the visitor looks at for the stage, in place of what was there before, while their session lasts.

    Raises UploadStoreError.
    """
    get_upload_store().put(_get_upload_store_owner(), weakref.ref(value), size, get_stage_key())
    st.session_state[_STAGE_VALUE] = value


def _count_map_bytes(one: Any) -> int:
    return int(one.weights.nbytes + one.mask.nbytes + sum(array.nbytes for array in one.tensors.values()))


def _store_file(name: str, value: AttachedFile, size: int) -> None:
    keys = st.session_state.setdefault(_FILE_KEYS, {})
    if name in keys:
        get_upload_store().drop(keys[name])
    keys[name] = get_upload_store().put(_get_upload_store_owner(), value, size)


def _get_upload_store_owner() -> str:
    return str(st.session_state.setdefault(_OWNER_KEY, secrets.token_hex(16)))


def get_stored_file_keys() -> dict[str, str]:
    """Return the key of each file that is still stored, by name."""
    return {
        name: key
        for name, key in st.session_state.get(_FILE_KEYS, {}).items()
        if get_upload_store().get(key) is not None
    }


def get_all_file_keys() -> dict[str, str]:
    """Return the key of each file beside the talk by name, also of files that are no longer stored."""
    return dict(st.session_state.get(_FILE_KEYS, {}))


def encode_file_for_browser(name: str) -> bytes:
    """A file beside the visitor's talk as it is saved; nothing for one that is too large for a browser to keep."""
    data = _encode_file(get_attached_files()[name])
    return data if len(data) <= LARGEST_BROWSER_FILE else b""


def restore_file_from_browser(name: str, data: bytes) -> None:
    """Store a file that the visitor's browser has given back, under the key that it had; a public server takes none."""
    if ServerSettings.from_process_environment().read_only:
        return
    key = get_all_file_keys().get(name)
    if key is None or not data or len(data) > LARGEST_BROWSER_FILE or get_upload_store().get(key) is not None:
        return
    with suppress(OpenError, UploadStoreError, ValueError):  # It is said of the scene that its file is missing.
        get_upload_store().put(_get_upload_store_owner(), read_attachment(name, data), len(data), key)


def restore_file_keys_from_browser(found: Mapping[str, str]) -> None:
    """Take over the keys of files that the visitor's browser has kept, where the session has none."""
    if _FILE_KEYS not in st.session_state:
        st.session_state[_FILE_KEYS] = {str(name): str(key) for name, key in list(found.items())[:MOST_TALK_FILES]}


def get_attached_files() -> dict[str, AttachedFile]:
    """The files beside the visitor's talk by name."""
    found = {name: get_upload_store().get(key) for name, key in st.session_state.get(_FILE_KEYS, {}).items()}
    return {name: one for name, one in found.items() if one is not None}


def list_talk_file_names(talk: Talk) -> list[str]:
    """The names of all files that the scenes of a talk ask for."""
    return list(dict.fromkeys(name for scene in talk.scenes for name in (scene.trace, scene.arrays) if name))


def pack_talk(talk: Talk, beside: Mapping[str, AttachedFile]) -> bytes:
    """A talk with the files that it names, as a zip."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("talk.toml", format_talk(talk))
        for name in list_talk_file_names(talk):
            if name in beside:
                archive.writestr(name, _encode_file(beside[name]))
    return whole.getvalue()


def _encode_file(file: AttachedFile) -> bytes:
    if isinstance(file, ArraysFile):
        return file.data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace{TRACE_ENDING}"
        file.trace.save(path)
        return path.read_bytes()


def read_talk_files_from_folder(talk: Talk, folder: Path) -> tuple[dict[str, AttachedFile], list[str]]:
    """The files that a talk names, read from beside it on a disk; and a sentence for each that cannot be."""
    found: dict[str, AttachedFile] = {}
    problems = []
    for name in list_talk_file_names(talk):
        try:
            found[name] = read_attachment(
                name, (folder / name).read_bytes() if FILE_NAME_PATTERN.fullmatch(name) else b""
            )
        except OSError as error:
            problems.append(say("{name} cannot be read: {reason}.", name=name, reason=error.strerror))
        except ValueError as error:
            problems.append(str(error))
    return found, problems


def build_scene_session_values(scene: Scene, beside: Mapping[str, AttachedFile]) -> dict[str, Any]:
    """Return the session values that show this scene: the file it names, opened."""
    return build_opened_file_session_values(beside.get(scene.trace or scene.arrays))


UPLOAD_ENDINGS = sorted({one.lstrip(".") for one in (TALK_ENDING, ZIP_ENDING, TRACE_ENDING, *FILE_ENDINGS)})
"""Endings of what can be opened as a talk, or beside one."""
