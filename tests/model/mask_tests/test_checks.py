"""The eight behaviour tests: each catches a fault planted in a small model, and correct models pass."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attenscope.mask_tests.checks import run_mask_tests
from attenscope.mask_tests.outcomes import CHECKS, Outcome
from attenscope.mask_tests.subjects import (
    Subject,
    subject_from_encoder,
    subject_from_ids,
    subjects_from_hugging_face,
    subjects_from_transformer,
)
from tests.model.mask_tests.models import CORRECT, IDS, KEEP, D, OfIds, Small, T, hugging_face, subject


def verdicts(one: Subject) -> dict[str, str]:
    return {outcome.code: outcome.status for outcome in run_mask_tests(one)}


def faults(outcomes: tuple[Outcome, ...]) -> list[str]:
    return [one.code for one in outcomes if one.status == "fault"]


def test_a_correct_decoder_passes_everything_that_applies() -> None:
    model = Small().eval()
    found = verdicts(subject(others={"again": model}, cached=model))
    assert found == dict.fromkeys((check.code for check in CHECKS), "pass") | {"position-free": "not applicable"}


def test_future_token_catches_a_future_that_leaks_by_one() -> None:
    assert verdicts(subject("future"))["future-token"] == "fault"


def test_future_token_catches_a_leak_of_one_in_ten_thousand() -> None:
    model = Small().eval()

    def leaky(x: Tensor, keep: Tensor) -> Tensor:
        return model(x, keep) + 1e-4 * x.roll(-1, 1)

    assert verdicts(dataclasses.replace(subject(), run=leaky))["future-token"] == "fault"


def test_padding_content_catches_padding_that_is_seen() -> None:
    assert verdicts(subject("padding", causal=False))["padding-content"] == "fault"


def test_padding_amount_catches_an_output_that_depends_on_the_amount_of_padding() -> None:
    model = Small(causal=False).eval()

    def by_length(x: Tensor, keep: Tensor) -> Tensor:
        return model(x, keep) * keep.shape[1]

    assert verdicts(dataclasses.replace(subject(causal=False), run=by_length))["padding-amount"] == "fault"


def test_batch_neighbour_catches_a_mean_over_the_batch() -> None:
    assert verdicts(subject("neighbour"))["batch-neighbour"] == "fault"


@pytest.mark.parametrize("fault", ["future", "padding"])
def test_gradient_reach_catches_a_gradient_from_what_is_masked(fault: str) -> None:
    assert verdicts(subject(fault, causal=fault == "future"))["gradient-reach"] == "fault"


def test_gradient_reach_lets_windows_add_up_over_layers_and_no_further() -> None:
    def window(size: int) -> Tensor:
        return (torch.ones(size, size).tril() - torch.ones(size, size).tril(-2)).bool()

    class Windowed(Small):
        def mask(self, keep: Tensor) -> Tensor:
            return window(keep.shape[1]) & keep[:, None, :]

    torch.manual_seed(2)
    one = Subject(Windowed().eval(), torch.randn(2, T, D), KEEP, True, layers=2, allowed=window(T))
    assert verdicts(one)["gradient-reach"] == "pass"
    assert verdicts(dataclasses.replace(one, layers=1))["gradient-reach"] == "fault"


def test_gradient_reach_catches_a_token_that_never_arrives() -> None:
    model = Small(causal=False).eval()

    def deaf(x: Tensor, keep: Tensor) -> Tensor:
        return model(torch.cat([x[:, :1].detach(), x[:, 1:]], 1), keep)

    assert verdicts(dataclasses.replace(subject(causal=False), run=deaf))["gradient-reach"] == "fault"


def test_observer_catches_an_observer_that_changes_the_output() -> None:
    model = Small().eval()
    assert verdicts(subject(others={"with capture": lambda x, keep: model(x, keep) * 1.01}))["observer"] == "fault"


def test_cache_catches_a_cache_that_forgets() -> None:
    model = Small().eval()

    def forgetful(x: Tensor, keep: Tensor) -> Tensor:
        return torch.cat([model(x[:, t : t + 1], keep[:, t : t + 1]) for t in range(x.shape[1])], 1)

    assert verdicts(subject(cached=forgetful))["cache"] == "fault"


def test_position_free_catches_a_hidden_position() -> None:
    model = Small(causal=False).eval()
    assert verdicts(subject(causal=False, unpositioned=model))["position-free"] == "pass"
    ramp = torch.linspace(0, 1, T)[:, None]
    assert (
        verdicts(subject(causal=False, unpositioned=lambda x, keep: model(x + ramp, keep)))["position-free"] == "fault"
    )


def test_nan_counts_as_a_fault() -> None:
    model = Small().eval()
    broken = dataclasses.replace(subject(), run=lambda x, keep: model(x, keep) * float("nan"))
    assert {"future-token", "padding-content", "batch-neighbour"} <= set(faults(run_mask_tests(broken)))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [False, True])
def test_torch_transformer_passes(norm_first: bool) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Transformer(32, 4, 2, 2, 64, batch_first=True, norm_first=norm_first).eval()
    target_keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    for one in subjects_from_transformer(
        model, torch.randn(2, T, 32), torch.randn(2, 6, 32), KEEP, target_keep
    ).values():
        assert faults(run_mask_tests(one)) == []


def test_a_plain_encoder_is_judged_on_six_tests() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    found = verdicts(subject_from_encoder(encoder, torch.randn(2, T, 32), KEEP))
    assert [code for code, status in found.items() if status == "not applicable"] == ["future-token", "cache"]
    assert "fault" not in found.values()


@pytest.mark.parametrize("name", CORRECT)
def test_correct_hugging_face_models_pass(name: str) -> None:
    model = hugging_face(name)
    ids, target = torch.randint(5, 50, (2, T)), torch.randint(5, 50, (2, 6))
    for one in subjects_from_hugging_face(model, ids, KEEP, target).values():
        assert faults(run_mask_tests(one)) == []


def test_gpt2_is_judged_on_all_but_permutation() -> None:
    found = verdicts(
        subjects_from_hugging_face(hugging_face("GPT2LMHeadModel"), torch.randint(5, 50, (2, T)), KEEP)["model"]
    )
    assert [code for code, status in found.items() if status == "not applicable"] == ["position-free"]


def test_roformer_for_causal_lm_is_bidirectional_by_default() -> None:
    ids = torch.randint(5, 50, (2, T))
    assert "future-token" in faults(
        run_mask_tests(subjects_from_hugging_face(hugging_face("RoFormerForCausalLM"), ids, KEEP)["model"])
    )
    right = hugging_face("RoFormerForCausalLM", is_decoder=True)
    assert faults(run_mask_tests(subjects_from_hugging_face(right, ids, KEEP)["model"])) == []


class Translator(nn.Module):
    """An encoder-decoder model that answers with what it is given."""

    config = SimpleNamespace(is_encoder_decoder=True)

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, D)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def get_encoder(self) -> Any:
        return self

    def forward(self, inputs_embeds: Tensor, attention_mask: Tensor) -> Any:
        return SimpleNamespace(last_hidden_state=inputs_embeds)


def test_the_target_is_where_the_ids_are() -> None:
    ids = IDS.to("meta")
    for one in subjects_from_hugging_face(Translator().to("meta"), ids, ids > 0).values():
        assert one.real_output_mask.device == one.keep.device == ids.device


def _without_keep(model: nn.Module, ids: Tensor, keep: Tensor) -> Tensor:
    return model(ids)


def test_a_module_of_ids_is_examined_through_its_embedding() -> None:
    ids = torch.randint(1, 50, (2, T))
    for fault, expected in (("", []), ("future", ["future-token", "gradient-reach"])):
        model = OfIds(fault).eval()
        one = subject_from_ids(partial(_without_keep, model), model.small.embedding, ids, KEEP, True)
        assert faults(run_mask_tests(one)) == expected
        assert not model.small.embedding._forward_hooks
