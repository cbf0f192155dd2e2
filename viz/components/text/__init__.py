"""Both texts of a map side by side, shaded by what a hovered or pinned token attends to, or is attended to by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from model.language.say import say, to_say

from ...figures.labels import KIND_NAMES, readable
from ..bundle import component, told
from ..packing import pack, quantise

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from ...figures.heatmap import Rows
    from ...figures.palette import Look

_mount = component("text")
QUERIES = {
    "encoder": to_say("The sentence, attending"),
    "decoder": to_say("The translation, attending"),
    "cross": to_say("The translation"),
}
KEYS = {
    "encoder": to_say("The sentence, attended to"),
    "decoder": to_say("The translation so far"),
    "cross": to_say("The sentence"),
}


def text(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    rows: Rows,
    pinned: tuple[int | None, int | None],
    alt: str,
    *,
    key: str,
    on_pin: Callable[[str, int], None],
    fixed: bool = False,
) -> None:
    """Draw one head, counted from 0, as shaded text, `pinned` (query, key) marked; screen readers are told `alt`.

    `fixed`: it stays with its head when another is chosen in the overview, as the second side of a comparison does.
    `on_pin(side, index)` hears of a click on a token, side ``query`` or ``key``.
    """
    _mount(
        key=key,
        data=packed(attention, layer, head, look, rows, pinned, alt, fixed),
        on_pin_change=lambda: on_pin(str(told(key).pin["side"]), int(told(key).pin["index"])),
    )


def packed(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    rows: Rows,
    pinned: tuple[int | None, int | None],
    alt: str,
    fixed: bool = False,
) -> bytes:
    """What text.js reads: tokens and colours, then (Q, K) bytes of the head and (K,) of its mean over the queries."""
    palette = look.palette
    header = {
        "query": {"title": say(QUERIES[attention.kind]), "tokens": _tokens(attention.rows(rows))},
        "key": {"title": say(KEYS[attention.kind]), "tokens": _tokens(attention.key_tokens)},
        "alt": alt,
        "label": say(
            "{kind}, layer {layer}, head {head}, as shaded text",
            kind=say(KIND_NAMES[attention.kind]),
            layer=layer + 1,
            head=head + 1,
        ),
        "stops": look.stops,
        "scale": look.scale,
        "masked": palette.masked,
        "inks": (palette.ink, palette.background),
        "pinned": pinned,
        "fixed": fixed,
        "pattern": say(
            "{kind}, layer {layer}, head {head}, as shaded text",
            kind=say(KIND_NAMES[attention.kind]),
            layer="{layer}",
            head="{head}",
        ),
    }
    weights, mask = attention.weights[layer, head], attention.mask_of(layer, head)
    allowed = mask.sum(axis=0)
    means = np.where(mask, weights, 0).sum(axis=0, dtype=np.float64) / np.maximum(allowed, 1)
    return pack(header, quantise(weights, mask).tobytes() + quantise(means, allowed > 0).tobytes())


def _tokens(tokens: Sequence[str]) -> list[dict[str, Any]]:
    return [{"text": readable(token), "space": token.startswith((" ", "<", "▁"))} for token in tokens]
