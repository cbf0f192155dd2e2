"""What the card of a word says, from the step and the facts that it is of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attenscope.decoding.greedy_and_sampling import Candidate, DecodingStep
from attenscope.experiments.ablation import WordFacts
from attenscope.trace import Head
from attenscope.viz.web.text_components import MAX_CARD_ROWS, decision_layer_text, word_card_data
from tests.model.experiments.test_word_facts import lens_of

CANDIDATES = tuple(Candidate(at, math.log(share), f" w{at}") for at, share in enumerate((0.6, 0.3, 0.05, 0.0001, 1e-9)))
HEADS: list[tuple[Head, float]] = [(("cross", 1, 0), -4.0), (("encoder", 0, 2), 1.0), (("decoder", 0, 0), -0.004)]


def step(token: int = 1, rank: int = 2) -> DecodingStep:
    chosen = CANDIDATES[token]
    return DecodingStep(0, chosen.token_id, chosen.log_prob, CANDIDATES, chosen.token, rank=rank)


def facts(*ranks: int) -> WordFacts:
    return WordFacts((" big", " house", "</s>"), np.array([[0.25, 0.7, 0.05]]), lens_of([[rank] for rank in ranks]))


def test_a_card_by_hand() -> None:
    card = word_card_data(step(), facts(5, 2, 2), HEADS)
    assert (card["word"], card["fact"]) == ("w1", "30% · rank 2")
    assert [(one["text"], one["value"]) for one in card["others"]] == [
        ("w0", "60%"),
        ("w2", "5.0%"),
        ("w3", "<0.1%"),
        ("w4", "<0.1%"),
    ]
    assert [(one["text"], one["value"]) for one in card["sources"]] == [
        ("house", "70%"),
        ("big", "25%"),
        ("</s>", "5.0%"),
    ]
    assert [(one["text"], one["value"], one["share"]) for one in card["heads"]] == [
        ("cross 2.1", "−4.00", 1.0),
        ("encoder 1.3", "+1.00", 0.25),
        ("decoder 1.1", "−0.00", 0.001),
    ]


def test_no_part_has_more_rows_than_there_is_room_for() -> None:
    card = word_card_data(step(), facts(1), [(("cross", 0, at), -1.0) for at in range(9)])
    assert max(len(card[part]) for part in ("others", "sources", "heads")) == MAX_CARD_ROWS


def test_small_changes_have_small_bars() -> None:
    card = word_card_data(step(), facts(1), [(("cross", 0, 0), -0.02)])
    assert card["heads"][0]["share"] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ((1, 1, 1), "is the most probable token from the embedding on"),
        ((3, 2, 1), "is the most probable token from layer 2 of 2 on."),
        ((1, 1, 2), "After the last layer another token than"),
    ],
)
def test_where_a_word_was_decided(ranks: tuple[int, ...], said: str) -> None:
    assert said in decision_layer_text(step(), facts(*ranks))
