"""Array formats read byte by byte, so that a header can promise nothing that the file does not hold.

Formats: numpy's .npy and .npz (numpy.lib.format), safetensors (https://github.com/huggingface/safetensors).
"""

from __future__ import annotations

import json
import math
import struct
import warnings
import zipfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from ...language.say import say

_HEADER = 10_000
"""Longest .npy header that is read; numpy's own limit."""
_MAX_MEMBERS = 64
_TYPES = {
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


@dataclass(frozen=True)
class Limits:
    """What the arrays of a file may have."""

    size: int
    """Bytes of all, unpacked."""
    cells: int
    """Of one."""

    def check(self, cells: int, size: int) -> None:
        """Raise ValueError for an array of so many cells, and TooLargeError for arrays of so many bytes."""
        if cells > self.cells:
            raise ValueError(
                say("an array has {cells:,} cells, and at most {most:,} are read", cells=cells, most=self.cells)
            )
        if size > self.size:
            raise TooLargeError(say("unpacked it would be larger than {size:.0f} MB", size=self.size / 2**20))


def read_npy(file: IO[bytes], limits: Limits) -> np.ndarray:
    """Return the array of numbers in a .npy. Raises ValueError for anything else; objects are never unpickled."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(say("its .npy version {version} is not read", version=version))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, fortran, dtype = readers[version](file, max_header_size=_HEADER)
    if dtype.kind not in "biuf":
        raise ValueError(say("it holds {kind} values, not numbers; pickled objects are never loaded", kind=dtype))
    want = _size(shape, dtype, limits)
    array = _array_of_size(file.read(want + 1), dtype, shape[::-1] if fortran else shape, limits)
    return array.T if fortran else array


def _size(shape: tuple[int, ...], dtype: np.dtype, limits: Limits) -> int:
    """Return the bytes of an array. Raises ValueError for a shape that is none, or too large."""
    if len(shape) > 8 or any(not isinstance(size, int) or size < 0 for size in shape):
        raise ValueError(say("its shape is not one"))
    cells = math.prod(shape)
    limits.check(cells, cells * dtype.itemsize)
    return cells * dtype.itemsize


def _array_of_size(data: bytes | memoryview, dtype: np.dtype, shape: tuple[int, ...], limits: Limits) -> np.ndarray:
    """Return the bytes as an array, if they are exactly as many as the shape says. Raises ValueError."""
    want = _size(shape, dtype, limits)
    if want != len(data):
        raise ValueError(
            say("its header promises {promised:,} bytes and {bytes:,} are there", promised=want, bytes=len(data))
        )
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def read_npz(path: Path, limits: Limits) -> dict[str, np.ndarray]:
    """Return the arrays of a .npz. Raises ValueError."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        if len(members) > _MAX_MEMBERS:
            raise ValueError(say("it holds {count} arrays; {most} are read", count=len(members), most=_MAX_MEMBERS))
        limits.check(0, sum(member.file_size for member in members))
        return {member.filename[:-4]: _member(archive, member, limits) for member in members}


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limits: Limits) -> np.ndarray:
    """Return the array of one member; no more of it is unpacked than its own header promises."""
    with archive.open(member) as file:
        return read_npy(file, limits)


def _safetensors_header(data: bytes) -> tuple[dict[str, Any], int]:
    if len(data) < 8:
        raise ValueError(say("it is too short"))
    (length,) = struct.unpack("<Q", data[:8])
    if length > min(len(data) - 8, 2**24):
        raise ValueError(say("its header is longer than the file"))
    header = json.loads(data[8 : 8 + length].decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError(say("its header is not an object"))
    return header, 8 + length


def safetensors_metadata(data: bytes) -> dict[str, Any]:
    """Return the free text in the header of a safetensors file. Raises ValueError."""
    metadata = _safetensors_header(data)[0].get("__metadata__", {})
    return metadata if isinstance(metadata, dict) else {}


def read_safetensors(data: bytes, limits: Limits) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file, bfloat16 widened to float32. Raises ValueError."""
    header, start = _safetensors_header(data)
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if len(tensors) > 4096:
        raise ValueError(say("it holds {count} arrays", count=len(tensors)))
    _check_no_overlap(tensors)
    return {name: _tensor(entry, memoryview(data)[start:], limits) for name, entry in tensors.items()}


def _check_no_overlap(tensors: dict[str, Any]) -> None:
    """Raise ValueError where two arrays share bytes: a small file could then hold any number of large arrays."""
    places = sorted(tuple(entry["data_offsets"]) for entry in tensors.values())
    if any(start < end for (_, end), (start, _) in pairwise(places)):
        raise ValueError(say("its arrays lie over each other"))


def _tensor(entry: dict[str, Any], data: memoryview, limits: Limits) -> np.ndarray:
    kind, (first, last) = entry["dtype"], entry["data_offsets"]
    if kind not in _TYPES:
        raise ValueError(say("it holds {kind} values", kind=repr(kind)))
    if not (isinstance(first, int) and isinstance(last, int) and 0 <= first <= last <= len(data)):
        raise ValueError(say("its offsets lie outside the file"))
    array = _array_of_size(data[first:last], np.dtype(_TYPES[kind]), tuple(entry["shape"]), limits)
    if kind == "BF16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array
