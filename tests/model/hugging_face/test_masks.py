"""Masks tried on folders: what transformers itself computes under the same mask, and what may move and what not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attenscope.experiments.mask_trial import (
    MaskTrial,
    list_trial_masks,
    perturb_each_input_token,
    run_mask_trial,
    run_trial_tests,
)
from attenscope.network.abstract_model import shift_right
from attenscope.runnable_model import InputError, RunnableModel
from attenscope.trace import Kind
from tests.folders import SENTENCE

pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WRITERS = ("marian", "t5", "bart", "m2m_100", "gpt2", "llama")
PADS, TOLERANCE = 2, 1e-5
LOWEST = float(torch.finfo(torch.float32).min)

Open = Callable[[str], RunnableModel]


def kinds_of(live: RunnableModel) -> tuple[Kind, ...]:
    return ("encoder", "cross", "decoder") if live.can("translate") else ("decoder",)


def pads_of(live: RunnableModel) -> int:
    return PADS if live.can("translate") else 0


@torch.inference_mode()
def attended(live: RunnableModel, alone: Any, found: Any, kind: Kind, allowed: np.ndarray) -> np.ndarray:
    """What transformers attends to with a mask (Q, K) given to its own eager attention: (L, H, Q, K)."""
    added = torch.where(torch.from_numpy(allowed), 0.0, LOWEST)[None, None]
    target = shift_right(torch.tensor([found.own.ids]), live.model.start_id)
    if not live.can("translate"):
        ids = torch.cat([found.source, target[:, 1:]], 1)
        return torch.stack(alone(ids, attention_mask=added, output_attentions=True).attentions)[:, 0].numpy()
    real = (torch.arange(found.source.shape[1]) < found.real)[None].long()
    read = alone.get_encoder()(
        found.source, attention_mask=added if kind == "encoder" else real, output_attentions=True
    )
    if kind == "encoder":
        return torch.stack(read.attentions)[:, 0].numpy()
    written = alone(
        encoder_outputs=(read.last_hidden_state,),
        attention_mask=real if kind == "decoder" else torch.from_numpy(allowed[:1]).long(),
        decoder_input_ids=target,
        decoder_attention_mask=added if kind == "decoder" else None,
        output_attentions=True,
    )
    return torch.stack(written.decoder_attentions if kind == "decoder" else written.cross_attentions)[:, 0].numpy()


@pytest.mark.parametrize("name", WRITERS)
def test_attention_under_a_mask_is_what_transformers_gives_with_it(name: str, opened: Open, reference: Any) -> None:
    live = opened(name)
    for kind in kinds_of(live):
        for mask in list_trial_masks(live, kind):
            columns_only = mask in ("no padding mask", "one word hidden")  # all that a cross-attention can be given
            if mask in ("added, not filled", "rule") or (kind == "cross" and not columns_only):
                continue
            trial = MaskTrial(kind, mask, width=3, key=1)
            found = run_mask_trial(live, SENTENCE, trial, pads_of(live))
            own, changed = found.own.maps[kind], found.trial.maps[kind].weights
            allowed = trial.build_mask(own.mask[None, None], 0, (found.real,))[0, 0]
            expected = attended(live, reference(name), found, kind, allowed)
            rows = allowed.any(-1)
            np.testing.assert_allclose(changed[:1, :, rows], expected[:1, :, rows], atol=TOLERANCE)
            if rows.all():  # else deeper layers read what differs at the empty rows
                np.testing.assert_allclose(changed, expected, atol=TOLERANCE)
            else:
                assert not changed[:, :, ~rows].any()
                np.testing.assert_allclose(expected[0][:, ~rows], 1 / allowed.shape[1], atol=TOLERANCE)


@pytest.mark.parametrize("name", WRITERS)
def test_no_mask_of_anothers_is_no_change_and_every_other_is_one(name: str, opened: Open) -> None:
    live = opened(name)
    own = run_mask_trial(live, SENTENCE, None, pads_of(live))
    plain = live.translate(SENTENCE)
    assert own.trial is own.own
    assert (own.own.ids, own.own.text) == (plain.target_ids, plain.text)
    assert own.own.log_prob == pytest.approx(plain.log_prob, abs=1e-3)
    for kind in kinds_of(live):
        for mask in list_trial_masks(live, kind):
            found = run_mask_trial(live, SENTENCE, MaskTrial(kind, mask, 2, 1, "window 2 and padding"), pads_of(live))
            weights = found.trial.maps[kind].weights
            assert np.abs(weights - own.own.maps[kind].weights).max() > 1e-3, mask
            sums = weights.sum(-1)
            assert np.logical_or(np.abs(sums - 1) < 1e-4, sums == 0).all()
    assert live.translate(SENTENCE).target_ids == plain.target_ids


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_moves_that_may_not_and_all_moves_that_may(name: str, opened: Open) -> None:
    live = opened(name)
    found = run_mask_trial(live, SENTENCE, None, pads_of(live))
    own = perturb_each_input_token(live, found, None)
    assert ((own.change > 0) == own.allowed).all()
    leaky = perturb_each_input_token(live, found, MaskTrial("decoder", "no causal mask"))
    assert (leaky.change[0, len(found.source_tokens) + 1 :] > 0).any()
    if live.can("translate"):
        pads = slice(found.real, len(found.source_tokens))
        assert not own.change[:, pads].any()
        assert perturb_each_input_token(live, found, MaskTrial("cross", "no padding mask")).change[:, pads].any()


@pytest.mark.parametrize("name", WRITERS)
def test_the_checks_pass_and_name_the_mask_tried(name: str, opened: Open) -> None:
    live = opened(name)
    found = run_mask_trial(live, SENTENCE, None)
    applies = {"encoder": {"B2", "B3", "B4", "B5", "B6"}, "cross": {"B2", "B4", "B6"}}
    for kind in kinds_of(live):
        passed = {one.check.number for one in run_trial_tests(live, found, kind, None) if one.status == "pass"}
        assert passed >= applies.get(kind, {"B1", "B2", "B3", "B4", "B5", "B6", "B7"})
        assert not [one for one in run_trial_tests(live, found, kind, None) if one.status == "fault"]
    future = run_trial_tests(live, found, "decoder", MaskTrial("decoder", "no causal mask"))
    faults = {one.code for one in future if one.status == "fault"}
    assert faults >= {"future-token", "gradient-reach", "cache"}
    assert "observer" not in faults
    if live.can("translate"):
        padding = run_trial_tests(live, found, "encoder", MaskTrial("encoder", "no padding mask"))
        assert {one.code for one in padding if one.status == "fault"} >= {"padding-content", "padding-amount"}


def test_padding_is_refused_where_it_cannot_be(opened: Open) -> None:
    with pytest.raises(InputError, match="no padding token"):
        run_mask_trial(opened("gpt2"), SENTENCE, None, pads=1)
    with pytest.raises(InputError, match="longer than the 96"):
        run_mask_trial(opened("marian"), SENTENCE, None, pads=95)
