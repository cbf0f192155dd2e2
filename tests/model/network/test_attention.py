"""Both attention paths against each other, against a loop, and at rows with no key allowed."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attenscope.network.attention import (
    AttentionPath,
    KeyValueCache,
    MultiHeadAttention,
    choose_attention_path,
    compute_fused_context,
    compute_masked_softmax,
    force_attention_path,
)
from attenscope.network.hooks import declare_observer
from tests.toy import config

PATHS: tuple[AttentionPath, ...] = ("explicit", "fused")


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, int]:
    """query (B, Q, 16), memory (B, K, 16), a mask broadcastable to (B, H, Q, K), and H; empty rows are common."""
    batch, queries, keys = draw(st.integers(1, 3)), draw(st.integers(1, 7)), draw(st.integers(1, 7))
    heads = draw(st.sampled_from([1, 2, 4]))
    random = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.sampled_from([1, batch])), draw(st.sampled_from([1, heads])), queries, keys)
    allowed = torch.rand(shape, generator=random) < draw(st.sampled_from([0.3, 0.7, 1.0]))
    query, memory = (torch.randn(batch, length, 16, generator=random) for length in (queries, keys))
    return query, memory, allowed, heads


def attention(heads: int = 2, seed: int = 0, **fields: object) -> MultiHeadAttention:
    torch.manual_seed(seed)
    return MultiHeadAttention(config(d_model=16, heads=heads, **fields)).eval()


def run(module: MultiHeadAttention, path: AttentionPath, *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Output, and the gradients of a fixed mix of it with respect to both inputs and all parameters."""
    query, memory, mask = inputs
    leaves = [query.clone().requires_grad_(), memory.clone().requires_grad_(), *module.parameters()]
    with force_attention_path(path):
        output = module(leaves[0], leaves[1], mask)
    mix = torch.linspace(-1, 1, output.numel()).view_as(output)
    return output.detach(), list(torch.autograd.grad((output * mix).sum(), leaves))


