"""Pieces into words for every way a tokenizer marks them, and special tokens out of the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attenscope.text.words import (
    SPECIAL_TOKENS,
    group_tokens_into_words,
    hide_special_tokens,
    is_cjk,
    join_word,
    merge_map_into_words,
)
from attenscope.trace import AttentionMap


def joined(*tokens: str) -> list[str]:
    return [join_word([tokens[place] for place in group]) for group in group_tokens_into_words(tokens)]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ((" The", " bi", "cycl", "e", ".", "</s>"), [" The", " bicycle", ".", "</s>"]),
        ((" didn", "'", "t", " know"), [" didn't", " know"]),
        ((" U", "-", "Bahn", " 3", ".", "5"), [" U-Bahn", " 3.5"]),
        ((" (", "Ka", "tze", ")", "!", "?"), [" (", "Katze", ")", "!", "?"]),
        (("<s>", " Der", " Hun", "d"), ["<s>", " Der", " Hund"]),
        ((" wait", ".", ".", "."), [" wait", ".", ".", "."]),
        ((" my", "<unk>", "thing"), [" my", "<unk>", "thing"]),
        ((" 我", "喜", "欢", "abc", "d", "，", "你", "们", "好"), [" 我", "喜", "欢", "abcd", "，", "你", "们", "好"]),
        ((" ", "我", " ", "<unk>"), [" 我", " ", "<unk>"]),
        ((" ca", "f", "<0xC3>", "<0xA9>", " ", "<0xF0>", "<0x9F>", "<0x8E>", "<0x89>"), [" café", " 🎉"]),
        ((" ", "<0x3C>", "b", "<0x3E>", "bold"), [" <b>bold"]),
        ((" a", "<0xC3>", " b", "<0x0A>"), [" a<0xC3>", " b<0x0A>"]),
        ((" 학교", "에", " 갔", "다"), [" 학교에", " 갔다"]),
        ((" مر", "حبا", " بك"), [" مرحبا", " بك"]),
        (("▁The", "▁bi", "cycle", "</s>"), [" The", " bicycle", "</s>"]),
        (("The", "Ġbi", "cycle", "!"), ["The", " bicycle", "!"]),
        (("[CLS]", "the", "bi", "##cycle", "##s", "'", "t", "[SEP]"), ["[CLS]", "the", "bicycles", "'", "t", "[SEP]"]),
        (("the", "dog", "sees"), ["the", "dog", "sees"]),
        (("</s>",), ["</s>"]),
        ((), []),
    ],
)
def test_words_by_hand(tokens: tuple[str, ...], expected: list[str]) -> None:
    assert joined(*tokens) == expected


PIECES = st.sampled_from([" a", "b", " c", "'", ".", " (", "我", " 们", "<s>", "</s>", "<unk>", " ", "3", "é", "ど"])


@given(st.lists(PIECES, min_size=1, max_size=12))
def test_words_are_all_positions_and_their_text_is_the_sentence(tokens: list[str]) -> None:
    groups = group_tokens_into_words(tokens)
    assert [place for group in groups for place in group] == list(range(len(tokens)))
    assert "".join(joined(*tokens)) == "".join(tokens)
    assert joined(*joined(*tokens)) == joined(*tokens)


def test_special_tokens_of_a_tokenizer_and_line_breaks_are_words_of_their_own() -> None:
    tokens = ("<|im_start|>", "user", "\n", "the", " bi", "cycle", "<|im_end|>", "\n", "<|im_start|>", "as", "sist")
    groups = group_tokens_into_words(tokens, frozenset({"<|im_start|>", "<|im_end|>"}))
    found = [join_word(tokens[group.start : group.stop]) for group in groups]
    assert found == [*tokens[:4], " bicycle", *tokens[6:9], "assist"]


def test_scripts_without_spaces() -> None:
    assert all(map(is_cjk, "我喜々ひカ，"[:5]))
    assert not any(map(is_cjk, "aé학م1. "))
    assert not is_cjk("")


def cross() -> AttentionMap:
    """Two heads, rows fed <s> / Hun d and predicted Hun d </s>, over the source " the", " d", "og", "</s>"."""
    one = [[0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]
    weights = np.array([[one, [[0.25] * 4] * 3]], dtype=np.float32)
    mask = np.ones((3, 4), dtype=bool)
    return AttentionMap(
        "cross", weights, ("<s>", " Hun", "d"), (" the", " d", "og", "</s>"), mask, (" Hun", "d", "</s>")
    )


def test_merging_sums_over_keys_and_averages_over_queries() -> None:
    merged = merge_map_into_words(cross(), "predicted")
    assert merged.predicted_tokens == (" Hund", "</s>")
    assert merged.query_tokens == ("<s> Hun", "d")
    assert merged.key_tokens == (" the", " dog", "</s>")
    np.testing.assert_allclose(merged.weights[0, 0], [[0.05, 0.75, 0.2], [0.0, 0.0, 1.0]], atol=1e-7)
    np.testing.assert_allclose(merged.weights[0, 1], [[0.25, 0.5, 0.25]] * 2)
    assert merged.weights.dtype == np.float32


def test_rows_merge_by_the_label_they_are_read_by() -> None:
    merged = merge_map_into_words(cross(), "fed")
    assert merged.query_tokens == ("<s>", " Hund")
    assert merged.predicted_tokens == (" Hun", "d</s>")
    np.testing.assert_allclose(merged.weights[0, 0, 1], [0, 0.5, 0.5])


def test_a_merged_cell_may_be_attended_to_if_any_of_its_cells_may() -> None:
    mask = np.tri(4, dtype=bool)
    tokens = (" a", " b", "c", " d")
    merged = merge_map_into_words(
        AttentionMap("decoder", mask[None, None] / mask.sum(-1, keepdims=True), tokens, tokens, mask)
    )
    assert merged.mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    np.testing.assert_allclose(merged.weights.sum(-1), 1, rtol=1e-6)


@given(st.lists(PIECES, min_size=1, max_size=8), st.lists(PIECES, min_size=1, max_size=8), st.integers(0, 99))
def test_merged_rows_keep_their_mass(queries: list[str], keys: list[str], seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(keys)), (2, 3, len(queries))).astype(np.float32)
    mask = np.ones((len(queries), len(keys)), dtype=bool)
    merged = merge_map_into_words(AttentionMap("cross", weights, tuple(queries), tuple(keys), mask))
    np.testing.assert_allclose(merged.weights.sum(-1), 1, rtol=1e-5)
    assert merged.mask.all()


def test_hiding_special_tokens_changes_no_weight() -> None:
    whole = cross()
    shown = hide_special_tokens(whole, "predicted")
    assert shown.key_tokens == (" the", " d", "og")
    assert shown.predicted_tokens == (" Hun", "d")
    assert shown.query_tokens == ("<s>", " Hun")
    np.testing.assert_array_equal(shown.weights, whole.weights[:, :, :2, :3])


def test_a_row_that_gave_all_to_special_tokens_is_left_with_nothing() -> None:
    shown = hide_special_tokens(cross(), "fed")
    assert shown.query_tokens == (" Hun", "d")
    assert shown.weights[0, 0, 1].tolist() == [0, 0, 0]


def test_nothing_special_nothing_changed() -> None:
    plain = hide_special_tokens(cross(), "predicted")
    np.testing.assert_array_equal(hide_special_tokens(plain, "predicted").weights, plain.weights)


def test_a_map_of_special_tokens_alone_stays() -> None:
    only = AttentionMap("encoder", np.ones((1, 1, 1, 1)), ("</s>",), ("</s>",), np.ones((1, 1), dtype=bool))
    assert hide_special_tokens(only) is only


def test_an_unknown_word_is_text() -> None:
    assert "<unk>" not in SPECIAL_TOKENS
