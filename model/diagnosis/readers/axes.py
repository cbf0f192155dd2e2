"""How the axes of an array were read, in words: which axis is what, and what is shared by broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from ...language.say import say, say_many, to_say
from ..inputs.shapes import own_axes

AXES = ("samples", "layers", "heads", "queries", "keys")
_COUNTED: dict[str, Callable[[int], str]] = {
    "samples": lambda count: say_many("{count} sample", "{count} samples", count),
    "layers": lambda count: say_many("{count} layer", "{count} layers", count),
    "heads": lambda count: say_many("{count} head", "{count} heads", count),
    "queries": lambda count: say_many("{count} query", "{count} queries", count),
    "keys": lambda count: say_many("{count} key", "{count} keys", count),
}
_ALL = {
    "samples": to_say("all {count} samples"),
    "layers": to_say("all {count} layers"),
    "heads": to_say("all {count} heads"),
    "queries": to_say("all {count} queries"),
    "keys": to_say("all {count} keys"),
}


@dataclass(frozen=True)
class Axis:
    """One of the five axes."""

    name: str
    size: int
    """The size of the whole map."""
    own_size: int | None
    """The size of the array; None where it has no such axis."""

    @property
    def is_shared(self) -> bool:
        """Whether one slice stands for several."""
        return self.size > 1 and self.own_size in (None, 1)


def read_axes(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> tuple[Axis, ...]:
    """Return how an array of ``shape`` is read beside a map of ``sizes`` (B, L, H, Q, K)."""
    if name in ("key_keep", "query_keep"):
        own: list[int | None] = [None] * 5
        own[4 if name == "key_keep" else 3] = shape[-1]
        own[0] = shape[0] if len(shape) > 1 else None
    else:
        own = own_axes(shape, sizes[0], sizes[2])
    return tuple(Axis(axis, size, own_size) for axis, size, own_size in zip(AXES, sizes, own, strict=True))


def in_words(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> str:
    """Return a sentence: ``Your mask (2, 5) was read as 2 samples × 5 keys; shared by all 5 queries.``"""
    axes = read_axes(name, shape, sizes)
    own = " × ".join(_COUNTED[axis.name](axis.own_size) for axis in axes if axis.own_size is not None)
    if len(shape) == 3 and axes[2].own_size is not None and axes[0].own_size not in (None, shape[0]):
        own = say("{axes}, all heads of a sample one after the other", axes=own)
    if shared := [say(_ALL[axis.name], count=axis.size) for axis in axes if axis.is_shared]:
        own = say("{axes}; shared by {shared}", axes=own, shared=reduce(_both, shared))
    if name.endswith(("weights", "scores")):
        return say("Your {name} {shape} were read as {axes}.", name=name, shape=shape, axes=own)
    return say("Your {name} {shape} was read as {axes}.", name=name, shape=shape, axes=own)


def _both(one: str, other: str) -> str:
    return say("{one} and {other}", one=one, other=other)


def ambiguous(name: str, shape: tuple[int, ...], sizes: tuple[int, int, int, int, int]) -> str:
    """Return a warning where the same shape would also fit another reading, else an empty text."""
    samples, _, heads, queries, keys = sizes
    if name == "mask" and shape == (samples, keys) and samples == queries > 1:
        return say(
            "There are as many samples as queries ({samples}), so ({samples}, {keys}) could also be one row of keys a "
            "sample. Two axes are read as queries × keys; for padding name it key_keep.",
            samples=samples,
            keys=keys,
        )
    if name != "key_keep" and len(shape) == 3 and shape[0] == samples == heads > 1:
        return say(
            "There are as many samples as heads ({heads}); the first of three axes is read as heads.", heads=heads
        )
    return ""
