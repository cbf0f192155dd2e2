"""Which axis of a person's array was read as what, axis by axis, with what is shared by broadcasting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

AXES = ("samples", "layers", "heads", "queries", "keys")
_ONE = {"samples": "sample", "layers": "layer", "heads": "head", "queries": "query", "keys": "key"}


@dataclass(frozen=True)
class Axis:
    """One of the five axes."""

    name: str
    size: int
    """Of the whole map."""
    own: int | None
    """Of the array given; None where it has no such axis."""

    @property
    def shared(self) -> bool:
        """Whether one slice stands for several."""
        return self.size > 1 and self.own in (None, 1)


def trace_axes(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> tuple[Axis, ...]:
    """How an array of ``shape`` is read beside a map of ``sizes`` (B, L, H, Q, K), as ``inputs.arrange`` does."""
    return tuple(Axis(axis, size, own) for axis, size, own in zip(AXES, sizes, _own(name, shape, sizes), strict=True))


def _own(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> list[int | None]:
    samples, _, heads, _, _ = sizes
    if name in ("key_keep", "query_keep"):
        last = 4 if name == "key_keep" else 3
        found: list[int | None] = [None] * 5
        found[last] = shape[-1]
        found[0] = shape[0] if len(shape) > 1 else None
        return found
    if len(shape) == 4:
        return [shape[0], None, *shape[1:]]
    if len(shape) == 3 and shape[0] not in (1, heads) and shape[0] == samples:
        return [shape[0], None, None, *shape[1:]]
    if len(shape) == 3 and shape[0] not in (1, heads) and shape[0] == samples * heads:
        return [samples, None, heads, *shape[1:]]
    return [None] * (5 - len(shape)) + list(shape)


def in_words(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> str:
    """``Your mask (2, 5) was read as 2 samples × 5 keys; shared by all 5 queries.``"""
    axes = trace_axes(name, shape, sizes)
    own = [f"{axis.own} {axis.name if axis.own != 1 else _ONE[axis.name]}" for axis in axes if axis.own is not None]
    shared = [f"all {axis.size} {axis.name}" for axis in axes if axis.shared]
    written = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    verb = "were" if name.endswith(("weights", "scores")) else "was"
    text = f"Your {name} {written} {verb} read as {' × '.join(own)}"
    if len(shape) == 3 and axes[2].own is not None and axes[0].own not in (None, shape[0]):
        text += ", all heads of a sample one after the other"
    return f"{text}; shared by {' and '.join(shared)}." if shared else f"{text}."


def ambiguous(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> str:
    """A warning where the same shape would also fit another reading, else nothing."""
    samples, _, heads, queries, keys = sizes
    if name == "mask" and shape == (samples, keys) and samples == queries > 1:
        return (
            f"There are as many samples as queries ({samples}), so ({samples}, {keys}) could also be one row of keys a "
            "sample. Two axes are read as queries × keys; for padding name it key_keep."
        )
    if name != "key_keep" and len(shape) == 3 and shape[0] == samples == heads > 1:
        return f"There are as many samples as heads ({heads}); the first of three axes is read as heads."
    return ""


def sizes_of(weights: np.ndarray) -> tuple[int, int, int, int, int]:
    """B, L, H, Q, K of weights in the five-axis form."""
    samples, layers, heads, queries, keys = weights.shape
    return samples, layers, heads, queries, keys
