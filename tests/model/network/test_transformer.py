"""The whole model: shapes, sharing, norm orders, masks made and given, and the key/value cache."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attenscope.network.attention import combine_masks, make_causal_mask, make_padding_mask
from attenscope.network.config import BOS_ID, PAD_ID
from attenscope.network.hooks import record_outputs
from attenscope.network.layers import DecoderCache
from attenscope.network.transformer import Transformer
from tests.toy import VOCABULARY, random_model

SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, PAD_ID, PAD_ID]])
TARGET = torch.tensor([[BOS_ID, 11, 12, 13], [BOS_ID, 14, PAD_ID, PAD_ID]])


def test_ids_in_logits_out(tiny_model: Transformer) -> None:
    assert tiny_model(SOURCE, TARGET).shape == (2, 4, VOCABULARY)
    assert tiny_model.encode(SOURCE).shape == (2, 5, 64)


def test_padding_changes_nothing(tiny_model: Transformer) -> None:
    """A sentence alone and the same one padded in a batch: equal where it is real."""
    together = tiny_model(SOURCE, TARGET)
    alone = tiny_model(SOURCE[1:, :3], TARGET[1:, :2])
    torch.testing.assert_close(together[1:, :2], alone, rtol=1e-4, atol=1e-5)


def test_a_later_target_token_does_not_reach_an_earlier_one(tiny_model: Transformer) -> None:
    changed = TARGET.clone()
    changed[0, 3] = 99
    before, after = tiny_model(SOURCE, TARGET), tiny_model(SOURCE, changed)
    assert torch.equal(before[0, :3], after[0, :3])
    assert not torch.equal(before[0, 3], after[0, 3])


def test_masks_given_replace_those_made(tiny_model: Transformer) -> None:
    padding = make_padding_mask(SOURCE, PAD_ID)
    target_mask = combine_masks(make_causal_mask(4), make_padding_mask(TARGET, PAD_ID))
    given_masks = tiny_model(SOURCE, TARGET, padding, target_mask, padding)
    assert torch.equal(given_masks, tiny_model(SOURCE, TARGET))
    everything = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    assert not torch.allclose(tiny_model(SOURCE, TARGET, target_mask=everything), given_masks)


@given(st.integers(1, 3), st.integers(1, 8), st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_decoding_with_a_cache_equals_one_forward(batch: int, sources: int, stretches: list[int]) -> None:
    """Fed in stretches of any length."""
    model = random_model(positions="sinusoidal_pad_row")
    random = torch.Generator().manual_seed(sources)
    source = torch.randint(4, VOCABULARY, (batch, sources), generator=random)
    source[-1, 1:] = PAD_ID
    target = torch.randint(4, VOCABULARY, (batch, sum(stretches)), generator=random)
    with torch.no_grad():
        memory, mask = model.encode(source), make_padding_mask(source, PAD_ID)
        whole = model.decode(target, memory, mask)
        cache = DecoderCache(model.config.decoder_layers)
        parts = [model.decode(part, memory, mask, cache=cache) for part in target.split(stretches, 1)]
    assert cache.length == sum(stretches)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_reordered_cache_continues_the_chosen_rows(tiny_model: Transformer) -> None:
    memory, mask = tiny_model.encode(SOURCE), make_padding_mask(SOURCE, PAD_ID)
    cache, chosen = DecoderCache(2), torch.tensor([1, 0, 1])
    first, second = torch.tensor([[BOS_ID, 20], [BOS_ID, 30]]), torch.tensor([[40], [41], [42]])
    tiny_model.decode(first, memory, mask, cache=cache)
    cache.reorder(chosen, cross=chosen)
    continued = tiny_model.decode(second, memory[chosen], mask[chosen], cache=cache)
    whole = tiny_model.decode(torch.cat([first[chosen], second], 1), memory[chosen], mask[chosen])
    torch.testing.assert_close(continued[:, 0], whole[:, 2], rtol=1e-4, atol=1e-5)


def test_embeddings_are_shared_and_tied_as_configured() -> None:
    shared = random_model()
    assert shared.source_embedding.table is shared.target_embedding.table
    assert shared.generator.weight is shared.target_embedding.table.weight
    apart = random_model(shared_embedding=False, tied_generator=False, target_vocab_size=90)
    assert apart.source_embedding.table.weight.shape == (VOCABULARY, 64)
    assert apart.generator.weight.shape == apart.target_embedding.table.weight.shape == (90, 64)
    assert apart.generator.weight is not apart.target_embedding.table.weight


def test_embedding_is_token_times_root_of_width_plus_position() -> None:
    for scaled in (True, False):
        model = random_model(scale_embedding=scaled)
        with record_outputs(
            model, *(f"source_embedding.{point}" for point in ("tokens", "encoding", "stream"))
        ) as found:
            model.encode(SOURCE)
        factor = math.sqrt(64) if scaled else 1.0
        tokens, encoding = found["source_embedding.tokens"], found["source_embedding.encoding"]
        torch.testing.assert_close(tokens, model.source_embedding.table(SOURCE) * factor)
        torch.testing.assert_close(found["source_embedding.stream"], tokens + encoding)


@pytest.mark.parametrize("order", ["pre", "post"])
def test_residual_streams_follow_the_norm_order(order: str) -> None:
    """pre: x + f(norm(x)); post: norm(x + f(x)), section 3.1."""
    model = random_model(norm_order=order)
    names = [f"encoder.layers.0.after_{which}.stream" for which in ("self_attention", "feed_forward")]
    with record_outputs(model, *names) as found:
        model.encode(SOURCE)
    layer: nn.Module = model.encoder.layers[0]
    before, after = found[names[0]], found[names[1]]
    norm, feed_forward = layer.get_submodule("after_feed_forward.norm"), layer.get_submodule("feed_forward")
    expected = before + feed_forward(norm(before)) if order == "pre" else norm(before + feed_forward(before))
    torch.testing.assert_close(after, expected)
    if order == "post":
        torch.testing.assert_close(after.mean(-1), torch.zeros(2, 5), atol=1e-5, rtol=0)


def test_final_norm_is_there_when_asked_for() -> None:
    for order in ("pre", "post"):
        with_norm, without = (random_model(norm_order=order, final_norm=final) for final in (True, False))
        assert isinstance(with_norm.encoder.final_norm, nn.LayerNorm)
        assert isinstance(without.decoder.final_norm, nn.Identity)


def test_every_matrix_starts_xavier_uniform() -> None:
    model = random_model(positions="learned")
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            bound = math.sqrt(6 / sum(parameter.shape))
            assert parameter.abs().max() <= bound, name
            assert parameter.abs().max() > 0.9 * bound, name


@pytest.mark.parametrize("shared", [True, False])
def test_embeddings_can_start_as_large_as_the_positions_added_to_them(shared: bool) -> None:
    model = random_model(
        d_model=64,
        vocab_size=2000,
        target_vocab_size=2000,
        shared_embedding=shared,
        tied_generator=True,
        scale_embedding=True,
        init="xavier_normal_embedding",
    )
    for embedding in (model.source_embedding, model.target_embedding):
        scaled = embedding.table.weight * math.sqrt(64)
        assert abs(float(scaled.detach().mean())) < 0.02
        assert float(scaled.detach().std()) == pytest.approx(1, abs=0.02)
    assert model.generator.weight is model.target_embedding.table.weight
    matrix = dict(model.named_parameters())["encoder.layers.0.feed_forward.inner.weight"]
    assert float(matrix.detach().abs().max()) <= math.sqrt(6 / sum(matrix.shape))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_a_text_past_the_last_position_is_refused(positions: str) -> None:
    model = random_model(max_length=4, positions=positions)
    with pytest.raises(ValueError, match="5 tokens, but this model has positions for 4"):
        model.encode(SOURCE)


def test_a_sentence_of_pads_alone_gives_no_nan() -> None:
    model = random_model()
    source = torch.full((1, 3), PAD_ID)
    logits = model(source, torch.tensor([[BOS_ID, 5]]))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
