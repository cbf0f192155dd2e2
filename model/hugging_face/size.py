"""How much memory a folder's model takes, known from its files before any weight is read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from ..devices import choose_device
from ..language import join_sentences, say, to_say
from ..runnable_model import LocalError
from .folder import SAFETENSORS_FILES

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
DEFAULT_DTYPE = "float32"
OWN_DTYPE = "own"
"""The one that the folder's configuration names."""
HALF_SIZE_TEXT = to_say("With ?dtype=bfloat16 behind its name it takes half of what it takes in float32.")
MAX_HEADER_BYTES = 100_000_000
"""Of a safetensors file: the limit of the library itself."""
SPARE_BYTES = 300_000_000
"""What decoding a text and drawing it take beside the weights."""


def choose_dtype(folder: Path, config: Mapping[str, Any], asked: str) -> torch.dtype:
    """Return the number format that is asked for by name. Raises LocalError for a name that is none."""
    if asked == OWN_DTYPE:
        text = config.get("text_config")
        inside = text if isinstance(text, Mapping) else {}
        named = [one.get(name) for one in (config, inside) for name in ("dtype", "torch_dtype")]
        asked = next((str(one) for one in named if one), DEFAULT_DTYPE)
    if asked not in DTYPES:
        raise LocalError(
            say(
                "{folder}: a model is computed in {known}, or in its {own} format, not in {asked}.",
                folder=folder.name,
                known=", ".join(DTYPES),
                own=OWN_DTYPE,
                asked=asked[:40],
            )
        )
    return DTYPES[asked]


def check_memory(folder: Path, dtype: torch.dtype) -> None:
    """Raise LocalError where the model would not fit: better than a process that the system ends."""
    needed, free = estimate_bytes(folder, dtype), read_free_bytes()
    if free is not None and needed > free:
        raise LocalError(
            join_sentences(
                say(
                    "{folder} takes about {needed:.1f} GB in {dtype}, and {free:.1f} GB of memory are free.",
                    folder=folder.name,
                    needed=needed / 1e9,
                    dtype=str(dtype).removeprefix("torch."),
                    free=free / 1e9,
                ),
                say(HALF_SIZE_TEXT) if dtype == torch.float32 else "",
            )
        )


def estimate_bytes(folder: Path, dtype: torch.dtype) -> int:
    """Return the bytes that the weights take in a format, and what a text takes beside them."""
    numbers = sum(math.prod(shape) for shape in _read_shapes(folder))
    return numbers * dtype.itemsize + SPARE_BYTES


def list_weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers reads: the one, or those that the index names; in their order.

    Beside them a folder may hold the same weights in another layout.
    """
    whole, index = (folder / name for name in SAFETENSORS_FILES)
    if whole.is_file():
        return [whole]
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        plain = {name for name in names if Path(name).name == name}
    except (OSError, ValueError, RecursionError, LookupError, AttributeError, TypeError):
        return []  # A damaged index is left to those who load it.
    return [folder / name for name in sorted(plain) if (folder / name).is_file()]


def _read_shapes(folder: Path) -> Iterator[list[int]]:
    """The shape of every tensor, from the heads of the files. A file that is damaged is left to those who load it."""
    for path in list_weight_files(folder):
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            try:
                head = json.loads(file.read(min(length, MAX_HEADER_BYTES)))
            except (ValueError, RecursionError):
                continue
        entries = head.values() if isinstance(head, dict) else ()
        shapes = [one.get("shape") for one in entries if isinstance(one, dict)]
        yield from (one for one in shapes if isinstance(one, list) and all(type(size) is int for size in one))


def read_free_bytes() -> int | None:
    """Return the memory that a model may take where it will lie; None where the system does not say."""
    device = choose_device()
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = [one for one in (_read_available_memory(), _read_group_limit()) if one is not None]
    return min(found, default=None)


def _read_available_memory() -> int | None:
    """What Linux says that new work can have without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _read_group_limit() -> int | None:
    """What is left of the limit that a container has, with the copies of files that the kernel gives back."""
    group = Path("/sys/fs/cgroup")
    try:
        most, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        lines = (group / "memory.stat").read_text().splitlines()
        files = next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    except (OSError, ValueError, StopIteration, IndexError):  # "max": no limit
        return None
    return most - used + files
