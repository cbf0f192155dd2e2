"""The converter: one mask written as any interface wants it, with the line of code that does it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from model.language.say import say, to_say
from model.masking.convention_table import CONVENTIONS, Convention
from model.masking.conventions import ConversionError, code, convert, from_boolean
from model.masking.rule import RuleError, Sizes, build_mask, read_lengths

from ...components.chart import chart
from ...export.parts import Chart, Part, Words
from ...export.save import SavedView, save
from ...figures.masks.pair import Panel, gallery_pair
from ...figures.palette import Look
from ...ui import theme, widgets
from ...ui.addresses.masks import (
    CONVERT_FROM,
    CONVERT_HEADS,
    CONVERT_LENGTHS,
    CONVERT_RULE,
    CONVERT_SIDE,
    CONVERT_TO,
    RULE,
)
from ...ui.captions import caption, plain
from .texts import described, meaning, notes, printed

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ...figures.palette import Palette

KEYS = 5
"""Tokens of the example: few enough to read every number."""
ALT = to_say("The mask of each sample")


@dataclass(frozen=True, eq=False)
class Conversion:
    """A mask as two interfaces write it."""

    allowed: np.ndarray
    """(B, 1, Q, K) bool, True = may attend."""
    source: str
    """A name of :data:`CONVENTIONS`, as is `target`."""
    target: str
    source_array: np.ndarray | None
    """None where the interface cannot hold this mask, as is `target_array`."""
    target_array: np.ndarray | None

    @property
    def code(self) -> str:
        """The line that converts a torch tensor called ``given``."""
        return code(self.source, self.target)

    @property
    def notes(self) -> list[str]:
        return notes(self.allowed, self.source, self.target)


@st.fragment
def show() -> None:
    """Draw one mask in two conventions. A fragment: its controls leave the rest of the page alone."""
    with st.container(key="converter-mask", horizontal=True, vertical_alignment="bottom"):
        allowed, heads = _mask()
        menu = st.container(width="content")
    if allowed is None:
        return
    conversion = _convert(allowed, heads)
    with st.container(key="converter-code"):
        st.markdown(f"**{say('The code')}**")
        st.code(conversion.code, language="python", wrap_lines=True)
        caption(say("given is the mask on the left, a torch tensor; batch, heads and queries are its sizes."))
    for note in conversion.notes:
        caption(note)
    drawn = partial(_picture, allowed)
    chart(drawn(theme.palette()), say(ALT), key="converter-picture", on_cell=lambda _, __: None)
    with menu:
        save(_saved(conversion, drawn))


def _mask() -> tuple[np.ndarray | None, int]:
    """(B, 1, Q, K) bool, True = may attend, by a rule; and the number of heads."""
    built = st.session_state.get(RULE.key) or RULE.default
    rule = widgets.text_input(say("A query may attend where"), CONVERT_RULE, built, width=300)
    lengths = widgets.text_input(say("Real keys a sample"), CONVERT_LENGTHS, f"{KEYS}, {KEYS - 2}", width=160)
    side = widgets.selectbox(say("padded at the"), CONVERT_SIDE, width=205)
    heads = int(widgets.number_input(say("Heads"), CONVERT_HEADS, width=120))
    try:
        return build_mask(rule, Sizes(KEYS, KEYS, read_lengths(lengths, KEYS), side)), heads
    except RuleError as error:
        st.error(plain(str(error)))
        return None, heads


def _convert(allowed: np.ndarray, heads: int) -> Conversion:
    """The two conventions beside each other, each with its array."""
    left, right = st.columns(2, gap="large")
    with left:
        source = widgets.selectbox(say("From"), CONVERT_FROM)
        first = _draw_side(CONVENTIONS[source], lambda: from_boolean(allowed, source, heads))
    with right:
        target = widgets.selectbox(say("To"), CONVERT_TO)
        second = _draw_side(
            CONVENTIONS[target], lambda: None if first is None else convert(first, source, target, heads)
        )
    return Conversion(allowed, source, target, first, second)


def _draw_side(convention: Convention, make: Callable[[], np.ndarray | None]) -> np.ndarray | None:
    """Draw what an interface's documentation asks for and the actual values; returns the array."""
    caption(
        say(
            "{meaning}. Shape {shape}. {trap}.",
            meaning=meaning(convention),
            shape=say(convention.shape),
            trap=say(convention.trap),
        )
    )
    try:
        array = make()
    except ConversionError as error:
        st.warning(plain(str(error)))
        return None
    if array is None:
        caption(say("Nothing to convert: the other side cannot hold this mask."))
        return None
    st.code(printed(array), language=None)
    return array


def _picture(allowed: np.ndarray, palette: Palette) -> go.Figure:
    panels = [
        Panel(say("sample {sample}", sample=b + 1), one[0].astype(float), one[0], sums=False)
        for b, one in enumerate(allowed)
    ]
    tokens = [str(at + 1) for at in range(KEYS)]
    return gallery_pair(panels, tokens, tokens, say("What it says: 1 = may attend"), Look(palette))


def _saved(conversion: Conversion, picture: Callable[[Palette], go.Figure]) -> SavedView:
    """What the mask says, how both interfaces write it, the code between them, and the mask itself as a file."""
    source, target = CONVENTIONS[conversion.source], CONVENTIONS[conversion.target]
    sides = ((source, conversion.source_array), (target, conversion.target_array))
    lines: Sequence[str] = [
        *(
            say("{name}: {meaning}. Its {array}.", name=say(one.name), meaning=meaning(one), array=described(array))
            for one, array in sides
            if array is not None
        ),
        *conversion.notes,
        say("The code:"),
        *conversion.code.splitlines(),
    ]

    def parts(palette: Palette) -> list[Part]:
        return [Chart(picture(palette), say(ALT)), *map(Words, lines)]  # Code is read at a desk, not in a scene.

    array = conversion.target_array
    files = {} if array is None else {"mask.npy": (say("The converted mask (NPY)"), lambda: _npy(array))}
    title = say("A mask, from {source} to {target}", source=say(source.name), target=say(target.name))
    return SavedView("mask-converted", parts, None, title, {"code": conversion.code}, files, width=1100)


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()
