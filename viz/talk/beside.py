"""The files beside a talk: traces and arrays that its scenes name, checked as every upload is, kept for the stage."""

from __future__ import annotations

import io
import re
import secrets
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.diagnosis.readers.files import ENDINGS, UnreadableError, read
from model.language.say import say
from model.untrusted_trace import MEGABYTES, OpenedTrace, OpenError, clean, read_trace

from ..traces.kept import KeptError, kept, new_key
from ..traces.session import MOST_CELLS, Handed, holding
from ..turns import READING
from .talk_file import write

if TYPE_CHECKING:
    from .scenes import Scene, Talk

NAME = re.compile(r"[\w+()=-][\w .+()=-]{0,100}\.\w{1,16}")
TALK, PACKED, TRACE = ".toml", ".zip", ".safetensors"
MOST = 40
"""Files beside a talk."""
LARGEST = 10 * 2**20
"""Bytes of a file that the visitor's browser keeps as well."""
_KEYS, _OWNER, _STAGE = "talk-files", "talk-owner", "stage-key"


@dataclass(frozen=True, eq=False)
class Arrays:
    """A file with a mask or weights, as it was brought; the page Masks reads it as one that was uploaded to it."""

    name: str
    file_id: str
    data: bytes

    def getbuffer(self) -> memoryview:
        return memoryview(self.data)


File = OpenedTrace | Arrays


def read_one(name: str, data: bytes) -> File:
    """A file as a scene shows it. ValueError with a sentence for one that cannot be read."""
    if not NAME.fullmatch(name):
        raise ValueError(
            say(
                "{name} is no plain name of a file: use letters, digits, spaces and - _ . + ( ) =.",
                name=clean(name, 80),
            )
        )
    if len(data) > MEGABYTES * 2**20:
        size = len(data) / 2**20
        raise ValueError(
            say("{name} has {size:.0f} MB; at most {most} MB are read.", name=name, size=size, most=MEGABYTES)
        )
    with READING.turn(READING.ticket(is_long=True), patience=float("inf")):
        return _read_one(name, data)


def _read_one(name: str, data: bytes) -> File:
    if name.endswith(TRACE):
        return read_trace(name, data)
    with tempfile.TemporaryDirectory() as folder:  # The visitor's name is never a path.
        path = Path(folder) / f"array{Path(name).suffix}"
        path.write_bytes(data)
        try:
            read(path, cells=MOST_CELLS)
        except UnreadableError as error:
            raise ValueError(f"{name}: {error}") from error
    return Arrays(name, secrets.token_hex(8), data)


