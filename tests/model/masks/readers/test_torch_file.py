"""Tensors of .pt files, and files that only look like them."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.masks.read_files import UnreadableError, read_array_file
from tests.model.masks.readers.hostile_files import Bomb

WEIGHTS = torch.full((2, 3, 3), 1 / 3)


def saved(value: Any, **more: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **more)
    return file.getvalue()


def changed(data: bytes, name: str, new: bytes) -> bytes:
    """The archive with one member's bytes replaced."""
    old, file = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member in old.infolist():
            archive.writestr(member.filename, new if member.filename.endswith(name) else old.read(member))
    return file.getvalue()


def test_a_tensor_and_a_dictionary_of_tensors_are_read(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    path.write_bytes(saved(WEIGHTS.bfloat16().requires_grad_()))
    (one,) = read_array_file(path)
    np.testing.assert_allclose(one.arrays["weights"], WEIGHTS, atol=2e-3)
    path.write_bytes(saved({"cross.weights": WEIGHTS, "cross.key_keep": torch.ones(3).bool(), "epoch": 3}))
    (one,) = read_array_file(path)
    assert one.map == "cross"
    assert set(one.arrays) == {"weights", "key_keep"}


def test_a_list_of_one_tensor_a_layer_is_stacked(tmp_path: Path) -> None:
    path = tmp_path / "attentions.pt"
    layers = tuple(torch.rand(5, 2, 3, 3).softmax(-1).requires_grad_() for _ in range(4))
    for value in (layers, list(layers), {"weights": layers, "mask": None}):
        path.write_bytes(saved(value))
        (one,) = read_array_file(path)
        np.testing.assert_array_equal(one.arrays["weights"], torch.stack(layers, 1).detach())


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"model": {"weights": WEIGHTS}, "epoch": 3}, r"The file holds 'epoch', 'model'\. Name its arrays weights,"),
        ({f"{'long' * 99}{number}": WEIGHTS for number in range(9)}, "and 4 more"),
        ([torch.ones(1, 2, 3, 3), torch.ones(1, 2, 3, 4)], r"layers of different shapes, \(1, 2, 3, 3\) and"),
        ([WEIGHTS, WEIGHTS], r"the shape \(2, 3, 3\); a list is read as one tensor for each layer"),
        ((None, None), "is a list that holds NoneType"),
        ({"weights": {"a": WEIGHTS}}, "weights is of the type dict, not a tensor"),
        ([torch.zeros(1).expand(2**8, 2**4, 2**6, 2**7)] * 9, "its arrays would be larger than 32 MB"),
        (3, "is of the type int, not a tensor"),
    ],
)
def test_what_else_a_file_of_torch_may_hold_is_named(tmp_path: Path, value: Any, says: str) -> None:
    path = tmp_path / "attentions.pt"
    path.write_bytes(saved(value))
    with pytest.raises(UnreadableError, match=says) as refused:
        read_array_file(path)
    assert len(str(refused.value)) < 300


def hostile(mark: Path) -> dict[str, bytes]:
    good = saved({"weights": WEIGHTS})
    pickled = zipfile.ZipFile(io.BytesIO(good)).read("archive/data.pkl")
    squeezed = io.BytesIO()
    with zipfile.ZipFile(squeezed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/data/0", b"\0" * (300 * 2**20))
    return {
        "pickle": pickle.dumps(Bomb(mark)),
        "object": saved({"weights": Bomb(mark)}),
        "legacy": saved(WEIGHTS, _use_new_zipfile_serialization=False),
        "code in the archive": changed(good, "data.pkl", pickle.dumps(Bomb(mark), 2)),
        "promise": changed(good, "data.pkl", pickled.replace(b"K\x12t", b"J\x00\x00\x10\x00t", 1)),
        "view of a few cells": saved({"weights": torch.zeros(1).expand(2**13, 2**13, 2)}),
        "view of one cell": saved({"weights": torch.zeros(1).expand(2**20, 2**20)}),
        "bomb": squeezed.getvalue(),
        "cut": good[: len(good) // 2],
        "list": saved([1, 2]),
        "sparse": saved({"weights": torch.eye(3).to_sparse()}),
        "complex": saved({"weights": torch.eye(3).to(torch.complex64)}),
        "model": saved(torch.nn.Linear(2, 2)),
    }


def test_a_hostile_file_gets_a_sentence_and_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for name, data in hostile(mark).items():
        path = tmp_path / "weights.pt"
        path.write_bytes(data)
        with pytest.raises(UnreadableError) as refused:
            read_array_file(path)
        assert len(str(refused.value)) < 300, name
        assert not mark.exists(), name
