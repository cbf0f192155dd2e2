"""All layers and heads of one kind at a glance: a tile each, click one to open it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from model.language.say import say

from ...figures.labels import KIND_NAMES
from ...figures.pooled import pooled
from ..bundle import component, told
from ..packing import pack, quantise

if TYPE_CHECKING:
    from model.trace import AttentionMap

    from ...figures.palette import Look

_mount = component("overview")


@dataclass(frozen=True)
class Ranked:
    """A head's place in an order of heads: it stands where it comes in the sequence."""

    layer: int
    head: int
    value: str
    """What stands below its tile."""
    shown: bool
    """False for a head that was filtered out: it is drawn faintly."""


def overview(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    order: Sequence[Ranked] = (),
    changed: Collection[tuple[int, int]] = (),
    *,
    key: str,
    on_pick: Callable[[int, int], None],
) -> None:
    """Draw every head of `attention`, the given one marked; `on_pick(layer, head)` hears of a click (from 0).

    In rows of layers, or, where an order is given, in that order, each with its value. The heads `changed`, (layer,
    head) from 0, are crossed out.
    """

    def picked() -> None:
        place = told(key).pick
        on_pick(int(place["layer"]), int(place["head"]))

    _mount(key=key, data=packed(attention, layer, head, look, order, changed), on_pick_change=picked)


def packed(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    order: Sequence[Ranked] = (),
    changed: Collection[tuple[int, int]] = (),
) -> bytes:
    """What overview.js reads: sizes, colours and the chosen tile, then (L, H, Q, K) bytes; long maps are pooled."""
    cells = _cells(attention)
    layers, heads, queries, keys = cells.shape
    header = {
        "layers": layers,
        "heads": heads,
        "paths": attention.layer_paths,
        "queries": queries,
        "keys": keys,
        "layer": layer,
        "head": head,
        "label": say("{kind}: all layers and heads", kind=say(KIND_NAMES[attention.kind])),
        "stops": look.stops,
        "scale": look.scale,
        "masked": look.palette.masked,
        "changed": [layer * heads + head for layer, head in changed],
        "order": [{"layer": one.layer, "head": one.head, "value": one.value, "shown": one.shown} for one in order],
    }
    return pack(header, cells.tobytes())


# A map is frozen and known by its identity; while its head is changed, its bytes stay the same.
@lru_cache(maxsize=8)
def _cells(attention: AttentionMap) -> np.ndarray:
    return quantise(*pooled(attention.weights, attention.mask if attention.layer_masks is None else attention.masks))