@given(problems())
def test_explicit_equals_fused_forward_and_backward(problem: tuple[Tensor, Tensor, Tensor, int]) -> None:
    query, memory, mask, heads = problem
    module = attention(heads)
    (explicit, explicit_gradients), (fused, fused_gradients) = (
        run(module, path, query, memory, mask) for path in PATHS
    )
    torch.testing.assert_close(explicit, fused, rtol=1e-5, atol=1e-6)
    for mine, theirs in zip(explicit_gradients, fused_gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@given(problems())
def test_explicit_equals_equation_one_in_loops(problem: tuple[Tensor, Tensor, Tensor, int]) -> None:
    """A loop over batch, head, query and key in Python floats."""
    query, memory, mask, heads = problem
    module = attention(heads)
    width = 16 // heads
    q, k, v = module.q_proj(query).tolist(), module.k_proj(memory).tolist(), module.v_proj(memory).tolist()
    full = mask.expand(len(q), heads, query.shape[1], memory.shape[1]).tolist()
    expected = torch.zeros(query.shape)
    for b in range(len(q)):
        for h in range(heads):
            part = slice(h * width, (h + 1) * width)
            for i, row in enumerate(q[b]):
                keys = [j for j in range(len(k[b])) if full[b][h][i][j]]
                scores = [
                    sum(x * y for x, y in zip(row[part], k[b][j][part], strict=True)) / math.sqrt(width) for j in keys
                ]
                shares = [math.exp(score) for score in scores]
                for j, share in zip(keys, shares, strict=True):
                    expected[b, i, part] += torch.tensor(v[b][j][part]) * (share / sum(shares))
    with torch.no_grad(), force_attention_path("explicit"):
        torch.testing.assert_close(module(query, memory, mask), module.out_proj(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_row_with_no_key_gives_zeros_forward_and_backward(path: AttentionPath, dtype: torch.dtype) -> None:
    module = attention(output_bias=False).to(dtype)
    query, memory = torch.randn(2, 3, 16, dtype=dtype), torch.randn(2, 4, 16, dtype=dtype)
    mask = torch.ones(2, 1, 3, 4, dtype=torch.bool)
    mask[0, :, 1] = False  # one query of the first sentence
    mask[1] = False  # the whole second sentence
    output, (of_query, of_memory, *of_parameters) = run(module, path, query, memory, mask)
    assert output[0, 1].eq(0).all()
    assert output[1].eq(0).all()
    assert output[0, 0].ne(0).any()
    assert of_query[0, 1].eq(0).all()
    assert of_query[1].eq(0).all()
    assert of_memory[1].eq(0).all()
    assert all(gradient.isfinite().all() for gradient in (of_query, of_memory, *of_parameters))


@pytest.mark.parametrize("path", PATHS)
def test_nothing_allowed_at_all_trains_without_nan(path: AttentionPath) -> None:
    output, gradients = run(
        attention(), path, torch.randn(1, 3, 16), torch.randn(1, 3, 16), torch.zeros(1, 1, 3, 3, dtype=torch.bool)
    )
    assert output.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_weights_are_a_distribution_over_the_allowed_keys() -> None:
    scores = torch.tensor([[0.0, math.log(3), 5.0], [1.0, 2.0, 3.0]]).view(1, 1, 2, 3)
    mask = torch.tensor([[True, True, False], [False, False, False]]).view(1, 1, 2, 3)
    weights = compute_masked_softmax(scores.masked_fill(~mask, -math.inf), mask)
    torch.testing.assert_close(weights[0, 0], torch.tensor([[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]))


def test_scores_are_divided_by_the_root_of_the_head_width_or_not() -> None:
    x = torch.randn(1, 4, 16)
    seen: dict[bool, Tensor] = {}
    for scaled in (True, False):
        module = attention(scale_scores=scaled)
        module.scores.register_forward_hook(lambda _, __, scores, scaled=scaled: seen.update({scaled: scores.detach()}))
        module(x, x)
    torch.testing.assert_close(seen[True] * math.sqrt(8), seen[False])


def test_a_blocked_key_has_no_influence() -> None:
    """Changing what may not be attended to changes nothing, bit by bit."""
    module, query, memory = attention(), torch.randn(1, 3, 16), torch.randn(1, 4, 16)
    mask = torch.tensor([True, True, False, True]).expand(1, 1, 3, 4)
    changed = memory.clone()
    changed[0, 2] = 1e4
    for path in PATHS:
        with torch.no_grad(), force_attention_path(path):
            assert torch.equal(module(query, memory, mask), module(query, changed, mask))


def test_fused_kernel_clears_empty_rows_itself() -> None:
    q = k = v = torch.ones(1, 1, 2, 4)
    mask = torch.tensor([[False, False], [True, False]]).view(1, 1, 2, 2)
    assert compute_fused_context(q, k, v, mask, scale=0.5)[0, 0].tolist() == [[0.0] * 4, [1.0] * 4]


def test_a_mask_that_is_not_boolean_is_refused() -> None:
    x = torch.randn(1, 3, 16)
    with pytest.raises(TypeError, match="True = may attend"):
        attention()(x, x, torch.zeros(1, 1, 3, 3))


def test_attending_needs_a_memory_or_a_filled_cache() -> None:
    for cache in (None, KeyValueCache()):
        with pytest.raises(ValueError, match="needs a memory to attend to, or a cache"):
            attention()(torch.randn(1, 1, 16), None, cache=cache)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_cache_holds_what_was_appended_in_order(lengths: list[int]) -> None:
    cache, keys, values = KeyValueCache(), [], []
    for number, length in enumerate(lengths):
        keys.append(torch.full((2, 3, length, 4), float(number)))
        values.append(-keys[-1])
        k, v = cache.append(keys[-1], values[-1])
        assert torch.equal(k, torch.cat(keys, 2))
        assert torch.equal(v, torch.cat(values, 2))
    assert cache.length == sum(lengths)


def test_cache_rows_are_dropped_and_doubled() -> None:
    cache = KeyValueCache()
    cache.append(torch.arange(3.0).view(3, 1, 1, 1), -torch.arange(3.0).view(3, 1, 1, 1))
    cache.reorder(torch.tensor([2, 2, 0, 1]))
    k, v = cache.append(torch.zeros(4, 1, 1, 1), torch.zeros(4, 1, 1, 1))
    assert k[:, 0, 0, 0].tolist() == [2, 2, 0, 1]
    assert v[:, 0, 0, 0].tolist() == [-2, -2, 0, -1]


def test_the_path_is_chosen_by_device_observer_and_force() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert choose_attention_path(cpu) == "explicit"
    assert choose_attention_path(gpu) == "fused"
    with declare_observer(object()):
        assert choose_attention_path(gpu) == "explicit"
        with force_attention_path("fused"):
            assert choose_attention_path(gpu) == "fused"
    assert choose_attention_path(gpu) == "fused"
