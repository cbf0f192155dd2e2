"""Broken cases to start from, printed as a person would print them."""

from __future__ import annotations

import numpy as np
import torch

from ..masking.toy_attention import random_scores
from . import code as faults
from .batch import Batch, lengths_to_keep

LENGTHS, SIZE = (6, 4), 6


def _batch(left: bool = False) -> Batch:
    """Two samples of six tokens, the second with two of padding."""
    keep = lengths_to_keep(torch.tensor(LENGTHS), SIZE, "left" if left else "right")
    return Batch(torch.from_numpy(random_scores(len(LENGTHS), 1, SIZE, SIZE, seed=3)), keep, keep)


def _written(**arrays: torch.Tensor) -> str:
    texts = (f"{name} = array({np.array2string(array.numpy(), separator=', ')})" for name, array in arrays.items())
    with np.printoptions(precision=4, suppress=True, threshold=10_000):
        return "\n".join(texts)


def padding() -> str:
    x = _batch()
    return _written(weights=faults.padding_visible_broken(x), key_keep=x.key_keep)


def upside_down() -> str:
    x = _batch()
    return _written(weights=faults.inverted_broken(x), key_keep=x.key_keep)


def future() -> str:
    x = _batch()
    return _written(weights=faults.future_visible_broken(x), meant=x.causal & x.keep[:, 0])


def nan_rows() -> str:
    return _written(weights=faults.empty_row_broken(_batch(left=True)))


EXAMPLES = {
    "Padding is seen": padding,
    "NaN rows": nan_rows,
    "The future shows": future,
    "Upside down": upside_down,
}
"""By the words of their buttons."""
