"""A capture of a stranger's model from beginning to end: what it holds, and that nothing stays behind."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attenscope.capture.any_model.module_kinds import REMARK_MESSAGES, read_saved_remarks
from attenscope.capture.any_model.recording import AnyModelRecording
from attenscope.capture.attention import capture_attention
from attenscope.language import say
from attenscope.masks.diagnose import diagnose
from attenscope.trace import AttentionTrace, TraceError
from tests.model.capture.any_model.models import encoder, state

pytestmark = pytest.mark.filterwarnings("ignore:.*nested.tensor")  # torch says so of its own encoder
X = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))


def test_tokens_that_do_not_fit_are_refused_and_can_be_given_again() -> None:
    model = encoder()
    with capture_attention(model, tokens=["a", "b"]) as capture:
        model(X[:1])
    with pytest.raises(TraceError, match="encoder map has 5 rows, but 2 tokens were given"):
        _ = capture.trace
    capture.tokens = [["▁Where", "▁did", "▁you", "▁bu", "y"]]
    assert capture.trace.source == "Where did you buy"
    capture.tokens = "abcde"
    with pytest.raises(TraceError, match="one text; give a list"):
        _ = capture.trace


def test_the_last_of_several_calls_is_the_trace_and_shared_layers_are_layers() -> None:
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = attention

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(4):
                x = x + self.attention(x, x, x)[0]
            return x

    model = Shared().eval()
    with capture_attention(model) as capture:
        model(X[:1])
        model(X[:1, :3])
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.weights.shape == (4, 4, 3, 3)


class Texts(nn.Module):
    """One network on several texts in one forward: one after the other, or layer by layer."""

    def __init__(self, layers: int = 2, shared: int = 1, embedded: bool = False, in_turn: bool = False) -> None:
        super().__init__()
        made = (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True) for _ in range(layers))
        self.layers, self.shared, self.in_turn = nn.ModuleList(made), shared, in_turn
        self.embedding = nn.Embedding(9, 16) if embedded else None

    def forward(self, *texts: Tensor) -> Tensor:
        states = [self.embedding(text) if self.embedding else text for text in texts]
        if self.in_turn:
            for layer in self.layers:
                states = [layer(x) for x in states]
        else:
            states = [self.encode(x) for x in states]
        return torch.cat([x.mean(1) for x in states])

    def encode(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            for _ in range(self.shared):
                x = layer(x)
        return x


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize(("layers", "shared"), [(2, 1), (1, 2)])
@pytest.mark.parametrize("lengths", [(5, 5), (5, 3), (3, 5), (5, 5, 5)])
@torch.no_grad()
def test_of_several_texts_in_one_forward_the_last_is_shown(
    lengths: tuple[int, ...], layers: int, shared: int, embedded: bool
) -> None:
    model = Texts(layers, shared, embedded).eval()
    made = torch.Generator().manual_seed(0)
    texts = [torch.randint(9, (1, n), generator=made) if embedded else torch.randn(1, n, 16) for n in lengths]
    with capture_attention(model) as capture:
        model(*(text.clone() for text in texts))
    with capture_attention(model) as alone:
        model(texts[-1])
    one, other = capture.trace.encoder, alone.trace.encoder
    assert one is not None
    assert other is not None
    assert one.layer_paths == other.layer_paths
    np.testing.assert_array_equal(one.weights, other.weights)
    said = say(REMARK_MESSAGES["several-texts"], module="layers.0.self_attn")
    assert said in capture.observer_effect
    assert said in read_saved_remarks(capture.trace.settings)
    assert "several times" not in alone.observer_effect


@torch.no_grad()
def test_texts_side_by_side_are_not_told_apart() -> None:
    model = Texts(in_turn=True).eval()
    with capture_attention(model) as capture:
        model(X[:1], X[1:])
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.layer_paths == ("layers.0.self_attn",) * 2 + ("layers.1.self_attn",) * 2
    assert say(REMARK_MESSAGES["side-by-side"], module="layers.0.self_attn") in capture.observer_effect


@torch.no_grad()
def test_a_module_that_is_called_for_each_head_loses_none() -> None:
    class Attention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x @ x.mT).softmax(-1) @ x

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project, self.attention = nn.ModuleList([nn.Linear(16, 8), nn.Linear(16, 8)]), Attention()

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([self.attention(project(x)) for project in self.project], -1)

    with capture_attention(model := Heads()) as capture:
        model(X[:1])
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.weights.shape == (2, 1, 5, 5)
    assert say(REMARK_MESSAGES["perhaps-texts"], module="attention") in capture.observer_effect


@torch.no_grad()
def test_where_it_is_not_known_what_a_layer_is_given_the_trace_says_so() -> None:
    class Unseen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.texts = Texts(layers=1)

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(2):
                x = torch.from_numpy(self.texts.encode(x).numpy())
            return x

    with capture_attention(model := Unseen().eval()) as capture:
        model(X[:1])
    assert capture.trace.encoder is not None
    assert capture.trace.encoder.layers == 2
    assert say(REMARK_MESSAGES["perhaps-texts"], module="texts.layers.0.self_attn") in capture.observer_effect


def test_gradients_and_training_go_on_as_if_nobody_looked() -> None:
    runs = []
    for look in (False, True):
        model = encoder().train()
        torch.manual_seed(3)
        if look:
            with capture_attention(model) as capture:
                model(X).pow(2).sum().backward()
            assert "before dropout" in capture.observer_effect
        else:
            model(X).pow(2).sum().backward()
        runs.append([one.grad for one in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def test_nothing_remains_after_an_exception() -> None:
    model, before = encoder(), state(encoder())
    with pytest.raises(AssertionError, match="embedding dimension"), capture_attention(model):
        model(torch.randn(1, 5, 3))
    assert state(model) == before
    assert torch._C._len_torch_function_stack() == 0


def test_each_thread_records_its_own_calls() -> None:
    """While others run the shared model unwatched, and on the fast path."""
    model, found = encoder(), dict[int, AttentionTrace]()
    same: list[bool] = []
    barrier = threading.Barrier(9)

    def look(length: int) -> None:
        barrier.wait()
        for _ in range(5):
            with torch.no_grad(), capture_attention(model) as capture:
                model(X[:1, :length].repeat(1, 2, 1))
            found[length] = capture.trace

    def run() -> None:
        model.eval()(X)  # a thread's first call may differ in the last digit from later ones, looked at or not
        alone = model(X)
        barrier.wait()
        same.extend(torch.equal(model(X), alone) for _ in range(20))

    threads = [threading.Thread(target=look, args=(1 + number % 5,)) for number in range(8)]
    threads.append(threading.Thread(target=torch.no_grad()(run)))
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(same) == 20
    assert all(same)
    assert {length: trace.encoder.weights.shape for length, trace in found.items() if trace.encoder} == {
        length: (3, 4, 2 * length, 2 * length) for length in range(1, 6)
    }


def test_captures_may_stand_in_each_other() -> None:
    outer_model, inner_model = encoder(), encoder()
    with capture_attention(outer_model) as outer, capture_attention(inner_model) as inner:
        outer_model(X[:1])
        inner_model(X[:1, :2])
    assert outer.trace.encoder is not None
    assert outer.trace.encoder.weights.shape[2:] == (5, 5)
    assert inner.trace.encoder is not None
    assert inner.trace.encoder.weights.shape[2:] == (2, 2)


def test_what_was_recorded_is_saved_and_judged(tmp_path: Path) -> None:
    """A decoder that forgot its mask, and one that did not."""
    verdicts = []
    for mask in (None, nn.Transformer.generate_square_subsequent_mask(5)):
        model = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), 2).eval()
        with capture_attention(model, ["scores"], modules={"*.self_attn": "decoder"}) as capture:
            model(X, X, tgt_mask=mask)
        verdicts.append(diagnose(**capture.arrays("decoder"), meant="causal", map="decoder"))
        capture.sample(0).save(tmp_path / "t.safetensors")
        again = AttentionTrace.load(tmp_path / "t.safetensors")
        assert again.decoder is not None
        np.testing.assert_array_equal(again.decoder.weights[None], capture.arrays("decoder")["weights"][:1])
        assert again.settings["observer_effect"] == capture.observer_effect
    assert [one.sound for one in verdicts] == [False, True]
    assert verdicts[0].findings[0].code == "future-visible"


def test_weights_in_half_precision_are_off_by_a_rounding() -> None:
    model = encoder()
    with torch.no_grad(), capture_attention(model) as whole:
        model(X[:1])
    with torch.no_grad(), capture_attention(model, half=True) as half:
        model(X[:1])
    assert isinstance(half.recording, AnyModelRecording)
    assert {call.attention.weights.dtype for call in half.recording.calls} == {torch.float16}
    assert whole.trace.encoder is not None
    assert half.trace.encoder is not None
    assert half.trace.encoder.weights.dtype == np.float32
    np.testing.assert_allclose(half.trace.encoder.weights, whole.trace.encoder.weights, atol=2.5e-4)


@pytest.mark.parametrize("masked", [False, True])
def test_a_mask_of_all_heads_is_stored_once(masked: bool) -> None:
    """As numbers per head it would take a quarter of the memory of the weights."""
    model = SelfAttention()
    mask = torch.ones(64, 64).tril() if masked else torch.ones(64, 64)
    with torch.no_grad(), capture_attention(model) as capture:
        model(torch.randn(1, 64, 16), mask)
    assert isinstance(capture.recording, AnyModelRecording)
    allowed = capture.recording.calls[0].attention.allowed
    assert allowed.shape == (1, 4, 64, 64)
    assert allowed.untyped_storage().nbytes() == (64 * 64 if masked else 1)


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.qk = 4, nn.Linear(16, 32)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k = (one.unflatten(-1, (4, 4)).transpose(1, 2) for one in self.qk(x).chunk(2, -1))
        return (q @ k.mT).masked_fill(mask == 0, -torch.inf).softmax(-1)
