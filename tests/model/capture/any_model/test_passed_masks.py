"""The mask that a call was given, beside the one in force: what arrived, how it is read, and where the two part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.read_files import passed_mask_text
from attenscope.trace import AttentionMap, AttentionTrace

CAUSAL = torch.ones(5, 5).tril().bool()
KEEP = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
PADDED = KEEP[:, None, None, :].expand(2, 1, 5, 5)


class SelfAttention(nn.Module):
    """Two heads; ``way`` says what it does with the mask that it is given."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = x.unflatten(-1, (2, -1)).transpose(1, 2)
        if self.way == "forgotten":
            return F.scaled_dot_product_attention(q, q, q)
        if self.way == "causal instead":
            return F.scaled_dot_product_attention(q, q, q, is_causal=True)
        if self.way == "fused":
            return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        scores = q @ q.mT
        assert mask is not None
        if self.way == "added":
            return (scores + mask).softmax(-1) @ q
        blocked = mask if self.way == "blocked where true" else mask == 0
        return scores.masked_fill(blocked, -1e9).softmax(-1) @ q


class Layers(nn.Module):
    def __init__(self, *ways: str) -> None:
        super().__init__()
        self.attention = nn.ModuleList(map(SelfAttention, ways))

    def forward(self, x: Tensor, masks: list[Tensor | None]) -> None:
        for attention, mask in zip(self.attention, masks, strict=True):
            attention(x, mask)


def captured(ways: list[str], masks: list[Tensor | None], sample: int = 0) -> tuple[AttentionMap, list[AttentionCall]]:
    torch.manual_seed(0)
    with torch.no_grad(), capture_attention(Layers(*ways), modules={"attention.*": "decoder"}) as capture:
        capture_run(capture, masks)
    one = capture.sample(sample).decoder
    assert one is not None
    return one, [AttentionCall.from_json(call) for call in one.layer_calls]


def capture_run(capture: Any, masks: list[Tensor | None]) -> None:
    capture.recording.model(torch.randn(2, 5, 8), masks)


@pytest.mark.parametrize(
    ("way", "mask", "passed", "words"),
    [
        ("fused", CAUSAL, CAUSAL, "attn_mask, True = may attend"),
        ("fused", PADDED, PADDED[1, 0], "attn_mask, True = may attend"),
        ("fused", torch.zeros(5, 5).masked_fill(~CAUSAL, -torch.inf), CAUSAL, "attn_mask, added to the scores"),
        ("fused", CAUSAL.float(), torch.ones(5, 5), "attn_mask, added to the scores"),
        ("kept", CAUSAL.long(), CAUSAL, "mask of SelfAttention.forward, read as 1 = may attend"),
        ("blocked where true", ~CAUSAL, CAUSAL, "mask of SelfAttention.forward, read as True = blocked"),
        ("added", torch.zeros(5, 5).masked_fill(~CAUSAL, -1e9), CAUSAL, "mask of SelfAttention.forward, added"),
        ("added", CAUSAL, CAUSAL, "mask of SelfAttention.forward, read as True = may attend"),
        ("forgotten", CAUSAL, CAUSAL, "mask of SelfAttention.forward, read as True = may attend"),
        ("forgotten", KEEP, PADDED[1, 0], "mask of SelfAttention.forward"),
        ("forgotten", CAUSAL.expand(4, 5, 5), CAUSAL, "mask of SelfAttention.forward"),
        ("causal instead", PADDED, PADDED[1, 0] & CAUSAL, "is_causal=True, from the top left; mask of SelfAttention"),
    ],
)
def test_what_was_passed_is_laid_out_as_cells(way: str, mask: Tensor, passed: Tensor, words: str) -> None:
    one, calls = captured([way], [mask], sample=1)
    assert one.passed_masks is not None
    assert one.passed_masks.shape == (1, 1, 5, 5)
    np.testing.assert_array_equal(one.passed_masks[0, 0], passed.bool())
    assert (calls[0].passed or "").startswith(words)
    assert calls[0].passed_cells


def test_a_mask_of_each_head_keeps_its_heads() -> None:
    heads = torch.stack([CAUSAL, torch.ones(5, 5).bool()])[None]
    one, _ = captured(["fused", "kept"], [heads, heads.long()])
    assert one.passed_masks is not None
    np.testing.assert_array_equal(one.passed_masks, heads)


