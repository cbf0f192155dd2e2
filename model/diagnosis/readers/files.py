"""Arrays from files that are not trusted: .npz, .npy, .safetensors, tables of text, .json, .pt, and saved traces.

Nothing is unpickled (a .pt goes through torch.load(weights_only=True)), nothing is allocated because a header says
so, and every refusal is a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...language.say import listed, say
from ...masking.attention_call import AttentionCall
from ...masking.known_padding import extra_keys, known_keys, real_tokens
from ...trace import FORMAT, AttentionTrace, Kind, TraceError
from ..inputs.arrays import MAX_CELLS, NAMES, DiagnosisError
from .binary import Limits, read_npy, read_npz, read_safetensors, safetensors_metadata
from .naming import group_by_map, known_names, name_array, unread_note
from .passed_masks import PassedMasks, passed_masks_of
from .printed import read_printed
from .text import read_table
from .torch_file import read_torch

MAX_BINARY = 256 * 2**20
"""Most bytes of arrays, unpacked."""
MAX_TEXT = 32 * 2**20
"""Most bytes of tables and .json, which grow when read."""


Reader = Callable[[Path, Limits], "list[Contents]"]


class UnreadableError(DiagnosisError):
    """A file that cannot be read; the message is one sentence."""


@dataclass(frozen=True, eq=False)
class Contents:
    """One map of a file: its name, and its arrays by the names they had."""

    map: str
    arrays: dict[str, np.ndarray]
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Tokens of the queries and of the keys, where a trace knows them."""
    notes: tuple[str, ...] = ()
    """What the file holds and was not read, a sentence each."""
    calls: tuple[AttentionCall, ...] = ()
    """Where in the code each layer called attention, where a trace knows it."""
    passed: PassedMasks | None = None
    """The masks that these calls were given beside those in force, where a trace knows them."""


def read(path: str | Path, size: int = MAX_BINARY, cells: int = MAX_CELLS) -> list[Contents]:
    """Return the maps of one file: one, or for a saved trace one for each kind.

    Args:
        size: most bytes of its arrays, unpacked.
        cells: most of one array.

    Raises:
        UnreadableError: whatever is wrong with the file, in a sentence.
    """
    path = Path(path)
    limits = Limits(min(size, MAX_BINARY), cells)
    try:
        return _checked(_reader(path)(path, limits), limits)
    except UnreadableError:
        raise
    except (DiagnosisError, TraceError) as error:
        raise UnreadableError(str(error)) from error
    except OSError as error:
        why = error.strerror or _short(error)
        raise UnreadableError(say("The file cannot be read: {why}.", why=why)) from error
    except Exception as error:  # whatever a parser can be made to raise, the file is to blame
        broken = say("The file is broken or is not what its name says ({why}).", why=_short(error))
        raise UnreadableError(broken) from error


def _checked(maps: list[Contents], limits: Limits) -> list[Contents]:
    """The maps, if they are no larger than may be read; a trace, of which pages show a part, may have more cells."""
    limits.check(0, sum(array.nbytes for one in maps for array in one.arrays.values()))
    limits.check(max((array.size for one in maps if not one.tokens[1] for array in one.arrays.values()), default=0), 0)
    return maps


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "..."


def _reader(path: Path) -> Reader:
    """Return what reads the file, once it is known to exist, to be of a known kind, and not too large."""
    if not path.is_file():
        raise UnreadableError(_not_a_file(path))
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        read = listed(_READERS)
        named = say("Files named {ending} are not read; {endings} are.", ending=path.suffix, endings=read)
        unnamed = say("Files without an ending are not read; {endings} are.", endings=read)
        raise UnreadableError(named if path.suffix else unnamed)
    size = path.stat().st_size
    limit = MAX_TEXT if reader in (_table, _printed_or_table, _json) else MAX_BINARY
    if size > limit:
        raise UnreadableError(
            say("The file has {size:.0f} MB; at most {most:.0f} MB are read.", size=size / 2**20, most=limit / 2**20)
        )
    if size == 0:
        raise UnreadableError(say("The file is empty."))
    return reader


def _not_a_file(path: Path) -> str:
    if path.is_dir():
        return say("'{path}' is a folder; name a file in it.", path=path)
    return say("'{path}' is not a file.", path=path) if path.exists() else say("There is no file '{path}'.", path=path)


def _npy(path: Path, limits: Limits) -> list[Contents]:
    return [Contents("", name_array(_whole_npy(path, limits), path.stem))]


