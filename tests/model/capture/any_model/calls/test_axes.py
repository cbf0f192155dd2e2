"""Which axes are samples, heads, queries and keys: read where it can be told, refused by name where it cannot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.any_model.axes import AxisEvidence, infer_layout
from attenscope.capture.attention import capture_attention
from attenscope.trace import TraceError

Scores = Callable[[Tensor, Tensor], Tensor]


class Attention(nn.Module):
    """Scores of any layout, from states (B, L, D) or as the layout has them; keeps its weights."""

    def __init__(self, scores: Scores, axis: int = -1) -> None:
        super().__init__()
        self.num_heads, self.scores, self.axis = 4, scores, axis
        self.q, self.k, self.weights = nn.Linear(32, 32), nn.Linear(32, 32), torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (layer(x).unflatten(-1, (4, 8)) for layer in (self.q, self.k))
        self.weights = self.scores(q, k).softmax(self.axis)
        return x


def sequence_first(q: Tensor, k: Tensor) -> Tensor:
    """As labml_nn: (Q, K, B, H)."""
    return torch.einsum("ibhd,jbhd->ijbh", q, k)


def heads_first(q: Tensor, k: Tensor) -> Tensor:
    """As the MSA Transformer: (H, B, Q, K)."""
    return torch.einsum("bihd,bjhd->hbij", q, k)


def windows(q: Tensor, k: Tensor) -> Tensor:
    """(B * H, windows, 2, 2): blocks of two queries and two keys."""
    q, k = (one.transpose(1, 2).flatten(0, 1).unflatten(1, (-1, 2)) for one in (q, k))
    return torch.einsum("bwid,bwjd->bwij", q, k)


def blocks(q: Tensor, k: Tensor) -> Tensor:
    """(B, blocks, H, 2, 2)."""
    q, k = (one.unflatten(1, (-1, 2)) for one in (q, k))
    return torch.einsum("bwihd,bwjhd->bwhij", q, k)


def band(q: Tensor, k: Tensor) -> Tensor:
    """(B, L, H, 3): each query over the key before, its own and the one after."""
    return torch.stack([(q * k.roll(by, 1)).sum(-1) for by in (1, 0, -1)], -1)


def channels(q: Tensor, k: Tensor) -> Tensor:
    """(B, H, d, d): attention between features, as of XCiT."""
    return torch.einsum("bihd,bihe->bhde", q, k)


def recorded(scores: Scores, axis: int, x: Tensor, sample: int) -> tuple[np.ndarray, Tensor]:
    attention = Attention(scores, axis)
    with torch.no_grad(), capture_attention(nn.ModuleDict({"attention": attention})) as capture:
        attention(x)
    return capture.sample(sample).maps.popitem()[1].weights[0], attention.weights


@pytest.mark.parametrize(("length", "batch"), [(6, 2), (6, 1), (2, 6), (8, 3)])
def test_sequences_come_first_as_in_labml(length: int, batch: int) -> None:
    for sample in range(batch):
        found, weights = recorded(sequence_first, 1, torch.randn(length, batch, 32), sample)
        np.testing.assert_array_equal(found, weights[:, :, sample].permute(2, 0, 1))


@pytest.mark.parametrize("batch", [1, 2])
def test_heads_come_first_as_in_an_alignment(batch: int) -> None:
    for sample in range(batch):
        found, weights = recorded(heads_first, -1, torch.randn(batch, 6, 32), sample)
        np.testing.assert_array_equal(found, weights[:, sample])


@pytest.mark.parametrize(
    ("scores", "length"), [(windows, 6), (windows, 8), (blocks, 6), (blocks, 8), (band, 6), (band, 8), (channels, 6)]
)
def test_what_is_no_matrix_of_queries_and_keys_is_refused_by_name(scores: Scores, length: int) -> None:
    """With a length of 8, the windows are as many as the heads; the band is as wide as the batch."""
    with pytest.raises(TraceError, match=r"cannot be laid out .* softmax of attention \(axis -1 of .*, 4 heads\)"):
        recorded(scores, -1, torch.randn(3, length, 32), 0)


def test_a_part_of_a_module_that_is_refused_is_no_picture() -> None:
    """Two attentions of other shapes in one call: neither alone is what the module attends to."""

    class Landmarks(Attention):
        def forward(self, x: Tensor) -> Tensor:
            q, k = (layer(x).unflatten(-1, (4, 8)).transpose(1, 2) for layer in (self.q, self.k))
            first, second = (q @ k[:, :, ::2].mT).softmax(-1), (q[:, :, ::2] @ k.mT).softmax(-1)
            return (first @ second).sum(1)

    model = nn.ModuleDict({"attention": Landmarks(heads_first)})
    with capture_attention(model) as capture:
        model["attention"](torch.randn(2, 6, 32))
    with pytest.raises(TraceError, match=r"several attentions in one call, of \(2, 4, 6, 3\) and \(2, 4, 3, 6\)"):
        capture.sample(0)


IMAGE = AxisEvidence(2, sides=frozenset({(1, 64), (8, 8)}), partitions=frozenset({64}))


@pytest.mark.parametrize(
    ("shape", "evidence", "found"),
    [
        ((4, 2, 16, 16), IMAGE, (4, 2, 16, 16)),  # windows of an image are samples
        ((3, 2, 16, 16), IMAGE, None),
        ((2, 2, 3, 7, 9), AxisEvidence(6, sides=frozenset({(2, 7)})), (2, 6, 7, 9)),  # grouped heads
        ((2, 2, 3, 7, 9), AxisEvidence(4, sides=frozenset({(2, 7)})), None),
        ((1, 1, 9, 4, 4), AxisEvidence(None, sides=frozenset({(1, 36)})), None),
        ((6, 7, 9), AxisEvidence(3, sides=frozenset({(2, 7)})), (2, 3, 7, 9)),
        ((6, 7, 9), AxisEvidence(3, sides=frozenset({(6, 7)})), (6, 1, 7, 9)),
        ((2, 4, 9), AxisEvidence(4, sides=frozenset({(2, 9)})), (2, 4, 1, 9)),  # one query of each head
        ((6, 7, 9), AxisEvidence(None, sides=frozenset({(2, 7)})), (2, 3, 7, 9)),
        ((5, 7, 9), AxisEvidence(None, sides=frozenset({(2, 7)})), None),
        ((2, 6, 7, 7), AxisEvidence(3, sides=frozenset({(2, 7)})), (2, 6, 7, 7)),  # twice the heads that are said
        ((2, 7, 5, 4), AxisEvidence(None, sides=frozenset({(2, 7)})), None),
    ],
)
def test_a_layout_fits_heads_and_samples(
    shape: tuple[int, ...], evidence: AxisEvidence, found: tuple[int, ...] | None
) -> None:
    layout = infer_layout(shape, -1, evidence)
    assert (layout and tuple(layout(torch.empty(shape)).shape)) == found


class OfAnImage(nn.Module):
    """Attention between 8 features of each head, of an image that is 8 pixels wide and has 4 patches."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = Attention(lambda q, k: q.permute(0, 2, 3, 1) @ k.permute(0, 2, 1, 3))

    def forward(self, image: Tensor) -> Tensor:
        return self.attn(image.flatten(2).unflatten(2, (4, -1)).flatten(1).unflatten(1, (4, -1))[..., :32])


