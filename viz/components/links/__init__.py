"""Token-to-token lines of one head, or of several heads of a layer in colours of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from model.language.say import say

from ...figures.labels import KIND_NAMES, label_text
from ...figures.palette import head_colour
from ..bundle import component, told
from ..packing import pack, quantise

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from ...figures.heatmap import Rows
    from ...figures.palette import Look

_mount = component("links")


@dataclass(frozen=True)
class Lines:
    """Which lines are drawn, and how; layer and heads count from 0."""

    layer: int
    head: int
    beside: Collection[int] = ()
    """Other heads of the layer drawn too."""
    threshold: float | Literal["strongest"] = "strongest"
    """The least weight that gets a line, or the strongest of each row alone; of equal ones, each."""
    horizontal: bool = False
    """Queries above keys, instead of left of them."""
    fixed: bool = False
    """Whether it stays with its head when another is chosen in the overview, as a second side does."""


def links(
    attention: AttentionMap,
    lines: Lines,
    look: Look,
    rows: Rows,
    pinned: tuple[int | None, int | None],
    alt: str,
    *,
    key: str,
    on_pin: Callable[[str, int], None],
    on_beside: Callable[[list[int]], None],
) -> None:
    """Draw lines from queries to keys, `pinned` (query, key) marked; `alt` describes them to screen readers.

    `on_pin(side, index)` hears of a click on a token, side ``query`` or ``key``; `on_beside(heads)` of other heads
    added or taken away.
    """
    _mount(
        key=key,
        data=packed(attention, lines, look, rows, pinned, alt),
        on_pin_change=lambda: on_pin(str(told(key).pin["side"]), int(told(key).pin["index"])),
        on_beside_change=lambda: on_beside([int(head) for head in told(key).beside["heads"]]),
    )


def packed(
    attention: AttentionMap, lines: Lines, look: Look, rows: Rows, pinned: tuple[int | None, int | None], alt: str
) -> bytes:
    """What links.js reads: tokens and colours, then the (H, Q, K) bytes of the layer."""
    header = {
        "queries": [label_text(token) for token in attention.rows(rows)],
        "keys": [label_text(token) for token in attention.key_tokens],
        "alt": alt,
        "label": say(
            "{kind}, layer {layer}, as lines from queries to keys",
            kind=say(KIND_NAMES[attention.kind]),
            layer=lines.layer + 1,
        ),
        "head": lines.head,
        "beside": sorted(lines.beside),
        "colours": [head_colour(look.palette, head) for head in range(attention.heads)],
        "threshold": lines.threshold,
        "horizontal": lines.horizontal,
        "fixed": lines.fixed,
        "scale": look.scale,
        "pinned": pinned,
        "pattern": say(
            "{kind}, layer {layer}, as lines from queries to keys",
            kind=say(KIND_NAMES[attention.kind]),
            layer="{layer}",
        ),
    }
    cells = quantise(attention.weights[lines.layer], attention.masks[lines.layer])
    return pack(header, np.ascontiguousarray(cells).tobytes())
