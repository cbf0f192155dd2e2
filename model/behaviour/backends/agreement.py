"""Assertions that a model gives the same by other ways: with a cache and without, packed and apart.

Each takes a Hugging Face model and what its tokenizer returns, as
:func:`~.compare.compare_backends` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ...language.say import say
from .compare import WAYS, compare_backends


def assert_backends_agree(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that every way that the model has gives the outputs of the model as it is.

    Raises:
        AssertionError: naming the ways that part, with the first layer and row of each.
    """
    _assert(model, inputs, tuple(WAYS), needed=())


def assert_cache_agrees(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that decoding with a cache gives the outputs of one full forward.

    Raises:
        AssertionError: naming the first layer and row that parts. ValueError: where the model has no cache.
    """
    _assert(model, inputs, ("cache",))


def assert_static_cache_agrees(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that a static and a dynamic cache both give the outputs of one full forward.

    Raises:
        AssertionError: naming the first layer and row that parts. ValueError: where the model has no such caches.
    """
    _assert(model, inputs, ("cache", "static cache"))


def assert_packing_agrees(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that samples packed into one row give the outputs of each alone.

    Raises:
        AssertionError: naming the first layer and row that parts. ValueError: where samples cannot be packed.
    """
    _assert(model, inputs, ("packed", "batch of one"))


def assert_padding_sides_agree(model: Any, inputs: Mapping[str, Tensor] | Tensor) -> None:
    """Assert that padding at the left and at the right give the outputs of the batch as it is.

    Raises:
        AssertionError: naming the first layer and row that parts.
    """
    _assert(model, inputs, ("left padding", "right padding"))


def _assert(
    model: Any, inputs: Mapping[str, Tensor] | Tensor, ways: tuple[str, ...], needed: tuple[str, ...] | None = None
) -> None:
    found = compare_backends(model, inputs, ways=ways)
    missing = [
        one for one in found.results if one.status == "not run" and one.name in (ways if needed is None else needed)
    ]
    if missing:
        raise ValueError(say("{faults}.", faults="; ".join(map(str, missing))))
    if found.parting:
        raise AssertionError(say("{faults}.", faults="; ".join(map(str, found.parting))))
