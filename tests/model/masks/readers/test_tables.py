"""Matrices as text: as numpy, pandas and spreadsheets write them; and single arrays that have no name."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from attenscope.cli.diagnose import diagnose_file
from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.read_text import name_array, read_table

WORDS = ["In", "#", ";", "1998", "a,b", "\n"]


def causal(size: int) -> np.ndarray:
    return np.tri(size) / np.tri(size).sum(-1, keepdims=True)


def as_numpy(array: np.ndarray, **how: str) -> str:
    file = io.StringIO()
    np.savetxt(file, array, **how)
    return file.getvalue()


def as_pandas(array: np.ndarray, names: list[str] | None = None, **how: object) -> str:
    return pd.DataFrame(array, names, names).to_csv(**how)  # type: ignore[call-overload]


WRITERS: dict[str, Callable[[np.ndarray], str]] = {
    "numpy": as_numpy,
    "numpy, tabs": lambda array: as_numpy(array, delimiter="\t"),
    "numpy, semicolons": lambda array: as_numpy(array, delimiter=";"),
    "numpy, widths": lambda array: as_numpy(array, fmt="%20.17f"),
    "numpy, heading": lambda array: as_numpy(array, header="weights of the layer"),
    "pandas": as_pandas,
    "pandas, tabs": lambda array: as_pandas(array, sep="\t"),
    "pandas, decimal comma": lambda array: as_pandas(array, sep=";", decimal=","),
    "pandas, no index": lambda array: as_pandas(array, index=False),
    "pandas, no heading": lambda array: as_pandas(array, header=False),
    "pandas, neither": lambda array: as_pandas(array, header=False, index=False),
    "pandas, words": lambda array: as_pandas(array, WORDS[: len(array)]),
    "pandas, words above": lambda array: as_pandas(array, WORDS[: len(array)], index=False),
    "pandas, words beside": lambda array: as_pandas(array, WORDS[: len(array)], header=False),
    "pandas, corner": lambda array: as_pandas(array, index_label="query"),
    "spreadsheet": lambda array: "\ufeff" + "\r\n".join(", ".join(map(repr, row)) + "," for row in array.tolist()),
}


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("writer", WRITERS)
def test_weights_come_back_whatever_wrote_them(writer: str, size: int) -> None:
    text = WRITERS[writer](causal(size)).removeprefix("\ufeff")
    np.testing.assert_allclose(read_table(text), causal(size))


@pytest.mark.parametrize("size", [3, 6])
@pytest.mark.parametrize("kind", [bool, int, float])
@pytest.mark.parametrize("writer", [name for name in WRITERS if name != "spreadsheet"])
def test_masks_come_back_whatever_wrote_them(writer: str, kind: type, size: int) -> None:
    found = read_table(WRITERS[writer](np.tri(size).astype(kind)))
    assert found.dtype.kind in "bi"
    np.testing.assert_array_equal(found, np.tri(size))


def test_an_empty_cell_is_nan_and_true_may_be_small() -> None:
    np.testing.assert_array_equal(read_table(",\n0.4,0.6\n"), [[np.nan, np.nan], [0.4, 0.6]])
    np.testing.assert_array_equal(read_table("true,false\nTRUE,True\n"), [[True, False], [True, True]])


@pytest.mark.parametrize("text", ["0,1\n1,0\n", "0,1\n1,0\n0,1\n", "0 1 2\n1 0 1\n2 1 0\n3 2 1\n", "0.2,0.3,0.5\n"])
def test_numbers_are_not_taken_for_names(text: str) -> None:
    rows = [line.replace(",", " ").split() for line in text.splitlines()]
    np.testing.assert_array_equal(read_table(text), np.array(rows, float))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no rows"),
        ("0.1,0.9\n0.5,0.5\n0.3\n", "different lengths, from 1 to 2 cells"),
        ("0.1,0.9\n0.5,half\n", "Row 2, column 2 of the matrix holds 'half', which is not a number"),
        ("x,0.5\n0.5,0.5\n", "Row 1, column 1 of the matrix holds 'x'"),
        ("True,False\n1,True\n", "holds 'True', which is not a number"),
    ],
)
def test_what_is_no_matrix_is_told(text: str, says: str) -> None:
    with pytest.raises(DiagnosisError, match=says):
        read_table(text)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt"])
def test_tables_are_judged(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"some{ending}"
    pd.DataFrame(causal(8)).to_csv(path, index=False)
    assert diagnose_file(str(path)).verdict == "open"
    path.write_text(as_numpy(causal(8)), encoding="utf-16")
    assert diagnose_file(str(path)).reason == "The file is not text in UTF-8; save it as such."


def test_zeros_and_ones_are_a_mask_unless_each_row_looks_at_one_key(tmp_path: Path) -> None:
    for kind in (float, int, bool, np.float16):
        assert set(name_array(np.tri(8).astype(kind), "tril_ones")) == {"mask"}
    assert set(name_array(np.eye(8)[::-1], "some")) == set(name_array(np.eye(8, dtype=int), "some")) == {"weights"}
    assert set(name_array(np.tri(8), "weights")) == {"weights"}
    assert set(name_array(np.where(np.tri(8), 0, -10000), "some")) == {"mask"}
    torch.save(torch.tril(torch.ones(8, 8)), tmp_path / "tril_ones.pt")
    (diagnosis,) = diagnose_file(str(tmp_path / "tril_ones.pt")).diagnoses
    assert diagnosis.sound
    assert diagnosis.meaning == "causal"
