"""Many random cases of every fault, broken and fixed, for tests, for the confusion table and for the gallery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import code as c
from .batch import Batch, random_batch

Attention = Callable[[Batch], Tensor | dict[str, Tensor]]
FORMATS = ("float32", "float64", "float16", "bfloat16")


@dataclass(frozen=True)
class Recipe:
    """One way to make one fault."""

    code: str
    broken: Attention
    fixed: Attention
    meant: Callable[[Batch], Tensor]
    """(B, 1, Q, K) or less: True = may attend."""
    needs: tuple[str, ...] = ("weights", "meant")
    """Arrays without which the fault cannot be judged; others are given or left out at random."""
    batch: Mapping[str, Any] = field(default_factory=dict)
    formats: tuple[str, ...] = FORMATS


@dataclass(frozen=True, eq=False)
class Case:
    """Arrays as a person would bring them, and what is wrong with them."""

    code: str
    broken: bool
    arrays: dict[str, np.ndarray]


def _padding(x: Batch) -> Tensor:
    return x.keep.expand(-1, 1, x.queries, -1)


def _window(x: Batch) -> Tensor:
    age = torch.arange(x.queries)[:, None] - torch.arange(x.keys)
    return (age >= 0) & (age < c.WINDOW)


def _documents(x: Batch) -> Tensor:
    document = torch.arange(x.keys) >= x.keys // 2
    return x.causal & (document[:, None] == document)


def _causal(x: Batch) -> Tensor:
    return x.causal


CROSS, LEFT, BARE = {"cross": True}, {"side": "left", "sizes": (4, 12)}, {"padded": False}
KEYS = ("weights", "key_keep")
ONE_FORMAT = ("float32", "float64")

RECIPES: tuple[Recipe, ...] = (
    Recipe("inverted", c.inverted_broken, c.inverted_fixed, c.both),
    Recipe("inverted", c.inverted_padding_broken, c.inverted_padding_fixed, _padding, KEYS, {"samples": (2, 4)}),
    Recipe("future-visible", c.future_visible_broken, c.future_visible_fixed, c.both),
    Recipe("diagonal-blocked", c.diagonal_blocked_broken, c.diagonal_blocked_fixed, c.both, ("weights",)),
    Recipe("causal-on-cross", c.causal_on_cross_broken, c.causal_on_cross_fixed, _padding, ("weights", "meant"), CROSS),
    Recipe("padding-visible", c.padding_visible_broken, c.padding_visible_fixed, _padding, KEYS, CROSS),
    Recipe(
        "padding-swapped",
        c.padding_swapped_broken,
        c.padding_swapped_fixed,
        _padding,
        ("weights", "key_keep", "query_keep"),
        CROSS,
    ),
    Recipe("soft-mask", c.soft_mask_broken, c.soft_mask_fixed, c.both, ("weights", "scores")),
    Recipe("weak-fill", c.weak_fill_broken, c.weak_fill_fixed, c.both, batch={"sharpness": 12.0}, formats=ONE_FORMAT),
    Recipe(
        "fill-overflow",
        c.fill_overflow_broken,
        c.fill_overflow_fixed,
        c.both,
        ("weights", "mask"),
        formats=("float16",),
    ),
    Recipe(
        "double-fill",
        c.double_fill_broken,
        c.double_fill_fixed,
        c.both,
        ("weights", "masked_scores"),
        LEFT,
        ("float32",),
    ),
    Recipe("empty-row", c.empty_row_broken, c.empty_row_fixed, c.both, ("weights",), LEFT),
    Recipe("empty-row", c.empty_row_uniform_broken, c.empty_row_fixed, c.both, KEYS, LEFT),
    Recipe("wrong-axis", c.wrong_axis_broken, c.wrong_axis_fixed, _padding, KEYS, {"samples": (4, 4), "sizes": (4, 4)}),
    Recipe("wrong-axis", c.wrong_axis_rows_broken, c.wrong_axis_fixed, _padding, KEYS),
    Recipe("head-order", c.head_order_broken, c.head_order_fixed, _padding, KEYS, {"samples": (2, 4), "heads": (2, 5)}),
    Recipe("softmax-axis", c.softmax_axis_broken, c.softmax_axis_fixed, c.both),
    Recipe("transposed", c.transposed_broken, c.transposed_fixed, c.both),
    Recipe("dropout-on", c.dropout_on_broken, c.dropout_on_fixed, c.both, ("weights",), {"sizes": (6, 14)}),
    Recipe("mask-ignored", c.mask_ignored_broken, c.mask_ignored_fixed, c.both, ("weights", "mask")),
    Recipe("top-left-causal", c.top_left_causal_broken, c.top_left_causal_fixed, _causal, batch=CROSS | BARE),
    Recipe(
        "window-off-by-one",
        c.window_off_by_one_broken,
        c.window_off_by_one_fixed,
        _window,
        batch=BARE | {"sizes": (4, 12)},
    ),
    Recipe("document-leak", c.document_leak_broken, c.document_leak_fixed, _documents, batch=BARE),
    Recipe("hole-inside", c.hole_inside_broken, c.hole_inside_fixed, _padding, ("weights",), {"sizes": (6, 12)}),
    Recipe("leak", c.leak_broken, c.leak_fixed, c.both, batch=BARE | {"sizes": (4, 10)}),
    Recipe("over-blocked", c.over_blocked_broken, c.over_blocked_fixed, _padding),
)


def codes() -> tuple[str, ...]:
    """Every code that has a recipe, in order."""
    return tuple(dict.fromkeys(recipe.code for recipe in RECIPES))


def generate(code: str, broken: bool, seed: int) -> Case:
    """One random case. The same seed gives the same batch, broken or fixed."""
    ways = [recipe for recipe in RECIPES if recipe.code == code]
    recipe = ways[seed % len(ways)]
    generator = torch.Generator().manual_seed(seed)
    x = suitable(recipe, generator)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        out = (recipe.broken if broken else recipe.fixed)(x)
    arrays = out if isinstance(out, dict) else {"weights": out}
    form = recipe.formats[int(torch.randint(len(recipe.formats), (), generator=generator))]
    everything = {
        "scores": x.scores,
        "key_keep": x.key_keep,
        "query_keep": x.query_keep,
        "meant": recipe.meant(x),
        **arrays,
        "weights": _rounded(arrays["weights"], form),
    }
    keep = {name for name in everything if name in recipe.needs or torch.rand((), generator=generator) < 0.5}
    return Case(code, broken, {name: everything[name].numpy() for name in everything if name in keep})


def suitable(recipe: Recipe, generator: torch.Generator) -> Batch:
    """Batches are drawn until the mistake makes a difference."""
    while True:
        sharpness = (0.0, 0.3, 1.0, 1.0, 3.0)[int(torch.randint(5, (), generator=generator))]
        x = random_batch(generator, **({"sharpness": sharpness} | dict(recipe.batch)))
        if _bites(recipe, x):
            return x


def _bites(recipe: Recipe, x: Batch) -> bool:
    """Whether the mistake shows at all on this batch."""
    if recipe.code == "top-left-causal":
        return 2 <= x.queries < x.keys
    if recipe.code == "causal-on-cross":
        return x.queries != x.keys and bool(x.key_keep[:, 1:].any())
    if recipe.code == "hole-inside":
        return bool((x.key_keep.sum(-1) > 3).all())
    if recipe.code in ("soft-mask", "softmax-axis", "transposed", "dropout-on"):
        return bool((x.key_keep.sum(-1) > 2).all()) and float(x.scores.std()) > 0.2
    if recipe.code == "weak-fill":
        return bool((c.weak_fill_broken(x)[~c.both(x).expand_as(x.scores)] > 0).any())
    if recipe.code in ("fill-overflow", "double-fill", "empty-row", "pad-query"):
        return True
    changed = (_support(recipe.broken(x)) != _support(recipe.fixed(x))).any(1).any(-1)
    return bool((changed & x.query_keep).any())


def _support(out: Tensor | dict[str, Tensor]) -> Tensor:
    return (out["weights"] if isinstance(out, dict) else out) > 0


def _rounded(weights: Tensor, form: str) -> Tensor:
    """Stored in another number format; numpy has no bfloat16, so that one is widened again."""
    if form == "bfloat16":
        return weights.bfloat16().float()
    return weights.to(getattr(torch, form))
