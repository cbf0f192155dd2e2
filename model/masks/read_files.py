"""Arrays from untrusted files: .npy, .npz, .safetensors, .pt, .json, tables of text, and saved traces."""

from __future__ import annotations

import json
import math
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..language import join_items, join_sentences, say, say_many
from ..trace import TRACE_FORMAT, AttentionMap, AttentionTrace, Kind, TraceError
from .arrays import (
    ARRAY_NAMES,
    MAX_CELLS,
    DiagnosisError,
    check_numeric_array,
    is_tensor,
    stack_layer_tensors,
    tensor_to_array,
)
from .attention_call_origin import AttentionCall
from .read_text import (
    group_by_map,
    is_drawn_mask,
    name_array,
    read_printed_tensors,
    read_table,
    select_known_array_names,
    unread_array_names_text,
)
from .softmax import count_extra_keys, detect_real_keys, detect_real_tokens

# Array formats read byte by byte, so that a header can promise nothing that the file does not hold.
#
# Formats: numpy's .npy and .npz (numpy.lib.format), safetensors (https://github.com/huggingface/safetensors).


_MAX_HEADER_BYTES = 10_000
"""Longest .npy header that is read; numpy's own limit."""
_MAX_MEMBERS = 64
_SAFETENSORS_TYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
    "I16": "<i2",
    "U16": "<u2",
    "I32": "<i4",
    "U32": "<u4",
    "I64": "<i8",
    "U64": "<u8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "BF16": "<u2",
}


class TooLargeError(ValueError):
    """Arrays of more bytes than may be read; the message says so."""


class _TextArrayError(ValueError):
    """An array of text where numbers are read."""


@dataclass(frozen=True)
class ArrayLimits:
    """The most that is read of the arrays of a file."""

    size: int
    """Bytes of all arrays, unpacked."""
    cells: int
    """Cells of one array."""

    def check(self, cells: int, size: int) -> None:
        """Raise ValueError for an array of so many cells, and TooLargeError for arrays of so many bytes."""
        if cells > self.cells:
            raise ValueError(
                say("an array has {cells:,} cells, and at most {most:,} are read", cells=cells, most=self.cells)
            )
        if size > self.size:
            raise TooLargeError(say("unpacked it would be larger than {size:.0f} MB", size=self.size / 2**20))


def read_npy(file: IO[bytes], limits: ArrayLimits) -> np.ndarray:
    """Return the array of numbers in a .npy. Raises ValueError for anything else; objects are never unpickled."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(say("its .npy version {version} is not read", version=version))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, fortran, dtype = readers[version](file, max_header_size=_MAX_HEADER_BYTES)
    if dtype.kind not in "biuf":
        error = _TextArrayError if dtype.kind in "US" else ValueError
        raise error(say("it holds {kind} values, not numbers; pickled objects are never loaded", kind=dtype))
    want = _count_bytes(shape, dtype, limits)
    array = _bytes_to_array(file.read(want + 1), dtype, shape[::-1] if fortran else shape, limits)
    return array.T if fortran else array


def _count_bytes(shape: tuple[int, ...], dtype: np.dtype, limits: ArrayLimits) -> int:
    """Return the bytes of an array. Raises ValueError for a shape that is none, or too large."""
    if len(shape) > 8 or any(not isinstance(size, int) or size < 0 for size in shape):
        raise ValueError(say("its shape is not one"))
    cells = math.prod(shape)
    limits.check(cells, cells * dtype.itemsize)
    return cells * dtype.itemsize


def _bytes_to_array(
    data: bytes | memoryview, dtype: np.dtype, shape: tuple[int, ...], limits: ArrayLimits
) -> np.ndarray:
    """Return the bytes as an array, if they are exactly as many as the shape says. Raises ValueError."""
    want = _count_bytes(shape, dtype, limits)
    if want != len(data):
        raise ValueError(
            say("its header promises {promised:,} bytes and {bytes:,} are there", promised=want, bytes=len(data))
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def read_npz(path: Path, limits: ArrayLimits) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the arrays of numbers in a .npz, and the names of what is text beside them. Raises ValueError."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        if len(members) > _MAX_MEMBERS:
            raise ValueError(say("it holds {count} arrays; {most} are read", count=len(members), most=_MAX_MEMBERS))
        limits.check(0, sum(member.file_size for member in members))
        arrays, texts = {}, {}
        for member in members:
            name = member.filename[:-4]
            try:
                arrays[name] = _read_member(archive, member, limits)
            except _TextArrayError as error:
                texts[name] = error
    if texts and not arrays:
        raise next(iter(texts.values()))
    return arrays, list(texts)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limits: ArrayLimits) -> np.ndarray:
    """Return the array of one member; no more of it is unpacked than its own header promises."""
    with archive.open(member) as file:
        return read_npy(file, limits)


def _read_safetensors_header(data: bytes) -> tuple[dict[str, Any], int]:
    if len(data) < 8:
        raise ValueError(say("it is too short"))
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(len(data) - 8, 2**24):
        raise ValueError(say("its header is longer than the file"))
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError(say("its header is not an object"))
    return header, 8 + length


def read_safetensors_metadata(data: bytes) -> dict[str, Any]:
    """Return the free text in the header of a safetensors file. Raises ValueError."""
    metadata = _read_safetensors_header(data)[0].get("__metadata__", {})
    return metadata if isinstance(metadata, dict) else {}


def read_safetensors(data: bytes, limits: ArrayLimits) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file, bfloat16 widened to float32. Raises ValueError."""
    header, start = _read_safetensors_header(data)
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if len(tensors) > 4096:
        raise ValueError(say("it holds {count} arrays", count=len(tensors)))
    _check_no_overlap(tensors)
    return {name: _read_tensor_entry(entry, memoryview(data)[start:], limits) for name, entry in tensors.items()}