def test_the_sides_of_an_image_are_no_sequences() -> None:
    model = OfAnImage()
    with torch.no_grad(), capture_attention(model) as capture:
        model(torch.randn(2, 2, 8, 8))
    assert model.attn.weights.shape == (2, 4, 8, 8)
    with pytest.raises(TraceError, match=r"softmax of attn \(axis -1 of \(2, 4, 8, 8\), 4 heads\)"):
        capture.sample(0)


class XCA(Attention):
    """The same by name, where there are as many tokens as features."""


def test_attention_between_features_is_refused_by_name() -> None:
    model = XCA(lambda q, k: q.permute(0, 2, 3, 1) @ k.permute(0, 2, 1, 3))
    with torch.no_grad(), capture_attention(nn.ModuleDict({"attn": model})) as capture:
        model(torch.randn(2, 8, 32))
    with pytest.raises(TraceError, match="attention of features over features"):
        capture.sample(0)


class Timed(nn.Module):
    """Given a mask (Q, K, 1) and a time of each sample beside the states; queries first."""

    def __init__(self) -> None:
        super().__init__()
        self.attn = MaskedAttention(sequence_first, axis=1)

    def forward(self, x: Tensor, time: Tensor, mask: Tensor) -> Tensor:
        return self.attn(x * time[:, None, None], mask)


class MaskedAttention(Attention):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x)


def test_masks_and_times_are_no_sides() -> None:
    model = Timed()
    with torch.no_grad(), capture_attention(model) as capture:
        model(torch.randn(2, 5, 32), torch.ones(2), torch.ones(5, 5, 1, dtype=torch.bool))
    one = capture.sample(1).encoder
    assert one is not None
    np.testing.assert_array_equal(one.weights[0], model.attn.weights.permute(2, 3, 0, 1)[1])
