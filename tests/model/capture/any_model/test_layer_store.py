"""Large weights kept behind each other: the trace is a view of them, and says what a copy would."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attenscope.capture.any_model import module_kinds
from attenscope.capture.any_model.axes import AxisLayout
from attenscope.capture.any_model.kernel_weights import read_softmax_attention
from attenscope.capture.any_model.module_kinds import MIN_STORED_BYTES, LayerStore, is_causal_mask, stack_as_view
from attenscope.capture.any_model.recording import AnyModelRecording
from attenscope.capture.attention import capture_attention

LENGTH, HEADS, LAYERS = 300, 3, 4  # 1.03 MiB of weights a layer


class SelfAttention(nn.Module):
    """Attention whose weights are overwritten once they have been used, as an in-place dropout would."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = HEADS
        self.qkv = nn.Linear(12, 36)
        self.seen: torch.Tensor | None = None

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, HEADS, 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT
        weights = F.softmax(scores if mask is None else scores.masked_fill(~mask, -1e9), -1)
        self.seen = weights.detach().clone()
        output = (weights @ v).transpose(1, 2).flatten(2)
        if not weights.requires_grad:
            weights.zero_()
        return x + output


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([SelfAttention() for _ in range(LAYERS)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return x


def seen(model: Encoder) -> np.ndarray:
    layers = [one.seen for one in model.layers if isinstance(one, SelfAttention)]
    return torch.stack([one for one in layers if one is not None]).numpy()


def test_a_trace_of_large_weights_is_a_view_and_right() -> None:
    torch.manual_seed(0)
    model = Encoder().eval()
    for batch in (1, 2):
        with torch.inference_mode(), capture_attention(model) as capture:
            model(torch.randn(batch, LENGTH, 12))
        for index in range(batch):
            trace = capture.sample(index)
            assert trace.encoder is not None
            assert np.array_equal(trace.encoder.weights, seen(model)[:, index])
            assert trace.encoder.mask.all()
            again = capture.sample(index)
            assert again.encoder is not None
            assert np.shares_memory(trace.encoder.weights, again.encoder.weights)
        recording = capture.recording
        assert isinstance(recording, AnyModelRecording)
        assert len({one.attention.weights.untyped_storage().data_ptr() for one in recording.calls}) == 1


def test_a_later_run_leaves_an_earlier_trace_as_it_is() -> None:
    torch.manual_seed(1)
    model = Encoder().eval()
    with torch.inference_mode(), capture_attention(model) as capture:
        model(torch.randn(1, LENGTH, 12))
        first, expected = capture.sample(0), seen(model)[:, 0]
        model(torch.randn(1, LENGTH, 12))
        second = capture.sample(0)
    assert first.encoder is not None
    assert second.encoder is not None
    assert np.array_equal(first.encoder.weights, expected)
    assert np.array_equal(second.encoder.weights, seen(model)[:, 0])


def test_modes_of_autograd_may_change_between_the_layers() -> None:
    store = LayerStore()
    given = [torch.rand(1, HEADS, LENGTH, LENGTH) for _ in range(3)]
    with torch.inference_mode():
        kept = [store.store_copy(given[0].clone(), 3)]
    kept += [store.store_copy(given[1].requires_grad_(), 3)]
    with torch.inference_mode():
        kept += [store.store_copy(given[2].clone(), 3)]
    view = stack_as_view([one[0] for one in kept])
    assert view is not None
    assert np.array_equal(view, torch.stack([one.detach() for one in given])[:, 0].numpy())


def test_what_is_small_half_or_out_of_order_is_not_taken_for_a_view() -> None:
    store, small = LayerStore(), torch.rand(1, 1, 8, 8)
    assert torch.equal(store.store_copy(small, 4), small)
    assert store.store_copy(small, 4).data_ptr() != small.data_ptr()
    half = torch.rand(1, HEADS, LENGTH, LENGTH * 2).half()
    assert half.numel() * 2 > MIN_STORED_BYTES
    assert torch.equal(store.store_copy(half, 4), half)
    rows = [store.store_copy(torch.rand(1, HEADS, LENGTH, LENGTH), 4)[0] for _ in range(4)]
    crossed = stack_as_view(rows[1::2])  # as where two kinds of attention take turns
    assert crossed is not None
    assert np.array_equal(crossed, torch.stack(rows[1::2]).numpy())
    assert stack_as_view([rows[0], rows[1], rows[3]]) is None
    assert stack_as_view(rows[::-1]) is None
    assert stack_as_view([rows[0], torch.rand(HEADS, LENGTH, LENGTH)]) is None
    assert stack_as_view([one.half() for one in rows]) is None
    assert (
        len({store.store_copy(rows[0][None], 4).data_ptr() for _ in range(5)}) == 5
    )  # a full block is followed by another


def test_a_block_is_no_larger_than_it_may_be() -> None:
    assert module_kinds.MAX_BLOCK_BYTES // (HEADS * LENGTH * LENGTH * 4) < 10_000
    store = LayerStore()
    store.store_copy(torch.rand(1, HEADS, LENGTH, LENGTH), 10_000)
    (block, _, taken) = next(iter(store._open.values()))
    assert block.nbytes <= module_kinds.MAX_BLOCK_BYTES
    assert taken == 1


def test_masks_that_are_one_number_say_what_they_would_in_full() -> None:
    scores = torch.randn(2, HEADS, 5, 5)
    nothing_blocked = read_softmax_attention(scores, scores.softmax(-1), AxisLayout())
    assert nothing_blocked.allowed.shape == scores.shape
    assert nothing_blocked.allowed.all()
    assert is_causal_mask(nothing_blocked.allowed) is is_causal_mask(nothing_blocked.allowed.clone()) is False
    one = torch.ones((), dtype=torch.bool).expand(1, HEADS, 1, 5)
    assert is_causal_mask(one) is is_causal_mask(one.clone()) is None
    odd = scores.clone()
    odd[0, 0, 0, 0], odd[0, 0, 0, 1] = torch.nan, -torch.inf
    found = read_softmax_attention(odd, odd.softmax(-1), AxisLayout()).allowed
    assert not found[0, 0, 0, 1]
    assert found.sum() == found.numel() - 1


class Overwriting(nn.Module):
    """Writes over its scores and its weights once it has used them, to save memory."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.q, self.k = 2, nn.Linear(8, 8), nn.Linear(8, 8)
        self.kept = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (layer(x).unflatten(-1, (2, 4)).transpose(1, 2) for layer in (self.q, self.k))
        scores = q @ k.mT
        weights = scores.softmax(-1)
        self.kept, values = weights.clone(), weights @ k
        weights.zero_()
        scores.zero_()
        return values


@pytest.mark.parametrize("tokens", [5, 600], ids=["small", "large"])
@pytest.mark.parametrize("half", [False, True])
@torch.no_grad()
def test_what_a_model_writes_over_is_kept_as_it_was(tokens: int, half: bool) -> None:
    attention = Overwriting()
    with capture_attention(nn.ModuleDict({"attn": attention}), ["masked_scores"], half=half) as capture:
        attention(torch.randn(1, tokens, 8))
    one = capture.trace.encoder
    assert one is not None
    np.testing.assert_allclose(one.weights[0], attention.kept[0], atol=5e-4 if half else 0)
    scores = torch.from_numpy(one.tensors["masked_scores"][0])
    np.testing.assert_allclose(scores.softmax(-1), attention.kept[0], atol=1e-6)


def block(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A map of two layers as a view into a block, and what stands in it."""
    given = torch.rand(2, 1, HEADS, LENGTH, LENGTH, generator=torch.Generator().manual_seed(seed))
    store = LayerStore()
    view = stack_as_view([store.store_copy(one, 2)[0] for one in given])
    assert view is not None
    return view, given[:, 0].numpy()


def test_the_memory_of_a_block_is_used_again_when_nobody_reads_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_kinds, "_spare_blocks", deque[np.ndarray](maxlen=1))
    view, expected = block(0)
    corner, place = view[1:, :2], view.ctypes.data
    del view
    gc.collect()
    second, other = block(1)
    assert second.ctypes.data != place  # the corner is still read
    assert np.array_equal(corner, expected[1:, :2])
    assert np.array_equal(second, other)
    del corner
    gc.collect()
    third, another = block(2)
    assert third.ctypes.data == place
    assert np.array_equal(third, another)
    assert np.array_equal(second, other)


def test_many_threads_never_share_a_block() -> None:
    def right(seed: int) -> bool:
        view, expected = block(seed)
        return np.array_equal(view, expected)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(40)))