def _check_no_overlap(tensors: dict[str, Any]) -> None:
    """Raise ValueError where two arrays share bytes: a small file could then hold any number of large arrays."""
    places = sorted(tuple(entry["data_offsets"]) for entry in tensors.values())
    if any(start < end for (_, end), (start, _) in pairwise(places)):
        raise ValueError(say("its arrays lie over each other"))


def _read_tensor_entry(entry: dict[str, Any], data: memoryview, limits: ArrayLimits) -> np.ndarray:
    kind, (first, last) = entry["dtype"], entry["data_offsets"]
    if kind not in _SAFETENSORS_TYPES:
        raise ValueError(say("it holds {kind} values", kind=repr(kind)))
    if not (isinstance(first, int) and isinstance(last, int) and 0 <= first <= last <= len(data)):
        raise ValueError(say("its offsets lie outside the file"))
    array = _bytes_to_array(data[first:last], np.dtype(_SAFETENSORS_TYPES[kind]), tuple(entry["shape"]), limits)
    if kind == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


# Tensors of a .pt file, through torch.load(weights_only=True) alone: no code of the file is run.


MAX_EXPANSION = 2**25
"""Most bytes of tensors that share what they store, such as a mask expanded to all heads: a few bytes hold any size."""


def read_torch_file(path: Path, limits: ArrayLimits) -> tuple[dict[str, np.ndarray] | np.ndarray, tuple[str, ...]]:
    """Return the tensor of a file, its list of one tensor (B, H, Q, K) a layer, or its dictionary by known names.

    With it comes a sentence about the names that are not read, or nothing.

    Raises:
        DiagnosisError: for anything but tensors, and for files of torch before 1.6, which are bare pickles.
        ValueError: for more than the limits.
    """
    import torch  # The other formats are read without it.

    if not zipfile.is_zipfile(path):
        raise DiagnosisError(
            say("This .pt file is not of the form that torch writes since 1.6. Save it again, or as .npz.")
        )
    with zipfile.ZipFile(path) as archive:
        limits.check(0, sum(member.file_size for member in archive.infolist()))
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch names the reason in many lines, with advice that nobody should follow here
        raise DiagnosisError(
            say(
                "This .pt file holds more than tensors, or is broken. Only plain tensors are loaded, never code: save "
                "{example}.",
                example="torch.save({'weights': weights}, ...)",
            )
        ) from error
    if isinstance(content, dict):
        found = {name: content[name] for name in select_known_array_names(content) if content[name] is not None}
        _check_tensor_sizes(found.values(), limits)
        return {name: _tensor_to_array(name, value) for name, value in found.items()}, unread_array_names_text(content)
    _check_tensor_sizes([content], limits)
    return _tensor_to_array(say("the content of this file"), content), ()


def _check_tensor_sizes(values: Iterable[Any], limits: ArrayLimits) -> None:
    """Raise ValueError where the arrays are larger than the limits: a view may promise more than is stored."""
    total = expanded = 0
    for value in values:
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if not is_tensor(one):
                continue
            size = one.numel() * one.element_size()
            total += size
            if str(one.layout) == "torch.strided" and size > one.untyped_storage().nbytes():
                expanded += size
            limits.check(one.numel(), 0)
            for found, most, error in ((total, limits.size, TooLargeError), (expanded, MAX_EXPANSION, ValueError)):
                if found > most:
                    raise error(say("its arrays would be larger than {size:.0f} MB", size=most / 2**20))


