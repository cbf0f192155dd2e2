"""ALTI+: a block worked by hand, the published authors' formulas, and rows that sum to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from attenscope.attribution.alti_and_leave_one_out import (
    compute_alti_shares,
    compute_contribution_shares,
    make_block_stacks,
)
from attenscope.attribution.logit import PassRecording, list_sublayers, record_pass
from attenscope.attribution.methods import attribute_target, record_target_pass
from attenscope.attribution.target import Target, make_piece_target
from attenscope.network.abstract_model import shift_right
from attenscope.translate import Translator
from tests import toy
from tests.model.attribution.conftest import read


def test_a_block_by_hand() -> None:
    """y = (2, 1) = (2, 0) + (0, 1): |y| = 3; |y - T1| = 1, |y - T2| = 2, so 2 and 1 of 3. Below: -1 is cut to 0."""
    vectors = torch.tensor([[[2.0, 0.0], [0.0, 1.0]], [[3.0, 0.0], [-1.0, 0.0]]])
    found = compute_contribution_shares(vectors, vectors.sum(1), torch.eye(2))
    torch.testing.assert_close(found, torch.tensor([[2 / 3, 1 / 3], [1.0, 0.0]]))


def test_a_row_that_nothing_comes_near_is_the_residual_connection() -> None:
    found = compute_contribution_shares(torch.zeros(1, 2, 3), torch.ones(1, 3), torch.tensor([[0.0, 1.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.0, 1.0]]))


def recorded(translator: Translator) -> PassRecording:
    translation = read(translator)
    return record_pass(
        translator.model, translation.source_ids, shift_right(torch.tensor(translation.target_ids)).tolist()
    )


def test_rows_sum_to_one_and_the_future_has_no_share(any_translator: Translator) -> None:
    own, source = compute_alti_shares(*make_block_stacks(recorded(any_translator)))
    torch.testing.assert_close(own.sum(1) + source.sum(1), torch.ones(len(own), dtype=torch.float64))
    assert (own >= 0).all()
    assert (source >= 0).all()
    assert (own.triu(1) == 0).all()


def test_the_vectors_of_a_block_sum_to_its_output(any_translator: Translator) -> None:
    recording = recorded(any_translator)
    paths = [
        one.path
        for stack in ("encoder", "decoder")
        for one in list_sublayers(any_translator.model, stack)
        if one.kind is not None
    ]
    encoder, decoder = make_block_stacks(recording)
    for path, block in zip(paths, [*encoder, *decoder], strict=True):
        attention: Any = any_translator.model.get_submodule(path)
        context = recording[f"{path}.context"].transpose(0, 1).flatten(1).float()
        bias = 0 if attention.out_proj.bias is None else attention.out_proj.bias
        expected = (attention.out_proj(context) - bias).double()
        torch.testing.assert_close(block.vectors.sum(1), expected, atol=1e-5, rtol=0)


def published_block(vectors: Tensor, resultant: Tensor) -> Tensor:
    """mt-upc/transformer-contributions-nmt, __get_contributions_module and normalize_contrib("min_sum"), l1."""
    x = -torch.nn.functional.pairwise_distance(vectors, resultant.unsqueeze(1), p=1, eps=0)
    x = torch.clip(x + torch.norm(resultant, p=1, dim=-1).unsqueeze(1), min=0)
    return x / x.sum(dim=-1, keepdim=True)


def published(recording: PassRecording) -> tuple[Tensor, Tensor]:
    """The authors' rollout over joint contributions [cross; self], for a pre-norm model, written out in loops."""

    def vectors(path: str, before: Tensor, cross: bool) -> tuple[Tensor, Tensor]:
        weights, values = recording[f"{path}.weights"], recording[f"{path}.v"]
        module: Any = recording.model.get_submodule(path)
        w_o = module.out_proj.weight.detach().double()
        heads, width = values.shape[0], values.shape[2]
        found = torch.zeros(weights.shape[1], weights.shape[2], w_o.shape[0], dtype=torch.float64)
        for head in range(heads):
            for i in range(weights.shape[1]):
                for j in range(weights.shape[2]):
                    slice_ = w_o[:, head * width : (head + 1) * width]
                    found[i, j] += weights[head, i, j] * (slice_ @ values[head, j])
        if cross:
            found = torch.cat([found, before[:, None]], 1)
        else:
            for i in range(len(before)):
                found[i, i] += before[i]
        return found, found.sum(1) + module.out_proj.bias.detach().double()

    encoder: Any = None
    accumulated: Any = None
    before = recording["source_embedding.stream"]
    for layer in range(2):
        found, result = vectors(f"encoder.layers.{layer}.self_attention", before, False)
        one = published_block(found, result)
        encoder = one if encoder is None else one @ encoder
        before = recording[f"encoder.layers.{layer}.after_feed_forward.stream"]
    before = recording["target_embedding.stream"]
    sources = encoder.shape[0]
    for layer in range(2):
        own = published_block(*vectors(f"decoder.layers.{layer}.self_attention", before, False))
        middle = recording[f"decoder.layers.{layer}.after_self_attention.stream"]
        cross = published_block(*vectors(f"decoder.layers.{layer}.cross_attention", middle, True))
        joint = torch.cat([cross[:, :-1] @ encoder, own * cross[:, -1:]], -1)
        if accumulated is not None:
            step = joint[:, sources:]
            joint = torch.cat(
                [step @ accumulated[:, :sources] + joint[:, :sources], step @ accumulated[:, sources:]], -1
            )
            joint = joint / joint.sum(-1, keepdim=True)
        accumulated = joint
        before = recording[f"decoder.layers.{layer}.after_feed_forward.stream"]
    return accumulated[:, sources:], accumulated[:, :sources]


def test_against_the_published_formulas(toy_translator: Translator, toy_target: Target) -> None:
    recording = record_target_pass(toy_translator.model, toy_target)
    for ours, theirs in zip(compute_alti_shares(*make_block_stacks(recording)), published(recording), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_the_norm_of_a_post_norm_block_takes_part() -> None:
    translator = Translator(toy.checkpoint(toy.random_model(norm_order="post", final_norm=False)))
    model, recording = translator.model, recorded(translator)
    sublayer, block = list_sublayers(model, "encoder")[0], make_block_stacks(recording)[0][0]
    before = recording["source_embedding.stream"]
    vectors = block.vectors + torch.eye(len(before))[..., None] * before[:, None]
    whole = vectors.sum(1) + recording.attention(sublayer).out_proj.bias.detach()
    norm: Any = sublayer.residual.norm
    scale = (whole.var(-1, unbiased=False) + 1e-5).sqrt()[:, None, None]
    centred = (vectors - vectors.mean(-1, keepdim=True)) / scale * norm.weight.detach()
    torch.testing.assert_close(
        block.contributions,
        published_block(centred, recording[sublayer.residual_path]),
        atol=1e-5,
        rtol=0,
    )


def test_the_target_of_a_position_is_its_row(toy_translator: Translator) -> None:
    translation = toy_translator.translate("a cat finds the tree.", capture=False)
    target = make_piece_target(toy_translator, translation, 3)
    own, source = compute_alti_shares(*make_block_stacks(record_target_pass(toy_translator.model, target)))
    found = attribute_target(toy_translator, target, "alti")
    np.testing.assert_allclose(found.source, source[3])
    np.testing.assert_allclose(found.prefix, own[3])
    assert found.total == pytest.approx(1)
