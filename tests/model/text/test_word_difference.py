"""Two texts word by word: by hand, and what holds for any two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attenscope.text.words import WordChange, compare_texts_by_word


def same(text: str) -> WordChange:
    return WordChange("same", text)


def removed(text: str) -> WordChange:
    return WordChange("removed", text)


def added(text: str) -> WordChange:
    return WordChange("added", text)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("der Hund.", "der Hund.", [same("der Hund.")]),
        (
            "der Hund sieht.",
            "der alte Hund mag!",
            [same("der"), added(" alte"), same(" Hund"), removed(" sieht."), added(" mag!")],
        ),
        ("Hund hier", "Ein Hund", [added("Ein "), same("Hund"), removed(" hier")]),
        ("Der Hund", "Ein Hund", [removed("Der"), added(" Ein"), same(" Hund")]),
        ("我喜欢狗。", "我不喜欢猫。", [same("我"), added("不"), same("喜欢"), removed("狗"), added("猫"), same("。")]),
        ("don't go", "don't", [same("don't"), removed(" go")]),
        ("狗。", "我狗。", [added("我"), same("狗。")]),
        ("狗。", "猫。", [removed("狗"), added("猫"), same("。")]),
        ("", "neu", [added("neu")]),
        ("", "", []),
    ],
)
def test_word_differences_by_hand(before: str, after: str, expected: list[WordChange]) -> None:
    assert list(compare_texts_by_word(before, after)) == expected


TEXT = st.lists(st.sampled_from(["der ", "Hund", " ", ".", "我", "'s", "mag ", "▁", "##"]), max_size=8).map("".join)


@given(TEXT, TEXT)
def test_the_runs_join_to_the_first_text(before: str, after: str) -> None:
    runs = compare_texts_by_word(before, after)
    assert "".join(run.text for run in runs if run.change != "added") == before
    bare = "".join(run.text for run in runs if run.change != "removed")
    assert "".join(bare.split()) == "".join(after.split())
    assert {run.change for run in compare_texts_by_word(before, before)} <= {"same"}
