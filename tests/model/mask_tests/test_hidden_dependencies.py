"""Dependencies that embeddings of the first sample do not show, and rounding that is none."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attenscope.mask_tests.checks import run_future_tests, run_mask_tests
from attenscope.testing import assert_batch_invariant, assert_no_future_leak, assert_padding_ignored
from tests.model.mask_tests.models import IDS, KEEP, D, hugging_face, subject


def causal_attention(x: Tensor) -> Tensor:
    scores = x @ x.mT / D**0.5
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return x + scores.masked_fill(future, -torch.inf).softmax(-1) @ x


class Model(nn.Module):
    """An embedding, one causal attention, and after it what a subclass spoils."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(50, D)

    def forward(self, ids: Tensor) -> Tensor:
        return self.spoil(causal_attention(self.embedding(ids)), ids)

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        return x


class Capacity(Model):
    """An expert that takes the first tokens of the whole batch that ask for it: later samples go without."""

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        wanted = flat[:, 0] > 0
        served = wanted & (wanted.cumsum(0) <= 4)
        return (flat + served[:, None] * flat.tanh()).view_as(x)


class BatchSize(Model):
    """Outputs that depend on how many samples there are, and not on what they say."""

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        return x * (1 + 0.1 * len(x))


class NextId(Model):
    """A gate that reads the id of the next token."""

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        ahead = torch.cat([ids[:, 1:], ids[:, -1:]], 1)
        return x * (1 + (ahead % 2)[..., None])


class Fourier(Model):
    """A causal convolution by a Fourier transform: what comes later moves what came before by rounding alone."""

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        length = x.shape[1]
        kernel = torch.exp(-torch.arange(length, dtype=x.dtype))
        product = torch.fft.rfft(x, 2 * length, dim=1) * torch.fft.rfft(kernel, 2 * length)[None, :, None]
        return torch.fft.irfft(product, 2 * length, dim=1)[:, :length]


class LateMask(Model):
    """A softmax over everything, then the mask, then the sum put right: correct but for rounding."""

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        weights = (x @ x.mT / D**0.5).softmax(-1).tril()
        return weights / weights.sum(-1, keepdim=True) @ x


class InPlace(Model):
    """A state that is changed in place, through which no gradient can be taken."""

    def spoil(self, x: Tensor, ids: Tensor) -> Tensor:
        state, outputs = x[:, 0].clone(), []
        for t in range(x.shape[1]):
            outputs.append(state * x[:, t])
            state.mul_(0.5).add_(x[:, t])
        return torch.stack(outputs, 1)


def test_a_shared_capacity_takes_from_later_samples() -> None:
    model = Capacity().eval()
    with pytest.raises(AssertionError, match="batch-neighbour"):
        assert_batch_invariant(model, IDS, embedding=model.embedding)


def test_a_sentence_alone_is_compared_with_itself_in_the_batch() -> None:
    model = BatchSize().eval()
    with pytest.raises(AssertionError, match="between the first sentence alone and in the batch"):
        assert_batch_invariant(model, IDS, embedding=model.embedding)
    sound = Model().eval()
    assert_batch_invariant(sound, IDS, embedding=sound.embedding)
    assert_batch_invariant(sound, IDS, embedding=sound.embedding, keep=KEEP.flip(0))


def test_a_leak_through_the_ids_is_a_leak() -> None:
    model = NextId().eval()
    with pytest.raises(AssertionError, match=r"future-token \(B1\): .*read from the token ids"):
        assert_no_future_leak(model, IDS, embedding=model.embedding)


@pytest.mark.parametrize("kind", [Model, Fourier, LateMask])
def test_rounding_is_no_leak(kind: type[Model]) -> None:
    model = kind().eval()
    assert_no_future_leak(model, IDS, embedding=model.embedding)
    assert_batch_invariant(model, IDS, embedding=model.embedding)


def test_without_a_gradient_the_future_is_judged_by_what_changes() -> None:
    model = InPlace().eval()
    assert_no_future_leak(model, IDS, embedding=model.embedding)


@pytest.mark.filterwarnings("ignore")
def test_rwkv_is_judged() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.RwkvConfig(
        vocab_size=60, hidden_size=32, num_hidden_layers=2, attention_hidden_size=32, intermediate_size=64
    )
    model = transformers.RwkvForCausalLM(config).eval()
    assert_no_future_leak(model, IDS)
    assert_batch_invariant(model, IDS)


def test_a_leak_of_one_in_ten_thousand_is_more_than_noise() -> None:
    spoiled = subject("neighbour")
    assert [one.status for one in run_mask_tests(spoiled, codes=["batch-neighbour"])] == ["fault"]
    assert "fault" in [one.status for one in run_future_tests(subject("future"))]
    with pytest.raises(AssertionError, match="padding-content"):
        assert_padding_ignored(subject("padding", causal=False))


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="embeding"):
        assert_batch_invariant(hugging_face("BertModel"), IDS, embeding=None)  # type: ignore[call-arg]
