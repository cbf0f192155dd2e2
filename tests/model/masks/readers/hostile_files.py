"""Files that nobody should send: random bytes, truncated and mutated files, lies in headers, pickles, bombs."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

ENDINGS = (".npz", ".npy", ".safetensors", ".csv", ".json")


class Bomb:
    """Unpickling this creates a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def special(mark: Path) -> dict[str, bytes]:
    """Hand-made hostile files by name."""
    bomb = np.empty(1, object)
    bomb[0] = Bomb(mark)
    return {
        "pickled.npy": _npy(bomb, allow_pickle=True),
        "pickled.npz": _zip({"weights.npy": _npy(bomb, allow_pickle=True)}),
        "pickle.npy": pickle.dumps(Bomb(mark)),
        "promise.npy": _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"),
        "negative.npy": _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -8), }"),
        "nan.npy": _npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (nan, 2), }"),
        "deep.npy": _npy_header("(" * 4000 + ")" * 4000),
        "call.npy": _npy_header("__import__('os').system('true')"),
        "axes.npy": _npy_header("{'descr': '|b1', 'fortran_order': False, 'shape': (" + "1," * 60 + "), }") + b"\1",
        "records.npy": _npy(np.zeros(3, [("a", "f8")])),
        "text.npy": _npy(np.array(["a", "b"])),
        "complex.npy": _npy(np.zeros((2, 2), complex)),
        "bomb.npz": _zip({"weights.npy": b"\0" * (300 * 2**20)}),
        "many.npz": _zip({f"{n}.npy": b"" for n in range(200)}),
        "liar.npz": _lying_zip(),
        "none.npz": _zip({}),
        "shared.safetensors": _shared_safetensors(),
        "deep.json": b"[" * 100_000 + b"]" * 100_000,
        "deeper.json": b'{"weights":' * 50_000 + b"1" + b"}" * 50_000,
        "ragged.json": b'{"weights": [[1], [1, 2]]}',
        "huge.json": b'{"weights": [[1e999, ' + b"9" * 5000 + b"]]}",
        "string.json": b'{"weights": [["a", "b"]]}',
        "null.json": b"null",
        "number.json": b"3",
        "bytes.json": b"\xff\xfe\0\0",
        "ragged.csv": b"1,2\n3\n",
        "words.csv": b"a,b\nc,d\n",
        "quote.csv": b'"' + b"x" * 200_000,
        "empty.csv": b"",
        "blank.csv": b"\n\n",
        "long.safetensors": struct.pack("<Q", 2**63) + b"{}",
        "list.safetensors": _safetensors([]),
        "outside.safetensors": _safetensors({"weights": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 999]}}),
        "back.safetensors": _safetensors({"weights": {"dtype": "F32", "shape": [0], "data_offsets": [5, 2]}}),
        "shape.safetensors": _safetensors({"weights": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 0]}}),
        "words.safetensors": _safetensors({"weights": {"dtype": "F32", "shape": "ab", "data_offsets": [0, 0]}}),
        "kind.safetensors": _safetensors({"weights": {"dtype": "F4", "shape": [1], "data_offsets": [0, 0]}}),
        "meta.safetensors": _safetensors({"__metadata__": {"format": "attenscope-trace-1", "trace": "[" * 9999}}),
        "trace.safetensors": _safetensors(
            {"__metadata__": {"format": "attenscope-trace-1", "trace": '{"settings":{}}'}}
        ),
        "noending": b"1",
        "model.pt": pickle.dumps(Bomb(mark)),
    }


def mutated(random: np.random.Generator) -> tuple[str, bytes]:
    """A random file, or a good one cut or changed somewhere."""
    ending = str(random.choice(ENDINGS))
    if random.random() < 0.25:
        return ending, random.bytes(int(random.integers(0, 400)))
    data = bytearray(_good(random, ending) or b"0")
    kind = random.integers(3)
    if kind == 0:
        return ending, bytes(data[: int(random.integers(0, len(data)))])
    for _ in range(int(random.integers(1, 8)) if kind == 1 else 0):
        data[int(random.integers(0, len(data)))] = int(random.integers(0, 256))
    return ending, bytes(data)


def _good(random: np.random.Generator, ending: str) -> bytes:
    """Arrays of random names, kinds and shapes, most of which do not fit together."""
    arrays = {str(name): _array(random) for name in random.choice(_NAMES, int(random.integers(1, 5)), replace=False)}
    first = next(iter(arrays.values()))
    if ending == ".npy":
        return _npy(first)
    if ending == ".npz":
        return _zip({f"{name}.npy": _npy(array) for name, array in arrays.items()})
    if ending == ".safetensors":
        return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    if ending == ".json":
        return json.dumps({name: array.tolist() for name, array in arrays.items()}).encode()
    return "\n".join(",".join(map(str, np.atleast_1d(row).ravel())) for row in np.atleast_1d(first)).encode()


_NAMES = (
    "weights",
    "scores",
    "masked_scores",
    "mask",
    "key_keep",
    "query_keep",
    "meant",
    "cross.weights",
    "x",
)


def _array(random: np.random.Generator) -> np.ndarray:
    shape = tuple(
        int(size) for size in random.integers(0 if random.random() < 0.1 else 1, 5, int(random.integers(0, 6)))
    )
    values = random.normal(size=shape) * float(random.choice([0, 1, 1e9, 1e300]))
    values = np.where(random.random(shape) < 0.1, random.choice([np.nan, np.inf, -np.inf, 0]), values)
    with np.errstate(all="ignore"):
        if random.random() < 0.5 and values.ndim > 1:
            values = np.exp(-abs(values))
            values = values / values.sum(-1, keepdims=True)
        kind = str(random.choice(["f8", "f4", "f2", "?", "i4", "u1"]))
        return (np.nan_to_num(values) if kind in ("i4", "u1") else values).astype(kind)


def _npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def _npy_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", min(len(text), 65535)) + text.encode()[:65535]


def _zip(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def _lying_zip() -> bytes:
    """An archive whose directory says that a member is small, and it is not."""
    data = bytearray(_zip({"weights.npy": zlib.compress(b"0" * 9) + b"\0" * 2**20}))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = struct.pack("<I", 64)
    return bytes(data)


def _safetensors(header: Any) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def _shared_safetensors() -> bytes:
    """4,000 arrays that are all the same 16 MB."""
    size = 2**24
    entry = {"dtype": "F32", "shape": [1, 1, 2048, 2048], "data_offsets": [0, size]}
    header = json.dumps({f"weights.{number}": entry for number in range(4000)}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * size
