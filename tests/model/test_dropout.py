"""Dropout with bytes: the right share, an unbiased scale, seeded, and nothing outside training."""

from __future__ import annotations

import pytest
import torch

from attenscope.fast_linear import Dropout
from tests.toy import random_model


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_share_and_scale(probability: float) -> None:
    torch.manual_seed(0)
    dropped = Dropout(probability).train()(torch.ones(400, 1001))
    share = round(probability * 256) / 256
    values = dropped.unique()
    torch.testing.assert_close(values, torch.tensor([0.0, 1 / (1 - share)]))
    deviation = (share * (1 - share) / dropped.numel()) ** 0.5
    assert abs(dropped.eq(0).float().mean().item() - share) < 5 * deviation


def test_cells_are_dropped_independently() -> None:
    """Neighbours, and the eight bytes of one random draw, share nothing: the counts of pairs are binomial."""
    torch.manual_seed(0)
    kept = Dropout(0.5).train()(torch.ones(400_000)).ne(0).float() - 0.5
    for distance in range(1, 17):
        assert abs((kept[:-distance] * kept[distance:]).mean().item()) < 5 * 0.25 / 400_000**0.5


def test_nothing_happens_outside_training_or_without_probability() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_same_seed_same_mask() -> None:
    module, x = Dropout(0.3).train(), torch.ones(7, 9)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(module(x))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_gradient_passes_where_the_value_did() -> None:
    torch.manual_seed(0)
    x = torch.ones(100, requires_grad=True)
    output = Dropout(0.5).train()(x)
    output.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, output.detach())


def test_dtype_and_shape_are_kept() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        output = Dropout(0.2).train()(torch.ones(2, 3, 5, dtype=dtype))
        assert output.dtype == dtype
        assert output.shape == (2, 3, 5)
    assert Dropout(0.2).train()(torch.ones(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("place", ["embedding", "attention", "feed_forward", "sublayer"])
def test_each_place_drops_on_its_own(place: str) -> None:
    model = random_model(dropout=0.5, dropout_places=(place,))
    active = {
        name.rsplit(".", 2)[-2] for name, one in model.named_modules() if isinstance(one, Dropout) and one.threshold
    }
    ends = {"embedding": ("_embedding",), "attention": ("_attention",), "feed_forward": ("feed_forward",)}
    assert active
    if place == "sublayer":
        assert all(name.startswith("after_") for name in active)
    else:
        assert all(name.endswith(ends[place]) and not name.startswith("after_") for name in active)
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 5]])
    torch.manual_seed(0)
    assert not torch.equal(model.train()(source, target), model.eval()(source, target))
