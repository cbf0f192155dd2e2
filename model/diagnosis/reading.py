"""Files to arrays, without trusting them: .npz, .npy, .safetensors, .csv, .json, .pt, and saved traces.

Nothing is unpickled (a .pt goes through torch.load(weights_only=True)), nothing is allocated because a header says
so, and every refusal is a sentence.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..trace import FORMAT, AttentionTrace, TraceError
from .binary import read_npy, read_npz, read_safetensors, safetensors_metadata
from .inputs import NAMES, Arrays, DiagnosisError, arrange
from .torch_file import read_torch

MAX_BINARY = 256 * 2**20
"""Bytes of arrays, unpacked."""
MAX_TEXT = 32 * 2**20
"""Bytes of .csv and .json, which grow when read."""


class UnreadableError(DiagnosisError):
    """A file that cannot be read; the message is one sentence."""


@dataclass(frozen=True, eq=False)
class Contents:
    """One map of a file: its name, and its arrays by name."""

    map: str
    arrays: dict[str, np.ndarray]
    tokens: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Of the queries and of the keys, where a trace knows them."""


def read(path: str | Path) -> list[Contents]:
    """The maps of one file: one, or for a saved trace one for each kind.

    Raises:
        UnreadableError: whatever is wrong with the file, in a sentence.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UnreadableError(
            f"Files named {path.suffix or 'without an ending'} are not read; {', '.join(_READERS)} are."
        )
    try:
        _check_size(path)
        return reader(path)
    except UnreadableError:
        raise
    except (DiagnosisError, TraceError) as error:
        raise UnreadableError(str(error)) from error
    except Exception as error:  # whatever a parser can be made to raise, the file is to blame
        raise UnreadableError(f"The file is broken or is not what its name says ({_short(error)}).") from error


def prepare(contents: Contents) -> Arrays:
    """One map's arrays in one form. Raises DiagnosisError."""
    return arrange(contents.arrays, contents.map)


def _short(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) < 160 else text[:157] + "..."


def _check_size(path: Path) -> None:
    if not path.is_file():
        raise UnreadableError("There is no such file." if not path.exists() else "This is not a file.")
    size = path.stat().st_size
    limit = MAX_TEXT if path.suffix.lower() in (".csv", ".json") else MAX_BINARY
    if size > limit:
        raise UnreadableError(f"The file has {size / 2**20:.0f} MB; at most {limit / 2**20:.0f} MB are read.")
    if size == 0:
        raise UnreadableError("The file is empty.")


def _npy(path: Path) -> list[Contents]:
    return [Contents("", named(read_npy(path.read_bytes()), path.stem))]


def _npz(path: Path) -> list[Contents]:
    return _several(read_npz(path, MAX_BINARY))


def _safetensors(path: Path) -> list[Contents]:
    data = path.read_bytes()
    if safetensors_metadata(data).get("format") == FORMAT:
        return _trace(path)
    return _several(read_safetensors(data))


def _pt(path: Path) -> list[Contents]:
    found = read_torch(path, MAX_BINARY)
    return _several(found) if isinstance(found, dict) else [Contents("", named(found, path.stem))]


def _trace(path: Path) -> list[Contents]:
    return of_trace(AttentionTrace.load(path))


def of_trace(trace: AttentionTrace) -> list[Contents]:
    """One map for each kind, (L, H, Q, K) as (1, L, H, Q, K). Raises UnreadableError where there is none."""
    if not trace.maps:
        raise UnreadableError("The trace in this file has no maps.")
    found = []
    for kind, one in trace.maps.items():
        arrays = {"weights": one.weights[None], "mask": one.mask}
        arrays |= {name: tensor[None] for name, tensor in one.tensors.items() if name in NAMES}
        found.append(Contents(kind, arrays, (one.query_tokens, one.key_tokens)))
    return found


def _csv(path: Path) -> list[Contents]:
    """One matrix, a row a line; a first line that is no number is a heading, as is a first column."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    if not rows:
        raise UnreadableError("The file has no rows.")
    rows = rows[1:] if not _is_number(rows[0][-1]) and len(rows) > 1 else rows
    rows = [row[1:] for row in rows] if all(len(row) > 1 and not _is_number(row[0]) for row in rows) else rows
    if len({len(row) for row in rows}) != 1:
        raise UnreadableError("The rows of the file have different lengths.")
    words = [[cell.strip().lower() for cell in row] for row in rows]
    if all(cell in ("true", "false") for row in words for cell in row):
        return [Contents("", named(np.array([[cell == "true" for cell in row] for row in words]), path.stem))]
    whole = all(cell in ("0", "1") for row in words for cell in row)
    return [Contents("", named(np.array(words, dtype=object).astype(np.int64 if whole else np.float64), path.stem))]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in ("true", "false")
    return True


def _json(path: Path) -> list[Contents]:
    """An object of arrays by name, or one array. ``null`` is NaN."""
    value = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(value, dict):
        return _several({str(name): _array(name, nested) for name, nested in value.items() if _ours(str(name))})
    return [Contents("", named(_array("the array", value), path.stem))]


def _ours(name: str) -> bool:
    return name.rpartition(".")[2] in NAMES


def _array(name: str, nested: Any) -> np.ndarray:
    try:
        array = np.array(nested)
        return np.array(nested, dtype=np.float64) if array.dtype == object else array
    except (ValueError, TypeError) as error:
        raise UnreadableError(f"{name} is not a regular array of numbers.") from error


def named(array: np.ndarray, stem: str) -> dict[str, np.ndarray]:
    """A single array under the name that its file has, or else the one that its values suggest."""
    if stem in NAMES:
        return {stem: array}
    if array.dtype.kind == "b":
        return {"mask": array}
    if array.dtype.kind in "iu":
        one_hot = array.ndim > 1 and bool((array.sum(-1) == 1).all())
        return {"weights": array.astype(np.float64)} if one_hot else {"mask": array}
    with np.errstate(invalid="ignore"):
        added = array.dtype.kind == "f" and bool((array < 0).any()) and not bool((array > 0).any())
    return {"mask": array} if added else {"weights": array}


def _several(arrays: dict[str, np.ndarray]) -> list[Contents]:
    """Arrays by name; ``cross.weights`` and the like are grouped by their map."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        kind, _, plain = name.rpartition(".")
        if plain in NAMES and kind in ("", "encoder", "decoder", "cross"):
            groups.setdefault(kind, {})[plain] = array
    if not groups:
        have = ", ".join(sorted(arrays)[:8]) or "nothing"
        raise UnreadableError(f"The file holds {have}; the names that are read are {', '.join(NAMES)}.")
    return [Contents(kind, group) for kind, group in groups.items()]


_READERS: dict[str, Callable[[Path], list[Contents]]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".safetensors": _safetensors,
    ".csv": _csv,
    ".json": _json,
    ".pt": _pt,
}
ENDINGS = tuple(_READERS)
"""Of the files that are read."""
