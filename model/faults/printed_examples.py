"""Broken cases to start from, as text printed from tensors."""

from __future__ import annotations

import numpy as np
import torch

from ..language.say import to_say
from ..masking.toy_attention import random_scores
from .batch import Batch, keep_mask
from .mask_pairs import future_visible_broken, inverted_broken, padding_visible_broken
from .softmax_pairs import empty_row_broken

LENGTHS, SIZE = (6, 4), 6


def _batch(left: bool = False) -> Batch:
    """Return two samples of six tokens, the second with two of padding."""
    keep = keep_mask(torch.tensor(LENGTHS), SIZE, "left" if left else "right")
    return Batch(torch.from_numpy(random_scores(len(LENGTHS), 1, SIZE, SIZE, seed=3)), keep, keep)


def _print(**arrays: torch.Tensor) -> str:
    texts = (f"{name} = array({np.array2string(array.numpy(), separator=', ')})" for name, array in arrays.items())
    with np.printoptions(precision=4, suppress=True, threshold=10_000):
        return "\n".join(texts)


def padding() -> str:
    x = _batch()
    return _print(weights=padding_visible_broken(x), key_keep=x.key_keep)


def upside_down() -> str:
    x = _batch()
    return _print(weights=inverted_broken(x), key_keep=x.key_keep)


def future() -> str:
    x = _batch()
    return _print(weights=future_visible_broken(x), meant=x.causal & x.keep[:, 0])


def nan_rows() -> str:
    return _print(weights=empty_row_broken(_batch(left=True)))


EXAMPLES = {
    to_say("Padding is seen"): padding,
    to_say("NaN rows"): nan_rows,
    to_say("The future shows"): future,
    to_say("Upside down"): upside_down,
}
"""Texts by the labels of their buttons, in English."""
