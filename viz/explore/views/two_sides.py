"""A view of two sides: the chosen head beside another head, or a run beside one of another sentence or model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from model.analysis.difference import Pairs, shared_axes, single_head
from model.checkpoint.load import CheckpointError
from model.language.say import say
from model.translate import InputError
from viz.components.presenter import on_stage
from viz.export.parts import Columns, Part, Words
from viz.ui.captions import plain

from ..captions import token_captions
from ..choices import OF_ALL_HEADS
from ..saving import DrawnView, offer
from ..scene import Scene
from ..token_display import display_tokens
from .comparison import across, heatmaps
from .head_views import DRAW
from .second_side import SecondSide, second_side

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from viz.figures.palette import Look
    from viz.ui.addresses.explore import SingleView
    from viz.ui.addresses.pins import Place


def show(view: SingleView, scene: Scene, menu: DeltaGenerator) -> None:
    """Draw a view of both sides, with the controls that choose the second, and put what can be saved into `menu`."""
    try:
        second = second_side(scene, of_head=view not in OF_ALL_HEADS)
    except (InputError, CheckpointError) as error:
        st.info(plain(str(error)))
        return
    if second is None:
        return
    drawn = heatmaps(scene, second) if view == "heatmap" else both_sides(view, scene, second)
    if drawn:
        token_captions(drawn.displays)
        with menu:
            offer(drawn, scene, "compare")


def both_sides(view: SingleView, scene: Scene, second: SecondSide) -> DrawnView | None:
    """Draw a view of each side. Its controls stand once; what is pinned is marked where both have it.

    They stand one above the other; on a stage, which is wide and low, views of one head stand beside each other.
    """
    names = second.first_name, second.name
    beside = on_stage() and view not in OF_ALL_HEADS
    places = st.columns(2, gap="large") if beside else (st.container(), st.container())
    drawn = []
    for side, name, place in zip((scene, SecondScene.of(scene, second)), names, places, strict=True):
        with place, st.container(key=side.element_key("side")):
            st.markdown(f"**{plain(name)}**")
            drawn.append(DRAW[view](side))
    first, other = drawn
    if first is None or other is None:
        return None

    def parts(look: Look) -> list[Part]:
        titled = zip(names, (first, other), strict=True)
        columns = tuple([Words(name, "picture", "heading"), *one.parts(look)] for name, one in titled)
        return [Columns(columns, (0.5, 0.5))] if beside else [part for column in columns for part in column]

    displays = {say("first {map}", map=name): one for name, one in first.displays.items()}
    displays |= {say("second {map}", map=name): one for name, one in other.displays.items()}
    return DrawnView(parts, first.numbers, displays=displays)


@dataclass(frozen=True, eq=False)
class SecondScene(Scene):
    """The second side. Its pins are those of the first, on the tokens that both have."""

    first: Scene = field(kw_only=True)

    @classmethod
    def of(cls, scene: Scene, second: SecondSide) -> SecondScene:
        merge = scene.display.merge or second.in_words
        tokens = display_tokens(second.attention, scene.rows, merge=merge, hide=scene.display.hide)
        place = second.source, tokens, second.layer, second.head, scene.display
        return cls(*place, side="second", first=scene)

    @cached_property
    def shared(self) -> tuple[Pairs, Pairs]:
        """Rows and columns of the captured maps that both have."""
        first, second = (single_head(one.tokens.original, 0, 0) for one in (self.first, self))
        return shared_axes(first, second, self.rows)

    @property
    def captured_query(self) -> int | None:
        return across((self.first.captured_query, None), self.shared, 1)[0]

    @property
    def captured_key(self) -> int | None:
        return across((None, self.first.captured_key), self.shared, 1)[1]

    def position(self, length: int) -> int | None:
        found = None if self.kind == "encoder" else self.captured_query
        step = None if found is None else found - self.source.first_row
        return step if step is not None and 0 <= step < length else None

    def pin(self, *, query: int | None = None, key: int | None = None) -> None:
        row = None if query is None else self.tokens.queries[query][0]
        column = None if key is None else self.tokens.keys[key][0]
        tokens, (row, column) = self.first.tokens, across((row, column), self.shared, 0)
        self.first.pin(query=tokens.row(row), key=tokens.column(column))

    def pin_captured(self, query: int) -> None:
        row, _ = across((query, None), self.shared, 0)
        if row is not None:
            self.first.pin_captured(row)

    def pin_places(self, cell: Mapping[Place, int]) -> None:
        """Pin nothing: a position of another run means something else in the first; for callbacks."""
