"""The same numbers as code nobody here wrote, with copied weights: torch's attention, layer norm and Transformer."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attenscope.network.attention import (
    AttentionPath,
    MultiHeadAttention,
    combine_masks,
    force_attention_path,
    make_causal_mask,
    make_padding_mask,
)
from attenscope.network.config import PAD_ID, TransformerConfig
from attenscope.network.hooks import hook_outputs
from attenscope.network.layers import StdLayerNorm, make_layer_norm
from tests.model.network.twins import copy_attention, nn_transformer, same_transformer, shake
from tests.toy import config

PATHS: tuple[AttentionPath, ...] = ("explicit", "fused")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", ["no mask", "padding", "causal", "padding and causal"])
def test_multihead_attention(masked: str, bias: bool, path: AttentionPath) -> None:
    torch.manual_seed(1)
    theirs = nn.MultiheadAttention(32, 4, bias=bias, batch_first=True)
    shake(theirs)
    mine = MultiHeadAttention(config(d_model=32, heads=4, qkv_bias=bias, output_bias=bias))
    copy_attention(mine, theirs)
    query, memory = torch.randn(3, 6, 32), torch.randn(3, 6, 32)
    keep = torch.ones(3, 6, dtype=torch.bool)
    keep[0, 4:] = keep[1, 1:] = False
    padding = keep[:, None, None, :] if "padding" in masked else None
    causal = make_causal_mask(6) if "causal" in masked else None
    expected, expected_weights = theirs(
        query,
        memory,
        memory,
        key_padding_mask=None if padding is None else ~keep,
        attn_mask=None if causal is None else ~causal[0, 0],
        average_attn_weights=False,
    )
    seen: list[Tensor] = []
    with force_attention_path(path), hook_outputs({mine.weights: seen.append}):
        torch.testing.assert_close(mine(query, memory, combine_masks(padding, causal)), expected)
    if path == "explicit":
        torch.testing.assert_close(seen[0], expected_weights)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
def test_transformer_with_padding_and_causal_masks(pre: bool, path: AttentionPath) -> None:
    """Encoder, decoder, cross-attention; values and gradients."""
    torch.manual_seed(2)
    theirs = nn_transformer(pre)
    shake(theirs)
    mine = same_transformer(theirs, pre)
    source, target = torch.randn(3, 7, 32, requires_grad=True), torch.randn(3, 5, 32, requires_grad=True)
    source_ids, target_ids = torch.ones(3, 7, dtype=torch.long), torch.ones(3, 5, dtype=torch.long)
    source_ids[0, 5:] = source_ids[2, 1:] = target_ids[1, 3:] = target_ids[2, 4:] = PAD_ID
    expected = theirs(
        source,
        target,
        tgt_mask=~make_causal_mask(5)[0, 0],
        src_key_padding_mask=source_ids == PAD_ID,
        tgt_key_padding_mask=target_ids == PAD_ID,
        memory_key_padding_mask=source_ids == PAD_ID,
    )
    source_mask, target_mask = make_padding_mask(source_ids, PAD_ID), make_padding_mask(target_ids, PAD_ID)
    with force_attention_path(path):
        memory = mine.encoder(source, source_mask)
        found = mine.decoder(target, memory, combine_masks(make_causal_mask(5), target_mask), source_mask, None)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    mix = torch.randn_like(found)
    mine_gradients = torch.autograd.grad((found * mix).sum(), [source, target])
    their_gradients = torch.autograd.grad((expected * mix).sum(), [source, target])
    torch.testing.assert_close(mine_gradients, their_gradients, rtol=1e-3, atol=1e-4)


def test_the_parity_would_notice_the_other_norm_order() -> None:
    theirs = nn_transformer(pre=True)
    x = torch.randn(1, 4, 32)
    other = same_transformer(theirs, pre=False)
    assert not torch.allclose(other.encoder(x, None), theirs.encoder(x), atol=1e-2)


def test_variance_norm_is_torchs_layer_norm_with_the_configured_eps() -> None:
    norm = make_layer_norm(TransformerConfig(d_model=64, heads=1, norm_eps=0.25))
    assert isinstance(norm, nn.LayerNorm)
    x = torch.randn(2, 64, dtype=torch.float64)
    by_hand = (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 0.25).sqrt()
    torch.testing.assert_close(norm.double()(x), by_hand)


def test_std_norm_by_hand() -> None:
    """x = 1, 2, 3, 4, 5: mean 3, sample variance 10 / 4, and eps is added to the deviation, not to the variance."""
    norm = StdLayerNorm(5, eps=0.5)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([1.0, 1.0, 2.0, 1.0, 1.0]))
        norm.bias.copy_(torch.tensor([0.0, 0.0, 7.0, 0.0, 1.0]))
    unit = 1 / (math.sqrt(2.5) + 0.5)
    expected = torch.tensor([-2 * unit, -unit, 7.0, unit, 2 * unit + 1])
    torch.testing.assert_close(norm(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])), expected)


@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
def test_std_norm_differs_from_layer_norm_by_the_sample_correction(width: int, seed: int) -> None:
    x = torch.randn(3, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    mine = StdLayerNorm(width, eps=1e-14).double()(x)
    theirs = nn.functional.layer_norm(x, (width,), eps=1e-28) * math.sqrt((width - 1) / width)
    torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-9)


def test_std_norm_at_a_constant_row_has_a_finite_gradient() -> None:
    norm = StdLayerNorm(4, eps=1e-6)
    x = torch.zeros(2, 4)
    x[1] = 3.0
    x.requires_grad_()
    output = norm(x)
    assert output.eq(0).all()
    output[:, 0].sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    # The deviation stands still there, so the slope is (1 - 1/4) / eps for the cell itself and -1/4 / eps for others.
    torch.testing.assert_close(x.grad[0] * 1e-6, torch.tensor([0.75, -0.25, -0.25, -0.25]))
