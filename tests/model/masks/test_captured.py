"""Padding that a captured model shows: masks that were forgotten are found by the lines of the documents."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.masks.diagnose import diagnose
from attenscope.masks.findings import Diagnosis
from attenscope.trace import Kind

PAD = torch.arange(6) >= torch.tensor([[6], [4]])


def captured(model: nn.Module, kind: Kind, *inputs: Tensor, tokens: Any = None, **more: Any) -> dict[str, Any]:
    with torch.no_grad(), capture_attention(model, tokens=tokens) as capture:
        model(*inputs, **more)
    return capture.arrays(kind)


def named(found: Diagnosis) -> list[tuple[str, str]]:
    return [(one.code, one.level) for one in found.findings if one.level != "information"]


@pytest.mark.parametrize(("memory_mask", "expected"), [(None, [("padding-visible", "certain")]), (PAD, [])])
def test_a_forgotten_memory_key_padding_mask(memory_mask: Tensor | None, expected: list[tuple[str, str]]) -> None:
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 2, 2, 32, batch_first=True).eval()
    future = nn.Transformer.generate_square_subsequent_mask(5)
    masks = {"src_key_padding_mask": PAD, "memory_key_padding_mask": memory_mask, "tgt_mask": future}
    arrays = captured(model, "cross", torch.randn(2, 6, 16), torch.randn(2, 5, 16), **masks)
    assert named(diagnose(**arrays, map="cross")) == expected
    assert named(diagnose(**arrays, map="cross", key_keep=torch.ones(2, 6).bool())) == []


@pytest.mark.parametrize(("masked", "expected"), [(False, [("padding-visible", "certain")]), (True, [])])
def test_left_padding_that_only_the_tokens_name(masked: bool, expected: list[tuple[str, str]]) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=60)
    model = transformers.GPT2LMHeadModel(config).eval()
    ids = torch.randint(3, 59, (1, 8))
    ids[0, :3] = 0
    mask = (ids != 0).long() if masked else None
    arrays = captured(model, "decoder", ids, tokens=["<pad>"] * 3 + list("abcde"), attention_mask=mask)
    assert named(diagnose(**arrays, meant="causal", map="decoder")) == expected


class Windowed(nn.Module):
    """A decoder's attention with a window by abs(), which opens the future as far as the past."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder_attention = nn.Linear(16, 48)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.decoder_attention(x).chunk(3, -1)
        at = torch.arange(x.shape[1])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=(at[:, None] - at).abs() < 3)


def test_a_window_by_abs_is_no_causal_window() -> None:
    torch.manual_seed(0)
    arrays = captured(Windowed().eval(), "encoder", torch.randn(1, 8, 16))
    assert named(diagnose(**arrays, meant="causal+window:3")) == [("future-visible", "certain")]
    assert diagnose(**arrays, meant="causal").verdict == "faulty"
    assert diagnose(**arrays, map="decoder").verdict == "question"
    assert diagnose(**arrays, meant="window:3").verdict == "sound"
