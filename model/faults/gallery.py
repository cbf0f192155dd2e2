"""Every entry of the gallery: the catalogue of faults one by one, then what was met in the field in another guise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..behaviour.checks import Subject
from . import code as c
from . import field as f
from .batch import Batch, Side, lengths_to_keep
from .cases import BARE, LEFT, RECIPES, Recipe
from .exhibits import Exhibit

T, D = 8, 8


def _states() -> Tensor:
    return torch.randn(2, T, D, generator=torch.Generator().manual_seed(1)) / 2


def _keep(side: Side = "right") -> Tensor:
    return lengths_to_keep(torch.tensor([T, T - 2]), T, side)


def _allowed(keep: Tensor) -> Tensor:
    """(B, T) -> (B, T, T): every query may attend to what is real."""
    return keep[:, None, :].expand(-1, keep.shape[1], -1)


def _windowed(function: Callable[..., Tensor]) -> Subject:
    """Six layers with a causal window of two: the last output is to reach six tokens back."""

    def run(states: Tensor, keep: Tensor) -> Tensor:
        return function(states, _allowed(keep).tril().triu(-1))

    window = torch.ones(T, T, dtype=torch.bool).tril().triu(-1)
    return Subject(run, _states(), _keep(), True, layers=6, allowed=window)


def _language_model(function: Callable[..., Tensor]) -> Subject:
    def run(states: Tensor, keep: Tensor) -> Tensor:
        return function(states, _allowed(keep))

    return Subject(run, _states(), _keep(), True)


def _observed(function: Callable[..., Tensor]) -> Subject:
    """As in training, with gradients: with them off, torch takes another way again."""

    def run(states: Tensor, keep: Tensor, look: bool = True) -> Tensor:
        with torch.enable_grad():
            return function(states, _allowed(keep).tril(), look=look)

    def unseen(states: Tensor, keep: Tensor) -> Tensor:
        return run(states, keep, look=False)

    return Subject(run, _states(), _keep("left"), True, layers=2, others={"against need_weights=False": unseen})


def _causal(x: Batch) -> Tensor:
    return x.causal


def _pad_query(x: Batch) -> Tensor:
    return x.keep.expand(-1, 1, x.queries, -1)


def _catalogue() -> list[Exhibit]:
    """One entry for every recipe, named by its code and, from the second way on, by a number."""
    seen: Counter[str] = Counter()
    found = []
    for recipe in RECIPES:
        seen[recipe.code] += 1
        name = recipe.code if seen[recipe.code] == 1 else f"{recipe.code}-{seen[recipe.code]}"
        found.append(Exhibit(name, recipe.broken, recipe.fixed, recipe))
    return found


def _of(name: str, code: str, broken: Callable[..., Any], fixed: Callable[..., Any], **recipe: Any) -> Exhibit:
    return Exhibit(name, broken, fixed, Recipe(code, broken, fixed, **recipe))


FIELD = (
    _of("additive-read-as-keep", "inverted", f.additive_read_as_keep_broken, f.additive_read_as_keep_fixed,
        meant=_causal, batch=BARE),
    _of("docstring", "inverted", f.docstring_broken, f.docstring_fixed, meant=_causal, batch=BARE),
    _of("half-precision", "fill-overflow", f.half_precision_broken, f.half_precision_fixed, meant=c.both),
    _of("left-pads", "empty-row", f.left_pads_broken, f.left_pads_fixed, meant=c.both, batch=LEFT),
    _of("pad-query", "pad-query", c.padding_visible_fixed, c.padding_visible_fixed, meant=_pad_query),
    Exhibit("return-in-loop", f.return_in_loop_broken, f.return_in_loop_fixed, None, _windowed, ("B5",)),
    Exhibit("is-decoder", f.is_decoder_broken, f.is_decoder_fixed, None, _language_model, ("B1", "B5")),
    Exhibit("observer", f.observer_broken, f.observer_fixed, None, _observed, ("B6",)),
)  # fmt: skip
EXHIBITS: dict[str, Exhibit] = {one.name: one for one in (*_catalogue(), *FIELD)}
"""All entries by name, in the order in which they are shown."""
