"""Printed tensors, read back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.read_text import read_printed_tensors

TRIANGLE = np.tri(4, 5)


@pytest.mark.parametrize(
    "text",
    [
        repr(torch.tensor(TRIANGLE).bool()),
        repr(torch.tensor(TRIANGLE)),
        repr(torch.tensor(TRIANGLE).half()),
        repr(torch.tensor(TRIANGLE, requires_grad=True).softmax(-1).ceil() * 0 + torch.tensor(TRIANGLE)),
        repr(torch.nn.Parameter(torch.tensor(TRIANGLE))),
        repr(TRIANGLE),
        str(TRIANGLE),
        str(TRIANGLE.astype(bool)),
        str(TRIANGLE.astype(int)),
        repr(TRIANGLE.astype(int).tolist()),
        repr([tuple(row) for row in TRIANGLE.tolist()]),
        "\n".join(" ".join(str(int(cell)) for cell in row) for row in TRIANGLE),
        "\n".join(str(row) for row in TRIANGLE.astype(int)),
        f"<tf.Tensor: shape=(4, 5), dtype=float32, numpy=\n{TRIANGLE!r}>",
    ],
)
def test_every_way_to_print_a_mask_gives_it_back(text: str) -> None:
    (found,) = read_printed_tensors(text).values()
    np.testing.assert_array_equal(found.astype(float), TRIANGLE)


def test_the_kind_of_number_is_kept() -> None:
    assert read_printed_tensors("[[True, False]]")[""].dtype == bool
    assert read_printed_tensors("[[1, 0]]")[""].dtype == np.int64
    assert read_printed_tensors("tensor([[1., 0.]], dtype=torch.float16)")[""].dtype == np.float16
    found = read_printed_tensors("[[0., -inf], [nan, 1e-3]]")[""]
    np.testing.assert_array_equal(found, [[0, -np.inf], [np.nan, 1e-3]])


def test_names_tell_several_arrays_apart() -> None:
    weights = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0)).softmax(-1)
    found = read_printed_tensors(f"weights = {weights!r}\n\nkey_keep: [True, True, False]\n")
    assert list(found) == ["weights", "key_keep"]
    np.testing.assert_allclose(found["weights"], weights, atol=1e-4)
    assert found["key_keep"].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing to read"),
        (repr(torch.rand(60, 60)), "set_printoptions"),
        ("[[1, 2], [3]]", "different lengths"),
        ("[[1, 2", "not closed"),
        ("[1]]", "closes nothing"),
        ("[[True, 1]]", "mixes"),
        ("[[1, 2], __import__('os')]", "__import__"),
        ("[[0x10]]", "0x10"),
        ("[]", "empty"),
        ("[" * 5000, "deep"),
        ("1 2\na = [[1]]", "name"),
        ("a = [1]\na = [2]", "twice"),
        ("x" * 3_000_000, "Upload a file"),
    ],
)
def test_what_is_no_whole_print_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(DiagnosisError, match=said):
        read_printed_tensors(text)


def test_any_cut_or_changed_print_is_read_or_refused() -> None:
    random = np.random.default_rng(0)
    good = f"weights = {torch.rand(3, 4)!r}\nmask = {torch.ones(3, 4).bool()!r}"
    signs = list("[](),.-=<>'\"eE09ntf \n\0\u2026⟨é")
    refused = 0
    for _ in range(1000):
        text = list(good[: int(random.integers(len(good)))])
        for at in random.integers(0, len(text) + 1, int(random.integers(4))):
            text.insert(int(at), str(random.choice(signs)))
        try:
            assert all(isinstance(found, np.ndarray) for found in read_printed_tensors("".join(text)).values())
        except DiagnosisError:
            refused += 1
    assert 0 < refused < 1000