def unpacked(files: Iterable[tuple[str, bytes]]) -> tuple[dict[str, bytes], list[str]]:
    """Files by name, those in a zip instead of it; and what was left out of one, a sentence each."""
    found: dict[str, bytes] = {}
    problems = []
    for name, data in files:
        if not name.lower().endswith(PACKED):
            found[name] = data
            continue
        try:
            found |= _members(data)
        except (OSError, ValueError, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            reason = clean(str(error), 200) or say("it is broken")
            problems.append(say("{name} cannot be opened: {reason}.", name=clean(name, 80), reason=reason))
    return found, problems


def _members(data: bytes) -> dict[str, bytes]:
    """The files in a zip by their last names. ValueError where it holds more than is read."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [one for one in archive.infolist() if not one.is_dir()]
        if len(members) > MOST + 1:
            raise ValueError(say("it holds {count} files, at most {most} are read", count=len(members), most=MOST + 1))
        left = MEGABYTES * 2**20
        for one in members:
            with archive.open(one) as member:
                content = member.read(left + 1)  # Whatever size it claims to have.
            left -= len(content)
            if left < 0:
                raise ValueError(say("it unpacks to more than {most} MB", most=MEGABYTES))
            found[re.split(r"[/\\]", one.filename)[-1]] = content
    return found


def bring(files: Mapping[str, bytes]) -> list[str]:
    """Keep files beside the visitor's talk; returns a sentence for each that cannot be."""
    problems = []
    for name, data in list(files.items())[:MOST]:
        try:
            _keep(name, read_one(name, data), len(data))
        except (OpenError, KeptError, ValueError) as error:
            problems.append(str(error))
    if len(files) > MOST:
        problems.append(say("{count} files were given; the first {most} are read.", count=len(files), most=MOST))
    return problems


def keep_trace(opened: OpenedTrace) -> str:
    """Keep a trace that the visitor has opened beside their talk, and return its name there. KeptError."""
    same = lambda there: isinstance(there, OpenedTrace) and there.identity == opened.identity  # noqa: E731
    name = _free(Path(opened.name).stem, TRACE, same)
    if name not in files():
        _keep(name, opened, sum(map(_size, opened.trace.maps.values())))
    return name


def keep_arrays(given: str, data: bytes) -> str:
    """Keep a file that the visitor has uploaded beside their talk, and return its name there. KeptError, ValueError."""
    file = read_one(f"array{Path(given).suffix}", data)  # The visitor's name may be none that a file can have.
    if not isinstance(file, Arrays):
        raise ValueError(say("A scene of Masks shows no saved trace: open it on Explore and add it there."))
    name = _free(Path(given).stem, Path(given).suffix, lambda there: isinstance(there, Arrays) and there.data == data)
    if name not in files():
        _keep(name, replace(file, name=name), len(data))
    return name


def _free(stem: str, ending: str, same: Callable[[File], bool]) -> str:
    """A name for a file beside the talk that no other there has; that of the same file if it is there."""
    plain = re.sub(r"[^\w+()=-]+", "-", stem).strip("-")[:80] or "file"
    there = files()
    names = (f"{plain}{'' if number == 1 else f'-{number}'}{ending}" for number in count(1))
    return next(name for name in names if name not in there or same(there[name]))


def shown_key(opened: OpenedTrace) -> str:
    """The key under which the stage finds the trace that the visitor looks at. KeptError."""
    if kept().get(stage_key()) is not opened:
        hand_over(opened, sum(map(_size, opened.trace.maps.values())))
    return stage_key()


def stage_key() -> str:
    """The key under which the stage finds what the visitor looks at."""
    return str(st.session_state.setdefault(_STAGE, new_key()))


def hand_over(value: OpenedTrace | Handed, size: int) -> None:
    """Let the stage find what the visitor looks at, in place of what they looked at before. KeptError."""
    kept().put(_owner(), value, size, stage_key())


def _size(one: Any) -> int:
    return int(one.weights.nbytes + one.mask.nbytes + sum(array.nbytes for array in one.tensors.values()))


def _keep(name: str, value: File, size: int) -> None:
    keys = st.session_state.setdefault(_KEYS, {})
    if name in keys:
        kept().drop(keys[name])
    keys[name] = kept().put(_owner(), value, size)


def _owner() -> str:
    return str(st.session_state.setdefault(_OWNER, secrets.token_hex(16)))


def keys() -> dict[str, str]:
    """The key of each file that is still kept, by name."""
    return {name: key for name, key in st.session_state.get(_KEYS, {}).items() if kept().get(key) is not None}


def known() -> dict[str, str]:
    """The key of each file beside the talk by name, of those that are no longer kept too."""
    return dict(st.session_state.get(_KEYS, {}))


def saved(name: str) -> bytes:
    """A file beside the visitor's talk as it is saved; nothing for one that is too large for a browser to keep."""
    data = _bytes(files()[name])
    return data if len(data) <= LARGEST else b""


def restore(name: str, data: bytes) -> None:
    """Keep a file again, under the key that it had, which the visitor's browser has given back."""
    key = known().get(name)
    if key is None or not data or len(data) > LARGEST or kept().get(key) is not None:
        return
    with suppress(OpenError, KeptError, ValueError):  # It is said of the scene that its file is missing.
        kept().put(_owner(), read_one(name, data), len(data), key)


def take_back(found: Mapping[str, str]) -> None:
    """Know files again by their keys, which the visitor's browser has kept."""
    if _KEYS not in st.session_state:
        st.session_state[_KEYS] = {str(name): str(key) for name, key in list(found.items())[:MOST]}


def files() -> dict[str, File]:
    """The files beside the visitor's talk by name."""
    found = {name: kept().get(key) for name, key in st.session_state.get(_KEYS, {}).items()}
    return {name: one for name, one in found.items() if one is not None}


def named(talk: Talk) -> list[str]:
    """The names of all files that the scenes of a talk ask for."""
    return list(dict.fromkeys(name for scene in talk.scenes for name in (scene.trace, scene.arrays) if name))


def packed(talk: Talk, beside: Mapping[str, File]) -> bytes:
    """A talk with the files that it names, as a zip."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("talk.toml", write(talk))
        for name in named(talk):
            if name in beside:
                archive.writestr(name, _bytes(beside[name]))
    return whole.getvalue()


def _bytes(file: File) -> bytes:
    if isinstance(file, Arrays):
        return file.data
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace{TRACE}"
        file.trace.save(path)
        return path.read_bytes()


def of_folder(talk: Talk, folder: Path) -> tuple[dict[str, File], list[str]]:
    """The files that a talk names, read from beside it on a disk; and a sentence for each that cannot be."""
    found: dict[str, File] = {}
    problems = []
    for name in named(talk):
        try:
            found[name] = read_one(name, (folder / name).read_bytes() if NAME.fullmatch(name) else b"")
        except OSError as error:
            problems.append(say("{name} cannot be read: {reason}.", name=name, reason=error.strerror))
        except ValueError as error:
            problems.append(str(error))
    return found, problems


def session_of(scene: Scene, beside: Mapping[str, File]) -> dict[str, Any]:
    """What a session holds that shows this scene: the file it names, opened."""
    return holding(beside.get(scene.trace or scene.arrays))


UPLOADED = sorted({one.lstrip(".") for one in (TALK, PACKED, TRACE, *ENDINGS)})
"""Endings of what can be opened as a talk, or beside one."""
