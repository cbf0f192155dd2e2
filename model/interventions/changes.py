"""Changes to a model as small frozen values with a text form, fit for a link, a trace's settings or a cache key.

The text counts layers, heads and positions from 1. :mod:`.apply` and :mod:`.any_model` make the changes. No torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from ..language import say
from ..trace import Kind


class InterventionError(ValueError):
    """A change that cannot be read or made; the message is the sentence to show."""


@dataclass(frozen=True)
class HeadChange:
    """One head, counted from 0, made to do something else.

    ``off``: its context is zero, as if its slice of the output projection were. ``uniform``: equal weights on all keys
    allowed. ``copy``: the weights of head `source` of the same module.
    """

    kind: Kind
    layer: int
    head: int
    change: Literal["off", "uniform", "copy"] = "off"
    source: int | None = None
    """The head to copy; of ``copy`` only."""

    def __post_init__(self) -> None:
        if (self.change == "copy") != (self.source is not None):
            raise InterventionError(say("Copying a head needs the head to copy, and nothing else does."))

    def __str__(self) -> str:
        done = f"head.{self.source + 1}" if self.source is not None else self.change
        return f"{self.kind}.{self.layer + 1}.{self.head + 1}:{done}"


@dataclass(frozen=True)
class MaskChange:
    """Cells of a mask allowed or blocked, in all heads of a layer; None stands for every layer, query or key."""

    kind: Kind
    layer: int | None = None
    query: int | None = None
    """Position from 0, also in cached decoding, where one query runs at a time."""
    key: int | None = None
    allowed: bool = False

    def __str__(self) -> str:
        places = ".".join("*" if one is None else str(one + 1) for one in (self.layer, self.query, self.key))
        return f"mask.{self.kind}.{places}:{'allow' if self.allowed else 'block'}"


ModelChange = HeadChange | MaskChange

_KIND_PATTERN, _NUMBER_PATTERN, _PLACE_PATTERN = "(encoder|decoder|cross)", r"([1-9]\d{0,5})", r"([1-9]\d{0,5}|\*)"
_HEAD_CHANGE = re.compile(
    rf"{_KIND_PATTERN}\.{_NUMBER_PATTERN}\.{_NUMBER_PATTERN}:(off|uniform|head\.{_NUMBER_PATTERN})"
)
_MASK_CHANGE = re.compile(rf"mask\.{_KIND_PATTERN}\.{_PLACE_PATTERN}\.{_PLACE_PATTERN}\.{_PLACE_PATTERN}:(allow|block)")


def format_changes(changes: Iterable[ModelChange]) -> str:
    """Return changes as one line that :func:`parse_changes` reads."""
    return ",".join(map(str, changes))


def parse_changes(text: str) -> tuple[ModelChange, ...]:
    """Read changes that commas separate. Raises InterventionError.

    For example ``cross.2.3:off, encoder.1.1:uniform, decoder.4.2:head.5, mask.cross.*.*.4:block``.
    """
    return tuple(_parse_change(part.strip()) for part in text.split(",") if part.strip())


def _parse_change(text: str) -> ModelChange:
    if found := _HEAD_CHANGE.fullmatch(text):
        kind, layer, head, change, source = cast("tuple[Any, ...]", found.groups())
        if source is None:
            return HeadChange(kind, int(layer) - 1, int(head) - 1, change)
        return HeadChange(kind, int(layer) - 1, int(head) - 1, "copy", int(source) - 1)
    if found := _MASK_CHANGE.fullmatch(text):
        kind, *places, change = cast("tuple[Any, ...]", found.groups())
        layer, query, key = (None if one == "*" else int(one) - 1 for one in places)
        return MaskChange(kind, layer, query, key, change == "allow")
    raise InterventionError(
        say(
            "{text} is no change to a model. Write for example cross.2.3:off, cross.2.3:uniform, cross.2.3:head.5 or "
            "mask.cross.2.*.4:block (layer, head, query and key from 1, * for all).",
            text=repr(text[:60]),
        )
    )


def too_few_layers_text(change: ModelChange, layers: int) -> str:
    """Return the sentence that an attention has only so many layers."""
    return say(
        "{change}: this model has {layers} layers of {kind} attention.", change=change, layers=layers, kind=change.kind
    )


def too_few_heads_text(change: ModelChange, heads: int) -> str:
    """Return the sentence that an attention has only so many heads."""
    return say("{change}: this attention has the heads 1 to {heads}.", change=change, heads=heads)


def duplicate_head_change_text(change: ModelChange) -> str:
    """Return the sentence that two changes are to one head."""
    return say("{change}: this head is changed twice; keep one of the changes.", change=change)
