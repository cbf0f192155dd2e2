"""Pairs made of others: what stands in them, from which pairs, the same for the same seed."""

from __future__ import annotations

import re

import pytest

from attenscope.training.synthetic import (
    make_joined_copies,
    make_lowercase_unpunctuated_copies,
    make_replaced_name_copies,
    make_replaced_number_copies,
    make_uppercase_copies,
)


def test_sloppy_copies_are_what_people_type() -> None:
    pairs = [("Where is Tom?!", "Wo ist Tom?"), ("I See. ", "Aha."), ("你好。", "Hallo."), ("No", "Nein")]
    copies = make_lowercase_unpunctuated_copies(pairs, 1.0, seed=0)
    assert copies.pairs == [("where is tom", "Wo ist Tom?"), ("i see", "Aha."), ("你好", "Hallo."), ("no", "Nein")]
    assert copies.origins.tolist() == [[0], [1], [2], [3]]


def test_sloppy_copies_with_apostrophes_as_people_type_them() -> None:
    copies = make_lowercase_unpunctuated_copies([("I don't.", "Nein.")] * 8, 1.0, seed=0, apostrophes=True)
    assert [source for source, _ in copies.pairs] == ["i dont", "i dont", "i don’t", "i don't"] * 2


def test_a_share_of_sloppy_copies_in_order_and_seeded() -> None:
    pairs = [(f"Line {number}.", str(number)) for number in range(100)]
    copies = make_lowercase_unpunctuated_copies(pairs, 0.2, seed=3)
    numbers = [int(target) for _, target in copies.pairs]
    assert len(numbers) == 20
    assert numbers == sorted(set(numbers)) == copies.origins[:, 0].tolist()
    assert copies.pairs == make_lowercase_unpunctuated_copies(pairs, 0.2, seed=3).pairs
    assert copies.pairs != make_lowercase_unpunctuated_copies(pairs, 0.2, seed=4).pairs
    assert make_lowercase_unpunctuated_copies(pairs, 0.0, seed=3).pairs == []


def test_joined_copies_hold_two_sentences_of_which_the_first_has_ended() -> None:
    pairs = [("One.", "Eins."), ("Two", "Zwei."), ("Three!", "Drei"), ("四。", "Vier."), ("", "")]
    copies = make_joined_copies(pairs, 20.0, seed=3)
    assert len(copies.pairs) == 100
    assert set(copies.origins[:, 0]) == {0, 3}
    assert set(copies.origins[:, 1]) == {0, 1, 2, 3, 4}
    assert {("One. Two", "Eins. Zwei."), ("四。Three!", "Vier. Drei")} < set(copies.pairs)
    assert copies.pairs == make_joined_copies(pairs, 20.0, seed=3).pairs
    assert copies.pairs != make_joined_copies(pairs, 20.0, seed=4).pairs


@pytest.mark.parametrize(("pairs", "share"), [([("One.", "Eins.")], 0.0), ([("One", "Eins")], 1.0), ([], 1.0)])
def test_nothing_to_join(pairs: list[tuple[str, str]], share: float) -> None:
    copies = make_joined_copies(pairs, share, seed=1)
    assert copies.pairs == []
    assert copies.origins.shape == (0, 2)


def test_shouted_copies_are_the_source_in_capitals() -> None:
    copies = make_uppercase_copies([("Where is Tom?", "Wo ist Tom?"), ("Straße", "street")], 1.0, seed=0)
    assert copies.pairs == [("WHERE IS TOM?", "Wo ist Tom?"), ("STRASSE", "street")]
    assert copies.origins.tolist() == [[0], [1]]


def test_renumbered_copies_have_another_number_on_both_sides() -> None:
    pairs = [
        ("It costs 45 euros.", "Es kostet 45 Euro."),
        ("Born in 1987, aged 31.", "Mit 31, geboren 1987."),
        ("5 dogs", "5 Hunde"),
        ("Room 12", "Zimmer zwölf"),
        ("12 and 12", "12 und 12"),
    ]
    copies = make_replaced_number_copies(pairs, 20, seed=0)
    assert copies.origins[:, 0].tolist() == [0] * 20 + [1] * 20
    for (source, target), (origin,) in zip(copies.pairs, copies.origins, strict=True):
        found = [re.findall(r"\d+", side) for side in (source, target)]
        assert sorted(found[0]) == sorted(found[1])
        assert [re.sub(r"\d", "0", side) for side in (source, target)] == [
            re.sub(r"\d", "0", side) for side in pairs[origin]
        ]
    assert len({source for source, _ in copies.pairs[:20]}) > 10
    assert all(re.search("in 1...,", source) for source, _ in copies.pairs[20:])
    assert copies.pairs == make_replaced_number_copies(pairs, 20, seed=0).pairs


def test_renamed_copies_have_the_same_invented_name_on_both_sides() -> None:
    pairs = [
        ("Tom saw Mary.", "Tom sah Maria."),
        ("I know Boston.", "Ich kenne Boston."),
        ("He is here.", "Er ist hier."),
    ]
    copies = make_replaced_name_copies(pairs * 30, 1.0, seed=0)
    assert len(copies.pairs) == 60
    for source, target in copies.pairs:
        english = re.fullmatch(r"(\w+) saw Mary\.|I know (\w+)\.", source)
        german = re.fullmatch(r"(\w+) sah Maria\.|Ich kenne (\w+)\.", target)
        assert english is not None
        assert german is not None
        assert english.groups() == german.groups()
    assert len({source for source, _ in copies.pairs}) > 40
    assert make_replaced_name_copies(pairs, 0.0, seed=0).origins.shape == (0, 1)
