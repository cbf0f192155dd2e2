"""Which head aligns: an average worked by hand, a head planted to be found, and a translator that must align."""

from __future__ import annotations

import numpy as np
import pytest

from attenscope.analysis.heads import (
    ALIGNMENT_EXPLANATION,
    ALIGNMENT_READINGS,
    compute_head_statistics,
    compute_mean_alignment,
    rank_heads_by_alignment,
)
from attenscope.trace import AttentionMap, TraceError
from attenscope.translate import Translator
from tests import toy

SOURCE, PREDICTED = (" a", " b", " c", "</s>"), (" x", " y", " z", "</s>")


def cross(*heads: np.ndarray) -> AttentionMap:
    """One layer of heads (4, 4); the rows predict x, y, z and </s>."""
    mask = np.ones((4, 4), dtype=bool)
    return AttentionMap("cross", np.array([heads], np.float32), ("<s>", " x", " y", " z"), SOURCE, mask, PREDICTED)


def test_the_average_leaves_out_special_tokens() -> None:
    resting = np.zeros((4, 4))
    resting[:, 3] = 1
    average = compute_mean_alignment(cross(resting, np.eye(4), np.eye(4)[[0, 2, 1, 3]]))
    expected = [[1.0, 0, 0, 0], [0.0, 0.5, 0.5, 0], [0.0, 0.5, 0.5, 0], [0.0, 0, 0, 0]]
    np.testing.assert_allclose(average, expected)


def test_the_sharp_head_that_agrees_ranks_first() -> None:
    sharp, dull = np.eye(4), np.eye(4) * 0.4 + 0.15
    turned = np.eye(4)[[1, 2, 0, 3]]
    best, second, last = rank_heads_by_alignment(cross(turned, dull, sharp))
    assert (best.layer, best.head, best.mass, best.agreeing, best.rows) == (0, 2, 1.0, 3, 3)
    assert second.head == 1
    assert second.mass == pytest.approx(0.55)
    assert second.agreeing == 3
    assert (last.head, last.mass, last.agreeing) == (0, 0.0, 0)
    assert best.sentence == (
        "Head 3 of layer 1 puts 100% of its weight on the token that all heads together point to; "
        "its own strongest token is that one in 3 of 3 rows."
    )


def test_a_strongest_token_that_stands_for_no_text_is_told() -> None:
    """Two rows of three are aligned; in the third the head rests on </s>."""
    resting = np.eye(4)[[0, 1, 3, 3]]
    ranking = rank_heads_by_alignment(cross(np.eye(4), np.eye(4), resting))
    (head,) = (found for found in ranking if found.head == 2)
    assert (head.agreeing, head.elsewhere, head.rows) == (2, 1, 3)
    assert head.sentence.endswith("in 2 of 3 rows, and at a special token such as </s> in 1.")


def test_a_head_one_step_behind_aligns_the_token_fed_in() -> None:
    behind = np.eye(4)[[3, 0, 1, 2]]
    ranking = rank_heads_by_alignment(cross(np.eye(4), np.eye(4), behind))
    (head,) = (found for found in ranking if found.head == 2)
    assert (head.reading, head.mass, head.agreeing, head.rows) == ("fed", 1.0, 3, 3)
    assert "aligns the token just fed in" in head.sentence
    assert rank_heads_by_alignment(cross(np.eye(4), np.eye(4), behind), readings=("predicted",))[-1].mass == 0


def test_the_ranking_is_the_statistic() -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(4), (2, 3, 4)).astype(np.float32)
    one = AttentionMap("cross", weights, ("<s>", " x", " y", " z"), SOURCE, np.ones((4, 4), dtype=bool), PREDICTED)
    for readings in (ALIGNMENT_READINGS, *((reading,) for reading in ALIGNMENT_READINGS)):
        values = compute_head_statistics(one, readings)["alignment"]
        ranking = rank_heads_by_alignment(one, readings)
        assert [values[head.layer, head.head] for head in ranking] == sorted(values.flat, reverse=True)


def test_only_special_tokens_do_not_stop_it() -> None:
    one = AttentionMap("cross", np.ones((1, 1, 1, 1)), ("<s>",), ("</s>",), np.ones((1, 1), dtype=bool), ("</s>",))
    (head,) = rank_heads_by_alignment(one)
    assert (head.mass, head.agreeing, head.rows) == (1.0, 1, 1)


def test_other_maps_are_refused() -> None:
    one = AttentionMap("encoder", np.ones((1, 1, 1, 1)), ("a",), ("a",), np.ones((1, 1), dtype=bool))
    with pytest.raises(TraceError, match=r"read from cross-attention; this is the encoder map\."):
        compute_mean_alignment(one)


def test_the_explanation_warns() -> None:
    assert "not which is right" in ALIGNMENT_EXPLANATION


def test_a_translator_of_word_for_word_sentences_aligns_on_the_diagonal(toy_translator: Translator) -> None:
    """In the toy language word N translates word N, so the best head must point near it."""
    agreed = rows = 0
    for english, german in toy.sentences(8, seed=9):
        translation = toy_translator.translate(english)
        assert translation.text == german
        best = rank_heads_by_alignment(translation.trace.cross)[0]  # type: ignore[arg-type]
        agreed, rows = agreed + best.agreeing, rows + best.rows
    assert agreed / rows > 0.6