def test_layers_of_which_one_was_given_nothing() -> None:
    one, calls = captured(["fused", "forgotten", "fused"], [CAUSAL, None, CAUSAL])
    assert one.passed_masks is not None
    np.testing.assert_array_equal(one.passed_masks[:, 0].all((1, 2)), [False, True, False])
    assert [call.passed for call in calls] == [calls[0].passed, "", calls[0].passed]
    nothing, _ = captured(["forgotten"], [None])
    assert nothing.passed_masks is None


def test_a_mask_of_another_shape_is_named_and_not_drawn() -> None:
    one, calls = captured(["forgotten"], [torch.ones(3, 7).bool()])
    assert one.passed_masks is None
    assert calls[0].passed == "mask of the shape (3, 7), which cannot be laid out as queries x keys"
    assert not calls[0].passed_cells


@pytest.mark.parametrize("weights", [True, False])
def test_torchs_attention_says_mask_and_padding_and_what_its_hint_left_out(weights: bool) -> None:
    torch.manual_seed(0)
    model, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 5, 8)
    with torch.no_grad(), capture_attention(model) as capture:
        model(x, x, x, key_padding_mask=~KEEP, attn_mask=~CAUSAL, need_weights=weights)
    one = capture.sample(1).maps.popitem()[1]
    assert one.passed_masks is not None
    np.testing.assert_array_equal(one.passed_masks[0, 0], PADDED[1, 0] & CAUSAL)
    np.testing.assert_array_equal(one.passed_masks[0, 0], one.mask)
    window = CAUSAL.triu(-1)
    with torch.no_grad(), capture_attention(model) as capture:
        model(x, x, x, attn_mask=~window, is_causal=True, need_weights=weights)
    one = capture.sample(1).maps.popitem()[1]
    assert one.passed_masks is not None
    np.testing.assert_array_equal(one.passed_masks[0, 0], window)
    # Without weights the hint goes before the mask, which then takes no effect.
    np.testing.assert_array_equal(one.mask, window if weights else CAUSAL)


def test_a_saved_trace_keeps_what_was_passed_and_old_files_open(tmp_path: Path) -> None:
    one, _ = captured(["fused", "forgotten"], [CAUSAL, CAUSAL])
    AttentionTrace(decoder=one).save(tmp_path / "a.safetensors")
    again = AttentionTrace.load(tmp_path / "a.safetensors").decoder
    assert again is not None
    assert again.passed_masks is not None
    np.testing.assert_array_equal(again.passed_masks, one.passed_masks)
    old = AttentionCall.from_json('{"path":"a","module":"B","function":"softmax","file":"c","line":1,"arguments":{}}')
    assert old.passed is None


def call(passed: str = "attn_mask, True = may attend", cells: bool = True) -> AttentionCall:
    return AttentionCall("a", "B", "softmax", "c.py", 3, {}, passed, cells)


@pytest.mark.parametrize(
    ("one", "passed", "in_force", "words"),
    [
        (call(), CAUSAL, CAUSAL, "In force as passed (attn_mask, True = may attend): 10 of 25 cells are blocked."),
        (call(""), CAUSAL | True, CAUSAL | True, "No mask arrived, and none is in force."),
        (call(""), CAUSAL | True, CAUSAL, "No mask arrived; what blocks 10 of 25 cells was made inside of B."),
        (call(), CAUSAL, CAUSAL | True, "takes no effect: none of the 10 cells that it blocks is blocked in force."),
        (call(), CAUSAL.triu(-1), CAUSAL, "6 of the 16 cells that it blocks are open in force, such as query 3, key 1"),
        (call(), CAUSAL, CAUSAL.triu(-1), "6 cells that it leaves open are blocked in force, such as query 3, key 1."),
        (call("m of (3, 7), which cannot be laid out", False), CAUSAL, CAUSAL, "m of (3, 7), which cannot be laid out"),
    ],
)
def test_what_differs_is_said(one: AttentionCall, passed: Tensor, in_force: Tensor, words: str) -> None:
    assert words in passed_mask_text(one, passed.numpy()[None], in_force.numpy()[None])
