"""Kernels of packed sequences: one map with a block for each, equal to dense attention; else a named refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import varlen

from attenscope.capture.attention import capture_attention
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnose import diagnose
from attenscope.trace import TraceError

STARTS, H, D = torch.tensor([0, 3, 7, 8], dtype=torch.int32), 4, 8
LENGTHS = STARTS.diff().tolist()


def reference(
    q: Tensor, k: Tensor, v: Tensor, starts_q: Tensor, starts_k: Tensor, window: tuple[int, int], scale: float
) -> tuple[Tensor, Tensor]:
    """(outputs (T, H, d), weights (H, T, T')), one sequence after the other, by loops."""
    weights = torch.zeros(q.shape[1], len(q), len(k))
    for n in range(len(starts_q) - 1):
        rows, columns = range(starts_q[n], starts_q[n + 1]), range(starts_k[n], starts_k[n + 1])
        for i, row in enumerate(rows):
            at = i + len(columns) - len(rows)
            near = [
                columns[j]
                for j in range(len(columns))
                if (window[0] < 0 or j >= at - window[0]) and (window[1] < 0 or j <= at + window[1])
            ]
            if near:
                weights[:, row, near] = torch.einsum("hd,khd->hk", q[row], k[near]).mul(scale).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, v), weights


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu() -> None:
    """A kernel for the CPU under torch's own operator, which has none."""

    def run(q: Tensor, k: Tensor, v: Tensor, *args: Any) -> tuple[Tensor, Tensor, Tensor]:
        starts_q, starts_k, _, _, _, scale, window = args[:7]
        k, v = (one.repeat_interleave(q.shape[1] // one.shape[1], 1) for one in (k, v))
        output, _ = reference(q, k, v, starts_q, starts_k, window, scale or D**-0.5)
        return output, torch.zeros(q.shape[1], len(q)), torch.zeros(2, dtype=torch.uint64)

    operator: Any = varlen._varlen_attn
    operator.register_kernel("cpu")(run)


class PackedAttention(nn.Module):
    def __init__(self, keys_of: int = H, **given: Any) -> None:
        super().__init__()
        self.num_heads, self.keys_of, self.given = H, keys_of, given
        self.q, self.kv = nn.Linear(16, H * D), nn.Linear(16, 2 * keys_of * D)

    def project(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k, v = self.kv(y).unflatten(-1, (2, self.keys_of, D)).unbind(1)
        return self.q(x).unflatten(-1, (H, D)), k, v

    def forward(self, x: Tensor, y: Tensor, starts_q: Tensor, starts_k: Tensor) -> Tensor:
        q, k, v = self.project(x, y)
        gqa = self.keys_of < H
        return varlen.varlen_attn(q, k, v, starts_q, starts_k, 4, 5, enable_gqa=gqa, **self.given)  # type: ignore


@pytest.mark.parametrize("keys_of", [H, 2])
@pytest.mark.parametrize(
    "given", [{}, {"window_size": (-1, 0)}, {"window_size": (1, 0)}, {"window_size": (1, 1)}, {"scale": 2.0}], ids=str
)
@torch.no_grad()
def test_sequences_are_blocks_of_one_map(given: dict[str, Any], keys_of: int) -> None:
    torch.manual_seed(0)
    model, x = PackedAttention(keys_of, **given).eval(), torch.randn(8, 16)
    with capture_attention(model, modules={"": "decoder"}) as capture:
        model(x, x, STARTS, STARTS)
    q, k, v = model.project(x, x)
    k, v = (one.repeat_interleave(H // keys_of, 1) for one in (k, v))
    window, scale = given.get("window_size", (-1, -1)), given.get("scale", D**-0.5)
    _, weights = reference(q, k, v, STARTS, STARTS, window, scale)
    one = capture.trace.decoder
    assert one is not None
    np.testing.assert_allclose(one.weights[0], weights, atol=1e-5)
    np.testing.assert_array_equal(one.mask, (weights > 0).any(0))
    assert float(capture.observer_effect.split()[-1].rstrip(".").replace("−", "-")) < 1e-5


@torch.no_grad()
def test_more_keys_than_queries_are_aligned_at_the_end() -> None:
    torch.manual_seed(0)
    starts_k = torch.tensor([0, 5, 9, 12], dtype=torch.int32)
    model, x, y = PackedAttention(window_size=(-1, 0)).eval(), torch.randn(8, 16), torch.randn(12, 16)
    with capture_attention(model, modules={"": "cross"}) as capture:
        model(x, y, STARTS, starts_k)
    q, k, v = model.project(x, y)
    _, weights = reference(q, k, v, STARTS, starts_k, (-1, 0), D**-0.5)
    np.testing.assert_allclose(capture.trace.maps["cross"].weights[0], weights, atol=1e-5)


@torch.no_grad()
def test_the_verdict_knows_packed_sequences_and_the_call_says_them() -> None:
    torch.manual_seed(0)
    model = PackedAttention(window_size=(-1, 0)).eval()
    with capture_attention(model, modules={"": "decoder"}) as capture:
        model(*[torch.randn(8, 16)] * 2, STARTS, STARTS)
    arrays: dict[str, Any] = capture.arrays("decoder")
    packed = f"causal+packed:{','.join(map(str, LENGTHS))}"
    assert diagnose(**arrays, meant=packed).sound
    assert not diagnose(**arrays, meant="causal+packed:4,3,1").sound
    call = AttentionCall.from_json(arrays["captured_calls"][0])
    assert call.arguments["cu_seq_q"] == "[0, 3, 7, 8]"
    assert call.arguments["causal"] == "True"


@torch.no_grad()
def test_what_is_not_understood_is_refused_by_name() -> None:
    model, x = PackedAttention(seqused_k=torch.tensor([2, 2, 1], dtype=torch.int32)).eval(), torch.randn(8, 16)
    with capture_attention(model, modules={"": "decoder"}) as capture:
        model(x, x, STARTS, STARTS)
    with pytest.raises(TraceError, match=r"effect on the weights is not known: seqused_k of torch_attn\._varlen_attn"):
        _ = capture.trace


@torch.no_grad()
def test_another_operator_is_known_by_its_signature() -> None:
    with torch.library._scoped_library("attenscope_test", "DEF") as library:
        library.define(
            "flash_varlen(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, int max_seqlen_q, "
            "int max_seqlen_k, float dropout_p, float softmax_scale, bool causal, int window_size_left, "
            "int window_size_right, float softcap) -> Tensor"
        )
        library.impl("flash_varlen", lambda q, k, v, a, b, *more: reference(q, k, v, a, b, (2, 0), 0.5)[0], "CPU")

        class Flash(nn.Module):
            def forward(self, q: Tensor, softcap: float) -> Tensor:
                operator = torch.ops.attenscope_test.flash_varlen
                return operator(q, q, q, STARTS, STARTS, 4, 4, 0.0, 0.5, True, 2, 0, softcap)

        q = torch.randn(8, H, D)
        with capture_attention(model := Flash(), modules={"": "decoder"}) as capture:
            model(q, 0.0)
        _, weights = reference(q, q, q, STARTS, STARTS, (2, 0), 0.5)
        np.testing.assert_allclose(capture.trace.maps["decoder"].weights[0], weights, atol=1e-5)
        with capture_attention(model, modules={"": "decoder"}) as capture:
            model(q, 30.0)
        with pytest.raises(TraceError, match=r"softcap of attenscope_test\.flash_varlen"):
            _ = capture.trace
