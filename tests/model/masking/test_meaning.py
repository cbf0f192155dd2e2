"""A meaning in either form, read the same at every door."""

from __future__ import annotations

import numpy as np
import pytest

from model.diagnosis import diagnose
from model.masking.meaning import hides_future, meaning_mask, parse_meaning
from model.masking.rule import RuleError, Sizes, build_mask
from model.masking.structure import CAUSAL, Structure
from model.masking.structure_names import parse_structure, structure_name

T = 8
IMAGE = np.tri(10, dtype=bool)
IMAGE[3:6, 3:6] = True


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("causal+window:3", "causal and window 3"),
        ("causal + padding", "causal & padding"),
        ("packed:3,5", "packed 3,5"),
        ("window:2", "Window 2"),
    ],
)
def test_both_forms_mean_the_same_at_every_door(short: str, long: str) -> None:
    assert parse_structure(short) == parse_structure(long)
    one, other = (build_mask(text, Sizes(T, T, (T,))) for text in (short, long))
    assert np.array_equal(one, other)
    mask = meaning_mask(long, T, T)
    assert diagnose(mask=mask, meant=short).verdict == diagnose(mask=mask, meant=long).verdict == "sound"


def test_a_rule_that_is_no_single_structure_is_a_meaning_too() -> None:
    text = "causal and not window 2 or prefix 1"
    assert parse_meaning(text) is None
    assert diagnose(mask=meaning_mask(text, T, T), meant=text).verdict == "sound"
    assert [one.code for one in diagnose(mask=np.ones((T, T), bool), meant=text).findings] != []
    assert hides_future(text)
    assert not hides_future("window 3 or full")


@pytest.mark.parametrize("text", ["sideways", "causal and", "window"])
def test_what_is_no_meaning_gets_a_sentence(text: str) -> None:
    with pytest.raises(RuleError, match="kind of mask"):
        parse_meaning(text)


@pytest.mark.parametrize("name", ["causal", "padding", "causal+window:3", "window:2", "prefix:2", "causal+packed:3,5"])
def test_the_name_of_a_structure_reads_back(name: str) -> None:
    assert parse_structure(structure_name(parse_structure(name), T)) == parse_structure(name)


def test_a_structure_may_have_no_name() -> None:
    assert structure_name(Structure(lo=-3, hi=1), T) == ""
    assert structure_name(Structure(hi=0, spans=((2, 5),)), T) == ""
    assert structure_name(CAUSAL, T) == "causal"


def test_spans_read_in_both_directions_are_no_leak() -> None:
    assert np.array_equal(Structure(hi=0, spans=((3, 6),)).allowed(10, 10), IMAGE)
    assert "1 span read in both directions" in diagnose(mask=IMAGE, map="decoder").meaning
    assert diagnose(mask=IMAGE, map="decoder").verdict == "open"
