"""A small file that promises much, and a large one that is refused, take little time and memory."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.masks.read_files import UnreadableError, read_array_file

MB = 2**20


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def pt(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


LARGE: dict[str, Callable[[], bytes]] = {
    "expanded.pt": lambda: pt({"mask": torch.ones(1, dtype=torch.bool).expand(8, 8, 1000, 1000)}),
    "layers.pt": lambda: pt([torch.zeros(1).expand(8, 8, 300, 300)] * 8),
    "long.csv": lambda: ("1," * 999 + "1\n").encode() * 9000,
    "rows.csv": lambda: b"1\n" * 9_000_000,
    "blanks.txt": lambda: (b"1 0 " * 500 + b"\n") * 5000,
    "lists.json": lambda: b"[" + b"[]," * 8_000_000 + b"[]]",
    "cells.npz": lambda: npz(mask=np.zeros((1, 240 * MB), np.int8)),
    "together.npz": lambda: npz(**dict.fromkeys(map("mask_{}".format, range(12)), np.zeros(2**22))),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(LARGE[name]())
    size = path.stat().st_size
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(UnreadableError, match=r"are read|would be larger than"):
            read_array_file(path, cells=2**22)
        took, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert took < 8, took  # tracemalloc counts every object; the old reading took minutes with it
    assert peak < 12 * size + 64 * MB, peak


def test_what_is_left_of_the_room_is_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "mask.npz"
    path.write_bytes(npz(mask=np.zeros((1024, 1024), np.int8), weights=np.ones((1024, 1024), np.float32)))
    assert len(read_array_file(path, size=8 * MB)[0].arrays) == 2
    with pytest.raises(UnreadableError, match="unpacked it would be larger than 4 MB"):
        read_array_file(path, size=4 * MB)


def test_a_mask_expanded_to_all_heads_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "mask.pt"
    path.write_bytes(pt({"mask": torch.ones(1, 1, 64, 64).tril().bool().expand(2, 8, 64, 64)}))
    assert read_array_file(path)[0].arrays["mask"].shape == (2, 8, 64, 64)


def test_a_json_of_many_numbers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(np.full((4, 64, 64), 1 / 64).tolist()))
    assert read_array_file(path)[0].arrays["weights"].shape == (4, 64, 64)
