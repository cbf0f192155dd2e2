"""The converter's words, and what it says is lost."""

from __future__ import annotations

import numpy as np
import pytest

from model.experiments.input_perturbation import Perturbation
from model.masking.convention_table import CONVENTIONS
from model.masking.conventions import from_boolean
from viz.masks.convert.texts import meaning, notes, printed
from viz.masks.trial.texts import moved, times

PADDING = np.array([[True] * 4, [True] * 2 + [False] * 2])[:, None, None, :].repeat(4, 2)
EMPTY = PADDING & np.tri(4, k=-1, dtype=bool)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_interface_is_explained_and_printed(name: str) -> None:
    text = printed(from_boolean(PADDING, name, 1))
    assert text.startswith("shape (")
    assert len(text.splitlines()) > 1
    says, attends = meaning(CONVENTIONS[name]), from_boolean(np.ones((1, 1, 1, 1), bool), name, 1)
    if name == "flash":
        assert says == "No mask: cumulative lengths"
    elif attends.dtype.kind == "f":
        assert says.startswith("Added to the scores: 0 where a query may attend, ")
    else:
        assert says.startswith("True: may " if attends.dtype == bool else "1: may ")
        assert says.partition(": may ")[2].startswith("not ") is not bool(attends.flat[0])


def test_true_and_false_stand_as_signs() -> None:
    assert printed(np.array([[True, False]])).splitlines() == ["shape (1, 2), bool (T = True, · = False)", "[[T ·]]"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [("sdpa_float", "NaN"), ("hf_4d_eager", "uniform"), ("sdpa", "zeros in some kernels"), ("keras", "depends")],
)
def test_rows_without_keys_are_noted(target: str, expected: str) -> None:
    (note,) = (one for one in notes(EMPTY, "torch_attn_mask", target) if "no key at all" in one)
    assert expected in note
    assert not any("no key at all" in note for note in notes(PADDING, "torch_attn_mask", target))


def test_what_is_lost_is_said() -> None:
    said = " ".join(notes(PADDING, "sdpa", "hf_2d"))
    assert "which queries are padding" in said
    assert "any causal part" in said
    assert "cut off" in " ".join(notes(PADDING, "sdpa", "flash"))


def test_likelihoods_in_words() -> None:
    assert times(0.0) == "1.000 times"
    assert times(np.log(3300)) == "3,300 times"
    assert times(60) == "more than a million times"


def test_what_moves_is_told_and_leaks_are_named() -> None:
    poked = Perturbation(np.array([[0.5, 0.0], [0.0, 0.0]]), np.array([[False, False], [True, True]]))
    assert "1 of them should not: “\u2068Hund\u2069”" in moved(("Hund", "Katze"), poked, 0, "This mask")
    assert "no output moves" in moved(("Hund", "Katze"), poked, 1, "This mask")
