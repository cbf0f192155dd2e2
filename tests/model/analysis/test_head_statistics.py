"""Heads in numbers: worked by hand, held to their definitions in loops, and without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attenscope.analysis.heads import (
    FOCUS_MEASURES,
    MEASURE_EXPLANATIONS,
    attention_distance,
    attention_entropy,
    compute_head_statistics,
    find_repetition_cells,
    find_sink,
    heads_in_range,
    rank_heads,
)
from attenscope.trace import AttentionMap, Kind

ROOT = Path(__file__).resolve().parents[3]
NUMPY_ONLY = [
    "analysis.flow",
    "analysis.heads",
    "analysis.attention_steps",
    "interventions.changes",
    "text.words",
]


def a_map(kind: Kind, *heads: object, mask: np.ndarray | None = None, end: str = "</s>") -> AttentionMap:
    weights = np.array(heads, dtype=np.float32)[None]
    queries, keys = weights.shape[2:]
    tokens = tuple(f" t{number}" for number in range(keys - 1))
    return AttentionMap(
        kind,
        weights,
        tuple(f" q{number}" for number in range(queries)),
        (*tokens, end),
        np.ones((queries, keys), dtype=bool) if mask is None else mask,
    )


IDENTITY, UNIFORM = np.eye(4), np.full((4, 4), 0.25)
PREVIOUS = np.eye(4, k=-1) + np.eye(4) * [1, 0, 0, 0]


def causal(*heads: np.ndarray) -> AttentionMap:
    return a_map("decoder", *heads, mask=np.tri(4, dtype=bool), end=" t3")


def test_a_sink_holds_more_than_half_of_the_rows_asked_for_and_more_than_equal_weights() -> None:
    heads = np.array([[1, 0, 0, 0], [0.8, 0.2, 0, 0], [0.7, 0.2, 0.1, 0], [0.1, 0.2, 0.3, 0.4]])
    equal = np.tri(4) / np.tri(4).sum(-1, keepdims=True)
    one = causal(heads, equal)
    found = find_sink(one, 0, 0, range(4))
    assert found is not None
    assert found.key == 0
    assert found.share == pytest.approx((1 + 0.8 + 0.7 + 0.1) / 4)
    last = find_sink(one, 0, 0, [2, 3])
    assert last is None  # 0.8 of 2
    assert equal[:, 0].mean() > 0.5
    assert find_sink(one, 0, 1, range(4)) is None
    assert find_sink(a_map("cross", np.ones((3, 1))), 0, 0, range(3)) is None  # The only key.
    assert find_sink(a_map("encoder", np.zeros((2, 2))), 0, 0, range(2)) is None


def test_rows_that_may_attend_to_nothing_make_no_sink_of_equal_weights() -> None:
    mask = np.tri(4, dtype=bool)
    mask[2:] = False
    equal = mask / np.maximum(mask.sum(-1, keepdims=True), 1)  # The first key holds 1 and 0.5.
    assert find_sink(a_map("decoder", equal, mask=mask, end=" t3"), 0, 0, range(4)) is None


def test_entropy_is_0_for_one_key_and_1_for_all_the_same() -> None:
    np.testing.assert_allclose(attention_entropy(a_map("encoder", IDENTITY, UNIFORM)), [[0, 1]], atol=1e-6)


def test_entropy_counts_the_allowed_keys_only() -> None:
    uniform = np.tri(4) / np.tri(4).sum(-1, keepdims=True)
    np.testing.assert_allclose(attention_entropy(causal(uniform)), [[1]], rtol=1e-6)


def test_entropy_worked_by_hand() -> None:
    rows = [[0.5, 0.5, 0, 0], [1, 0, 0, 0]]
    assert attention_entropy(a_map("cross", rows))[0, 0] == pytest.approx((0.5 + 0) / 2)


def test_after_a_token_doubled_the_query_itself_is_no_induction() -> None:
    tokens = (" a", " a", " b", " a")
    doubled = AttentionMap("decoder", np.tri(4, dtype=np.float32)[None, None], tokens, tokens, np.tri(4, dtype=bool))
    found = find_repetition_cells(doubled)
    assert np.argwhere(found["induction"]).tolist() == [[3, 1], [3, 2]]
    assert np.argwhere(found["duplicate token"]).tolist() == [[1, 0], [3, 0], [3, 1]]


def test_a_row_that_may_attend_to_nothing_counts_nowhere() -> None:
    mask = np.ones((4, 4), dtype=bool)
    mask[3] = False
    empty = UNIFORM * mask
    found = compute_head_statistics(a_map("encoder", empty, mask=mask))
    assert found["entropy"][0, 0] == pytest.approx(1)
    assert found["first"][0, 0] == pytest.approx(0.25)
    assert found["distance"][0, 0] == pytest.approx((6 / 4 + 1 + 1) / 3)


def test_distance_in_tokens_and_from_the_diagonal() -> None:
    np.testing.assert_allclose(attention_distance(a_map("encoder", IDENTITY, UNIFORM)), [[0, 1.25]])
    stretched = np.kron(np.eye(2), [[0.5, 0.5]])  # two queries over four keys, along the diagonal
    assert attention_distance(a_map("cross", stretched))[0, 0] == pytest.approx(0.5)
    assert attention_distance(a_map("cross", stretched[::-1]))[0, 0] == pytest.approx(2)
    assert attention_distance(a_map("cross", [[0, 1, 0]]))[0, 0] == 0  # One query stands over the middle of three keys.


def test_focus_on_previous_same_and_first() -> None:
    found = compute_head_statistics(causal(PREVIOUS, IDENTITY))
    np.testing.assert_allclose(found["previous"], [[1, 0]])  # of the three rows that have a choice
    np.testing.assert_allclose(found["same"], [[0, 1]])
    np.testing.assert_allclose(found["first"], [[1 / 3, 0]])


def test_a_sink_column_is_no_token() -> None:
    """As many columns as the keys of two cached steps, and the sink of gpt-oss behind them."""
    weights = np.array([[0, 0, 0.4, 0, 0.6], [0, 0, 0, 0.4, 0.6]], np.float32)
    mask = np.concatenate([np.tri(2, 4, 2, dtype=bool), np.ones((2, 1), bool)], 1)
    step = AttentionMap("decoder", weights[None, None], ("3", "4"), ("1", "2", "3", "4", "sink"), mask)
    found = compute_head_statistics(step)
    assert found["same"][0, 0] == pytest.approx(0.4)
    assert found["distance"][0, 0] == 0
    assert "next" not in found
    assert not find_repetition_cells(step)["induction"].any()


def test_slots_of_a_static_cache_that_are_not_filled_yet_are_no_tokens() -> None:
    numbered = tuple(map(str, range(1, 9)))
    for filled, queries in ((4, 4), (6, 2)):
        places = np.arange(filled - queries, filled)
        mask = np.tri(8, dtype=bool)[places]
        step = AttentionMap(
            "decoder", np.eye(8, dtype=np.float32)[None, None, places - 1], numbered[:queries], numbered, mask
        )
        found = compute_head_statistics(step)
        assert found["previous"][0, 0] == 1
        assert found["distance"][0, 0] == 1


def test_focus_on_next_and_end() -> None:
    found = compute_head_statistics(a_map("encoder", np.eye(4, k=1), np.eye(4)[[3, 3, 3, 3]]))
    np.testing.assert_allclose(found["next"], [[1, 1 / 3]])
    np.testing.assert_allclose(found["end"], [[0.25, 1]])


def test_only_what_means_something_for_the_kind() -> None:
    assert "next" not in compute_head_statistics(causal(IDENTITY))
    assert "end" not in compute_head_statistics(causal(IDENTITY))
    assert set(compute_head_statistics(a_map("cross", UNIFORM))) == {"entropy", "distance", "first", "end", "alignment"}
    leaking = a_map("decoder", np.eye(4, k=1), end=" t3")  # a decoder that may see the next token is worth a number
    assert compute_head_statistics(leaking)["next"][0, 0] == 1


def test_statistics_of_many_heads_are_those_of_each_head() -> None:
    rng = np.random.default_rng(0)
    many = AttentionMap(
        "encoder",
        rng.dirichlet(np.ones(5), (3, 2, 5)),
        tuple("abcde"),
        tuple("abcde"),
        np.ones((5, 5), dtype=bool),
    )
    found = compute_head_statistics(many)
    assert all(values.shape == (3, 2) for values in found.values())
    one = compute_head_statistics(a_map("encoder", many.weights[2, 1], end="e"))
    assert all(values[2, 1] == pytest.approx(one[name][0, 0], rel=1e-5) for name, values in found.items())


def test_one_token_has_numbers_too() -> None:
    one = a_map("encoder", [[1.0]])
    assert {name: values.item() for name, values in compute_head_statistics(one).items()} == {
        **{"entropy": 0, "distance": 0, "same": 1, "first": 1, "end": 1}
    }


def test_every_measure_is_explained() -> None:
    assert set(FOCUS_MEASURES) < set(MEASURE_EXPLANATIONS)
    assert all(text.endswith(".") for text in MEASURE_EXPLANATIONS.values())


def test_ranking_and_filtering() -> None:
    values = np.array([[0.2, 0.9], [0.9, 0.1]])
    assert rank_heads(values) == ((0, 1), (1, 0), (0, 0), (1, 1))
    assert rank_heads(values, largest_first=False) == ((1, 1), (0, 0), (0, 1), (1, 0))
    assert heads_in_range(values, low=0.2).tolist() == [[True, True], [True, False]]
    assert heads_in_range(values, high=0.2).tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize("name", NUMPY_ONLY)
def test_numbers_need_no_torch(name: str) -> None:
    program = f"import sys, attenscope.{name}; sys.exit('torch was imported' if 'torch' in sys.modules else 0)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
