"""Every entry of the gallery, run as the page shows it: the broken side is named, the fixed side is sound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from attenscope.gallery import model_bug_pairs
from attenscope.gallery.exhibits import EXHIBITS, ExhibitSide, read_function_and_helper_sources, run_exhibit
from attenscope.masks.fault_catalogue import FAULTS


def test_every_fault_of_the_catalogue_is_shown() -> None:
    assert {one.code for one in EXHIBITS.values()} - {""} == set(FAULTS)


@pytest.mark.parametrize("name", EXHIBITS)
def test_the_broken_side_is_named_and_the_fixed_side_is_sound(
    name: str, exhibit: Callable[[str], tuple[ExhibitSide, ExhibitSide]]
) -> None:
    entry = EXHIBITS[name]
    broken, fixed = exhibit(name)
    assert fixed.codes == ()
    assert not fixed.error
    assert not np.isnan(fixed.weights).any()
    if name in ("pad-query", "extra-mass"):
        assert [one.code for one in broken.diagnosis.findings] == [name]  # type: ignore[union-attr]
    elif entry.recipe:
        assert broken.codes[0] == entry.code
    else:
        assert broken.codes == entry.tests


def test_running_an_entry_leaves_chance_as_it_was() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    for name in ("dropout-on", "observer"):
        torch.manual_seed(5)
        run_exhibit(EXHIBITS[name])
        assert torch.equal(torch.rand(3), expected)


def test_the_source_shown_is_complete() -> None:
    code, helpers = read_function_and_helper_sources(model_bug_pairs.left_padding_nan_fixed)
    assert code.startswith("def left_padding_nan_fixed(")
    assert "def compute_three_layer_weights(" in helpers
    assert "def masked_softmax(" in helpers
    assert "noqa" not in read_function_and_helper_sources(model_bug_pairs.return_in_loop_broken)[0]
