"""Patterns over layers, the axis of the batch, biases and positions: named where they are wrong, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.masks.arrays import DiagnosisError
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.masks.rule import build_meaning_mask

T, H = 9, 4
SCORES = torch.randn(2, H, T, T, generator=torch.Generator().manual_seed(4))
AGE = torch.arange(T)[:, None] - torch.arange(T)
CAUSAL, LOCAL = AGE >= 0, (AGE >= 0) & (AGE < 3)
ALTERNATING = "causal+window:3 / causal"


def layered(*masks: Tensor) -> Tensor:
    """Weights (B, L, H, T, T), a mask a layer."""
    return torch.stack([SCORES.masked_fill(~mask, -torch.inf).softmax(-1) for mask in masks], 1)


def named(found: Diagnosis) -> list[tuple[str, str]]:
    return [(one.code, one.level) for one in found.findings if one.level != "information"]


@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        ((LOCAL, CAUSAL, LOCAL, CAUSAL), []),
        ((CAUSAL, LOCAL, CAUSAL, LOCAL), [("wrong-layer-pattern", "certain")]),
        ((LOCAL, LOCAL, LOCAL, LOCAL), [("wrong-layer-pattern", "certain")]),
        ((LOCAL, CAUSAL, LOCAL, LOCAL), [("wrong-layer-pattern", "certain")]),
        ((LOCAL, CAUSAL, LOCAL, torch.ones(T, T).bool()), [("future-visible", "certain")]),
    ],
)
def test_layers_in_turn_are_said_by_name(masks: tuple[Tensor, ...], expected: list[tuple[str, str]]) -> None:
    found = diagnose(layered(*masks), meant=ALTERNATING)
    assert named(found) == expected
    assert found.stated


def test_the_layer_that_is_wrong_is_told() -> None:
    (finding,) = diagnose(layered(LOCAL, CAUSAL, LOCAL, LOCAL), meant=ALTERNATING).findings
    assert finding.layer == 3
    assert finding.message.startswith("Layer 4")


def test_layers_in_turn_need_layers() -> None:
    with pytest.raises(DiagnosisError, match="the masks of 2 layers in turn, but the weights have 1"):
        diagnose(layered(LOCAL)[:, 0], meant=ALTERNATING)


def test_alternating_layers_are_no_fault_while_nothing_is_said() -> None:
    for order in ((LOCAL, CAUSAL) * 2, (CAUSAL, LOCAL) * 2):
        assert diagnose(layered(*order)).verdict == "open"


def test_heads_may_be_exchanged_too() -> None:
    meant = torch.stack([LOCAL, CAUSAL, LOCAL, CAUSAL])
    weights = SCORES.masked_fill(~meant.roll(1, 0), -torch.inf).softmax(-1)
    assert named(diagnose(weights, meant=meant)) == [("wrong-layer-pattern", "certain")]
    assert named(diagnose(weights, meant=meant.roll(1, 0))) == []


@pytest.mark.parametrize("lost", [False, True])
def test_a_sink_of_a_causal_window_that_is_lost(lost: bool) -> None:
    with_sinks = LOCAL | (CAUSAL & (torch.arange(T) < 2))
    found = diagnose(layered(LOCAL if lost else with_sinks)[:, 0], meant=with_sinks)
    assert named(found) == ([("wrong-layer-pattern", "certain")] if lost else [])


SLOPES = 2.0 ** -torch.arange(1, H + 1)[:, None, None]
ALIBI = (-SLOPES * AGE).masked_fill(~CAUSAL, -torch.inf)
BIASES = {
    "as given": (ALIBI, []),
    "opposite": ((SLOPES * AGE).masked_fill(~CAUSAL, -torch.inf), ["opposite sign"]),
    "missing": (torch.zeros(T, T).masked_fill(~CAUSAL, -torch.inf), ["never arrived"]),
    "next head": (ALIBI.roll(1, 0), ["another head"]),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", BIASES)
def test_a_bias_against_what_took_effect(name: str, dtype: torch.dtype) -> None:
    bias, says = BIASES[name]
    weights = (SCORES + bias).softmax(-1).to(dtype)
    found = diagnose(weights.float() if dtype == torch.bfloat16 else weights, scores=SCORES, mask=ALIBI, meant="causal")
    assert [one.code for one in found.findings] == ["bias-wrong"] * len(says)
    assert all(part in one.message for part, one in zip(says, found.findings, strict=True))
    without_scores = diagnose(weights.float(), mask=ALIBI, meant="causal")
    assert "bias-wrong" in {one.code for one in without_scores.unknown}
    assert named(without_scores) == []


def test_a_slope_towards_far_keys_is_a_question_and_alibi_is_none() -> None:
    for sign, expected in ((-1, []), (1, [("bias-wrong", "likely")])):
        weights = (SCORES + sign * SLOPES * AGE.abs()).masked_fill(~CAUSAL, -torch.inf).softmax(-1)
        assert named(diagnose(weights, scores=SCORES, meant="causal")) == expected


@pytest.mark.parametrize(
    ("positions", "pads", "expected"),
    [
        ([range(6)], [2], True),
        ([[1, 1, 0, 1, 2, 3]], [2], False),  # as generate() of transformers fills
        ([[0, 0, 0, 1, 2, 3]], [2], False),
        ([[1, 1, 2, 3, 4, 5]], [2], False),  # OPT counts from 2
        ([[1, 2, 3, 4, 5, 6]], [1], False),  # one pad: it may have a position of its own
        ([range(2, 8), range(2, 8)], [0, 1], True),
        ([range(2, 8), [1, 2, 3, 4, 5, 6]], [0, 1], False),
        ([range(6)], [0], False),
    ],
)
def test_positions_that_count_the_padding(positions: list[Any], pads: list[int], expected: bool) -> None:
    keep = torch.arange(6) >= torch.tensor(pads)[:, None]
    allowed = keep[:, None, None] & CAUSAL[:6, :6]
    weights = SCORES[: len(pads), :, :6, :6].masked_fill(~allowed, -torch.inf).softmax(-1).nan_to_num()
    ids = torch.tensor([list(row) for row in positions])
    found = diagnose(weights, key_keep=keep, position_ids=ids, meant="causal")
    assert named(found) == ([("positions-wrong", "likely")] if expected else [])
    assert "positions-wrong" in {one.code for one in diagnose(weights, key_keep=keep, meant="causal").unknown}


def test_positions_of_another_shape_are_told() -> None:
    with pytest.raises(DiagnosisError, match=r"whole numbers of the shape \(9,\) or \(2, 9\), a position for each key"):
        diagnose(SCORES.softmax(-1), position_ids=torch.arange(4))


@pytest.mark.parametrize("averaged", [True, False])
def test_attention_over_the_batch(averaged: bool) -> None:
    torch.manual_seed(0)
    states, keep = torch.randn(3, 7, 8), torch.arange(7) < torch.tensor([[7], [5], [4]])
    first, last = (nn.MultiheadAttention(8, 2, batch_first=flag).eval() for flag in (False, True))
    with torch.no_grad():
        wrong = first(states, states, states, average_attn_weights=averaged)[1]
        right = last(states, states, states, key_padding_mask=~keep, average_attn_weights=averaged)[1]
    assert named(diagnose(wrong, key_keep=keep)) == [("batch-axis", "certain")]
    assert named(diagnose(right, key_keep=keep)) == []
    if not averaged:
        assert named(diagnose(wrong, meant=np.tri(7, dtype=bool))) == [("batch-axis", "certain")]


def test_as_many_samples_as_tokens_are_not_told_apart() -> None:
    weights = torch.randn(5, 2, 5, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)
    assert named(diagnose(weights, key_keep=torch.ones(5, 5).bool())) == []


@pytest.mark.parametrize(
    ("meant", "made", "code"),
    [
        ("causal+window:3+sinks:2", "causal+window:3", "wrong-layer-pattern"),
        ("causal+window:3+sinks:2", "causal", "window-missing"),
        ("causal+chunked:4", "causal", "document-leak"),
        ("causal+span:3-6", "full", "future-visible"),
    ],
)
def test_masks_of_today_that_are_not_as_they_were_meant(meant: str, made: str, code: str) -> None:
    mask = torch.from_numpy(build_meaning_mask(made, T, T))
    found = diagnose(SCORES.masked_fill(~mask, -torch.inf).softmax(-1), meant=meant, map="decoder")
    assert code in [one.code for one in found.findings if one.severity == "error"]
    assert diagnose(layered(torch.from_numpy(build_meaning_mask(meant, T, T)))[:, 0], meant=meant).sound
