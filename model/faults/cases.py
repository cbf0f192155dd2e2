"""Many random cases of every fault, broken and fixed, for tests, for the confusion table and for the gallery."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .batch import Batch, random_batch
from .recipe import Recipe
from .recipes import RECIPES
from .softmax_pairs import weak_fill_broken


@dataclass(frozen=True, eq=False)
class Case:
    """Arrays as a person would give them, and what is wrong with them."""

    code: str
    broken: bool
    arrays: dict[str, np.ndarray]


def codes() -> tuple[str, ...]:
    """Return every code that has a recipe, in order."""
    return tuple(dict.fromkeys(recipe.code for recipe in RECIPES))


def generate(code: str, broken: bool, seed: int) -> Case:
    """Return one random case. The same seed gives the same batch, broken or fixed."""
    ways = [recipe for recipe in RECIPES if recipe.code == code]
    recipe = ways[seed % len(ways)]
    generator = torch.Generator().manual_seed(seed)
    return Case(code, broken, arrays_of(recipe, suitable(recipe, generator), broken, seed, generator))


def arrays_of(recipe: Recipe, x: Batch, broken: bool, seed: int, generator: torch.Generator) -> dict[str, np.ndarray]:
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
        "weights": _stored(arrays["weights"], number_format),
    }
    keep = {name for name in everything if name in recipe.needs or torch.rand((), generator=generator) < 0.5}
    return {name: everything[name].numpy() for name in everything if name in keep}


def suitable(recipe: Recipe, generator: torch.Generator) -> Batch:
    """Return a random batch on which the mistake makes a difference."""
    while True:
        sharpness = (0.0, 0.3, 1.0, 1.0, 3.0)[int(torch.randint(5, (), generator=generator))]
        x = random_batch(generator, **({"sharpness": sharpness} | dict(recipe.batch)))
        if shows(recipe, x):
            return x


def _has_more_pads(x: Batch) -> bool:
    pads = x.key_keep.int().argmax(-1)
    return len(set(pads.tolist())) > 1 or int(pads.max()) > 1


def _has_room_for_one_more(x: Batch) -> bool:
    lengths = x.key_keep.sum(-1)
    return bool((lengths < x.keys).any() & (lengths + 1 < x.keys).any()) and x.queries > 1


def _is_uneven(x: Batch) -> bool:
    return bool((x.key_keep.sum(-1) > 2).all()) and float(x.scores.std()) > 0.2


_ALWAYS = ("fill-overflow", "double-fill", "empty-row", "pad-query", "extra-mass", "wrong-layer-pattern", "bias-wrong")
_WHEN: dict[str, Callable[[Batch], bool]] = {
    **dict.fromkeys(_ALWAYS, lambda x: True),
    **dict.fromkeys(("soft-mask", "softmax-axis", "transposed", "dropout-on", "applied-late"), _is_uneven),
    "positions-wrong": _has_more_pads,
    "batch-axis": lambda x: x.scores.shape[0] != x.keys,
    "top-left-causal": lambda x: 2 <= x.queries < x.keys,
    "stale-cache": lambda x: x.keys >= 8 and 2 <= x.queries <= x.keys // 2,
    "mask-shifted": _has_room_for_one_more,
    "sample-order": lambda x: len(set(x.key_keep.sum(-1).tolist())) == len(x.key_keep),
    "causal-on-cross": lambda x: x.queries != x.keys and bool(x.key_keep[:, 1:].any()),
    "hole-inside": lambda x: bool((x.key_keep.sum(-1) > 3).all()),
    "weak-fill": lambda x: bool((weak_fill_broken(x)[~x.allowed.expand_as(x.scores)] > 0).any()),
}
"""On which batches a mistake shows; of other codes it is asked whether it changes what real queries attend to."""


def shows(recipe: Recipe, x: Batch) -> bool:
    """Whether the mistake shows at all on this batch."""
    if recipe.code in _WHEN:
        return _WHEN[recipe.code](x)
    changed = (_support(recipe.broken(x)) != _support(recipe.fixed(x))).any(1).any(-1)
    return bool((changed & x.query_keep).any())


def _support(out: Tensor | dict[str, Tensor]) -> Tensor:
    return (out["weights"] if isinstance(out, dict) else out) > 0


def _stored(weights: Tensor, number_format: str) -> Tensor:
    """Return the weights in another number format; numpy has no bfloat16, so that one is widened again."""
    if number_format == "bfloat16":
        return weights.bfloat16().float()
    return weights.to(getattr(torch, number_format))
