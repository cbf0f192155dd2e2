"""future-token: padded and not, without gradients, with look-ahead, and what it says lets the future in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from attenscope.capture.attention import capture_attention
from attenscope.mask_tests.checks import run_future_tests, run_mask_tests
from attenscope.masks.diagnose import diagnose
from attenscope.testing import assert_no_future_leak
from attenscope.trace import TraceError
from tests.model.mask_tests.models import subject

T = 8
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
Mix = Callable[[Tensor], Tensor]


def draw_sizes(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    heads = int(generator.choice([1, 2, 4]))
    return {
        "heads": heads,
        "width": heads * int(generator.choice([4, 8])),
        "samples": int(generator.integers(2, 4)),
        "dtype": (torch.float32, torch.float64)[seed % 2],
    }


class LanguageModel(nn.Module):
    """One attention, its projections mixed by ``mix`` before it, and by ``after`` behind it."""

    def __init__(
        self, attend: Attend, width: int, heads: int, mix: Mix | None = None, after: Mix | None = None
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.attention = nn.Embedding(9, width), Attention(attend, width, heads, mix, after)

    def forward(self, ids: Tensor, keep: Tensor | None = None) -> Tensor:
        self.attention.keep = keep
        found = self.attention(self.embedding(ids))
        assert isinstance(found, Tensor)
        return found


class Attention(nn.Module):
    keep: Tensor | None = None

    def __init__(self, attend: Attend, width: int, heads: int, mix: Mix | None, after: Mix | None) -> None:
        super().__init__()
        self.attend, self.mix, self.after, self.num_heads = attend, mix, after, heads
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.qkv(x)
        y = y if self.mix is None else self.mix(y)
        q, k, v = (z.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for z in y.chunk(3, -1))
        out = self.attend(q, k, v) if self.keep is None else self.attend_padded(q, k, v, self.keep)
        out = out.transpose(1, 2).flatten(2)
        return out if self.after is None else self.after(out)

    def attend_padded(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
        """As some helpers do: no mask where nothing is padded, and then no causal part either."""
        size = keep.shape[1]
        mask = None if bool(keep.all()) else torch.ones(size, size, dtype=torch.bool).tril() & keep[:, None, None]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def add_block_means(y: Tensor) -> Tensor:
    return y + y.unflatten(1, (-1, 4)).mean(2).repeat_interleave(4, 1)


def attend_fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attend_by_softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    return (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(future, -torch.inf).softmax(-1) @ v


def built(sizes: dict[str, Any], attend: Attend = attend_fused, **more: Any) -> tuple[LanguageModel, Tensor]:
    model = LanguageModel(attend, sizes["width"], sizes["heads"], **more).eval().to(sizes["dtype"])
    return model, torch.randint(1, 9, (sizes["samples"], T), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("seed", range(4))
def test_a_model_that_shows_the_future_only_unpadded_fails_padded_too(seed: int) -> None:
    model, ids = built(draw_sizes(seed))
    with pytest.raises(AssertionError, match=r"future-token \(B1\): .*, where nothing is padded"):
        assert_no_future_leak(model, ids, embedding=model.embedding, call=model)
    assert_no_future_leak(model, ids, embedding=model.embedding)


@pytest.mark.parametrize("seed", range(4))
def test_an_argument_that_lets_nothing_in_is_not_blamed(seed: int) -> None:
    model, ids = built(draw_sizes(seed), mix=add_block_means)
    with pytest.raises(AssertionError) as error:
        assert_no_future_leak(model, ids, embedding=model.embedding)
    said = "before it calls F.scaled_dot_product_attention: q, k, v change already where they must stay."
    assert said in str(error.value)
    assert "carried by" not in str(error.value)


@pytest.mark.parametrize(
    ("attend", "more", "said"),
    [
        (attend_by_softmax, {"mix": add_block_means}, "outside of its call of softmax"),
        (attend_fused, {"after": add_block_means}, "outside of its call of F.scaled_dot_product_attention"),
        (F.scaled_dot_product_attention, {}, "none arrived: attn_mask=None, is_causal=False"),
        (F.scaled_dot_product_attention, {"mix": add_block_means}, "none arrived: attn_mask=None, is_causal=False"),
    ],
)
def test_what_lets_the_future_in_is_told_from_what_does_not(attend: Attend, more: Any, said: str) -> None:
    model, ids = built(draw_sizes(0), attend, **more)
    with pytest.raises(AssertionError) as error:
        assert_no_future_leak(model, ids, embedding=model.embedding)
    assert said in str(error.value)


def test_a_model_without_gradients_is_judged_by_the_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if q.requires_grad:
            raise NotImplementedError("no backward here")
        return F.scaled_dot_product_attention(q, k, v, is_causal=good)

    model, ids = built(draw_sizes(1), refuse)
    good = True
    assert_no_future_leak(model, ids, embedding=model.embedding)
    good = False
    with pytest.raises(AssertionError, match=r"gradient-reach \(B5\) could not run: no gradient can be taken"):
        assert_no_future_leak(model, ids, embedding=model.embedding)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.filterwarnings("ignore:_compile flag")
@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize(
    ("seed", "ahead"),
    [
        pytest.param(seed, ahead, marks=[] if (seed, ahead) in ((0, 0), (1, 1), (3, 3)) else pytest.mark.slow)
        for seed, ahead in product(range(4), (0, 1, 3))
    ],
)
def test_flex_attention_which_has_no_gradient_on_a_processor_is_judged(seed: int, ahead: int) -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        block_mask = create_block_mask(lambda b, h, i, j: i + ahead >= j, None, None, T, T, device="cpu")
        found = flex_attention(q, k, v, block_mask=block_mask)
        assert isinstance(found, Tensor)
        return found

    model, ids = built(draw_sizes(seed), attend)
    if not ahead:
        assert_no_future_leak(model, ids, embedding=model.embedding)
        return
    with pytest.raises(AssertionError, match=r"future-token \(B1\): not so"):
        assert_no_future_leak(model, ids, embedding=model.embedding)


@pytest.mark.parametrize(("ahead", "passes"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_model_may_look_ahead_as_far_as_was_said(ahead: int, passes: bool) -> None:
    """Two layers, each with one key ahead."""
    looking = subject("future")
    if passes:
        assert_no_future_leak(looking, ahead=ahead)
    else:
        with pytest.raises(AssertionError, match="more than 1 ahead" if ahead else "future-token"):
            assert_no_future_leak(looking, ahead=ahead)


def test_looking_back_by_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more; got -1"):
        assert_no_future_leak(subject(), ahead=-1)


@pytest.mark.parametrize("seed", range(4))
def test_a_decoder_without_its_mask_is_captured_under_its_own_name(seed: int) -> None:
    sizes = draw_sizes(seed)
    layer = nn.TransformerEncoderLayer(sizes["width"], sizes["heads"], 16, batch_first=True, dtype=sizes["dtype"])
    with torch.no_grad(), capture_attention(layer.eval()) as capture:
        layer(torch.randn(sizes["samples"], T, sizes["width"], dtype=sizes["dtype"]))
    found = diagnose(**capture.arrays("decoder"), meant="causal", map="decoder")
    assert [one.code for one in found.findings][:1] == ["future-visible"]


def test_an_encoder_beside_a_decoder_is_not_taken_for_it() -> None:
    model = nn.Transformer(16, 2, 1, 1, 16, batch_first=True).eval()
    x = torch.randn(2, T, 16)
    with torch.no_grad(), capture_attention(model.encoder) as capture:
        model.encoder(x)
    assert capture.arrays("encoder")["weights"].shape == (2, 1, 2, T, T)
    with pytest.raises(TraceError, match="There is no cross attention"):
        capture.arrays("cross")


def test_run_future_tests_names_both_tests() -> None:
    assert [one.check.number for one in run_future_tests(subject())] == ["B1", "B5"]
    assert [one.status for one in run_mask_tests(subject(), codes=["B1"])] == ["pass"]
