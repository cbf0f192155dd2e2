"""The converter: one mask written as any interface wants it, with the line of code that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from model.masking.convention_table import CONVENTIONS, Convention
from model.masking.conventions import ConversionError, code, convert, from_boolean
from model.masking.rule import RuleError, Sizes, build_mask, read_lengths

from ..components.chart import chart
from ..export.save import save
from ..figures.gallery_pair import Panel, gallery_pair
from ..figures.palette import Look
from ..ui import theme, widgets
from ..ui.addresses.masks import (
    CONVERT_FROM,
    CONVERT_HEADS,
    CONVERT_LENGTHS,
    CONVERT_RULE,
    CONVERT_SIDE,
    CONVERT_TO,
    RULE,
)
from ..ui.captions import caption, plain
from .saving import converted

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..figures.palette import Palette

KEYS = 5
"""Tokens of the example: few enough to read every number."""
EMPTY = {
    "added -inf": "a row without any key becomes NaN",
    "added finite": "a row without any key becomes uniform over all keys",
    "flash": "a row without any key gives zeros",
    "sdpa": "a row without any key gives zeros in some kernels and NaN in others",
    "other": "what a row without any key gives depends on the fill the library uses",
}


@st.fragment
def show() -> None:
    """From one interface to another. A fragment: its controls leave the rest of the page alone."""
    with st.container(key="converter-mask", horizontal=True, vertical_alignment="bottom"):
        allowed, heads = _mask()
        menu = st.container(width="content")
    if allowed is None:
        return
    left, right = st.columns(2, gap="large")
    with left:
        source = widgets.selectbox("From", CONVERT_FROM)
        given = _side(CONVENTIONS[source], lambda: from_boolean(allowed, source, heads))
    with right:
        target = widgets.selectbox("To", CONVERT_TO)
        made = _side(CONVENTIONS[target], lambda: None if given is None else convert(given, source, target, heads))
    st.markdown("**The code**")
    line, remarks = code(source, target), notes(allowed, source, target)
    st.code(line, language="python", wrap_lines=True)
    caption("given is the mask on the left, a torch tensor; batch, heads and queries are its sizes.")
    for note in remarks:
        caption(note)
    panels = [Panel(f"sample {b + 1}", one[0].astype(float), one[0], sums=False) for b, one in enumerate(allowed)]
    tokens = [str(at + 1) for at in range(KEYS)]

    def picture(palette: Palette) -> go.Figure:
        return gallery_pair(panels, tokens, tokens, "What it says: 1 = may attend", Look(palette))

    chart(picture(theme.palette()), "The mask of each sample", key="converter-picture", on_cell=lambda _, __: None)
    ends = ((CONVENTIONS[source], given), (CONVENTIONS[target], made))
    said = [f"{how.name}: {meaning(how)}. Its {printed(one).splitlines()[0]}." for how, one in ends if one is not None]
    names = f"from {CONVENTIONS[source].name} to {CONVENTIONS[target].name}"
    with menu:
        save(converted(picture, [*said, *remarks], line, made, names))


def _mask() -> tuple[np.ndarray | None, int]:
    """(B, 1, Q, K) bool, True = may attend, by a rule; and the number of heads."""
    rule = widgets.text_input("A query may attend where", CONVERT_RULE, RULE.get() or RULE.default, width=300)
    lengths = widgets.text_input("Real keys a sample", CONVERT_LENGTHS, f"{KEYS}, {KEYS - 2}", width=160)
    side = widgets.selectbox("padded at the", CONVERT_SIDE, width=205)
    heads = int(widgets.number_input("Heads", CONVERT_HEADS, width=120))
    try:
        return build(rule, Sizes(KEYS, KEYS, read_lengths(lengths, KEYS), side)), heads
    except RuleError as error:
        st.error(plain(str(error)))
        return None, heads


def _side(how: Convention, made: Any) -> np.ndarray | None:
    """One interface: what its documentation asks for, and the actual values."""
    caption(f"{meaning(how)}. Shape {how.shape}. {how.trap}.")
    try:
        array = made()
    except ConversionError as error:
        st.warning(plain(str(error)))
        return None
    if array is None:
        caption("Nothing to convert: the other side cannot hold this mask.")
        return None
    st.code(printed(array), language=None)
    return array


def meaning(how: Convention) -> str:
    """What blocks, in words."""
    if how.layout == "lengths":
        return "No mask: cumulative lengths"
    return {
        "true keeps": "True: may attend",
        "true blocks": "True: may not attend",
        "one keeps": "1: may attend, 0: may not",
        "one blocks": "1: may not attend, 0: may",
        "added": f"Added to the scores: 0 where a query may attend, {how.fill:.3g} where not",
    }[how.values]


def printed(array: np.ndarray) -> str:
    """Shape, type and every value."""
    values = array.astype(np.int8) if array.dtype == bool else array
    shown = np.array2string(values, separator=" ", threshold=4000, max_line_width=100, precision=3)
    if array.dtype == bool:
        shown = shown.replace("0", "·").replace("1", "T")
    signs = " (T = True, · = False)" if array.dtype == bool else ""
    return f"shape {tuple(array.shape)}, {array.dtype}{signs}\n{shown}"


def notes(allowed: np.ndarray, source: str, target: str) -> list[str]:
    """What is lost or treated otherwise on the way, a sentence each."""
    found = []
    one, other = CONVENTIONS[source], CONVENTIONS[target]
    if other.layout in ("keys", "lengths"):
        found.append("Lost: which queries are padding. Only keys are masked, so rows of padding queries carry weights.")
    if target == "hf_2d":
        found.append("Lost: any causal part. The model adds its own where its class is causal.")
    if other.layout == "lengths":
        found.append("Lost: padding beyond the longest sentence, which is cut off.")
    if other.values == "added" and one.values != "added":
        found.append("The result is in float32: in half precision use the lowest number of that format as the fill.")
    if not allowed.any(-1).all():
        found.append(f"Some query here has no key at all: in the target {EMPTY[_empty(other, target)]}.")
    return found


def _empty(how: Convention, name: str) -> str:
    if how.layout == "lengths":
        return "flash"
    if how.values == "added":
        return "added -inf" if np.isneginf(how.fill) else "added finite"
    return name if name in EMPTY else "other"
