"""Two translations of one sentence: the words that differ, and the distance of their attention."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from attenscope.viz.ui.captions import compute_attention_difference, mark_word_changes
from tests.viz.fakes import attention


def test_changes_by_hand() -> None:
    found = mark_word_changes("Der alte Mann lebt", "Der junge Mann lebt hier")
    assert found == (
        *(("Der", "same"), (" alte", "gone"), (" junge", "new"), (" Mann lebt", "same"), (" hier", "new")),
    )


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_changes_hold_both_texts(one: list[str], other: list[str]) -> None:
    found = mark_word_changes(" ".join(one), " ".join(other))
    assert "".join(text for text, mark in found if mark != "new").split() == one
    assert "".join(text for text, mark in found if mark != "gone").split() == other


def test_attention_difference_is_a_distance() -> None:
    one = attention("cross", ("a", "b", "c"), ("x", "y", "z"), ("A", "B", "C"))
    other = dataclasses.replace(one, weights=one.weights[..., ::-1])
    assert compute_attention_difference(one, one) == 0
    assert 0 < compute_attention_difference(one, other) <= 1
    assert compute_attention_difference(one, other) == compute_attention_difference(other, one)
