"""The hypothesis that is closest to a reference."""

from __future__ import annotations

import sacrebleu

from attenscope.evaluation.quality import LEAST_CHRF, choose_closest, count_shared_names_and_numbers

SOURCE = "She leaves the house at seven."
REFERENCE = "Sie verlässt um sieben das Haus."


def score(text: str) -> float:
    return sacrebleu.sentence_chrf(text, [REFERENCE], word_order=2).score


def test_the_reference_itself_is_taken_wherever_it_stands() -> None:
    assert choose_closest(["Sie verlässt das Haus um sieben.", REFERENCE], REFERENCE, SOURCE) == REFERENCE


def test_no_other_hypothesis_has_a_higher_score() -> None:
    hypotheses = ["Sie fährt um sieben Uhr das Haus.", "Sie verlässt das Haus um sieben.", "Sie geht."]
    scores = [score(one) for one in hypotheses]
    assert max(scores) == scores[1] > LEAST_CHRF
    assert choose_closest(hypotheses, REFERENCE, SOURCE) == hypotheses[1]


def test_of_equals_the_more_probable_one_is_taken() -> None:
    first, second = "Sie verlässt um xxxx das Haus.", "Sie verlässt um qqqq das Haus."
    assert score(first) == score(second) > LEAST_CHRF
    assert choose_closest([first, second], REFERENCE, SOURCE) == first
    assert choose_closest([second, first], REFERENCE, SOURCE) == second


def test_what_says_something_else_is_not_taken() -> None:
    assert score("Er schläft noch.") < LEAST_CHRF
    assert choose_closest(["Er schläft noch."], REFERENCE, SOURCE) == REFERENCE


def test_a_name_and_a_number_are_words_that_both_sides_write_alike() -> None:
    found = count_shared_names_and_numbers(
        "Emma told Emma: at 7 the hand of Noah is cold.", "Emma sah um 7, dass die Hand von Noah warm ist"
    )
    assert found == {"Emma": 1, "7": 1, "Noah": 1}


def test_a_hypothesis_that_lost_a_name_is_not_taken_however_close_it_is() -> None:
    source, reference = "Emma is older than Noah today.", "Emma ist heute älter als Noah."
    lost, kept = "Emma ist heute älter als No.", "Emma ist nun älter als Noah."
    chrf = sacrebleu.CHRF(word_order=2)
    assert chrf.sentence_score(lost, [reference]).score > chrf.sentence_score(kept, [reference]).score > LEAST_CHRF
    assert choose_closest([lost, kept], reference, source) == kept
    assert choose_closest([lost], reference, source) == reference
    assert choose_closest([], reference, source) == reference