def _whole_npy(path: Path, limits: Limits) -> np.ndarray:
    with path.open("rb") as file:
        array = read_npy(file, limits)
        if file.read(1):
            raise ValueError(say("more follows behind its array"))
        return array


def _npz(path: Path, limits: Limits) -> list[Contents]:
    return _contents(read_npz(path, limits))


def _safetensors(path: Path, limits: Limits) -> list[Contents]:
    data = path.read_bytes()
    if safetensors_metadata(data).get("format") == FORMAT:
        return _trace(path, limits)
    return _contents(read_safetensors(data, limits))


def _pt(path: Path, limits: Limits) -> list[Contents]:
    arrays, notes = read_torch(path, limits)
    if isinstance(arrays, dict):
        return _contents(arrays, notes)
    return [Contents("", name_array(arrays, path.stem))]


def _trace(path: Path, limits: Limits) -> list[Contents]:
    return contents_of_trace(AttentionTrace.load(path))


def contents_of_trace(trace: AttentionTrace) -> list[Contents]:
    """Return one map for each kind, (L, H, Q, K) as (1, L, H, Q, K), with the padding that the trace shows.

    Raises UnreadableError where there is no map.
    """
    if not trace.maps:
        raise UnreadableError(say("The trace in this file has no maps."))
    contents = []
    for kind, attention in trace.maps.items():
        mask = attention.mask if attention.layer_masks is None else attention.masks[None]
        arrays = {"weights": attention.weights[None], "mask": mask}
        arrays |= {name: tensor[None] for name, tensor in attention.tensors.items() if name in NAMES}
        arrays |= padding_of(trace, kind)
        calls = AttentionCall.all_from_json(attention.layer_calls)
        passed = passed_masks_of(attention, calls)
        tokens = (attention.query_tokens, attention.key_tokens)
        contents.append(Contents(kind, arrays, tokens, calls=calls, passed=passed))
    return contents


def padding_of(trace: AttentionTrace, kind: Kind) -> dict[str, np.ndarray]:
    """Return ``key_keep`` (1, K) and ``query_keep`` (1, Q) of one map where names or the encoder's mask tell them."""
    attention = trace.maps[kind]
    encoder = trace.encoder.mask if kind == "cross" and trace.encoder is not None else None
    keys = len(attention.key_tokens) - extra_keys(len(attention.query_tokens), attention.key_tokens)
    keep = known_keys(attention.key_tokens[:keys], encoder)
    keep = None if keep is None else np.pad(keep, (0, len(attention.key_tokens) - keys), constant_values=True)
    known = {"key_keep": keep, "query_keep": real_tokens(attention.query_tokens)}
    return {name: keep[None] for name, keep in known.items() if keep is not None}


def _table(path: Path, limits: Limits) -> list[Contents]:
    return [Contents("", name_array(read_table(_text(path)), path.stem))]


def _printed_or_table(path: Path, limits: Limits) -> list[Contents]:
    """Read a print of tensors, which has brackets, or else a table."""
    text = _text(path)
    if "[" not in text:
        return _table(path, limits)
    arrays = read_printed(text)
    if set(arrays) == {""}:
        return [Contents("", name_array(arrays[""], path.stem))]
    return _contents(arrays)


def _json(path: Path, limits: Limits) -> list[Contents]:
    """Read an object of arrays by name, or one array. ``null`` is NaN."""
    text = _text(path)
    limits.check(text.count(",") + text.count("["), 0)  # Before it is read: a list takes more memory than its text.
    value = json.loads(text)
    if isinstance(value, dict):
        return _contents({name: _array(name, value[name]) for name in known_names(value)}, unread_note(value))
    return [Contents("", name_array(_array(say("The content of this file"), value), path.stem))]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(say("The file is not text in UTF-8; save it as such.")) from error


def _array(name: str, nested: Any) -> np.ndarray:
    try:
        array = np.array(nested)
        return np.array(nested, dtype=np.float64) if array.dtype == object else array
    except (ValueError, TypeError) as error:
        irregular = say("{name} is not a regular array of numbers; its rows must be of one length.", name=name)
        raise UnreadableError(irregular) from error


def _contents(arrays: dict[str, np.ndarray], notes: tuple[str, ...] = ()) -> list[Contents]:
    unread = notes or unread_note(arrays)
    return [Contents(kind, group, notes=unread) for kind, group in group_by_map(arrays).items()]


_READERS: dict[str, Reader] = {
    ".npz": _npz,
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".csv": _table,
    ".tsv": _table,
    ".txt": _printed_or_table,
    ".json": _json,
    ".pt": _pt,
}
ENDINGS = tuple(_READERS)
"""Endings of the files that are read."""
