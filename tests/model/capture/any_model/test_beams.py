"""A beam search of somebody's model: its rows change places, so it is refused; samples of one source are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.attention import capture_attention
from attenscope.trace import TraceError
from tests.model.capture.any_model.test_hugging_face import SOURCE, built

NAMES = ["GPT2LMHeadModel", "T5ForConditionalGeneration", "LlamaForCausalLM"]
LENGTH = {"max_new_tokens": 6, "min_new_tokens": 6, "pad_token_id": 0}


def uneven(name: str, kernel: str = "sdpa") -> Any:
    model = built(name, kernel)
    for parameter in model.parameters():
        parameter.data *= 2  # or the beams of random weights hardly differ
    return model


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kernel", ["sdpa", "eager"])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_a_beam_search_is_refused(name: str, kernel: str, cached: bool) -> None:
    model = uneven(name, kernel)
    with capture_attention(model) as capture:
        model.generate(SOURCE[:1, :4], num_beams=3, use_cache=cached, **LENGTH)
    with pytest.raises(TraceError, match=r"This is a beam search.* run the model once more on what was found"):
        capture.sample(0)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_several_samples_of_one_source_are_each_a_trace(name: str) -> None:
    model = uneven(name)
    torch.manual_seed(0)
    with capture_attention(model) as capture:
        written = model.generate(SOURCE[:1, :4], do_sample=True, num_return_sequences=3, **LENGTH)
    for number, tokens in enumerate(written[:, :-1]):
        whole = {"decoder_input_ids": tokens[None]} if model.config.is_encoder_decoder else {}
        with capture_attention(model) as alone:
            model(SOURCE[:1, :4] if whole else tokens[None], **whole)
        maps = capture.sample(number).maps
        assert set(maps) == set(alone.trace.maps)
        for kind, one in alone.trace.maps.items():
            np.testing.assert_allclose(maps[kind].weights, one.weights, atol=1e-5)
    with pytest.raises(TraceError, match="no sentence 3 in a batch of 3"):
        capture.sample(3)


class Cached(nn.Module):
    """One attention with a cache that somebody's own search reorders."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.qk, self.keys = 2, nn.Linear(8, 16), torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (one.unflatten(-1, (2, 4)).transpose(1, 2) for one in self.qk(x).chunk(2, -1))
        self.keys = torch.cat([self.keys, k], 2) if self.keys.numel() else k
        return (q @ self.keys.mT).softmax(-1)


@pytest.mark.parametrize("order", [[0, 0, 1], [0, 1, 2]])
@torch.no_grad()
def test_a_cache_that_is_reordered_tells_of_a_search_by_any_name(order: list[int]) -> None:
    model = nn.ModuleDict({"attention": Cached()})
    attention = model["attention"]
    assert isinstance(attention, Cached)
    with capture_attention(model, modules={"attention": "decoder"}) as capture:
        attention(torch.randn(3, 2, 8))
        attention.keys = attention.keys[torch.tensor(order)]
        attention(torch.randn(3, 1, 8))
    if order == [0, 1, 2]:
        assert capture.sample(2).maps.popitem()[1].weights.shape == (1, 2, 3, 3)
        return
    with pytest.raises(TraceError, match="This is a beam search"):
        capture.sample(0)


class Towers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = (nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))

    def forward(self, image: Tensor, texts: Tensor) -> Tensor:
        return self.encoder(image, image, image)[0].mean(1) @ self.decoder(texts, texts, texts)[0].mean(1).mT


@torch.no_grad()
def test_sides_without_cross_attention_may_have_other_batches() -> None:
    """As CLIP with two images and three texts."""
    model = Towers().eval()
    with capture_attention(model) as capture:
        model(torch.randn(2, 5, 8), torch.randn(3, 4, 8))
    assert [set(capture.sample(number).maps) for number in range(3)] == [{"encoder", "decoder"}] * 2 + [{"decoder"}]
    assert capture.arrays("encoder")["weights"].shape == (2, 1, 2, 5, 5)
    with pytest.raises(TraceError, match="no sentence 3 in a batch of 3"):
        capture.sample(3)
