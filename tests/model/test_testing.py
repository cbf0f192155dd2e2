"""The assertions of `attenscope.testing`: what they catch, what they let pass, and what they refuse."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attenscope.mask_tests.checks import run_mask_tests
from attenscope.mask_tests.subjects import SEQUENCE_SIDES
from attenscope.testing import assert_batch_invariant, assert_no_future_leak, assert_padding_ignored
from tests.model.mask_tests.models import CORRECT, IDS, KEEP, D, OfIds, Positioned, T, hugging_face, subject

LEAK = r"future-token \(B1\): .*gradient-reach \(B5\): output 1 of sample 1 depends on input 2"


@pytest.mark.parametrize("name", ["LlamaModel", "LlamaForTokenClassification", "OPTModel", *CORRECT[1:]])
def test_decoders_and_encoder_decoders_hide_the_future(name: str) -> None:
    assert_no_future_leak(hugging_face(name), IDS)


def test_an_encoder_does_not_hide_the_future() -> None:
    with pytest.raises(AssertionError, match=LEAK):
        assert_no_future_leak(hugging_face("BertModel"), IDS)


def test_a_llama_that_sees_everything_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hugging_face("LlamaModel")
    closed = type(model).forward

    def all_open(self: Any, attention_mask: Tensor, position_ids: Tensor, **more: Any) -> Any:
        mask = attention_mask.bool()[:, None, None, :].expand(-1, 1, attention_mask.shape[1], -1)
        return closed(self, attention_mask=mask, position_ids=position_ids, **more)

    monkeypatch.setattr(type(model), "forward", all_open)
    with pytest.raises(AssertionError, match=LEAK):
        assert_no_future_leak(model, IDS)


def test_a_window_is_no_leak_of_the_future() -> None:
    assert_no_future_leak(hugging_face("MistralForCausalLM", sliding_window=3), IDS)


def test_only_later_tokens_leak_the_future() -> None:
    sees_padding = dataclasses.replace(subject("padding"), keep=KEEP.flip(1))
    assert run_mask_tests(sees_padding, codes=["gradient-reach"])[0].status == "fault"
    assert_no_future_leak(sees_padding)


def test_a_subject_is_judged_for_the_future_whatever_it_is_meant_to_see() -> None:
    with pytest.raises(AssertionError, match=r"future-token \(B1\): .*gradient-reach \(B5\): "):
        assert_no_future_leak(subject(causal=False))


def test_the_assertions_fail_where_they_should_and_draw_a_picture(tmp_path: Path) -> None:
    ids, page = torch.randint(1, 50, (2, T)), tmp_path / "mask.html"
    good, bad = OfIds().eval(), OfIds("future").eval()
    assert_no_future_leak(good, ids, embedding=good.small.embedding)
    assert_padding_ignored(good, ids, embedding=good.small.embedding)
    assert_batch_invariant(good, ids, embedding=good.small.embedding)
    with pytest.raises(AssertionError, match=r"future-token \(B1\): .*mask\.html"):
        assert_no_future_leak(bad, ids, embedding=bad.small.embedding, picture=page)
    assert "#c0392b" in page.read_text()
    with pytest.raises(AssertionError, match="batch-neighbour"):
        assert_batch_invariant(subject("neighbour"))
    with pytest.raises(AssertionError, match="padding-content"):
        assert_padding_ignored(subject("padding", causal=False))


def test_the_assertions_say_what_they_need() -> None:
    with pytest.raises(TypeError, match="embedding"):
        assert_no_future_leak(nn.Linear(2, 2), torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(TypeError, match="two samples"):
        assert_no_future_leak(nn.Linear(2, 2))


@pytest.mark.parametrize(("causal", "masked"), [(False, True), (True, True), (True, False)])
def test_absolute_positions_are_padded_where_keep_is(causal: bool, masked: bool) -> None:
    model = Positioned(causal, masked).eval()
    assert_padding_ignored(model, IDS, embedding=model.embedding)
    with pytest.raises(AssertionError, match=r"padding-amount \(B3\): .*, padded at the left\."):
        assert_padding_ignored(model, IDS, embedding=model.embedding, keep=KEEP.flip(1))


def test_the_message_names_the_end_that_was_padded() -> None:
    model = Positioned(causal=False, masked=False).eval()
    with pytest.raises(AssertionError, match=r"\(B2\): .*, padded at the right; .* \(B3\): .*, padded at the right\."):
        assert_padding_ignored(model, IDS, embedding=model.embedding)
    outcome = run_mask_tests(subject(padding_sides=SEQUENCE_SIDES), codes=["padding-amount"])[0]
    assert outcome.reason.endswith(", padded at the left and the right")


def test_without_positions_both_ends_may_be_padded() -> None:
    model = OfIds().eval()
    for keep in (KEEP, KEEP.flip(1)):
        assert_padding_ignored(model, IDS, embedding=model.small.embedding, keep=keep)


ASSERTIONS: list[Any] = [assert_no_future_leak, assert_padding_ignored, assert_batch_invariant]


@pytest.mark.parametrize("check", ASSERTIONS)
def test_dropout_in_training_is_not_taken_for_a_leak(check: Any) -> None:
    model = Positioned(causal=True, masked=True, dropout=0.1).train()
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        check(model, IDS, embedding=model.embedding)
    check(model.eval(), IDS, embedding=model.embedding)


@pytest.mark.parametrize("check", ASSERTIONS)
def test_outputs_that_are_not_of_tokens_are_refused(check: Any) -> None:
    model = Positioned(causal=True, masked=True).eval()

    def given(outputs: Any) -> dict[str, Any]:
        return {"embedding": model.embedding, "call": lambda ids, keep: outputs(model(ids))}

    with pytest.raises(TypeError, match=r"returned a tuple, not a tensor .* call="):
        check(model, IDS, **given(lambda states: (states, None)))
    for size in (5, T):
        with pytest.raises(
            ValueError, match=rf"outputs have the shape \(2, {size}\), but .* \(B, T, D\), here \(2, 7, D\)"
        ):
            check(model, IDS, **given(lambda states, size=size: states.mean(1)[:, :size]))
    check(model, IDS, **given(lambda states: states))


def test_a_hugging_face_model_without_states_is_refused() -> None:
    transformers = pytest.importorskip("transformers")
    config = hugging_face("BertModel").config
    with pytest.raises(TypeError, match="returned a QuestionAnsweringModelOutput"):
        assert_padding_ignored(transformers.BertForQuestionAnswering(config).eval(), IDS)
    with pytest.raises(ValueError, match=r"outputs have the shape \(2, 2\)"):
        assert_padding_ignored(transformers.BertForSequenceClassification(config).eval(), IDS)
    assert_padding_ignored(transformers.BertModel(config).eval(), IDS)


def test_an_embedding_that_is_not_used_does_not_pass() -> None:
    model = Positioned(causal=False, masked=False).eval()
    with pytest.raises(ValueError, match="does not call the module given as embedding"):
        assert_padding_ignored(model, IDS, embedding=nn.Embedding(50, D))


@pytest.mark.parametrize("keep", [KEEP[:, :3], KEEP.float(), KEEP & False])
def test_a_keep_that_is_none_is_refused(keep: Tensor) -> None:
    model = OfIds().eval()
    with pytest.raises(ValueError, match=r"keep must be booleans \(2, 7\)"):
        assert_padding_ignored(model, IDS, embedding=model.small.embedding, keep=keep)
