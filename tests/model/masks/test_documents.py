"""Cumulative lengths as the meaning that they are, positions that begin anew, and packed masks with gaps."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attenscope.cli.diagnose import diagnose_file
from attenscope.masks.arrays import DiagnosisError, guess_role
from attenscope.masks.diagnose import diagnose
from attenscope.masks.softmax import softmax

WEIGHTS = "weights = tensor([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.2, 0.3, 0.5, 0], [0.1, 0.2, 0.3, 0.4]])\n"
GAPPED = np.zeros((7, 7), int)
GAPPED[:3, :3], GAPPED[4:, 4:] = np.tri(3), np.tri(3)


def make_packed_mask(seed: int, causal: bool, leaks: bool) -> tuple[np.ndarray, list[int]]:
    """Weights (B, H, T, T) of packed documents, and their cumulative lengths."""
    generator = np.random.default_rng(seed)
    ends = np.concatenate([[0], np.cumsum(generator.integers(2, 6, int(generator.integers(2, 5))))])
    size, heads = int(ends[-1]), int(generator.integers(1, 4))
    document = np.searchsorted(ends[1:], np.arange(size), side="right")
    allowed = np.ones((size, size), bool) if leaks else document[:, None] == document
    allowed = allowed & np.tri(size, dtype=bool) if causal else allowed
    scores = generator.normal(size=(1, heads, size, size))
    kind = (np.float32, np.float64)[seed % 2]
    return softmax(np.where(allowed, scores, -np.inf)).astype(kind), ends.tolist()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("causal", [True, False])
def test_cumulative_lengths_are_what_was_meant(seed: int, causal: bool) -> None:
    for leaks in (True, False):
        weights, ends = make_packed_mask(seed, causal, leaks)
        found = diagnose(weights, cu_seqlens=np.array(ends))
        assert found.verdict == ("faulty" if leaks else "sound")
        assert [one.code for one in found.findings if one.severity != "info"] == ["document-leak"] * leaks
        meant = "causal" if causal else "padding"
        assert diagnose(weights, cu_seqlens=np.array(ends), meant=meant).verdict == ("faulty" if leaks else "sound")


@pytest.mark.parametrize("seed", range(8))
def test_positions_that_begin_anew_ask_about_documents(seed: int) -> None:
    for leaks in (True, False):
        weights, ends = make_packed_mask(seed, True, leaks)
        positions = np.concatenate([np.arange(b - a) for a, b in pairwise(ends)])
        found = diagnose(weights, position_ids=positions[None])
        assert found.verdict == ("question" if leaks else "open")
        assert [one.code for one in found.findings if one.severity != "info"] == ["document-leak"] * leaks
        assert f"{len(ends) - 1} packed documents" in found.meaning


@pytest.mark.parametrize("positions", [[0, 0, 0, 1, 2, 3], [1, 1, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [2, 3, 4, 1, 1, 1]])
def test_positions_of_padding_begin_no_document(positions: list[int]) -> None:
    found = diagnose(np.tri(6) / np.arange(1, 7)[:, None], position_ids=np.array([positions]))
    assert "documents" not in found.meaning


def test_lengths_that_do_not_fit_are_refused() -> None:
    weights = make_packed_mask(0, True, False)[0]
    for wrong in ([0, 3], [1, 3], [0, 5, 3], [0.5, 2], [0, weights.shape[-1] + 1]):
        with pytest.raises(DiagnosisError, match="cu_seqlens"):
            diagnose(weights, cu_seqlens=np.array(wrong))
    with pytest.raises(DiagnosisError, match="position_ids are float64"):
        diagnose(cu_seqlens=[0, 3], position_ids=[0.0, 1.0, np.nan])


@pytest.mark.parametrize(
    ("lengths", "said"),
    [
        (3, "cu_seqlens is a list of growing whole numbers that starts at 0."),
        ([0, np.inf], "cu_seqlens is a list of growing whole numbers that starts at 0."),
        ([0, np.nan], "cu_seqlens is a list of growing whole numbers that starts at 0."),
        (np.array([0, 5, 3], np.uint32), "cu_seqlens is a list of growing whole numbers that starts at 0."),
        ([], "cu_seqlens is empty: its shape is (0,)."),
        (["a", "b"], "cu_seqlens holds <U1 values; it must hold numbers or booleans."),
        ([0, 10**15], "cu_seqlens ends at 1,000,000,000,000,000; at most 67,108,864 tokens are read."),
        ([0, 1e15], "cu_seqlens ends at 1,000,000,000,000,000; at most 67,108,864 tokens are read."),
        (
            [0, 1e30],
            "cu_seqlens ends at 1,000,000,000,000,000,019,884,624,838,656; at most 67,108,864 tokens are read.",
        ),
    ],
)
@pytest.mark.parametrize(
    "more", [{}, {"weights": (np.tri(4) / np.arange(1, 5)[:, None]).tolist()}], ids=["alone", "weights"]
)
def test_lengths_that_are_none_are_refused_in_words(
    lengths: Any, said: str, more: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(DiagnosisError) as refused:
        diagnose(cu_seqlens=lengths, **more)
    assert str(refused.value) == said
    file = tmp_path / "lengths.json"
    file.write_text(json.dumps({"cu_seqlens": np.asarray(lengths).tolist(), **more}))
    answer = diagnose_file(str(file))
    assert (answer.verdict, answer.reason) == ("unreadable", said)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("cu_seqlens = tensor([0, 2, 4])", "faulty"), ("position_ids = tensor([[0, 1, 0, 1]])", "question")],
)
def test_pasted_lengths_and_positions(text: str, verdict: str, tmp_path: Path) -> None:
    file = tmp_path / "pasted.txt"
    file.write_text(WEIGHTS + text)
    found = diagnose_file(str(file))
    assert found.verdict == verdict
    assert [one.code for one in found.findings] == ["document-leak"]
    assert found.findings[0].queries == (2, 3)
    assert found.findings[0].keys == (0, 1)


def test_a_hundred_thousand_tokens_are_judged_without_their_cells() -> None:
    ends = np.unique(np.concatenate([[0], np.random.default_rng(0).integers(1, 100_000, 500), [100_000]]))
    positions = np.arange(100_000) - np.repeat(ends[:-1], np.diff(ends))
    begun = time.perf_counter()
    assert diagnose(cu_seqlens=ends, position_ids=positions[None]).verdict == "sound"
    assert time.perf_counter() - begun < 5
    assert diagnose(cu_seqlens=ends).meaning == f"{len(ends) - 1:,} packed documents of 100,000 tokens"
    assert diagnose(cu_seqlens=[0, 3, 3, 6]).meaning == "2 packed documents of 6 tokens"  # An empty one is none.
    joined = np.delete(ends, 3)
    (found,) = diagnose(cu_seqlens=joined, position_ids=positions[None]).findings
    assert (found.code, found.queries) == ("document-leak", (int(ends[3]),))
    (found,) = diagnose(cu_seqlens=ends, position_ids=np.arange(100_000)[None]).findings
    assert (found.code, found.queries) == ("over-blocked", (int(ends[1]),))
    with pytest.raises(DiagnosisError, match="ends at 100000, but there are 99999"):
        diagnose(cu_seqlens=ends, position_ids=positions[None, 1:])


def draw_packed_mask_without_first_tokens(seed: int) -> np.ndarray:
    """Return three causal documents, 1 = may attend; the first token of the later two neither reads nor is read."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(6, 20))
    mask = np.zeros((size, size), int)
    cuts = [0, *sorted(generator.choice(np.arange(2, size - 2), 2, replace=False).tolist()), size]
    for first, end in pairwise(cuts):
        begin = min(first + (first > 0), end - 1)
        mask[begin:end, begin:end] = np.tri(end - begin)
    return mask


@pytest.mark.parametrize("seed", range(6))
def test_a_packed_mask_with_gaps_is_not_read_upside_down(seed: int) -> None:
    mask = draw_packed_mask_without_first_tokens(seed)
    for name in ("attention_mask", "", "attn_mask"):
        assert guess_role(mask, name).role == "mask keeps"
        assert guess_role(1 - mask, name).role == "mask blocks"


def test_a_row_without_a_key_in_it_is_told() -> None:
    found = diagnose(attention_mask=GAPPED)
    assert found.meaning == "causal, in 2 packed documents, without padding"
    assert any(one.code == "empty-row" and one.queries == (3,) for one in found.findings)


@pytest.mark.parametrize("seed", range(6))
def test_first_tokens_without_keys_make_no_draft_tree(seed: int) -> None:
    mask = draw_packed_mask_without_first_tokens(seed)
    found = diagnose(attention_mask=mask)
    assert "draft tree" not in found.meaning
    (told,) = found.findings
    assert (told.code, told.severity) == ("empty-row", "info")
    assert told.queries == tuple(np.flatnonzero(~mask.any(1)))
