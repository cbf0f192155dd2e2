"""Longer sentences and other scores than the recipes draw: clusters, heavy tails, sinks, near keys, soft caps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from attenscope.gallery.attention_bug_pairs import Batch, make_real_token_mask
from attenscope.gallery.fault_generators import RECIPES, Recipe, is_fault_visible, make_case_arrays

SHAPES = ("clusters", "heavy tails", "sink", "near", "soft cap", "flat")


def cases(broken: bool, each: int) -> Iterator[tuple[str, int, dict[str, np.ndarray]]]:
    """Yield (code, seed, arrays): ``each`` cases of every recipe, the same batches broken and fixed."""
    for number, recipe in enumerate(RECIPES):
        for seed in range(each):
            seed += 1000 * number + 50_000
            generator = torch.Generator().manual_seed(seed)
            x = batch(recipe, generator)
            yield recipe.code, seed, make_case_arrays(recipe, x, broken, seed, generator)


def batch(recipe: Recipe, generator: torch.Generator) -> Batch:
    """Return a batch of 13 to 40 tokens on which the mistake of ``recipe`` shows."""
    while True:
        x = _draw(recipe, generator)
        if is_fault_visible(recipe, x):
            return x


def _draw(recipe: Recipe, generator: torch.Generator) -> Batch:
    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator))

    square = recipe.batch.get("samples") == recipe.batch.get("sizes", "any")
    low, high = recipe.batch.get("samples", (1, 4))
    queries = number(13, 40)
    b, heads = queries if square else number(low, high + 1), number(*recipe.batch.get("heads", (1, 6)))
    keys = number(13, 40) if recipe.batch.get("cross") else queries
    side = recipe.batch.get("side", "right")
    padded = recipe.batch.get("padded", True)
    lengths = [torch.randint(size // 3, size, (b,), generator=generator) for size in (keys, queries)]
    keep, query_keep = (
        make_real_token_mask(one if padded else torch.full((b,), size), size, side)
        for one, size in zip(lengths, (keys, queries), strict=True)
    )
    if recipe.batch.get("empty"):
        keep[-1] = False
    scores = _scores(SHAPES[number(0, len(SHAPES) - 1)], (b, heads, queries, keys), generator)
    sharper = float(recipe.batch.get("sharpness", 1.0))
    return Batch(scores * sharper, keep, query_keep if recipe.batch.get("cross") else keep)


def _scores(shape: str, size: tuple[int, int, int, int], generator: torch.Generator) -> Tensor:
    noise = torch.randn(size, generator=generator)
    distance = (torch.arange(size[2])[:, None] - torch.arange(size[3])).abs()
    if shape == "clusters":
        kinds = [torch.randint(0, 4, (length,), generator=generator) for length in size[2:]]
        return noise / 2 + 2.0 * (kinds[0][:, None] == kinds[1])
    if shape == "heavy tails":
        return (noise / torch.rand(size, generator=generator).clamp(min=0.2)).clamp(-12, 12)
    if shape == "sink":
        return noise + 3.0 * (torch.arange(size[3]) == 0)
    if shape == "near":
        return noise / 2 + 3.0 * torch.exp(-distance / 3.0)
    if shape == "soft cap":
        return 4.0 * torch.tanh(2.0 * noise / 4.0)
    return noise / 4
