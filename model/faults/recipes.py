"""The ways to make each fault: broken and fixed code, the batches on which it shows, the arrays it takes to see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from . import mask_pairs as masks
from . import softmax_pairs as softmax
from .batch import Batch

Attention = Callable[[Batch], Tensor | dict[str, Tensor]]
FORMATS = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """One way to make one fault."""

    code: str
    broken: Attention
    fixed: Attention
    meant: Callable[[Batch], Tensor]
    """The meant mask, able to broadcast to (B, 1, Q, K): True = may attend."""
    needs: tuple[str, ...] = ("weights", "meant")
    """Arrays without which the fault cannot be judged; others are given or left out at random."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``random_batch``."""
    formats: tuple[str, ...] = FORMATS
    """Number formats in which the weights may be stored."""


def causal_and_padding(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool, True up to the query at real keys."""
    return x.allowed


def padding_only(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool, True at real keys."""
    return x.keep.expand(-1, 1, x.queries, -1)


def window(x: Batch) -> Tensor:
    """Return (Q, K) bool, True at the last WINDOW keys up to the query."""
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return (age >= 0) & (age < masks.WINDOW)


def documents(x: Batch) -> Tensor:
    """Return (Q, K) bool, causal in two documents of half the keys each."""
    document = torch.arange(x.keys) >= x.keys // 2
    return x.causal & (document[:, None] == document)


def causal_only(x: Batch) -> Tensor:
    """Return (Q, K) bool, True up to the query."""
    return x.causal


CROSS, LEFT_PADDED, UNPADDED = {"cross": True}, {"side": "left", "sizes": (4, 12)}, {"padded": False}
WITH_PADDING = ("weights", "key_keep")

RECIPES: tuple[Recipe, ...] = (
    Recipe("inverted", masks.inverted_broken, masks.inverted_fixed, causal_and_padding),
    Recipe(
        "inverted",
        masks.inverted_padding_broken,
        masks.inverted_padding_fixed,
        padding_only,
        WITH_PADDING,
        {"samples": (2, 4)},
    ),
    Recipe("future-visible", masks.future_visible_broken, masks.future_visible_fixed, causal_and_padding),
    Recipe(
        "diagonal-blocked",
        masks.diagonal_blocked_broken,
        masks.diagonal_blocked_fixed,
        causal_and_padding,
        ("weights",),
    ),
    Recipe(
        "causal-on-cross",
        masks.causal_on_cross_broken,
        masks.causal_on_cross_fixed,
        padding_only,
        ("weights", "meant"),
        CROSS,
    ),
    Recipe(
        "padding-visible", masks.padding_visible_broken, masks.padding_visible_fixed, padding_only, WITH_PADDING, CROSS
    ),
    Recipe(
        "padding-swapped",
        masks.padding_swapped_broken,
        masks.padding_swapped_fixed,
        padding_only,
        ("weights", "key_keep", "query_keep"),
        CROSS,
    ),
    Recipe("soft-mask", softmax.soft_mask_broken, softmax.soft_mask_fixed, causal_and_padding, ("weights", "scores")),
    Recipe(
        "weak-fill",
        softmax.weak_fill_broken,
        softmax.weak_fill_fixed,
        causal_and_padding,
        batch={"sharpness": 12.0},
        formats=("float32", "float64"),
    ),
    Recipe(
        "fill-overflow",
        softmax.fill_overflow_broken,
        softmax.fill_overflow_fixed,
        causal_and_padding,
        ("weights", "mask"),
        formats=("float16",),
    ),
    Recipe(
        "double-fill",
        softmax.double_fill_broken,
        softmax.double_fill_fixed,
        causal_and_padding,
        ("weights", "masked_scores"),
        LEFT_PADDED,
        ("float32",),
    ),
    Recipe(
        "empty-row", softmax.empty_row_broken, softmax.empty_row_fixed, causal_and_padding, ("weights",), LEFT_PADDED
    ),
    Recipe(
        "empty-row",
        softmax.empty_row_uniform_broken,
        softmax.empty_row_uniform_fixed,
        padding_only,
        WITH_PADDING,
        CROSS | {"samples": (2, 4), "empty": True},
    ),
    Recipe(
        "wrong-axis",
        masks.wrong_axis_broken,
        masks.wrong_axis_fixed,
        padding_only,
        WITH_PADDING,
        {"samples": (4, 4), "sizes": (4, 4)},
    ),
    Recipe("wrong-axis", masks.wrong_axis_rows_broken, masks.wrong_axis_fixed, padding_only, WITH_PADDING),
    Recipe(
        "head-order",
        masks.head_order_broken,
        masks.head_order_fixed,
        padding_only,
        WITH_PADDING,
        {"samples": (2, 4), "heads": (2, 5)},
    ),
    Recipe("softmax-axis", softmax.softmax_axis_broken, softmax.softmax_axis_fixed, causal_and_padding),
    Recipe("transposed", softmax.transposed_broken, softmax.transposed_fixed, causal_and_padding),
    Recipe(
        "dropout-on",
        softmax.dropout_on_broken,
        softmax.dropout_on_fixed,
        causal_and_padding,
        ("weights",),
        {"sizes": (6, 14)},
    ),
    Recipe(
        "applied-late",
        softmax.applied_late_broken,
        softmax.applied_late_fixed,
        causal_only,
        ("weights",),
        UNPADDED | {"sizes": (3, 12)},
        ("float32", "float64", "bfloat16"),
    ),
    Recipe(
        "mask-ignored", softmax.mask_ignored_broken, softmax.mask_ignored_fixed, causal_and_padding, ("weights", "mask")
    ),
    Recipe(
        "top-left-causal",
        masks.top_left_causal_broken,
        masks.top_left_causal_fixed,
        causal_only,
        batch=CROSS | UNPADDED,
    ),
    Recipe(
        "window-off-by-one",
        masks.window_off_by_one_broken,
        masks.window_off_by_one_fixed,
        window,
        batch=UNPADDED | {"sizes": (4, 12)},
    ),
    Recipe(
        "window-missing",
        masks.window_missing_broken,
        masks.window_off_by_one_fixed,
        window,
        batch=UNPADDED | {"sizes": (6, 12)},
    ),
    Recipe("mask-shifted", masks.mask_shifted_broken, masks.padding_visible_fixed, padding_only, WITH_PADDING, CROSS),
    Recipe(
        "sample-order",
        masks.sample_order_broken,
        masks.padding_visible_fixed,
        padding_only,
        WITH_PADDING,
        CROSS | {"samples": (3, 5), "sizes": (5, 12)},
    ),
    Recipe(
        "stale-cache",
        masks.stale_cache_broken,
        masks.stale_cache_fixed,
        masks.filled_slots,
        batch=CROSS | UNPADDED | {"sizes": (2, 12)},
    ),
    Recipe("document-leak", masks.document_leak_broken, masks.document_leak_fixed, documents, batch=UNPADDED),
    Recipe(
        "hole-inside", masks.hole_inside_broken, masks.hole_inside_fixed, padding_only, ("weights",), {"sizes": (6, 12)}
    ),
    Recipe("leak", masks.leak_broken, masks.leak_fixed, causal_and_padding, batch=UNPADDED | {"sizes": (4, 10)}),
    Recipe("over-blocked", masks.over_blocked_broken, masks.over_blocked_fixed, padding_only),
)