class Returning(nn.Module):
    """Attention that returns its weights too."""

    def __init__(self, made: list[weakref.ref[Tensor]]) -> None:
        super().__init__()
        self.made = made

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores = x @ x.mT
        weights = scores.softmax(-1)
        self.made += [weakref.ref(scores), weakref.ref(weights)]
        return weights @ x, weights


class Block(nn.Module):
    """A layer that lets the weights go, as BERT's do."""

    def __init__(self, made: list[weakref.ref[Tensor]], alive: list[int]) -> None:
        super().__init__()
        self.attention, self.made, self.alive = Returning(made), made, alive

    def forward(self, x: Tensor) -> Tensor:
        self.alive.append(sum(one() is not None for one in self.made))
        outputs: tuple[Tensor, Tensor] = self.attention(x)
        return outputs[0]


@torch.no_grad()
def test_nothing_of_a_layer_is_held_while_the_next_one_runs() -> None:
    made: list[weakref.ref[Tensor]] = []
    alive: list[int] = []
    model = nn.Sequential(*(Block(made, alive) for _ in range(4)))
    with capture_attention(model) as capture:
        model(torch.rand(1, 2, 8, 8))
    assert alive == [0, 0, 0, 0]
    assert len(capture.trace.maps.popitem()[1].weights) == 4


def test_a_model_that_asks_for_its_variables_sees_its_own() -> None:
    class Asking(Returning):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            output, weights = x.softmax(-1) @ x, x
            names.append(sorted(locals()))
            return output, weights

    names: list[list[str]] = []
    model = nn.ModuleDict({"attention": Asking([])})
    with capture_attention(model) as capture:
        model["attention"](torch.rand(1, 2, 8, 8))
        model["attention"](torch.rand(1, 2, 8, 8))
    assert len(capture.trace.maps) == 1
    assert [one for found in names for one in found if " " in one] == []
