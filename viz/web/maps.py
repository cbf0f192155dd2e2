"""Components that draw attention in the browser: heatmap, matrix, links, overview of heads, switchboard."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from attenscope.analysis.heads import HeadPlace
from attenscope.language import say, to_say
from attenscope.trace import AttentionMap, Head, Kind, cache_on_map
from attenscope.viz.figures.figure_style import (
    KIND_NAMES,
    LONGEST_LABEL,
    Look,
    head_colour,
    readable_token,
    shorten_token,
)
from attenscope.viz.figures.heatmap import RowLabel, WeightGrid, has_room_for_numbers, pool_weights
from attenscope.viz.web.component_scripts import (
    FULL_BYTE,
    FULL_UINT16,
    component_value,
    create_mount_function,
    pack_arrays,
    quantise_to_levels,
    quantise_weights,
    quantise_weights_to_uint16,
)

# The heatmap: crosshair, numbers, pins; a tile of the overview changes it at once.


PinnedCell = tuple[int | None, int | None]
"""The pinned row and column, from 0."""
SpecialPlaces = tuple[Sequence[int], Sequence[int]]
"""The rows and the columns of special tokens, from 0."""
AxisRoles = tuple[Sequence[str], Sequence[str]]
"""For each row and each column of a chat, the role whose text it is, or ""; () where there is none."""
ROLE_NAMES = {"system": to_say("system"), "user": to_say("user"), "assistant": to_say("assistant")}
HEATMAP_COLOURS = ("background", "ink", "soft", "line", "accent", "masked", "hatch")

_mount_heatmap = create_mount_function("heatmap")


def heatmap(
    grid: WeightGrid,
    look: Look,
    alt: str,
    *,
    model: str,
    pinned: PinnedCell = (None, None),
    numbers: bool = False,
    follows: str = "",
    special: SpecialPlaces = ((), ()),
    roles: AxisRoles = ((), ()),
    key: str,
    on_cell: Callable[[int, int], None] | None = None,
) -> None:
    """Draw `grid`, described to screen readers by `alt`; `on_cell(row, column)` hears of a chosen cell.

    `follows` is what a title says before layer and head. Where it is given, a click on a tile of the overview shows
    that head at once, from the overview's bytes, before Python has answered with the weights themselves. A change of
    the scale is shown at once too, and, given the rows and columns of `special` tokens, their removal. The `roles` of a
    chat are bands on the axes.
    """

    def handle_choice() -> None:
        cell = component_value(key).cell
        if on_cell:
            on_cell(int(cell["row"]), int(cell["column"]))

    given: dict[str, Any] = {"model": model, "pinned": pinned, "numbers": numbers, "follows": follows, "roles": roles}
    data = encode_heatmap(grid, look, alt, **given, special=special, pins=on_cell is not None)
    _mount_heatmap(key=key, data=data, on_cell_change=handle_choice)


def encode_heatmap(
    grid: WeightGrid,
    look: Look,
    alt: str,
    *,
    model: str,
    pinned: PinnedCell = (None, None),
    numbers: bool = False,
    follows: str = "",
    special: SpecialPlaces = ((), ()),
    roles: AxisRoles = ((), ()),
    pins: bool = False,
) -> bytes:
    """What heatmap.js reads: names, colours and pins, then (R, C) of `quantise_weights_to_uint16`, little-endian."""
    palette = look.palette
    header = {
        "title": grid.title,
        "model": model,
        "follows": follows,
        "special": special,
        "roles": roles,
        "roleNames": {role: say(name) for role, name in ROLE_NAMES.items() if any(role in axis for axis in roles)},
        "alt": alt,
        "rows": [readable_token(token) for token in grid.rows],
        "columns": [readable_token(token) for token in grid.columns],
        "rowLabels": [shorten_token(token, LONGEST_LABEL) for token in grid.rows],
        "columnLabels": [shorten_token(token, LONGEST_LABEL) for token in grid.columns],
        "breaks": grid.breaks,
        "top": grid.top,
        "scale": look.scale,
        "stops": look.stops,
        "colours": {name: getattr(palette, name) for name in HEATMAP_COLOURS},
        "pinned": pinned,
        "pins": pins,
        "numbers": numbers and has_room_for_numbers(grid.weights),
    }
    return pack_arrays(header, quantise_weights_to_uint16(grid.weights, grid.mask, grid.top).astype("<u2").tobytes())


# The matrix, a large table of numbers: hover or arrow keys read a cell, a click chooses it.


_mount_matrix = create_mount_function("matrix")
LEAST_POWER = -99
"""The least power of ten: a size below ten of it counts as zero, but no error of a table is nearly as small."""


@dataclass(frozen=True, eq=False)
class MatrixData:
    """What is drawn: `values` (R, C), the names of rows and columns, and colours from `low` to `high`."""

    values: np.ndarray
    title: str
    row_names: Sequence[str | int]
    column_names: Sequence[str | int]
    row_title: str
    column_title: str
    low: float
    high: float
    stops: Sequence[str]
    """Colours #rrggbb, evenly spaced from `low` to `high`."""
    square: bool = False
    """Cells as wide as they are high."""
    height: int = 430
    marks: Sequence[int] = field(default=())
    """Rows under which a line is drawn."""
    exponent: bool = False
    """`values` are sizes read as 1.0e-6 and so on; `low` and `high` are powers of ten."""


