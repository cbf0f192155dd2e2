"""The small attention run with a mask as interfaces read it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from attenscope.masks.toy_attention import (
    MASK_READERS,
    TOY_WRITINGS,
    MaskReader,
    MaskRunError,
    ToyWriting,
    apply_dropout,
    compute_gradients_from_weights,
    compute_gradients_under_mask,
    convert_mask_to_convention,
    draw_random_scores,
    interpret_mask,
    run_attention,
)

CAUSAL = np.tri(5, dtype=bool)[None, None]
SCORES = draw_random_scores(2, 3, 5, 5)
RIGHT: set[tuple[MaskReader, ToyWriting]] = {
    ("sdpa", "keep"),
    ("sdpa", "-inf"),
    ("sdpa", "-1e9"),
    ("mha", "block"),
    ("mha", "-inf"),
    ("mha", "-1e9"),
    ("masked_fill", "keep"),
    ("masked_fill", "0/1"),
}


@pytest.mark.parametrize("reader", MASK_READERS)
@pytest.mark.parametrize("writing", TOY_WRITINGS)
def test_a_mask_takes_effect_only_where_it_is_read_as_it_was_written(reader: MaskReader, writing: ToyWriting) -> None:
    weights = run_attention(SCORES, convert_mask_to_convention(CAUSAL, writing), reader).weights
    right = bool(((weights > 0) == CAUSAL).all())
    assert right == ((reader, writing) in RIGHT)
    moved = compute_gradients_under_mask(convert_mask_to_convention(CAUSAL, writing), (2, 3, 5, 5), reader) > 0
    assert bool((moved == CAUSAL).all()) == right


@pytest.mark.parametrize("blocks", [True, False])
def test_readers_are_those_of_torch(blocks: bool) -> None:
    torch.manual_seed(0)
    q = torch.randn(1, 4, 8)
    mask = torch.tensor(CAUSAL[0, 0][:4, :4])
    if blocks:
        module = torch.nn.MultiheadAttention(8, 1, batch_first=True).eval()
        weights = module(q, q, q, attn_mask=mask)[1]
    else:
        weights = F.scaled_dot_product_attention(q, q, torch.eye(4)[None], attn_mask=mask)
    read = interpret_mask(mask.numpy(), "mha" if blocks else "sdpa")
    np.testing.assert_array_equal(weights[0].detach().numpy() > 0, read)


def test_a_fill_too_large_for_half_precision_is_refused_in_words() -> None:
    with pytest.raises(MaskRunError, match="65504"):
        run_attention(SCORES, convert_mask_to_convention(CAUSAL, "keep"), "masked_fill", "float16")
    assert np.isneginf(
        run_attention(SCORES, convert_mask_to_convention(CAUSAL, "-1e9"), "sdpa", "float16").masked_scores
    ).any()


def test_a_row_without_keys_stays_where_it_is() -> None:
    empty = CAUSAL.copy()
    empty[..., 2, :] = False
    found = compute_gradients_under_mask(convert_mask_to_convention(empty, "-inf"), (1, 1, 5, 5))[0, 0]
    np.testing.assert_array_equal(np.delete(found, 2, 0) > 0, np.delete(CAUSAL[0, 0], 2, 0))
    weights = run_attention(SCORES, convert_mask_to_convention(empty, "-inf")).weights
    assert np.isnan(weights[:, :, 2]).all()
    through = compute_gradients_from_weights(weights)
    assert np.isnan(through[:, :, 2]).all()
    assert not np.isnan(np.delete(through, 2, 2)).any()


def test_a_window_of_two_reaches_four_tokens_after_three_layers() -> None:
    i, j = np.indices((6, 6))
    window = ((i >= j) & (i - j < 2))[None, None]
    found = compute_gradients_under_mask(window, (1, 1, 6, 6), layers=3)[0, 0] > 0
    np.testing.assert_array_equal(found, (i >= j) & (i - j < 4))
    with pytest.raises(MaskRunError, match="as many queries as keys"):
        compute_gradients_under_mask(window[..., :3, :], (1, 1, 3, 6), layers=2)


def test_dropout_keeps_the_mean_and_is_the_same_every_time() -> None:
    ones = np.ones((100, 100))
    found = apply_dropout(ones, 0.2)
    assert set(np.unique(found)) == {0, 1.25}
    assert abs(found.mean() - 1) < 0.02
    np.testing.assert_array_equal(found, apply_dropout(ones, 0.2))
    with pytest.raises(ValueError, match="rate"):
        apply_dropout(ones, 1)