def _tensor_to_array(name: str, value: Any) -> np.ndarray:
    if is_tensor(value):
        return tensor_to_array(name, value)
    if isinstance(value, (list, tuple)) and value:
        return stack_layer_tensors(name, value)
    kind = type(value).__name__
    raise DiagnosisError(say("{name} is of the type {kind}, not a tensor; save a tensor.", name=name, kind=kind))


# The masks passed to calls of attention, compared layer by layer with those in force.


@dataclass(frozen=True, eq=False)
class PassedMasks:
    """Both masks of every layer, (L, 1 or H, Q, K) bool, True = may attend."""

    passed: np.ndarray
    """All open where none arrived."""
    in_force: np.ndarray
    calls: tuple[AttentionCall, ...]
    """(L,) what arrived at each layer."""

    def layer(self, at: int) -> PassedMasks:
        """Return one layer, from 0, alone."""
        one = slice(at, at + 1)
        return PassedMasks(self.passed[one], self.in_force[one], self.calls[one])

    def find_differing_layers(self) -> list[int]:
        """Return the layers, from 0, in which the mask in force is not what was passed."""
        differ = (self.passed != self.in_force).any((1, 2, 3))
        return [at for at, (one, call) in enumerate(zip(differ, self.calls, strict=True)) if one and call.passed_cells]

    def sentences(self) -> list[tuple[list[int], str]]:
        """Return (layers from 0, what became of the mask passed to them), layers of one sentence together."""
        found: dict[str, list[int]] = {}
        for at, call in enumerate(self.calls):
            found.setdefault(passed_mask_text(call, self.passed[at], self.in_force[at]), []).append(at)
        return [(layers, sentence) for sentence, layers in found.items()]


def find_passed_masks(attention: AttentionMap, calls: Sequence[AttentionCall]) -> PassedMasks | None:
    """Return both masks of a captured map; None where it was not recorded what its ``calls`` (L,) were given."""
    if not calls or any(call.passed is None for call in calls):
        return None
    in_force, passed = attention.masks, attention.passed_masks
    if passed is None:
        passed = np.ones((1, 1, *in_force.shape[2:]), bool)
    shape = (len(calls), max(passed.shape[1], in_force.shape[1]), *in_force.shape[2:])
    return PassedMasks(np.broadcast_to(passed, shape), np.broadcast_to(in_force, shape), tuple(calls))


def passed_mask_text(call: AttentionCall, passed: np.ndarray, in_force: np.ndarray) -> str:
    """Return what became of the mask that was passed to one layer.

    ``passed`` and ``in_force`` are (H, Q, K) bool, True = may attend; a cell counts once, in whatever head.
    """
    if not call.passed_cells:
        return say("What was passed is not drawn: {passed}.", passed=call.passed_masks_description)
    blocked = {"blocked": len(_find_true_cells(~in_force)), "cells": passed.shape[1] * passed.shape[2]}
    if not call.passed:
        if not blocked["blocked"]:
            return say("No mask arrived, and none is in force.")
        return say(
            "No mask arrived; what blocks {blocked:,} of {cells:,} cells was made inside of {module}.",
            **blocked,
            module=call.module,
        )
    ignored, added = _find_true_cells(~passed & in_force), _find_true_cells(passed & ~in_force)
    if not len(ignored) and not len(added):
        return say(
            "In force as passed ({passed}): {blocked:,} of {cells:,} cells are blocked.",
            passed=call.passed_masks_description,
            **blocked,
        )
    said = [say("Passed was {passed}.", passed=call.passed_masks_description)]
    hidden = len(_find_true_cells(~passed))
    if len(ignored) and not (~passed & ~in_force).any():
        said.append(
            say("It takes no effect: none of the {cells:,} cells that it blocks is blocked in force.", cells=hidden)
        )
    elif len(ignored):
        said.append(
            say_many(
                "{count:,} of the {cells:,} cells that it blocks is open in force, such as query {query}, key {key}.",
                "{count:,} of the {cells:,} cells that it blocks are open in force, such as query {query}, key {key}.",
                len(ignored),
                cells=hidden,
                **_get_first_cell_numbers(ignored),
            )
        )
    if len(added):
        said.append(
            say_many(
                "{count:,} cell that it leaves open is blocked in force, such as query {query}, key {key}.",
                "{count:,} cells that it leaves open are blocked in force, such as query {query}, key {key}.",
                len(added),
                **_get_first_cell_numbers(added),
            )
        )
    return join_sentences(*said)


def _find_true_cells(mask: np.ndarray) -> np.ndarray:
    """Return (N, 2): the queries and keys where any head has True."""
    return np.argwhere(mask.any(0))