def draw_matrix(
    shown: MatrixData,
    chosen: tuple[int, int] | None = None,
    *,
    key: str,
    on_cell: Callable[[int, int], None] | None = None,
) -> None:
    """Draw `shown`; `on_cell(row, column)` hears of a chosen cell, both counted from 0 in the order drawn."""

    def handle_pick() -> None:
        cell = component_value(key).cell
        if on_cell:
            on_cell(int(cell["row"]), int(cell["column"]))

    _mount_matrix(key=key, data=encode_matrix(shown, chosen), on_cell_change=handle_pick)


def encode_matrix(shown: MatrixData, chosen: tuple[int, int] | None = None) -> bytes:
    """What matrix.js reads: names, colours and the chosen cell, then (R, C) numbers as values.js reads them."""
    rows, columns = shown.values.shape
    numbers, reading = (
        _encode_two_significant_digits(shown.values)
        if shown.exponent
        else _encode_evenly_spaced_levels(shown.values, shown.low, shown.high)
    )
    header = {
        "rows": rows,
        "columns": columns,
        "title": shown.title,
        "rowNames": list(shown.row_names),
        "columnNames": list(shown.column_names),
        "rowTitle": shown.row_title,
        "columnTitle": shown.column_title,
        "low": shown.low,
        "high": shown.high,
        "stops": list(shown.stops),
        "square": shown.square,
        "height": shown.height,
        "marks": list(shown.marks),
        "exponent": shown.exponent,
        "chosen": chosen,
        **reading,
    }
    return pack_arrays(header, numbers.tobytes())


def _encode_evenly_spaced_levels(values: np.ndarray, low: float, high: float) -> tuple[np.ndarray, dict[str, int]]:
    """Return levels from `low` to `high`, in as many bytes as two decimals need, and how they are read.

    Where two bytes are not enough, fewer decimals are printed.
    """
    span = high - low
    full = FULL_BYTE if 100 * span < FULL_BYTE else FULL_UINT16
    decimals = max(0, min(2, math.floor(math.log10(FULL_UINT16 / span))))

    def format_cells(values: np.ndarray) -> np.ndarray:
        """Halves away from zero, as JavaScript rounds them."""
        return np.trunc(values * 10**decimals + np.copysign(0.5, values))

    found = quantise_to_levels(values, low, high, full, format_cells)
    return found.astype("u1" if full == FULL_BYTE else "<u2"), {"full": full, "decimals": decimals}


