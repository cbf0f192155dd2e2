"""Prints as they stand in a terminal, a debugger or a file; code in their place; what generate() returns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from attenscope.cli.diagnose import diagnose_file
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.read_text import read_printed_tensors

MASK = torch.ones(3, 3, dtype=torch.bool).tril()


@pytest.mark.parametrize(
    "text",
    [
        "attn_mask {}",
        "attn_mask = {}",
        "(Pdb) p attn_mask\n{}",
        "ipdb> attn_mask\n{}",
        ">>> print(attn_mask)\n{}",
        "In [3]: attn_mask\nOut[3]: \n{}",
    ],
)
def test_what_stands_around_a_print_is_taken_away(text: str) -> None:
    (found,) = read_printed_tensors(text.format(MASK)).items()
    assert found[0] == "attn_mask"
    assert np.array_equal(found[1], MASK.numpy())


def test_two_named_prints_of_a_log() -> None:
    found = read_printed_tensors(f"src_padding_mask {MASK[:1]}\ntgt_mask {MASK}")
    assert list(found) == ["src_padding_mask", "tgt_mask"]


@pytest.mark.parametrize(
    "text", ["mask = torch.tril(torch.ones(4, 4))", "def mask(x):\n    return x.tril()", "import torch"]
)
def test_code_is_told_to_be_code(text: str) -> None:
    with pytest.raises(DiagnosisError, match="This is code"):
        read_printed_tensors(text)


def test_a_print_in_a_file_is_read_as_if_pasted(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text(str(MASK))
    assert diagnose_file(str(path), "causal").verdict == "sound"
    path.write_text(f"weights = {MASK / MASK.sum(-1, keepdim=True)}\nstep = [3]")
    answer = diagnose_file(str(path), "causal")
    assert answer.verdict == "sound"
    assert "'step'" in answer.notes[0]


def test_what_generate_returns_is_one_map() -> None:
    whole = torch.randn(1, 2, 5, 5).masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf).softmax(-1)
    steps = tuple(tuple(whole[:, :, first:end, :end] for _ in range(3)) for first, end in ((0, 3), (3, 4), (4, 5)))
    assert diagnose(steps, meant="causal").verdict == "sound"


def test_an_array_of_objects_gets_a_sentence() -> None:
    ragged = np.empty(2, object)
    ragged[:] = [np.ones((2, 2)), np.ones((3, 3))]
    with pytest.raises(DiagnosisError, match="array of objects"):
        diagnose(ragged)
