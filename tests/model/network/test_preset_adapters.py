"""The doors of the presets: other layouts and mask conventions, the same numbers as the model behind them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attenscope.network.attention import make_causal_mask, make_padding_mask
from attenscope.network.config import BOS_ID, PAD_ID, make_preset_config
from attenscope.network.preset_adapters import (
    AnnotatedInterface,
    OriginalInterface,
    PadRowInterface,
    SharedBpeInterface,
    TorchLikeInterface,
    convert_additive_mask,
    convert_blocking_mask,
    convert_zero_one_mask,
    count_trainable_parameters,
    list_state_dict_shapes,
    make_subsequent_mask,
)
from attenscope.network.transformer import Transformer
from tests.model.network.twins import nn_transformer, same_transformer, shake

SOURCE = torch.tensor([[5, 6, 7, 3], [9, 3, PAD_ID, PAD_ID], [7, 8, 3, PAD_ID]])
TARGET = torch.tensor([[BOS_ID, 11, 12], [BOS_ID, 14, PAD_ID], [BOS_ID, PAD_ID, PAD_ID]])


def small(name: str, **fields: object) -> Transformer:
    sizes = {"d_model": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 64, "max_length": 40}
    torch.manual_seed(0)
    return Transformer(
        make_preset_config(name, **{**sizes, "vocab_size": 30, "target_vocab_size": 30, **fields})
    ).eval()


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_all_conventions_say_the_same(allowed: list[bool]) -> None:
    keep = torch.tensor(allowed)
    for fill in (-math.inf, -1e9, -1e10, torch.finfo(torch.float16).min):
        assert torch.equal(convert_additive_mask(torch.zeros(len(allowed)).masked_fill(~keep, fill)), keep)
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32):
        assert torch.equal(convert_zero_one_mask(keep.to(dtype)), keep)
    assert torch.equal(convert_blocking_mask(~keep), keep)


def test_masks_in_the_wrong_convention_are_refused() -> None:
    with pytest.raises(ValueError, match="would shift the scores instead of blocking"):
        convert_additive_mask(torch.tensor([0.0, 1.0]))
    with pytest.raises(ValueError, match="would shift"):
        convert_additive_mask(torch.tensor([0.0, math.nan]))
    with pytest.raises(TypeError, match=r"True = may not attend; this one is torch\.float32"):
        convert_blocking_mask(torch.zeros(2))


def test_pad_row_positions_by_hand() -> None:
    lengths = torch.tensor([[3], [0], [4]])
    assert PadRowInterface.positions(lengths, 4).tolist() == [[1, 2, 3, 0], [0, 0, 0, 0], [1, 2, 3, 4]]
    assert PadRowInterface.make_blocked_mask(2, torch.tensor([[1]]), 3).tolist() == [[[False, True, True]] * 2]


def test_pad_row_looks_its_rows_up_by_position() -> None:
    model = small("pad_row")
    encoding = model.source_embedding.positional_encoding
    positions = PadRowInterface.positions(torch.tensor([[4], [2], [3]]), 4)
    assert torch.equal(encoding(SOURCE != PAD_ID), encoding.table[positions])


def test_pad_row_by_lengths_equals_padding_ids() -> None:
    model = small("pad_row")
    rubbish_after_the_end = SOURCE.masked_fill(SOURCE == PAD_ID, 21), TARGET.masked_fill(TARGET == PAD_ID, 22)
    lengths = torch.tensor([[4], [2], [3]]), torch.tensor([[3], [2], [1]])
    found = PadRowInterface(model)(rubbish_after_the_end[0], lengths[0], rubbish_after_the_end[1], lengths[1])
    assert torch.equal(found, model(SOURCE, TARGET))


@pytest.mark.parametrize("scaled", [True, False])
def test_pad_row_attention_gives_context_and_weights(scaled: bool) -> None:
    attention = small("pad_row", scale_scores=scaled).encoder.layers[0].get_submodule("self_attention")
    query, memory = torch.randn(2, 3, 32), torch.randn(2, 4, 32)
    blocked = PadRowInterface.make_blocked_mask(3, torch.tensor([[4], [2]]), 4)
    context, weights = PadRowInterface.attend(attention, query, memory, blocked)  # type: ignore[arg-type]
    assert context.shape == (2, 3, 32)
    assert weights.shape == (2, 4, 3, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 3))
    assert weights.transpose(0, 1)[:, blocked].eq(0).all()
    unmasked, _ = PadRowInterface.attend(attention, query, memory)  # type: ignore[arg-type]
    assert torch.equal(context[0], unmasked[0])
    assert not torch.allclose(context[1], unmasked[1])


def additive(blocked: Tensor) -> Tensor:
    return torch.zeros(blocked.shape).masked_fill(blocked, -math.inf)


@pytest.mark.parametrize("pre", [True, False], ids=["pre-norm", "post-norm"])
def test_torch_like_is_called_as_nn_transformer_and_answers_the_same(pre: bool) -> None:
    torch.manual_seed(3)
    theirs = nn_transformer(pre, batch_first=False)
    shake(theirs)
    mine = TorchLikeInterface(same_transformer(theirs, pre))
    src, tgt = torch.randn(6, 2, 32), torch.randn(4, 2, 32)
    pads = torch.zeros(2, 6, dtype=torch.bool)
    pads[1, 4:] = True
    band = (torch.arange(6)[:, None] - torch.arange(6)).abs() > 2
    by_head = torch.rand(2 * 4, 4, 6) < 0.3
    by_head[..., 0] = False
    masks = {
        "src_mask": band,
        "tgt_mask": ~make_causal_mask(4)[0, 0],
        "memory_mask": by_head,
        "src_key_padding_mask": pads,
        "tgt_key_padding_mask": torch.tensor([[False] * 4, [False, False, True, True]]),
        "memory_key_padding_mask": pads,
    }
    expected = theirs(src, tgt, **masks)
    torch.testing.assert_close(mine(src, tgt, **masks), expected, rtol=1e-4, atol=1e-5)
    floats = {
        name: additive(mask) if mask.dim() == 3 or "padding" not in name else mask for name, mask in masks.items()
    }
    torch.testing.assert_close(mine(src, tgt, **floats), expected, rtol=1e-4, atol=1e-5)


def test_torch_like_from_ids_to_log_probabilities() -> None:
    model = small("torch_like")
    door = TorchLikeInterface(model)
    pads = SOURCE == PAD_ID
    states = door(
        door.embed_source(SOURCE.T),
        door.embed_target(TARGET.T),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(3),
        src_key_padding_mask=pads,
        tgt_key_padding_mask=TARGET == PAD_ID,
        memory_key_padding_mask=pads,
    )
    assert states.shape == (3, 3, 32)
    expected = model(SOURCE, TARGET).log_softmax(-1).transpose(0, 1)
    torch.testing.assert_close(door.generator(states), expected)


def test_subsequent_mask_by_hand() -> None:
    assert make_subsequent_mask(3).tolist() == [[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]


def test_annotated_encodes_decodes_and_generates() -> None:
    model = small("annotated")
    door = AnnotatedInterface(model)
    src_mask = (SOURCE != PAD_ID).unsqueeze(-2)
    tgt_mask = (TARGET != PAD_ID).unsqueeze(-2) & make_subsequent_mask(3).bool()
    states = door(SOURCE, TARGET, src_mask, tgt_mask.int())
    assert states.shape == (3, 3, 32)
    torch.testing.assert_close(door.generator(states), model(SOURCE, TARGET).log_softmax(-1))
    memory = door.encode(SOURCE, src_mask)
    assert torch.equal(door.decode(memory, src_mask, TARGET, tgt_mask), states)


def test_original_gives_flat_log_probabilities() -> None:
    model = small("original")
    found = OriginalInterface(model)(SOURCE, TARGET)
    assert found.shape == (9, 30)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(9))
    torch.testing.assert_close(found.view(3, 3, 30), model(SOURCE, TARGET).log_softmax(-1))


def test_original_lists_its_tensors_and_counts_its_parameters() -> None:
    model = small("original", d_model=4, heads=2, feed_forward=16, encoder_layers=1, decoder_layers=1)
    listing = dict(list_state_dict_shapes(model))
    assert listing["encoder.layers.0.self_attention.q_proj.weight"] == (4, 4)
    assert listing["decoder.layers.0.feed_forward.inner.bias"] == (16,)
    attention, feed_forward, norm = 4 * (4 * 4 + 4), 16 * 4 + 16 + 4 * 16 + 4, 4 + 4
    encoder = attention + feed_forward + 2 * norm + norm
    decoder = 2 * attention + feed_forward + 3 * norm + norm
    assert count_trainable_parameters(model) == 2 * 30 * 4 + encoder + decoder + 30 * 4 + 30
    assert count_trainable_parameters(model) == sum(math.prod(shape) for shape in listing.values())
    model.generator.weight.requires_grad_(False)
    assert count_trainable_parameters(model) == sum(math.prod(shape) for shape in listing.values()) - 30 * 4


def test_tied_and_shared_parameters_count_once() -> None:
    apart = count_trainable_parameters(small("original"))
    tied = count_trainable_parameters(small("original", tied_generator=True, shared_embedding=True))
    assert apart - tied == 2 * 30 * 32


def test_shared_bpe_takes_masks_in_which_zero_blocks_and_gives_logits() -> None:
    model = small("shared_bpe")
    door = SharedBpeInterface(model)
    source_mask, target_mask = door.source_mask(SOURCE), door.target_mask(TARGET)
    assert source_mask.shape == (3, 1, 1, 4)
    assert target_mask.shape == (3, 1, 3, 3)
    assert target_mask[1, 0].tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert torch.equal(convert_zero_one_mask(source_mask), make_padding_mask(SOURCE, PAD_ID))
    assert torch.equal(door(SOURCE, TARGET, source_mask, target_mask), model(SOURCE, TARGET))
