"""Every printed fix, executed on the arrays it was printed for, mends the verdict and takes no meant cell away."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from attenscope.gallery.fault_generators import generate_fault_case, list_fault_codes
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from tests.model.masks.executed_fixes import BY_HAND, execute_fixes

NAMED = [code for code in list_fault_codes() if code not in BY_HAND]
MENDED = 0.95


def failed(code: str, seeds: range) -> list[tuple[str, int, list[str]]]:
    wrong = []
    for seed in seeds:
        found, kept = execute_fixes(generate_fault_case(code, True, seed).arrays)
        left = [one.code for one in found.findings if one.severity != "info"]
        if left or not kept:
            wrong.append((code, seed, left))
    return wrong


@pytest.mark.parametrize("code", NAMED)
def test_a_printed_fix_mends(code: str) -> None:
    assert failed(code, range(1)) == []


@pytest.mark.slow
def test_printed_fixes_mend_in_many_cases() -> None:
    wrong = [one for code in NAMED for one in failed(code, range(25))]
    assert len(wrong) <= (1 - MENDED) * 25 * len(NAMED), wrong


def draw_attention(seed: int, **more: Any) -> tuple[nn.MultiheadAttention, torch.Tensor, torch.Tensor]:
    """Return an attention of torch, states (B, T, D) of fewer samples than tokens, and their padding (B, T)."""
    torch.manual_seed(seed)
    heads, samples, tokens = (int(torch.randint(*ends, ())) for ends in ((1, 5), (2, 5), (6, 12)))
    keep = torch.arange(tokens) < torch.randint(3, tokens, (samples, 1))
    return nn.MultiheadAttention(8 * heads, heads, **more), torch.randn(samples, tokens, 8 * heads), keep


@torch.no_grad()
def judge_call(attention: nn.MultiheadAttention, states: torch.Tensor, keep: torch.Tensor, masked: bool) -> Diagnosis:
    padding = {"key_padding_mask": ~keep} if masked else {}
    weights = attention(states, states, states, average_attn_weights=False, **padding)[1]
    return diagnose(weights, key_keep=keep, meant="padding")


@pytest.mark.parametrize("seed", range(6))
def test_the_fix_of_dropout_mends_where_the_model_is_run(seed: int) -> None:
    model, states, keep = draw_attention(seed, dropout=0.3, batch_first=True)
    (finding,) = (one for one in judge_call(model, states, keep, True).findings if one.severity != "info")
    assert finding.code == "dropout-on"
    exec(finding.fix, {"model": model})
    assert judge_call(model, states, keep, True).verdict == "sound"


@pytest.mark.parametrize("seed", range(6))
def test_the_fix_of_exchanged_axes_mends_where_the_model_is_made(seed: int) -> None:
    attention, states, keep = draw_attention(seed)
    (finding,) = (one for one in judge_call(attention, states, keep, False).findings if one.severity != "info")
    assert finding.code == "batch-axis"
    names = {"nn": nn, "width": attention.embed_dim, "heads": attention.num_heads}
    exec(finding.fix, names)
    assert judge_call(names["attention"], states, keep, True).verdict == "sound"
