"""The telling word: each kind of reading on weights made by hand, and every number said worked out again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attenscope.analysis.telling_word import (
    NEAR,
    READ,
    SHOWN,
    WordReading,
    WordWeights,
    find_best_head,
    pick_telling_word,
    read_source_word,
    read_target_word,
    weigh_words,
)
from attenscope.trace import AttentionMap
from attenscope.viz.figures.text_alternatives import describe_word_attention


def cross_map(keys: Sequence[str], rows: Sequence[str], *heads: Sequence[Sequence[float]]) -> AttentionMap:
    """A map of one layer; each head is (Q, K)."""
    weights = np.array([heads], np.float32)
    fed = ("<s>", *rows[:-1])
    return AttentionMap("cross", weights, fed, tuple(keys), np.ones(weights.shape[2:], bool), tuple(rows))


def diagonal(size: int, order: Sequence[int], share: float = 0.9) -> list[list[float]]:
    """Rows that each give `share` to the key in `order`, the rest to all others alike."""
    other = (1 - share) / (size - 1)
    return [[share if key == own else other for key in range(size)] for own in order]


def telling(cross: AttentionMap) -> tuple[WordWeights, WordReading]:
    words, reading = weigh_words(cross), pick_telling_word(cross)
    assert words is not None
    assert reading is not None
    return words, reading


def say_reading(cross: AttentionMap) -> str:
    return re.sub("[\u2068\u2069]", "", describe_word_attention(*telling(cross)))


KEYS = ("I", " saw", " him", " there", "</s>")
ROWS = ("Ich", " sah", " ihn", " dort", "</s>")


def test_a_jump_back_is_told_before_what_stands_in_order() -> None:
    cross = cross_map(KEYS, ("Ich", " ihn", " dort", " sah", "</s>"), diagonal(5, (0, 2, 3, 1, 4)))
    words, reading = telling(cross)
    assert (reading.kind, reading.row, reading.key, reading.beside, reading.size) == ("back", 3, 1, 3, 2)
    assert (
        say_reading(cross)
        == "To write “sah” the model jumped back from “there” to “saw”: 90% of the weight of head 1.1."
    )
    assert words.row_of(3) == 3
    assert words.row_of(4) is None


def test_an_article_that_jumps_with_its_noun_is_not_told() -> None:
    keys, rows = (
        ("When", " does", " the", " shop", " close", "</s>"),
        ("Wann", " macht", " der", " Laden", " zu", "</s>"),
    )
    words, reading = telling(cross_map(keys, rows, diagonal(6, (0, 4, 2, 3, 4, 5))))
    assert words.row_words[2] == "der"
    assert reading.row != 2


def test_a_long_word_at_a_short_one_tells_no_more_than_that() -> None:
    keys, rows = ("In", " my", " salad", "</s>"), ("In", " meinem", " Salat", "</s>")
    words, reading = telling(cross_map(keys, rows, diagonal(4, range(4))))
    assert reading.row is not None
    assert words.row_words[reading.row] == "Salat"


def test_a_jump_ahead_is_over_a_word_that_is_written_later() -> None:
    cross = cross_map(KEYS, ("Ich", " dort", " sah", " ihn", "</s>"), diagonal(5, (0, 3, 1, 2, 4)))
    words = weigh_words(cross)
    assert words is not None
    reading = read_target_word(words, 1, (0, 0))
    assert (reading.kind, reading.key, reading.beside, reading.size) == ("ahead", 3, 1, 3)


def test_pieces_of_a_name_are_copied_one_by_one() -> None:
    keys, rows = (" in", " Hei", "del", "berg", "</s>"), (" zu", " Hei", "del", "berg", "</s>")
    cross = cross_map(keys, rows, diagonal(5, range(5)))
    _, reading = telling(cross)
    assert (reading.kind, reading.size) == ("copied", 3)
    assert (
        say_reading(cross)
        == "“Heidelberg” is the same in both: each of its 3 pieces looks most at itself in the sentence."
    )
    mixed = cross_map(keys, rows, diagonal(5, (0, 2, 1, 3, 4)))
    assert telling(mixed)[1].kind == "clear"


def test_two_words_of_one_and_one_word_of_two() -> None:
    twice = cross_map(KEYS, ("habe", " ihn", " gesehen", "</s>"), diagonal(5, (1, 2, 1, 4)))
    words = weigh_words(twice)
    assert words is not None
    assert read_target_word(words, 2, (0, 0)).kind == "back"  # It is both, and a jump is told first.
    near = weigh_words(cross_map(KEYS[:3] + KEYS[4:], ("kommt", " ja", " an", "</s>"), diagonal(4, (1, 1, 1, 3))))
    assert near is not None
    said = re.sub("[\u2068\u2069]", "", describe_word_attention(near, read_target_word(near, 2, (0, 0))))
    assert said == "Head 1.1 looked twice at “saw”: for “kommt” and again for “an” (90%)."
    both = cross_map(("front", " door", "</s>"), ("Haustür", "</s>"), [[0.43, 0.49, 0.08], [0.1, 0.1, 0.8]])
    assert say_reading(both) == "To write “Haustür”, head 1.1 looked at two words: “front” (43%) and “door” (49%)."


def test_a_word_that_looks_at_what_a_later_word_is_written_for_is_not_told() -> None:
    keys = ("go", " to", " Rome", " next", " summer", "</s>")
    early = cross_map(keys, (" nächsten", " Sommer", " nach", " Rom", "</s>"), diagonal(6, (3, 4, 2, 2, 5)))
    words, reading = telling(early)
    assert read_target_word(words, 2, (0, 0)).kind == "back"  # Still said of the word that is clicked.
    assert words.row_words[reading.row or 0] not in ("nach", "Rom")
    own = cross_map(keys, (" nächsten", " Sommer", " nach", " Rom", "</s>"), diagonal(6, (3, 4, 1, 2, 5)))
    assert (telling(own)[1].kind, telling(own)[1].row) == ("back", 2)
    participle = cross_map(KEYS, ("ihn", " dort", " gesehen", " hat", "</s>"), diagonal(5, (2, 3, 1, 1, 4)))
    assert (telling(participle)[1].kind, telling(participle)[1].row) == ("back", 2)


def test_a_word_behind_a_longer_one_with_the_same_match_is_not_told() -> None:
    rows = ("eislaufen", " können", "</s>")
    cross = cross_map(("go", " skating", "</s>"), rows, [[0.3, 0.45, 0.25], [0.05, 0.9, 0.05], [0.0, 0.0, 1.0]])
    assert telling(cross)[1].row == 0


def test_a_word_whose_match_is_contested_is_told_last() -> None:
    keys, rows = ("I", " wash", " it", "</s>"), ("Waschmaschine", " ich", "</s>")
    rest = [[0.9, 0.05, 0.05, 0.0], [0.0, 0.0, 0.0, 1.0]]
    one, other = [[0.1, 0.6, 0.2, 0.1], *rest], [[0.1, 0.2, 0.6, 0.1], *rest]
    words, reading = telling(cross_map(keys, rows, one, other))
    assert words.shares[0, :, 0].max() >= 0.5  # One head shows it, but all heads together do not.
    assert reading.row == 1
    assert telling(cross_map(keys, rows, one, one))[1].row == 0


def test_no_jump_from_a_word_that_was_looked_at_early() -> None:
    keys = ("a", " school", " in", " Berlin", "</s>")
    early = cross_map(keys, (" einer", " Schule", " in", " Berlin", "</s>"), diagonal(5, (3, 1, 2, 3, 4)))
    words = weigh_words(early)
    assert words is not None
    assert read_target_word(words, 1, (0, 0)).kind == "clear"


def test_no_jump_ahead_to_a_short_word() -> None:
    cross = cross_map(("I", " saw", " him", "</s>"), ("Ich", " ihn", " sah", "</s>"), diagonal(4, (0, 2, 1, 3)))
    words = weigh_words(cross)
    assert words is not None
    assert read_target_word(words, 1, (0, 0)).kind == "clear"


def test_a_word_that_nothing_looked_at() -> None:
    keys = (*KEYS[:4], " today", "</s>")
    even = [[0.9 if key == own else 0.02 for key in range(6)] for own in (0, 1, 2, 3, 5)]
    cross = cross_map(keys, ROWS, even)
    words, reading = telling(cross)
    assert (reading.kind, words.key_words[reading.key or 0]) == ("unread", "today")
    assert reading.beside_share == pytest.approx(0.02)
    assert say_reading(cross).startswith(
        "No head looked much at “today”: of the weight of no word it got more than 2.0%."
    )


def test_a_row_that_rests_names_the_head_that_does_not() -> None:
    resting = [[0.05, 0.03, 0.02, 0.0, 0.9], *diagonal(5, (1, 2, 3, 4))]
    cross = cross_map(KEYS, ROWS, resting, diagonal(5, range(5), 0.8))
    words = weigh_words(cross)
    assert words is not None
    reading = read_target_word(words, 0, (0, 0))
    assert (reading.kind, reading.better) == ("rest", (0, 1))
    text = re.sub("[\u2068\u2069]", "", describe_word_attention(words, reading))
    assert text == (
        "For “Ich”, head 1.1 rests: 90% of its weight lies on the end of the sentence. "
        "Head 1.2 shows it: it looks at “I” (80%)."
    )
    assert telling(cross)[1].kind != "rest"
    padded = weigh_words(replace(cross, key_tokens=(*KEYS[:3], "<s>", "</s>")))
    assert padded is not None
    assert "special tokens" in describe_word_attention(padded, read_target_word(padded, 0, (0, 0)))


def test_a_head_that_looks_elsewhere_or_nowhere() -> None:
    late = [[0.9, 0.1, 0, 0, 0], [0.9, 0.1, 0, 0, 0], [0.25, 0.25, 0.25, 0.15, 0.1], *diagonal(5, (3, 4))]
    cross = cross_map(KEYS, ROWS, late, *[diagonal(5, range(5), 0.97)] * 3)
    words = weigh_words(cross)
    assert words is not None
    other, weak = read_target_word(words, 1, (0, 0)), read_target_word(words, 2, (0, 0))
    assert (other.kind, other.key, other.beside, other.better is None) == ("other", 0, 1, False)
    assert (weak.kind, weak.better is None) == ("weak", False)


def test_the_only_word_and_no_word() -> None:
    one = cross_map(("Yes", "</s>"), ("Ja", "</s>"), [[0.3, 0.7], [0.1, 0.9]])
    assert say_reading(one) == "To write “Ja” there is one word to look at: “Yes” got 30% of the weight of head 1.1."
    assert pick_telling_word(cross_map(("</s>",), ("</s>",), [[1.0]])) is None
    marks = cross_map(("?", "!", "</s>"), ("?", "!", "</s>"), diagonal(3, range(3)))
    assert telling(marks)[1].row is not None


def test_a_word_of_the_sentence_names_who_looked_at_it() -> None:
    cross = cross_map(KEYS, ROWS, diagonal(5, (0, 1, 2, 2, 4)))
    words = weigh_words(cross)
    assert words is not None
    seen, unseen = read_source_word(words, 2, (0, 0)), read_source_word(words, 3, (0, 0))
    assert (seen.kind, seen.row, seen.share) == ("clear", 2, pytest.approx(0.9))
    assert (unseen.kind, unseen.row) == ("unread", None)
    assert "was looked at to write" in describe_word_attention(words, seen, of_source=True)


def test_heads_that_are_left_out_are_not_picked() -> None:
    cross = cross_map(KEYS, ROWS, diagonal(5, range(5), 0.95), diagonal(5, range(5), 0.6))
    words, reading = telling(cross)
    assert (reading.layer, reading.head) == find_best_head(words, 0) == (0, 0)
    left = pick_telling_word(cross, left_out=frozenset([(0, 0)]))
    assert left is not None
    assert (left.layer, left.head) == (0, 1)
    assert pick_telling_word(cross, left_out=frozenset([(0, 0), (0, 1)])) is None


def test_a_head_that_is_left_out_is_not_picked_for_an_unread_word() -> None:
    even = [[0.9 if key == own else 0.02 for key in range(6)] for own in (0, 1, 2, 3, 5)]
    worse = [[0.6 if key == own else 0.08 for key in range(6)] for own in (0, 1, 2, 3, 5)]
    cross = cross_map((*KEYS[:4], " today", "</s>"), ROWS, even, worse)
    for left_out, head in ((frozenset(), 0), (frozenset([(0, 0)]), 1)):
        found = pick_telling_word(cross, left_out)
        assert found is not None
        assert (found.kind, found.head) == ("unread", head)


def test_a_better_head_is_none_that_is_left_out() -> None:
    words = weigh_words(cross_map(KEYS, ROWS, diagonal(5, range(5)), diagonal(5, (4, 4, 4, 4, 4))))
    assert words is not None
    assert read_target_word(words, 1, (0, 1)).better == (0, 0)
    assert read_target_word(words, 1, (0, 1), left_out=frozenset([(0, 0)])).better is None


def test_every_reading_of_random_maps_is_true_of_its_weights() -> None:
    """Each number and place of a reading is worked out again from the captured weights."""
    chance = np.random.default_rng(0)
    keys = (" The", " dog", "gy", " sees", " today", "</s>")
    rows = (" Der", " Hund", "chen", " sieht", " heute", ".", "</s>")
    row_groups, key_groups = [[0], [1, 2], [3], [4], [5]], [[0], [1, 2], [3], [4]]
    kinds = set()
    for _ in range(150):
        sharp = chance.dirichlet(np.full(len(keys), 0.15), (1, 4, len(rows))).astype(np.float32)
        cross = AttentionMap("cross", sharp, ("<s>", *rows[:-1]), keys, np.ones(sharp.shape[2:], bool), rows)
        by_key = np.stack([sharp[0][:, :, group].sum(-1) for group in key_groups], -1)
        merged = np.stack([by_key[:, group].mean(1) for group in row_groups], 1)
        words, picked = telling(cross)
        for row, head in np.ndindex(5, 4):
            one = read_target_word(words, row, (0, head))
            kinds.add(one.kind)
            check_reading(one, merged)
        if picked.kind == "unread":
            assert merged[:, :, picked.key].max() < READ
        if picked.row is not None and picked.kind in ("clear", "back"):
            assert picked.share >= merged[:, picked.row, picked.key].max() - NEAR - 1e-5
    assert {"clear", "back", "ahead", "twice", "rest", "weak", "other", "two"} <= kinds


def check_reading(one: WordReading, merged: np.ndarray) -> None:
    """Hold a reading against the weights between words, merged (H, R, K)."""
    own, match = merged[one.head, one.row], merged.mean(0).argmax(-1)
    assert one.row is not None
    if one.better:
        assert merged[one.better[1], one.row, match[one.row]] >= SHOWN
    if one.kind == "rest":
        assert one.share == pytest.approx(1 - own.sum(), abs=1e-5)
        assert one.share >= SHOWN
        return
    assert one.key is not None
    assert one.share == pytest.approx(own[one.key], abs=1e-5)
    CHECKS.get(one.kind, lambda *_: None)(one, merged, match)


def check_shown(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    assert one.key == match[one.row]
    assert one.share >= SHOWN


def check_back(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    check_shown(one, merged, match)
    assert one.beside == match[one.row - 1]
    assert one.size == one.beside - match[one.row] > 0
    assert one.beside not in match[one.row + 1 :]
    assert merged[one.head, one.row - 1, one.beside] >= SHOWN


def check_ahead(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    check_shown(one, merged, match)
    assert match[one.row - 1] < one.beside < match[one.row]
    assert one.beside in match[one.row + 1 :]


def check_twice(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    check_shown(one, merged, match)
    assert match[one.beside] == one.key
    assert merged[one.head, one.beside, one.key] >= SHOWN


def check_two(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    assert match[one.row] in (one.key, one.beside)
    assert sorted(merged[one.head, one.row])[-2:] == pytest.approx(sorted((one.share, one.beside_share)), abs=1e-5)


def check_weak(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    assert one.share == pytest.approx(merged[one.head, one.row].max(), abs=1e-5)
    assert one.share < SHOWN


def check_other(one: Any, merged: np.ndarray, match: np.ndarray) -> None:
    assert one.beside == match[one.row] != one.key
    assert one.share >= SHOWN


CHECKS: dict[str, Any] = {
    "clear": check_shown,
    "back": check_back,
    "ahead": check_ahead,
    "twice": check_twice,
    "two": check_two,
    "weak": check_weak,
    "other": check_other,
}
