"""The sliced loss equals F.cross_entropy, value and gradients, in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from attenscope.training.trainer import TOKENS_PER_SLICE, smoothed_cross_entropy


def compare(tokens: int, width: int, vocabulary: int, smoothing: float, bias: bool, seed: int = 0) -> None:
    random = torch.Generator().manual_seed(seed)
    shapes = [(tokens, width), (vocabulary, width), *([(vocabulary,)] if bias else [])]
    values = [torch.randn(shape, dtype=torch.float64, generator=random) * 2 for shape in shapes]
    targets = torch.randint(0, vocabulary, (tokens,), generator=random)
    mine, theirs = ([value.clone().requires_grad_() for value in values] for _ in range(2))
    found = smoothed_cross_entropy(mine[0], targets, mine[1], mine[2] if bias else None, smoothing)
    expected = F.cross_entropy(F.linear(*theirs), targets, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    (found * 0.7).backward()
    (expected * 0.7).backward()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


@given(
    st.integers(0, 40),
    st.integers(1, 9),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.1, 0.9]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_equals_cross_entropy(
    tokens: int, width: int, vocabulary: int, smoothing: float, bias: bool, seed: int
) -> None:
    compare(tokens, width, vocabulary, smoothing, bias, seed)


@pytest.mark.parametrize(
    "tokens", [TOKENS_PER_SLICE - 1, TOKENS_PER_SLICE, TOKENS_PER_SLICE + 1, 2 * TOKENS_PER_SLICE + 3]
)
@pytest.mark.parametrize("bias", [True, False])
def test_equals_cross_entropy_over_slices(tokens: int, bias: bool) -> None:
    compare(tokens, 5, 11, 0.1, bias)


def test_by_hand() -> None:
    """Two classes with equal logits: the loss is ln 2 whatever the smoothing; the gradient pulls to (0.95, 0.05)."""
    states = torch.zeros(1, 1, requires_grad=True)
    weight, bias = torch.ones(2, 1), torch.zeros(2, requires_grad=True)
    loss = smoothed_cross_entropy(states, torch.tensor([0]), weight, bias, 0.1)
    loss.backward()
    torch.testing.assert_close(loss.detach(), torch.tensor(2.0).log())
    torch.testing.assert_close(bias.grad, torch.tensor([0.5 - 0.95, 0.5 - 0.05]))


def test_large_logits_do_not_overflow() -> None:
    states, weight = torch.full((3, 1), 1e4), torch.tensor([[1.0], [-1.0]])
    loss = smoothed_cross_entropy(states, torch.tensor([0, 0, 1]), weight, None, 0.0)
    torch.testing.assert_close(loss, torch.tensor(2e4))


def test_under_bfloat16_autocast_it_is_close_and_keeps_float32_gradients() -> None:
    torch.manual_seed(0)
    states, weight = torch.randn(700, 32, requires_grad=True), torch.randn(50, 32, requires_grad=True)
    targets = torch.randint(0, 50, (700,))
    exact = smoothed_cross_entropy(states, targets, weight, None, 0.1)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = smoothed_cross_entropy(states, targets, weight, None, 0.1)
    torch.testing.assert_close(rounded, exact, rtol=1e-2, atol=0)
    rounded.backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