def _encode_two_significant_digits(values: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Return sizes rounded to two significant digits as uint16, and how they are read.

    m * 10**p with m from 10 to 99 is 1 + 90 * (p - LEAST) + (m - 10); 0 is an exact zero.
    """
    known = values >= 10.0 ** (LEAST_POWER + 1)
    power = np.floor(np.log10(values, out=np.zeros(values.shape), where=known)) - 1
    digits = np.floor(values / 10.0**power + 0.5)  # 100 is 10 of the next power, and so are their codes.
    return np.where(known, 1 + 90 * (power - LEAST_POWER) + (digits - 10), 0).astype("<u2"), {"least": LEAST_POWER}


# The links: token-to-token lines of one head, or of several heads of a layer in colours of their own.


_mount_links = create_mount_function("links")


@dataclass(frozen=True)
class LinkOptions:
    """Which lines are drawn, and how; layer and heads count from 0."""

    layer: int
    head: int
    beside: Collection[int] = ()
    """Other heads of the layer that are drawn too."""
    threshold: float | Literal["strongest"] = "strongest"
    """The least weight that gets a line, or the strongest of each row alone; of equal ones, each."""
    horizontal: bool = False
    """Queries above keys, instead of left of them."""
    fixed: bool = False
    """Whether it stays with its head when another is chosen in the overview, as a second side does."""


def draw_attention_links(
    attention: AttentionMap,
    lines: LinkOptions,
    look: Look,
    rows: RowLabel,
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
    _mount_links(
        key=key,
        data=encode_attention_links(attention, lines, look, rows, pinned, alt),
        on_pin_change=lambda: on_pin(str(component_value(key).pin["side"]), int(component_value(key).pin["index"])),
        on_beside_change=lambda: on_beside([int(head) for head in component_value(key).beside["heads"]]),
    )


def encode_attention_links(
    attention: AttentionMap,
    lines: LinkOptions,
    look: Look,
    rows: RowLabel,
    pinned: tuple[int | None, int | None],
    alt: str,
) -> bytes:
    """What links.js reads: tokens and colours, then the (H, Q, K) bytes of the layer."""
    header = {
        "queries": [shorten_token(token) for token in attention.rows(rows)],
        "keys": [shorten_token(token) for token in attention.key_tokens],
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
    cells = quantise_weights(attention.weights[lines.layer], attention.masks[lines.layer])
    return pack_arrays(header, np.ascontiguousarray(cells).tobytes())


# The overview: a tile for each head of one kind of attention; a click opens it.


_mount_overview = create_mount_function("overview")


@dataclass(frozen=True)
class RankedHead:
    """One entry of an order of heads."""

    layer: int
    head: int
    value: str
    """What stands below its tile."""
    shown: bool
    """False for a head that was filtered out: it is drawn faintly."""


@dataclass(frozen=True)
class TileSwitches:
    """What the tiles of the overview need to switch heads off."""

    off: Collection[HeadPlace]
    """The heads that are off."""
    on_switch: Callable[[list[HeadPlace]], None]
    """Hears, of every change, of all heads that are to be off."""
    pressing: bool = False
    """Whether a press of a tile switches its head, instead of opening it."""


def draw_heads_overview(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    order: Sequence[RankedHead] = (),
    changed: Collection[HeadPlace] = (),
    switches: TileSwitches | None = None,
    *,
    key: str,
    on_pick: Callable[[int, int], None],
) -> None:
    """Draw every head of `attention`, the given one marked; `on_pick(layer, head)` hears of a click (from 0).

    Heads stand in rows of layers, or, where an order is given, in that order, each with its value. The `changed` heads,
    (layer, head) from 0, are crossed out. With `switches`, Alt and a click or the key x switch a head off and on, Shift
    and x all heads of its layer.
    """

    def handle_pick() -> None:
        place = component_value(key).pick
        on_pick(int(place["layer"]), int(place["head"]))

    def handle_switch() -> None:
        if switches:
            switches.on_switch([(int(layer), int(head)) for layer, head in component_value(key).off])

    data = encode_heads_overview(attention, layer, head, look, order, changed, switches)
    _mount_overview(key=key, data=data, on_pick_change=handle_pick, on_off_change=handle_switch)


def encode_heads_overview(
    attention: AttentionMap,
    layer: int,
    head: int,
    look: Look,
    order: Sequence[RankedHead] = (),
    changed: Collection[HeadPlace] = (),
    switches: TileSwitches | None = None,
) -> bytes:
    """What overview.js reads: sizes, colours and the chosen tile, then (L, H, Q, K) bytes; long maps are pooled."""
    cells = _quantise_overview(attention)
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
        "switches": {"off": sorted(switches.off), "pressing": switches.pressing} if switches else None,
        "order": [{"layer": one.layer, "head": one.head, "value": one.value, "shown": one.shown} for one in order],
    }
    return pack_arrays(header, cells.tobytes())


@cache_on_map
def _quantise_overview(attention: AttentionMap) -> np.ndarray:
    return quantise_weights(
        *pool_weights(attention.weights, attention.mask if attention.layer_masks is None else attention.masks)
    )


# The switchboard: a switch for every head of every attention, layers down and heads across.


_mount_switchboard = create_mount_function("switchboard")


def draw_switchboard(
    sizes: Mapping[Kind, tuple[int, int]], off: Collection[Head], *, key: str, on_switch: Callable[[list[Head]], None]
) -> None:
    """Draw a switch a head for `sizes` (kind -> layers, heads); `on_switch(off)` hears of every change."""

    def handle_switch() -> None:
        on_switch([(kind, int(layer), int(head)) for kind, layer, head in component_value(key).off])

    boards = [
        {"kind": kind, "name": say(KIND_NAMES[kind]), "layers": layers, "heads": heads}
        for kind, (layers, heads) in sizes.items()
    ]
    _mount_switchboard(key=key, data={"boards": boards, "off": sorted(off)}, on_off_change=handle_switch)


# The drawing of the Transformer, in which it is chosen which attention is looked at.


_mount_transformer = create_mount_function("transformer")
EVERY_LAYER = -1
"""In place of a layer: all of its kind are looked at together, and a block chooses its kind alone."""


PlaceListener = Callable[[Kind | None, int | None, int | None], None]
"""Hears which kind of attention, layer or head was chosen, from 0; None for what stays as it is."""


def draw_transformer(
    layers: Mapping[Kind, int],
    chosen: Head,
    names: Mapping[Kind, str],
    *,
    heads: int = 0,
    key: str,
    on_pick: PlaceListener,
) -> None:
    """Draw the stacks of a Transformer with a block for each layer of attention, the `chosen` one marked.

    Args:
        layers: How many layers of each kind of attention there are.
        chosen: The kind, layer and head that are looked at, from 0.
        names: The short name of each kind.
        heads: How many heads are offered below the stacks; 0 where heads are chosen elsewhere.
        on_pick: Hears of a click.
    """

    def handle_pick() -> None:
        place = component_value(key).pick
        on_pick(place.get("kind"), place.get("layer"), place.get("head"))

    data = transformer_data(layers, chosen, names, heads)
    _mount_transformer(key=key, data=data, width="content", on_pick_change=handle_pick)


def transformer_data(layers: Mapping[Kind, int], chosen: Head, names: Mapping[Kind, str], heads: int) -> dict[str, Any]:
    """What transformer.js reads."""
    kind, layer, head = chosen
    translates = {"encoder", "cross", "decoder"} <= set(layers)
    return {
        "stacks": [
            {"kind": kind, "name": names[kind], "title": say(KIND_NAMES[kind]), "layers": count}
            for kind, count in layers.items()
        ],
        "chosen": {"kind": kind, "layer": layer, "head": head},
        "heads": heads,
        "label": say("Which attention of the Transformer is looked at"),
        "enters": say("the sentence") if translates else "",
        "written": say("written so far") if translates else "",
        "leaves": say("next word") if translates else "",
    }