def _get_first_cell_numbers(cells: np.ndarray) -> dict[str, int]:
    query, key = cells[0].tolist()
    return {"query": query + 1, "key": key + 1}


# The maps of any file. Nothing is unpickled (a .pt goes through torch.load(weights_only=True)), nothing is allocated
# because a header says so, and every refusal is a sentence.


MAX_BINARY_BYTES = 256 * 2**20
"""Most bytes of arrays, unpacked."""
MAX_TEXT_BYTES = 32 * 2**20
"""Most bytes of tables and .json, which grow when read."""


FileReader = Callable[[Path, ArrayLimits], "list[MapContents]"]


class UnreadableError(DiagnosisError):
    """A file that cannot be read; the message is one sentence."""


@dataclass(frozen=True, eq=False)
class MapContents:
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


def read_array_file(path: str | Path, size: int = MAX_BINARY_BYTES, cells: int = MAX_CELLS) -> list[MapContents]:
    """Return the maps of one file: one, or for a saved trace one for each kind.

    Args:
        size: most bytes of its arrays, unpacked.
        cells: most cells of one array.

    Raises:
        UnreadableError: whatever is wrong with the file, in a sentence.
    """
    path = Path(path)
    limits = ArrayLimits(min(size, MAX_BINARY_BYTES), cells)
    try:
        return _check_limits(_find_reader(path)(path, limits), limits)
    except UnreadableError:
        raise
    except (DiagnosisError, TraceError) as error:
        raise UnreadableError(str(error)) from error
    except OSError as error:
        why = error.strerror or _shorten_error(error)
        raise UnreadableError(say("The file cannot be read: {why}.", why=why)) from error
    except Exception as error:  # whatever a parser can be made to raise, the file is to blame
        broken = say("The file is broken or is not what its name says ({why}).", why=_shorten_error(error))
        raise UnreadableError(broken) from error


def _check_limits(maps: list[MapContents], limits: ArrayLimits) -> list[MapContents]:
    """Return the maps if they hold numbers, and no more than may be read; a trace, shown in parts, may have more cells.

    Raises ValueError and DiagnosisError.
    """
    limits.check(0, sum(array.nbytes for one in maps for array in one.arrays.values()))
    for name, array in (named for one in maps if not one.tokens[1] for named in one.arrays.items()):
        limits.check(array.size, 0)
        check_numeric_array(name, array)
    return maps


