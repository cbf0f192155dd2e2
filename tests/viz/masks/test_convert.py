"""The converter's words, and what it says is lost."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.experiments.mask_trial import Perturbation
from attenscope.masks.conventions import CONVENTIONS, mask_from_boolean
from attenscope.viz.masks.convert import describe_blocking_values, format_array, list_conversion_losses
from attenscope.viz.masks.trial import describe_moved_outputs, format_likelihood_ratio

PADDING = np.array([[True] * 4, [True] * 2 + [False] * 2])[:, None, None, :].repeat(4, 2)
EMPTY = PADDING & np.tri(4, k=-1, dtype=bool)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_interface_is_explained_and_printed(name: str) -> None:
    text = format_array(mask_from_boolean(PADDING, name, 1))
    assert text.startswith("shape (")
    assert len(text.splitlines()) > 1
    says, attends = describe_blocking_values(CONVENTIONS[name]), mask_from_boolean(np.ones((1, 1, 1, 1), bool), name, 1)
    if name == "flash":
        assert says == "No mask: cumulative lengths"
    elif attends.dtype.kind == "f":
        assert says.startswith("Added to the scores: 0 where a query may attend, ")
    else:
        assert says.startswith("True: may " if attends.dtype == bool else "1: may ")
        assert says.partition(": may ")[2].startswith("not ") is not bool(attends.flat[0])


def test_true_and_false_stand_as_signs() -> None:
    assert format_array(np.array([[True, False]])).splitlines() == [
        "shape (1, 2), bool (T = True, · = False)",
        "[[T ·]]",
    ]


@pytest.mark.parametrize(
    ("target", "expected"),
    [("sdpa_float", "NaN"), ("hf_4d_eager", "uniform"), ("sdpa", "zeros in some kernels"), ("keras", "depends")],
)
def test_rows_without_keys_are_noted(target: str, expected: str) -> None:
    (note,) = (one for one in list_conversion_losses(EMPTY, "torch_attn_mask", target) if "no key at all" in one)
    assert expected in note
    assert not any("no key at all" in note for note in list_conversion_losses(PADDING, "torch_attn_mask", target))


def test_what_is_lost_is_said() -> None:
    said = " ".join(list_conversion_losses(PADDING, "sdpa", "hf_2d"))
    assert "which queries are padding" in said
    assert "any causal part" in said
    assert "cut off" in " ".join(list_conversion_losses(PADDING, "sdpa", "flash"))


def test_likelihoods_in_words() -> None:
    assert format_likelihood_ratio(0.0) == "1.000 times"
    assert format_likelihood_ratio(np.log(3300)) == "3,300 times"
    assert format_likelihood_ratio(60) == "more than a million times"


def test_what_moves_is_told_and_leaks_are_named() -> None:
    poked = Perturbation(np.array([[0.5, 0.0], [0.0, 0.0]]), np.array([[False, False], [True, True]]))
    assert "1 of them should not: “\u2068Hund\u2069”" in describe_moved_outputs(
        ("Hund", "Katze"), poked, 0, "This mask"
    )
    assert "no output moves" in describe_moved_outputs(("Hund", "Katze"), poked, 1, "This mask")
