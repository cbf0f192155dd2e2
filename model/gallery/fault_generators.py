"""Recipes that make every fault of the catalogue, and random cases generated from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import attention_bug_pairs, model_bug_pairs
from .attention_bug_pairs import Batch, random_batch

# One way to make a fault: broken and fixed code, the batches on which it shows, the arrays it takes to see it.


AttentionFunction = Callable[[Batch], Tensor | dict[str, Tensor]]
NUMBER_FORMATS = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """One way to make one fault."""

    code: str
    broken: AttentionFunction
    fixed: AttentionFunction
    meant: Callable[[Batch], Tensor]
    """The meant mask, able to broadcast to (B, 1, Q, K): True = may attend."""
    needs: tuple[str, ...] = ("weights", "meant")
    """Arrays without which the fault cannot be judged; others are given or left out at random."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``random_batch``."""
    formats: tuple[str, ...] = NUMBER_FORMATS
    """Number formats in which the weights may be stored."""


def causal_and_padding_mask(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool, True up to the query at real keys."""
    return x.allowed


def padding_only_mask(x: Batch) -> Tensor:
    """Return (B, 1, Q, K) bool, True at real keys."""
    return x.keep.expand(-1, 1, x.queries, -1)


def causal_window_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool, True at the last WINDOW keys up to the query."""
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return (age >= 0) & (age < attention_bug_pairs.WINDOW)


def document_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool, causal in two documents of half the keys each."""
    document = torch.arange(x.keys) >= x.keys // 2
    return x.causal & (document[:, None] == document)


def causal_only_mask(x: Batch) -> Tensor:
    """Return (Q, K) bool, True up to the query."""
    return x.causal


CROSS_ATTENTION_BATCH = {"cross": True}
LEFT_PADDED_BATCH = {"side": "left", "sizes": (4, 12)}
UNPADDED_BATCH = {"padded": False}
PADDING_NEEDS = ("weights", "key_keep")

# Every recipe, in the order of the gallery.


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "inverted",
        attention_bug_pairs.inverted_mask_broken,
        attention_bug_pairs.inverted_mask_fixed,
        causal_and_padding_mask,
    ),
    Recipe(
        "inverted",
        attention_bug_pairs.inverted_padding_broken,
        attention_bug_pairs.inverted_padding_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        {"samples": (2, 4)},
    ),
    Recipe(
        "future-visible",
        attention_bug_pairs.future_visible_broken,
        attention_bug_pairs.future_visible_fixed,
        causal_and_padding_mask,
    ),
    Recipe(
        "diagonal-blocked",
        attention_bug_pairs.diagonal_blocked_broken,
        attention_bug_pairs.diagonal_blocked_fixed,
        causal_and_padding_mask,
        ("weights",),
    ),
    Recipe(
        "causal-on-cross",
        attention_bug_pairs.causal_on_cross_broken,
        attention_bug_pairs.causal_on_cross_fixed,
        padding_only_mask,
        ("weights", "meant"),
        CROSS_ATTENTION_BATCH,
    ),
    Recipe(
        "padding-visible",
        attention_bug_pairs.padding_visible_broken,
        attention_bug_pairs.padding_visible_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        CROSS_ATTENTION_BATCH,
    ),
    Recipe(
        "padding-swapped",
        attention_bug_pairs.query_key_padding_swapped_broken,
        attention_bug_pairs.query_key_padding_swapped_fixed,
        padding_only_mask,
        ("weights", "key_keep", "query_keep"),
        CROSS_ATTENTION_BATCH,
    ),
    Recipe(
        "soft-mask",
        attention_bug_pairs.float_mask_added_broken,
        attention_bug_pairs.float_mask_added_fixed,
        causal_and_padding_mask,
        ("weights", "scores"),
    ),
    Recipe(
        "weak-fill",
        attention_bug_pairs.weak_fill_broken,
        attention_bug_pairs.weak_fill_fixed,
        causal_and_padding_mask,
        batch={"sharpness": 12.0},
        formats=("float32", "float64"),
    ),
    Recipe(
        "fill-overflow",
        attention_bug_pairs.fill_overflow_broken,
        attention_bug_pairs.fill_overflow_fixed,
        causal_and_padding_mask,
        ("weights", "mask"),
        formats=("float16",),
    ),
    Recipe(
        "double-fill",
        attention_bug_pairs.double_fill_broken,
        attention_bug_pairs.double_fill_fixed,
        causal_and_padding_mask,
        ("weights", "masked_scores"),
        LEFT_PADDED_BATCH,
        ("float32",),
    ),
    Recipe(
        "empty-row",
        attention_bug_pairs.empty_row_broken,
        attention_bug_pairs.empty_row_fixed,
        causal_and_padding_mask,
        ("weights",),
        LEFT_PADDED_BATCH,
    ),
    Recipe(
        "empty-row",
        attention_bug_pairs.empty_row_uniform_broken,
        attention_bug_pairs.empty_row_uniform_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        CROSS_ATTENTION_BATCH | {"samples": (2, 4), "empty": True},
    ),
    Recipe(
        "wrong-axis",
        attention_bug_pairs.padding_mask_axis_broken,
        attention_bug_pairs.padding_mask_axis_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        {"samples": (4, 4), "sizes": (4, 4)},
    ),
    Recipe(
        "wrong-axis",
        attention_bug_pairs.padding_on_query_rows_broken,
        attention_bug_pairs.padding_mask_axis_fixed,
        padding_only_mask,
        PADDING_NEEDS,
    ),
    Recipe(
        "head-order",
        attention_bug_pairs.head_order_broken,
        attention_bug_pairs.head_order_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        {"samples": (2, 4), "heads": (2, 5)},
    ),
    Recipe(
        "softmax-axis",
        attention_bug_pairs.softmax_axis_broken,
        attention_bug_pairs.softmax_axis_fixed,
        causal_and_padding_mask,
    ),
    Recipe(
        "transposed",
        attention_bug_pairs.transposed_broken,
        attention_bug_pairs.transposed_fixed,
        causal_and_padding_mask,
    ),
    Recipe(
        "dropout-on",
        attention_bug_pairs.dropout_on_broken,
        attention_bug_pairs.dropout_on_fixed,
        causal_and_padding_mask,
        ("weights",),
        {"sizes": (6, 14)},
    ),
    Recipe(
        "applied-late",
        attention_bug_pairs.mask_after_softmax_broken,
        attention_bug_pairs.mask_after_softmax_fixed,
        causal_only_mask,
        ("weights",),
        UNPADDED_BATCH | {"sizes": (3, 12)},
        ("float32", "float64", "bfloat16"),
    ),
    Recipe(
        "mask-ignored",
        attention_bug_pairs.mask_ignored_broken,
        attention_bug_pairs.mask_ignored_fixed,
        causal_and_padding_mask,
        ("weights", "mask"),
    ),
    Recipe(
        "top-left-causal",
        attention_bug_pairs.top_left_causal_broken,
        attention_bug_pairs.top_left_causal_fixed,
        causal_only_mask,
        batch=CROSS_ATTENTION_BATCH | UNPADDED_BATCH,
    ),
    Recipe(
        "window-off-by-one",
        attention_bug_pairs.window_off_by_one_broken,
        attention_bug_pairs.window_off_by_one_fixed,
        causal_window_mask,
        batch=UNPADDED_BATCH | {"sizes": (4, 12)},
    ),
    Recipe(
        "window-missing",
        attention_bug_pairs.window_missing_broken,
        attention_bug_pairs.window_off_by_one_fixed,
        causal_window_mask,
        batch=UNPADDED_BATCH | {"sizes": (6, 12)},
    ),
    Recipe(
        "wrong-layer-pattern",
        model_bug_pairs.local_global_layers_swapped_broken,
        model_bug_pairs.local_global_layers_swapped_fixed,
        model_bug_pairs.alternating_window_layer_masks,
        batch=UNPADDED_BATCH | {"sizes": (6, 12)},
    ),
    Recipe(
        "wrong-layer-pattern",
        model_bug_pairs.global_token_lost_broken,
        model_bug_pairs.global_token_lost_fixed,
        model_bug_pairs.window_and_global_mask,
        batch=UNPADDED_BATCH | {"sizes": (7, 12)},
    ),
    Recipe(
        "batch-axis",
        model_bug_pairs.batch_axis_broken,
        model_bug_pairs.batch_axis_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        {"samples": (2, 4), "heads": (1, 1), "sizes": (6, 12)},
    ),
    Recipe(
        "bias-wrong",
        model_bug_pairs.alibi_bias_sign_broken,
        model_bug_pairs.alibi_bias_fixed,
        causal_only_mask,
        ("weights", "scores", "mask"),
        UNPADDED_BATCH | {"sizes": (5, 12)},
    ),
    Recipe(
        "bias-wrong",
        model_bug_pairs.alibi_bias_missing_broken,
        model_bug_pairs.alibi_bias_fixed,
        causal_only_mask,
        ("weights", "scores", "mask"),
        UNPADDED_BATCH | {"sizes": (5, 12)},
    ),
    Recipe(
        "scores-mismatch",
        model_bug_pairs.scaled_twice_broken,
        model_bug_pairs.scaled_twice_fixed,
        causal_and_padding_mask,
        ("weights", "scores"),
        {"sizes": (4, 12)},
    ),
    Recipe(
        "positions-wrong",
        model_bug_pairs.left_pad_positions_broken,
        model_bug_pairs.left_pad_positions_fixed,
        causal_and_padding_mask,
        ("weights", "key_keep", "position_ids"),
        LEFT_PADDED_BATCH,
    ),
    Recipe(
        "mask-shifted",
        attention_bug_pairs.padding_length_plus_one_broken,
        attention_bug_pairs.padding_visible_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        CROSS_ATTENTION_BATCH,
    ),
    Recipe(
        "sample-order",
        attention_bug_pairs.sample_order_broken,
        attention_bug_pairs.padding_visible_fixed,
        padding_only_mask,
        PADDING_NEEDS,
        CROSS_ATTENTION_BATCH | {"samples": (3, 5), "sizes": (5, 12)},
    ),
    Recipe(
        "stale-cache",
        attention_bug_pairs.stale_cache_broken,
        attention_bug_pairs.stale_cache_fixed,
        attention_bug_pairs.filled_slots_mask,
        batch=CROSS_ATTENTION_BATCH | UNPADDED_BATCH | {"sizes": (2, 12)},
    ),
    Recipe(
        "document-leak",
        attention_bug_pairs.document_leak_broken,
        attention_bug_pairs.document_leak_fixed,
        document_mask,
        batch=UNPADDED_BATCH,
    ),
    Recipe(
        "hole-inside",
        attention_bug_pairs.pad_id_inside_text_broken,
        attention_bug_pairs.pad_id_inside_text_fixed,
        padding_only_mask,
        ("weights",),
        {"sizes": (6, 12)},
    ),
    Recipe(
        "leak",
        attention_bug_pairs.single_cell_leak_broken,
        attention_bug_pairs.single_cell_leak_fixed,
        causal_and_padding_mask,
        batch=UNPADDED_BATCH | {"sizes": (4, 10)},
    ),
    Recipe(
        "over-blocked",
        attention_bug_pairs.needless_causal_mask_broken,
        attention_bug_pairs.needless_causal_mask_fixed,
        padding_only_mask,
    ),
)

# Random cases of every fault, broken and fixed, for tests, for the confusion table and for the gallery.


@dataclass(frozen=True, eq=False)
class Case:
    """Arrays as a person would give them, and what is wrong with them."""

    code: str
    broken: bool
    arrays: dict[str, np.ndarray]


def list_fault_codes() -> tuple[str, ...]:
    """Return every code that has a recipe, in order."""
    return tuple(dict.fromkeys(recipe.code for recipe in RECIPES))


def generate_fault_case(code: str, broken: bool, seed: int) -> Case:
    """Return one random case. The same seed gives the same batch, broken or fixed."""
    ways = [recipe for recipe in RECIPES if recipe.code == code]
    recipe = ways[seed % len(ways)]
    generator = torch.Generator().manual_seed(seed)
    return Case(
        code, broken, make_case_arrays(recipe, find_batch_showing_fault(recipe, generator), broken, seed, generator)
    )


def make_case_arrays(
    recipe: Recipe, x: Batch, broken: bool, seed: int, generator: torch.Generator
) -> dict[str, np.ndarray]:
    """Return what a recipe makes of a batch, in a random number format; what it does not need is left out at random."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        out = (recipe.broken if broken else recipe.fixed)(x)
    arrays = out if isinstance(out, dict) else {"weights": out}
    number_format = recipe.formats[int(torch.randint(len(recipe.formats), (), generator=generator))]
    everything = {
        "scores": x.scores,
        "key_keep": x.key_keep,
        "query_keep": x.query_keep,
        "meant": recipe.meant(x),
        **arrays,
        "weights": _convert_number_format(arrays["weights"], number_format),
    }
    keep = {name for name in everything if name in recipe.needs or torch.rand((), generator=generator) < 0.5}
    return {name: everything[name].numpy() for name in everything if name in keep}


def find_batch_showing_fault(recipe: Recipe, generator: torch.Generator) -> Batch:
    """Return a random batch on which the mistake makes a difference."""
    while True:
        sharpness = (0.0, 0.3, 1.0, 1.0, 3.0)[int(torch.randint(5, (), generator=generator))]
        x = random_batch(generator, **({"sharpness": sharpness} | dict(recipe.batch)))
        if is_fault_visible(recipe, x):
            return x


def _has_uneven_or_long_left_padding(x: Batch) -> bool:
    pads = x.key_keep.int().argmax(-1)
    return len(set(pads.tolist())) > 1 or int(pads.max()) > 1


def _has_several_padding_keys(x: Batch) -> bool:
    lengths = x.key_keep.sum(-1)
    return bool((lengths < x.keys).any() & (lengths + 1 < x.keys).any()) and x.queries > 1


def _has_uneven_scores(x: Batch) -> bool:
    return bool((x.key_keep.sum(-1) > 2).all()) and float(x.scores.std()) > 0.2


_ALWAYS_VISIBLE = (
    "fill-overflow",
    "double-fill",
    "empty-row",
    "pad-query",
    "extra-mass",
    "wrong-layer-pattern",
    "bias-wrong",
)
_VISIBLE_WHEN: dict[str, Callable[[Batch], bool]] = {
    **dict.fromkeys(_ALWAYS_VISIBLE, lambda x: True),
    **dict.fromkeys(
        ("soft-mask", "softmax-axis", "transposed", "dropout-on", "applied-late", "scores-mismatch"), _has_uneven_scores
    ),
    "positions-wrong": _has_uneven_or_long_left_padding,
    "batch-axis": lambda x: x.scores.shape[0] != x.keys,
    "top-left-causal": lambda x: 2 <= x.queries < x.keys,
    "stale-cache": lambda x: x.keys >= 8 and 2 <= x.queries <= x.keys // 2,
    "mask-shifted": _has_several_padding_keys,
    "sample-order": lambda x: len(set(x.key_keep.sum(-1).tolist())) == len(x.key_keep),
    "causal-on-cross": lambda x: x.queries != x.keys and bool(x.key_keep[:, 1:].any()),
    "hole-inside": lambda x: bool((x.key_keep.sum(-1) > 3).all()),
    "weak-fill": lambda x: bool((attention_bug_pairs.weak_fill_broken(x)[~x.allowed.expand_as(x.scores)] > 0).any()),
}
"""By code, on which batches a mistake shows; for other codes, where it changes what real queries attend to."""


def is_fault_visible(recipe: Recipe, x: Batch) -> bool:
    """Whether the mistake shows at all on this batch."""
    if recipe.code in _VISIBLE_WHEN:
        return _VISIBLE_WHEN[recipe.code](x)
    changed = (_find_attended_cells(recipe.broken(x)) != _find_attended_cells(recipe.fixed(x))).any(1).any(-1)
    return bool((changed & x.query_keep).any())


def _find_attended_cells(out: Tensor | dict[str, Tensor]) -> Tensor:
    return (out["weights"] if isinstance(out, dict) else out) > 0


def _convert_number_format(weights: Tensor, number_format: str) -> Tensor:
    """Return the weights in another number format; numpy has no bfloat16, so that one is widened again."""
    if number_format == "bfloat16":
        return weights.bfloat16().float()
    return weights.to(getattr(torch, number_format))