def _shorten_error(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "..."


def _find_reader(path: Path) -> FileReader:
    """Return what reads the file, once it is known to exist, to be of a known kind, and not too large."""
    if not path.is_file():
        raise UnreadableError(_missing_file_text(path))
    reader = _FILE_READERS.get(path.suffix.lower())
    if reader is None:
        read = join_items(_FILE_READERS)
        named = say("Files named {ending} are not read; {endings} are.", ending=path.suffix, endings=read)
        unnamed = say("Files without an ending are not read; {endings} are.", endings=read)
        raise UnreadableError(named if path.suffix else unnamed)
    size = path.stat().st_size
    limit = MAX_TEXT_BYTES if reader in (_read_table_maps, _read_text_maps, _read_json_maps) else MAX_BINARY_BYTES
    if size > limit:
        raise UnreadableError(
            say("The file has {size:.0f} MB; at most {most:.0f} MB are read.", size=size / 2**20, most=limit / 2**20)
        )
    if size == 0:
        raise UnreadableError(say("The file is empty."))
    return reader


def _missing_file_text(path: Path) -> str:
    if path.is_dir():
        return say("'{path}' is a folder; name a file in it.", path=path)
    return say("'{path}' is not a file.", path=path) if path.exists() else say("There is no file '{path}'.", path=path)


_UNNAMED_NPZ_ARRAY = "arr_0"
"""What numpy.savez calls the first array that was given no name."""


def _read_npy_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    return [MapContents("", name_array(_read_whole_npy(path, limits), path.stem))]


def _read_whole_npy(path: Path, limits: ArrayLimits) -> np.ndarray:
    with path.open("rb") as file:
        array = read_npy(file, limits)
        if file.read(1):
            raise ValueError(say("more follows behind its array"))
        return array


def _read_npz_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    arrays, texts = read_npz(path, limits)
    said = (say("Not read, since it is text: {names}.", names=join_items(map(repr, texts))),) if texts else ()
    if list(arrays) == [_UNNAMED_NPZ_ARRAY]:
        return [MapContents("", name_array(arrays[_UNNAMED_NPZ_ARRAY], path.stem), notes=said)]
    return _group_into_maps(arrays, unread_array_names_text(arrays) + said)


def _read_safetensors_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    data = path.read_bytes()
    if read_safetensors_metadata(data).get("format") == TRACE_FORMAT:
        return extract_trace_maps(AttentionTrace.load(path))
    return _group_into_maps(read_safetensors(data, limits))


def _read_torch_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    arrays, notes = read_torch_file(path, limits)
    if isinstance(arrays, dict):
        return _group_into_maps(arrays, notes)
    return [MapContents("", name_array(arrays, path.stem))]


def extract_trace_maps(trace: AttentionTrace) -> list[MapContents]:
    """Return one map for each kind, (L, H, Q, K) as (1, L, H, Q, K), with the padding that the trace shows.

    Raises UnreadableError where there is no map.
    """
    if not trace.maps:
        raise UnreadableError(say("The trace in this file has no maps."))
    contents = []
    for kind, attention in trace.maps.items():
        mask = attention.mask if attention.layer_masks is None else attention.masks[None]
        arrays = {"weights": attention.weights[None], "mask": mask}
        arrays |= {name: tensor[None] for name, tensor in attention.tensors.items() if name in ARRAY_NAMES}
        arrays |= find_trace_padding(trace, kind)
        calls = AttentionCall.parse_calls_from_json(attention.layer_calls)
        passed = find_passed_masks(attention, calls)
        tokens = (attention.query_tokens, attention.key_tokens)
        contents.append(MapContents(kind, arrays, tokens, calls=calls, passed=passed))
    return contents


def find_trace_padding(trace: AttentionTrace, kind: Kind) -> dict[str, np.ndarray]:
    """Return ``key_keep`` (1, K) and ``query_keep`` (1, Q) of one map where names or the encoder's mask tell them."""
    attention = trace.maps[kind]
    encoder = trace.encoder.mask if kind == "cross" and trace.encoder is not None else None
    keys = len(attention.key_tokens) - count_extra_keys(len(attention.query_tokens), attention.key_tokens)
    keep = detect_real_keys(attention.key_tokens[:keys], encoder)
    keep = None if keep is None else np.pad(keep, (0, len(attention.key_tokens) - keys), constant_values=True)
    known = {"key_keep": keep, "query_keep": detect_real_tokens(attention.query_tokens)}
    return {name: keep[None] for name, keep in known.items() if keep is not None}


def _read_table_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    return [MapContents("", name_array(read_table(_read_file_text(path)), path.stem))]


def _read_text_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    """Read a print of tensors, which has brackets, or else a table."""
    text = _read_file_text(path)
    if "[" not in text and not is_drawn_mask(text):
        return _read_table_maps(path, limits)
    arrays = read_printed_tensors(text)
    if set(arrays) == {""}:
        return [MapContents("", name_array(arrays[""], path.stem))]
    return _group_into_maps(arrays)


def _read_json_maps(path: Path, limits: ArrayLimits) -> list[MapContents]:
    """Read an object of arrays by name, or one array. ``null`` is NaN."""
    text = _read_file_text(path)
    limits.check(text.count(",") + text.count("["), 0)  # Before it is read: a list takes more memory than its text.
    value = json.loads(text)
    if isinstance(value, dict):
        return _group_into_maps(
            {name: _nested_to_array(name, value[name]) for name in select_known_array_names(value)},
            unread_array_names_text(value),
        )
    return [MapContents("", name_array(_nested_to_array(say("The content of this file"), value), path.stem))]


def _read_file_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(say("The file is not text in UTF-8; save it as such.")) from error


def _nested_to_array(name: str, nested: Any) -> np.ndarray:
    try:
        array = np.array(nested)
        return np.array(nested, dtype=np.float64) if array.dtype == object else array
    except (ValueError, TypeError) as error:
        irregular = say("{name} is not a regular array of numbers; its rows must be of one length.", name=name)
        raise UnreadableError(irregular) from error


def _group_into_maps(arrays: dict[str, np.ndarray], notes: tuple[str, ...] = ()) -> list[MapContents]:
    unread = notes or unread_array_names_text(arrays)
    return [MapContents(kind, group, notes=unread) for kind, group in group_by_map(arrays).items()]


_FILE_READERS: dict[str, FileReader] = {
    ".npz": _read_npz_maps,
    ".npy": _read_npy_maps,
    ".safetensors": _read_safetensors_maps,
    ".csv": _read_table_maps,
    ".tsv": _read_table_maps,
    ".txt": _read_text_maps,
    ".json": _read_json_maps,
    ".pt": _read_torch_maps,
}
FILE_ENDINGS = tuple(_FILE_READERS)
"""Endings of the files that are read."""
