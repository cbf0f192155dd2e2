"""Modules that somebody names, by path or pattern, and weights found in what a module returns."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from ...language.say import listed, say
from ...trace import KINDS, Kind, TraceError
from .calls.call_site import tensors_in


def match_modules(model: nn.Module, patterns: Mapping[str, Kind | None]) -> dict[str, Kind | None]:
    """Return the paths that the patterns name, in the model's order, and the kind that each is said to be.

    Raises:
        TraceError: for a pattern that names nothing, and for a kind that there is not.
    """
    paths = [path for path, _ in model.named_modules()]
    found: dict[str, Kind | None] = {}
    for pattern, kind in patterns.items():
        if kind not in (None, *KINDS):
            raise TraceError(
                say(
                    "{pattern} is said to be {kind!r}; it must be one of {kinds}.",
                    pattern=pattern,
                    kind=kind,
                    kinds=listed(KINDS),
                )
            )
        hits = [path for path in paths if fnmatchcase(path, pattern)]
        if not hits:
            some = ", ".join(path for path in paths if path)[:300] or say("itself alone")
            raise TraceError(
                say(
                    "No module of this {model} is named {pattern!r}. It has: {paths} ...",
                    model=type(model).__name__,
                    pattern=pattern,
                    paths=some,
                )
            )
        found |= dict.fromkeys(hits, kind)
    return found


def named_ancestor(path: str, named: Mapping[str, Kind | None]) -> str | None:
    """Return the named module at or above `path`; None where there is none."""
    above = (one for one in named if path == one or path.startswith(f"{one}.") or not one)
    return max(above, key=len, default=None)


def weights_in(output: Any) -> Tensor | None:
    """Return the last tensor of an output that can only be weights: no number below 0, every row sums to 1."""
    found = [tensor for tensor in tensors_in(output) if _are_weights(tensor)]
    return found[-1] if found else None


def _are_weights(tensor: Tensor) -> bool:
    if not tensor.is_floating_point() or not 2 <= tensor.dim() <= 5 or not tensor.numel():
        return False
    if tensor.dim() == 2 and len(tensor) > 1:  # rather one row of each sample
        return False
    sums = tensor.float().sum(-1)
    return bool((tensor >= 0).all()) and bool(torch.isclose(sums, torch.ones_like(sums), atol=1e-3).all())
