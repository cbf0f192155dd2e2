"""How much a verdict knows: certain, likely or nothing wrong; and faults that look sound until padding is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.read_files import extract_trace_maps
from attenscope.masks.softmax import detect_real_keys, detect_real_tokens, softmax
from attenscope.trace import AttentionMap, AttentionTrace

KEEP = np.array([[1, 1, 1, 0, 0, 0]], bool)
RANDOM = np.random.default_rng(0)
CAUSAL = np.tri(10, dtype=bool)
LEFT = np.array([[0, 0, 0, 1, 1, 1, 1, 1, 1, 1], [1] * 10], bool)
RIGHT = LEFT[:, ::-1]


def attention(allowed: np.ndarray, *shape: int, fill: float = -np.inf) -> np.ndarray:
    return softmax(np.where(allowed, RANDOM.normal(size=shape), fill))


def levels(found: Diagnosis) -> list[tuple[str, str]]:
    return [(one.code, one.level) for one in found.findings if one.level != "information"]


@pytest.mark.parametrize("shape", [(6, 6), (1, 6), (1, 1, 1, 6)])
@pytest.mark.parametrize("kind", ["", "encoder"])
def test_a_mask_that_leaves_only_padding_is_inverted(shape: tuple[int, ...], kind: str) -> None:
    mask = np.broadcast_to(~KEEP[0], shape)
    found = diagnose(mask=mask, key_keep=KEEP, map=kind)
    assert levels(found) == [("inverted", "certain")]
    weights = attention(~KEEP[:, None, None], 1, 2, 6, 6)
    assert levels(diagnose(weights, mask=mask, key_keep=KEEP, map=kind)) == [("inverted", "certain")]


def one_query() -> np.ndarray:
    return np.eye(1, 9, dtype=bool)


def test_one_decoded_query_that_sees_only_the_oldest_key() -> None:
    mask, weights = one_query(), np.broadcast_to(one_query().astype(float), (1, 4, 1, 9))
    assert levels(diagnose(mask=mask, meant="causal")) == [("top-left-causal", "certain")]
    assert levels(diagnose(weights, meant="causal")) == [("top-left-causal", "certain")]
    assert levels(diagnose(weights, mask=mask, map="decoder")) == [("top-left-causal", "likely")]
    assert diagnose(mask=mask).verdict == "open"
    assert diagnose(mask=mask, map="cross").sound  # a source of one token


def test_fewer_queries_than_keys_from_the_top_left_are_a_question_without_a_meaning() -> None:
    """A static cache that is filled for the first time has the same mask."""
    found = diagnose(mask=np.tri(5, 9, dtype=bool), map="decoder")
    assert (levels(found), found.verdict) == ([("top-left-causal", "likely")], "question")
    assert all(one.severity != "error" for one in found.findings)


def trace(cross_mask: np.ndarray, names: bool, encoder_mask: np.ndarray | None = None) -> AttentionTrace:
    queries = ("<s>", "a", "b", "c")
    keys = ("x", "y", "z", "<pad>", "<pad>") if names else ("x", "y", "z", "u", "v")
    weights = attention(cross_mask, 2, 2, 4, 5).astype(np.float32)
    cross = AttentionMap("cross", weights, queries, keys, np.broadcast_to(cross_mask, (4, 5)))
    if encoder_mask is None:
        return AttentionTrace(cross=cross)
    own = attention(encoder_mask, 2, 2, 5, 5).astype(np.float32)
    return AttentionTrace(AttentionMap("encoder", own, keys, keys, encoder_mask), cross=cross)


REAL = np.array([1, 1, 1, 0, 0], bool)


@pytest.mark.parametrize("shown", ["names", "encoder"])
def test_padding_that_a_trace_shows_is_padding(shown: str) -> None:
    encoder = np.broadcast_to(REAL, (5, 5)) if shown == "encoder" else None
    for mask, expected in ((np.ones(5, bool), [("padding-visible", "certain")]), (REAL, [])):
        cross = extract_trace_maps(trace(mask, shown == "names", encoder))[-1]
        assert cross.arrays["key_keep"].tolist() == [REAL.tolist()]
        arrays: dict[str, Any] = dict(cross.arrays)
        assert levels(diagnose(**arrays, map="cross")) == expected


def test_names_are_padding_only_at_an_end() -> None:
    assert detect_real_tokens(("[PAD]", "a", "b")) is not None
    for tokens in (("a", "[PAD]", "b"), ("a", "pad"), ("<pad>", "<pad>")):
        assert detect_real_tokens(tokens) is None
    assert detect_real_keys(("a", "b"), np.eye(3, dtype=bool)) is None


@pytest.mark.parametrize(
    ("name", "is_padding"), [("PAD", True), ("[pad]", True), ("<Pad>", True), ("Pad", False), ("pad", False)]
)
def test_a_word_is_no_padding(name: str, is_padding: bool) -> None:
    """The German path, or a dish from Thailand; without the marks of a special token only capitals are one."""
    assert (detect_real_tokens((name, "thai", "is", "good")) is not None) == is_padding
    assert (detect_real_keys(("a", "long", name)) is not None) == is_padding


def test_a_sample_without_tokens_is_not_sound() -> None:
    """All keys are padding, and a finite fill makes every row uniform (keras, issue 21149)."""
    keep = np.concatenate([KEEP, np.zeros_like(KEEP)])
    columns = keep[:, None, None]
    weights = attention(columns, 2, 2, 6, 6, fill=-1e9)
    assert levels(diagnose(weights, meant=columns)) == [("empty-row", "certain")]
    assert levels(diagnose(weights, mask=columns)) == [("empty-row", "certain")]
    for key_keep in (None, keep):
        assert levels(diagnose(weights, key_keep=key_keep)) == [("empty-row", "likely")]
    level = np.full((2, 2, 6, 6), 1 / 6)
    assert diagnose(level).sound  # scores that are all equal


@pytest.mark.parametrize(
    "given",
    [{}, {"key_keep": LEFT}, {"key_keep": LEFT, "query_keep": LEFT}, {"mask": CAUSAL & LEFT[:, None, None]}],
)
@pytest.mark.parametrize("said", [{}, {"meant": "causal"}, {"map": "decoder"}])
def test_a_uniform_row_of_a_padding_query_is_information(given: dict[str, Any], said: dict[str, Any]) -> None:
    weights = attention(CAUSAL & LEFT[:, None, None], 2, 4, 10, 10, fill=-1e9)
    found = diagnose(weights, **given, **said)
    assert found.sound
    assert ("empty-row", (0, 1, 2)) in [(one.code, one.queries) for one in found.findings]


@pytest.mark.parametrize("keep", [LEFT, RIGHT])
@pytest.mark.parametrize("meant", ["causal", "padding"])
def test_a_name_says_nothing_of_the_padding(keep: np.ndarray, meant: str) -> None:
    allowed = (CAUSAL if meant == "causal" else np.ones_like(CAUSAL)) & keep[:, None, None]
    found = diagnose(attention(allowed, 2, 4, 10, 10), meant=meant)
    assert found.verdict == "sound"
    assert found.meaning.endswith("without padding")
    if meant == "padding":
        assert not diagnose(attention(allowed, 2, 4, 10, 10), meant="full").sound


def test_there_is_no_tick_without_a_meaning() -> None:
    weights = attention(CAUSAL, 1, 2, 10, 10)
    assert diagnose(weights).verdict == "open"
    assert diagnose(weights).guess == "causal"
    assert diagnose(weights, map="decoder", mask=CAUSAL).verdict == "open"
    assert diagnose(weights, meant="causal").verdict == "sound"
    assert diagnose(weights, meant=CAUSAL).verdict == "sound"


def test_a_guess_is_a_question_and_a_contradiction_is_certain() -> None:
    full = attention(np.ones((10, 10), bool), 1, 2, 10, 10)
    assert levels(diagnose(full, map="decoder")) == [("future-visible", "likely")]
    assert levels(diagnose(full, meant="causal")) == [("future-visible", "certain")]
    assert levels(diagnose(full, mask=CAUSAL, map="decoder")) == [("mask-ignored", "certain")]
    assert levels(diagnose(full, key_keep=RIGHT[:1])) == [("padding-visible", "certain")]
    for found in (diagnose(full, map="decoder"), diagnose(mask=np.tri(6, k=-1, dtype=bool))):
        assert found.verdict == "question"
        assert "error" not in {one.severity for one in found.findings}


def test_zeros_that_are_added_block_nothing() -> None:
    assert diagnose(np.full((1, 2, 6, 6), 1 / 6), mask=np.zeros((6, 6), np.float32), meant="full").sound
