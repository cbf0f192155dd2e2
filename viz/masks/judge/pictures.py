"""The four pictures: what was meant, what was given, what took effect, and what the output depends on."""

from __future__ import annotations

import streamlit as st

from model.language.say import say, to_say

from ...components.mask_editor import Panel, Sign, mask_editor
from ...figures.masks.colours import MaskColours, mask_colours
from ...ui import theme, widgets
from ...ui.addresses.masks import DEPTH, HEAD, LAYER, SAMPLE
from ...ui.url_state.kinds import Number
from . import verdict
from .input import edits
from .input.mask_input import MaskInput
from .judgement import Judgement
from .panels import panels
from .slices import LARGEST_RUN, slice_of

LEGEND = (
    ("allowed", "", to_say("allowed")),
    ("blocked", "╱", to_say("blocked")),
    ("leak", "+", to_say("leak: open, should be blocked")),
    ("over", "−", to_say("over-blocked: should be open")),
    ("nan", "×", "NaN"),
    ("dim", "╱", to_say("row of a padding query")),
)
MARKS = (("∞", "-inf"), ("•", to_say("finite fill")), ("=", to_say("uniform row")), ("▫", to_say("a 1 was added")))


def place(mask_input: MaskInput, judgement: Judgement) -> tuple[int, int, int, int]:
    """Which sample, layer and head is drawn (from 0), and through how many layers dependence is followed."""
    samples, layers, heads, queries, keys = judgement.arrays.sizes
    worst = next((one for one in verdict.sorted_findings(judgement.before) if one.severity != "info"), None)
    first = (worst.sample, worst.layer, worst.head) if worst is not None else (0, 0, 0)
    chosen = [
        _index(label, of, size, index or 0)
        for label, of, size, index in (
            (say("Sample"), SAMPLE, samples, first[0]),
            (say("Layer"), LAYER, layers, first[1]),
            (say("Head"), HEAD, heads, first[2]),
        )
    ]
    depth = 1
    if queries == keys and judgement.arrays.mask is not None and queries <= LARGEST_RUN:
        depth = widgets.selectbox(say("Output after layers"), DEPTH, width=240)
    return chosen[0], chosen[1], chosen[2], depth


def _index(label: str, of: Number[int], size: int, first: int) -> int:
    """A choice from 1 on the page; until there is one, the place of the worst finding."""
    if size == 1:
        return 0
    if st.session_state.get(of.key) not in range(1, size + 1):
        st.session_state.pop(of.key, None)
    return widgets.offer(st.selectbox, label, range(1, size + 1), first, width=130, **of.binding) - 1


def show(mask_input: MaskInput, judgement: Judgement, at: tuple[int, int, int, int]) -> list[Panel]:
    """Draw them, with what their signs mean; returns what was drawn."""
    sample, layer, head, depth = at
    one = slice_of(judgement, sample, layer, head)
    colours = mask_colours(theme.palette())
    drawn = panels(mask_input, judgement, one, depth)

    def turned(picture: str, row: int, column: int) -> None:
        edits.turn(mask_input.identity, picture, sample, row, column)

    marked = edits.edits(mask_input.identity).marked
    with st.container(key="four"):
        mask_editor(
            drawn,
            colours,
            key="mask-pictures",
            marked=marked,
            tokens=mask_input.tokens,
            legend=legend(colours),
            on_cell=turned,
        )
    return drawn


def legend(colours: MaskColours) -> list[Sign]:
    """What the colours and signs in the pictures say."""
    shades = vars(colours)
    ink = {name: shades["sign" if name in ("leak", "over") else "ink"] for name, _, _ in LEGEND}
    keys = [Sign(sign, say(said), shades[name], ink[name]) for name, sign, said in LEGEND]
    return [*keys, *(Sign(sign, say(said)) for sign, said in MARKS)]
