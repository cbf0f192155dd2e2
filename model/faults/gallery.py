"""Every entry of the gallery: the catalogue of faults one by one, then faults met in published code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from ..behaviour.subject import Subject
from ..language.say import to_say
from ..masking.padding import PaddingSide
from . import field_pairs as field
from . import softmax_pairs as softmax
from .batch import keep_mask
from .exhibits import Exhibit
from .mask_pairs import padding_visible_fixed
from .recipe import LEFT_PADDED, UNPADDED, Recipe, causal_and_padding, causal_only, padding_only
from .recipes import RECIPES

T, D = 8, 8
"""Tokens, and width of the hidden states, of the small models."""


def _states() -> Tensor:
    return torch.randn(2, T, D, generator=torch.Generator().manual_seed(1)) / 2


def _keep(side: PaddingSide = "right") -> Tensor:
    return keep_mask(torch.tensor([T, T - 2]), T, side)


def _allowed(keep: Tensor) -> Tensor:
    """Return (B, T, T) from keep (B, T): every query may attend to real keys."""
    return keep[:, None, :].expand(-1, keep.shape[1], -1)


def _windowed_layers(function: Callable[..., Tensor]) -> Subject:
    """Return six layers with a causal window of two: the last output is to reach six tokens back."""

    def run(states: Tensor, keep: Tensor) -> Tensor:
        return function(states, _allowed(keep).tril().triu(-1))

    window = torch.ones(T, T, dtype=torch.bool).tril().triu(-1)
    return Subject(run, _states(), _keep(), True, layers=6, allowed=window)


def _language_model(function: Callable[..., Tensor]) -> Subject:
    def run(states: Tensor, keep: Tensor) -> Tensor:
        return function(states, _allowed(keep))

    return Subject(run, _states(), _keep(), True)


def _with_and_without_weights(function: Callable[..., Tensor]) -> Subject:
    """Return two layers with gradients on, as in training: with them off, torch takes another path again."""

    def run(states: Tensor, keep: Tensor, need_weights: bool = True) -> Tensor:
        with torch.enable_grad():
            return function(states, _allowed(keep).tril(), need_weights=need_weights)

    def without(states: Tensor, keep: Tensor) -> Tensor:
        return run(states, keep, need_weights=False)

    others = {to_say("against need_weights=False"): without}
    return Subject(run, _states(), _keep("left"), True, layers=2, others=others)


def one_batch(function: Callable[..., Tensor]) -> Subject:
    """Return an encoder of two samples, the second with padding."""
    return Subject(function, _states(), _keep(), False)


def left_padded(function: Callable[..., Tensor]) -> Subject:
    """Return a decoder of two samples, the second padded at the left."""
    return Subject(function, _states(), _keep("left"), True, padding_sides=("left",))


def _of_recipe(name: str, recipe: Recipe) -> Exhibit:
    return Exhibit(name, recipe.broken, recipe.fixed, recipe)


def _catalogue() -> list[Exhibit]:
    """Return one entry for every recipe, named by its code and, from the second way on, by a number.

    What shows in a running model alone is among :data:`FIELD`.
    """
    count: Counter[str] = Counter()
    exhibits = []
    for recipe in (one for one in RECIPES if one.code not in ("batch-axis", "positions-wrong")):
        count[recipe.code] += 1
        name = recipe.code if count[recipe.code] == 1 else f"{recipe.code}-{count[recipe.code]}"
        exhibits.append(_of_recipe(name, recipe))
    return exhibits


ADDITIVE_READ_AS_KEEP = Recipe(
    "inverted", field.additive_read_as_keep_broken, field.additive_read_as_keep_fixed, causal_only, batch=UNPADDED
)
DOCSTRING = Recipe("inverted", field.docstring_broken, field.docstring_fixed, causal_only, batch=UNPADDED)
HALF_PRECISION = Recipe("fill-overflow", field.half_precision_broken, field.half_precision_fixed, causal_and_padding)
LEFT_PADS = Recipe("empty-row", field.left_pads_broken, field.left_pads_fixed, causal_and_padding, batch=LEFT_PADDED)
EXTRA_MASS = Recipe("extra-mass", softmax.extra_mass, softmax.extra_mass, causal_only, batch=UNPADDED)
PAD_QUERY = Recipe("pad-query", padding_visible_fixed, padding_visible_fixed, padding_only)

FIELD = (
    _of_recipe("additive-read-as-keep", ADDITIVE_READ_AS_KEEP),
    _of_recipe("docstring", DOCSTRING),
    _of_recipe("half-precision", HALF_PRECISION),
    _of_recipe("left-pads", LEFT_PADS),
    _of_recipe("pad-query", PAD_QUERY),
    _of_recipe("extra-mass", EXTRA_MASS),
    Exhibit(
        *("batch-axis", field.batch_axis_broken, field.batch_axis_fixed, None, one_batch),
        tests=("batch-neighbour",),
        of_arrays="batch-axis",
    ),
    Exhibit(
        *("positions-wrong", field.positions_broken, field.positions_fixed, None, left_padded),
        tests=("padding-amount",),
        of_arrays="positions-wrong",
    ),
    Exhibit(
        *("return-in-loop", field.return_in_loop_broken, field.return_in_loop_fixed, None, _windowed_layers),
        tests=("gradient-reach",),
    ),
    Exhibit(
        *("is-decoder", field.is_decoder_broken, field.is_decoder_fixed, None, _language_model),
        tests=("future-token", "gradient-reach"),
    ),
    Exhibit(
        *("observer", field.observer_broken, field.observer_fixed, None, _with_and_without_weights),
        tests=("observer",),
    ),
)
EXHIBITS: dict[str, Exhibit] = {exhibit.name: exhibit for exhibit in (*_catalogue(), *FIELD)}
"""All entries by name, in the order in which they are shown."""
