"""The map: every head as a dot over any two measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from model.atlas.folder import AtlasError
from model.checkpoint.files import CheckpointError
from model.heads.atlas import head_name
from model.language.say import listed, say

from ...components.curves import curves, packed
from ...export.parts import Columns, Component, Words
from ...export.save import SavedView
from ...figures.curves import Mark
from ...figures.heads.scatter import Dot, scatter
from ...ui import cache as shared
from ...ui import theme, widgets
from ...ui.addresses.heads import ACROSS, BESIDE, BRUSH, HEADS, MEASURE_NAMES, UP
from ...ui.captions import caption, choose_model, plain
from ...ui.links import choose_head
from .. import cache, texts

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.live.live_model import LiveModel
    from model.trace import Head

    from ...export.parts import Part
    from ...figures.curves import Curves
    from ...figures.palette import Palette
    from ...ui.addresses.heads import Box


LISTED = 30
"""Heads of a box that are listed, of each model."""


@dataclass(frozen=True, eq=False)
class Side:
    """A model on the map."""

    name: str
    atlas: Atlas
    heads: tuple[Head, ...]
    """Those that have both measures."""
    dots: tuple[Dot, ...]


def show(model: LiveModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        across = widgets.selectbox(say("Across"), ACROSS, atlas.measures, label_visibility="collapsed", width=190)
        up = widgets.selectbox(say("Up"), UP, atlas.measures, label_visibility="collapsed", width=190)
        other = _beside(model)
    sides = [side_of(model.name, atlas, across, up)]
    if other is not None:
        sides.append(side_of(*other, across, up))
    measures = across, up
    box = BRUSH.hold(of=measures)

    def drawn(palette: Palette) -> list[Curves]:
        return [with_frame(one, box) for one in pictures(sides, across, up, palette)]

    with st.container(key="picture"):
        shown = drawn(theme.palette())
        for column, side, one in zip(st.columns(len(sides)), sides, shown, strict=True):
            with column:
                key = "head-map" if side is sides[0] else "head-map-beside"
                curves(one, key=key, on_point=_opening(side), on_box=lambda found: BRUSH.set(found, of=measures))
                if box:
                    _brushed(side, box)
    said = texts.map_of([(side.name, side.atlas, len(side.heads)) for side in sides], across, up)
    caption(said)
    caption(say(texts.CLICK))
    return SavedView(
        "heads-" + "-".join(side.name for side in sides),
        lambda palette: (*_parts([Component("curves", packed(one)) for one in drawn(palette)]), Words(said)),
        lambda: pd.concat({side.name: numbers(side.atlas) for side in sides}, names=["model"]),
        listed(one.title for one in shown),
        texts.facts(model, atlas),
        width=1100,
    )


def side_of(name: str, atlas: Atlas, across: str, up: str) -> Side:
    """A model's heads as dots."""
    known = [atlas.heads[one].to_numpy(float) if one in atlas.heads else None for one in (across, up, "cost")]
    x, y, cost = (np.full(len(atlas.names), np.nan) if one is None else one for one in known)
    at = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    found = tuple(
        Dot(head_name(atlas.names[n]), atlas.names[n][0], x[n], y[n], np.nan_to_num(cost[n]), atlas.labels[n].text)
        for n in at
    )
    return Side(name, atlas, tuple(atlas.names[n] for n in at), found)


def pictures(sides: Sequence[Side], across: str, up: str, palette: Palette) -> list[Curves]:
    """A map of each model; two share their axes and the sizes of their dots."""
    every = [dot for side in sides for dot in side.dots]
    x, y = say(MEASURE_NAMES[across]), say(MEASURE_NAMES[up])
    titles = (say("Heads of {model}: {up} over {across}", model=side.name, up=y, across=x) for side in sides)
    return [scatter(side.dots, x, y, title, palette, every) for side, title in zip(sides, titles, strict=True)]


def with_frame(shown: Curves, box: Box | None) -> Curves:
    """A map with a frame around a part of it."""
    if box is None:
        return shown
    left, right, low, high = box
    corners = np.array([[left, low], [right, low], [right, high], [left, high], [left, low]])
    return replace(shown, marks=[*shown.marks, Mark("line", corners, shown.palette.accent, 1.5)])


def inside(side: Side, box: Box) -> list[tuple[Head, Dot]]:
    """The heads in a part of the map, those that cost most first."""
    left, right, low, high = box
    found = [
        (head, dot)
        for head, dot in zip(side.heads, side.dots, strict=True)
        if left <= dot.x <= right and low <= dot.y <= high
    ]
    return sorted(found, key=lambda one: -one[1].cost)


def numbers(atlas: Atlas) -> pd.DataFrame:
    """All measures, a row a head, with its label; layers and heads from 1."""
    labels = [label.text for label in atlas.labels]
    table = atlas.heads.assign(layer=atlas.heads["layer"] + 1, head=atlas.heads["head"] + 1)
    table.insert(3, "label", labels)
    return table.set_index(["map", "layer", "head"])


def open_head(head: Head) -> None:
    """Look at one head; for callbacks."""
    choose_head(head)
    st.session_state[HEADS.key] = "head"


def _opening(side: Side) -> Callable[[int, int], None]:
    """A callback that looks at the head of a dot, in the model that it is of."""

    def open_dot(mark: int, _: int) -> None:
        choose_model(side.name)
        open_head(side.heads[mark])

    return open_dot


def _brushed(side: Side, box: Box) -> None:
    """The heads of the box by name and label; a button opens each."""
    found = inside(side, box)
    caption(texts.brushed(side.name, len(found), len(side.dots)))
    with st.container(key=f"brushed-{side.name}", horizontal=True):
        for at, (_, dot) in enumerate(found[:LISTED]):
            open_it = partial(_opening(side), side.dots.index(dot), 0)
            st.button(plain(f"{dot.name}: {dot.label}"), key=f"in-{side.name}-{at}", type="tertiary", on_click=open_it)
        st.button(say("No box"), key=f"no-box-{side.name}", type="tertiary", on_click=BRUSH.reset)


def _beside(model: LiveModel) -> tuple[str, Atlas] | None:
    """The second model, chosen among those that have an atlas; None, with the reason, where it cannot be shown."""
    names = ["", *(name for name in cache.with_atlas() if name != model.name)]
    BESIDE.hold(names)
    says = lambda name: say("beside {model}", model=name) if name else say("no other model")  # noqa: E731
    name = widgets.offer(
        st.selectbox, say("Beside"), names, format_func=says, label_visibility="collapsed", width=230, **BESIDE.storage
    )
    if not name:
        return None
    try:
        return name, cache.atlas(name, shared.translator(name).checkpoint.hash)
    except (AtlasError, CheckpointError) as error:
        st.info(plain(str(error)))
        return None


def _parts(drawn: Sequence[Component]) -> Sequence[Part]:
    if len(drawn) == 1:
        return drawn
    return [Columns(tuple([one] for one in drawn), (1.0,) * len(drawn))]
