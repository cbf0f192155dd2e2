"""Loops in what a decoder writes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attenscope.decoding.greedy_and_sampling import Repetition, find_repetition


def test_by_hand() -> None:
    assert find_repetition("abcabcabc") == Repetition(0, 3, 3)
    assert find_repetition("xyhahahaha!") == Repetition(2, 2, 4)
    assert find_repetition("no no") is None
    assert find_repetition("abab") is None
    assert find_repetition("") is None


@given(
    before=st.lists(st.integers(0, 3), max_size=4, unique=True),
    unit=st.lists(st.integers(10, 99), min_size=1, max_size=4, unique=True),
    times=st.integers(3, 6),
)
def test_a_planted_loop_is_found(before: list[int], unit: list[int], times: int) -> None:
    found = find_repetition([*before, *unit * times])
    assert found == Repetition(len(before), len(unit), times)


@given(st.lists(st.integers(0, 2), max_size=14))
def test_what_is_said_to_repeat_does(tokens: list[int]) -> None:
    found = find_repetition(tokens)
    if found:
        unit = tokens[found.start : found.start + found.length]
        assert tokens[found.start : found.start + found.length * found.times] == unit * found.times
        assert found.times >= 3
