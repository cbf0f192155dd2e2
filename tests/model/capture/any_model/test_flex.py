"""flex_attention: its captured weights against a dense softmax, whatever score_mod and mask_mod say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from attenscope.capture.attention import capture_attention
from attenscope.masks.attention_call_origin import AttentionCall
from attenscope.masks.diagnose import diagnose

pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:_compile flag"),
    pytest.mark.filterwarnings("ignore:`torch.jit"),
]
B, H, D = 2, 4, 8
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 1, 1, 1, 1]])
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


class FlexAttention(nn.Module):
    def __init__(self, keys_of: int = H, **given: Any) -> None:
        super().__init__()
        self.num_heads, self.keys_of, self.given = H, keys_of, given
        self.q, self.kv = nn.Linear(16, H * D), nn.Linear(16, 2 * keys_of * D)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        k, v = self.kv(x).unflatten(-1, (2, self.keys_of, D)).transpose(1, 3).unbind(2)
        return self.q(x).unflatten(-1, (H, D)).transpose(1, 2), k, v

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        found = flex_attention(q, k, v, enable_gqa=self.keys_of < H, **self.given)
        assert isinstance(found, Tensor)
        return found.transpose(1, 2).flatten(2)


def blocks(mask_mod: Any, length: int, size: int = 128, batch: int | None = None) -> BlockMask:
    return create_block_mask(mask_mod, batch, None, length, length, device="cpu", BLOCK_SIZE=size)


def causal(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return q >= k


def window(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (q >= k) & (q - k < 3)


def documents(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (DOCUMENTS[b, q] == DOCUMENTS[b, k]) & (q >= k)


def empty_row(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (q >= k) & (q != 4)


def alibi(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return score + SLOPES[h] * (k - q)


def softcap(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return 5 * torch.tanh(score / 5)


def causal_scores(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return torch.where(q >= k, score, -math.inf)


PLACE = torch.arange(9)
AFTER = PLACE[:, None] - PLACE
TRI = AFTER >= 0
SAME_DOCUMENT = (DOCUMENTS[:, :, None] == DOCUMENTS[:, None])[:, None]
CASES: dict[str, tuple[dict[str, Any], Tensor, Callable[[Tensor], Tensor]]] = {
    "nothing": ({}, TRI | True, lambda s: s),
    "causal": ({"block_mask": blocks(causal, 9)}, TRI, lambda s: s),
    "window": ({"block_mask": blocks(window, 9)}, TRI & (AFTER < 3), lambda s: s),
    "small blocks": ({"block_mask": blocks(window, 9, size=2)}, TRI & (AFTER < 3), lambda s: s),
    "documents": ({"block_mask": blocks(documents, 9, batch=B)}, TRI & SAME_DOCUMENT, lambda s: s),
    "alibi": ({"score_mod": alibi, "block_mask": blocks(causal, 9)}, TRI, lambda s: s - SLOPES[:, None, None] * AFTER),
    "softcap": ({"score_mod": softcap, "scale": 3.0}, TRI | True, lambda s: 5 * torch.tanh(s / 5)),
    "mask by scores": ({"score_mod": causal_scores}, TRI, lambda s: s),
    "a row without keys": ({"block_mask": blocks(empty_row, 9)}, TRI & (PLACE != 4)[:, None], lambda s: s),
}


@pytest.mark.parametrize("keys_of", [H, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_weights_are_those_of_a_dense_softmax(name: str, keys_of: int) -> None:
    given, allowed, modified = CASES[name]
    torch.manual_seed(0)
    model, x = FlexAttention(keys_of, **given).eval(), torch.randn(B, 9, 16)
    with torch.no_grad(), capture_attention(model, tensors=["scores"], modules={"": "decoder"}) as capture:
        seen = model(x)
    with torch.no_grad():
        assert torch.equal(seen, model(x))
        q, k, _ = model.project(x)
        k = k.repeat_interleave(H // keys_of, 1)
    scores = q @ k.mT * given.get("scale", D**-0.5)
    reference = modified(scores).masked_fill(~allowed, -math.inf).softmax(-1).nan_to_num(nan=0.0)
    for sample in range(B):
        one = capture.sample(sample).decoder
        assert one is not None
        np.testing.assert_allclose(one.weights[0], reference[sample], atol=1e-5)
        np.testing.assert_allclose(one.tensors["scores"][0], scores[sample], atol=1e-5)
        own = allowed.expand(B, 1, 9, 9)[sample, 0]
        np.testing.assert_array_equal(one.mask, own)
        assert (one.passed_masks is None) == bool(own.all())
        if one.passed_masks is not None:
            np.testing.assert_array_equal(one.passed_masks[0, 0], own)
    assert float(capture.observer_effect.split()[-1].rstrip(".").replace("−", "-")) < 1e-5


def test_the_call_says_what_masked_it_and_fixes_are_written_for_flex_attention() -> None:
    torch.manual_seed(0)
    model = FlexAttention(score_mod=alibi).eval()
    with torch.no_grad(), capture_attention(model, modules={"": "decoder"}) as capture:
        model(torch.randn(B, 9, 16))
    arrays: dict[str, Any] = capture.arrays("decoder")
    call = AttentionCall.from_json(arrays["captured_calls"][0])
    assert (call.function, call.file) == ("flex_attention", __file__)
    assert call.arguments == {"block_mask": "None", "score_mod": "alibi"}
    (found,) = diagnose(**arrays, meant="causal").findings
    assert found.code == "future-visible"
    assert "create_block_mask" in found.fix


def test_a_block_mask_that_lists_other_blocks_than_its_function_shows_in_what_was_passed() -> None:
    made = blocks(causal, 9, size=4)
    lost = BlockMask.from_kv_blocks(
        made.kv_num_blocks.clamp(max=1), made.kv_indices, None, None, 4, causal, seq_lengths=(9, 9)
    )
    model = FlexAttention(block_mask=lost).eval()
    with torch.no_grad(), capture_attention(model, modules={"": "decoder"}) as capture:
        model(torch.randn(1, 9, 16))
    one = capture.trace.decoder
    assert one is not None
    assert one.passed_masks is not None
    np.testing.assert_array_equal(one.mask, TRI)  # uncompiled, torch asks the function alone
    assert not one.passed_masks[0, 0, 8].all()
    assert (one.passed_masks[0, 0] <= TRI.numpy()).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Gemma2ForCausalLM"])
@torch.no_grad()
def test_models_of_transformers_by_flex_attention(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 50, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
    more = {"num_attention_heads": 4, "num_key_value_heads": 2, "sliding_window": 4, "pad_token_id": 0}
    config = {"LlamaForCausalLM": transformers.LlamaConfig, "Gemma2ForCausalLM": transformers.Gemma2Config}[name]
    torch.manual_seed(0)
    model = getattr(transformers, name)(config(**sizes, **more)).eval()
    ids, keep = torch.arange(5, 27).reshape(2, 11), torch.ones(2, 11, dtype=torch.long)
    keep[1, :3] = 0
    found = {}
    for implementation in ("eager", "flex_attention"):
        model.set_attn_implementation(implementation)
        with capture_attention(model) as capture:
            model(ids, attention_mask=keep)
        found[implementation] = capture.arrays("decoder")
    weights = {way: arrays["weights"] for way, arrays in found.items()}
    real = keep.bool().numpy()
    for sample in range(2):
        rows = [weights[way][sample][:, :, real[sample]] for way in ("eager", "flex_attention")]
        np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)
    given: dict[str, Any] = found["flex_attention"]
    assert diagnose(**given, key_keep=real).sound
    assert AttentionCall.from_json(given["captured_calls"][0]).function == "flex_attention"
