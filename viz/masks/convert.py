"""The part Convert of the page Masks: one mask written in the convention of any interface, with the code."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from attenscope.language import say, to_say
from attenscope.masks.conventions import (
    CONVENTIONS,
    Convention,
    ConversionError,
    MaskValues,
    convert_mask,
    mask_from_boolean,
    write_conversion_code,
)
from attenscope.masks.rule import MaskSizes, RuleError, build_mask, parse_sample_lengths
from attenscope.viz.export.parts import Chart, Part, Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view, view_fragment
from attenscope.viz.figures.figure_style import Look, Palette
from attenscope.viz.figures.masks import MaskPanel, plot_mask_panels
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.address import is_in_address
from attenscope.viz.ui.addresses.masks import (
    MASKS_CONVERT_FROM,
    MASKS_CONVERT_HEADS,
    MASKS_CONVERT_LENGTHS,
    MASKS_CONVERT_RULE,
    MASKS_CONVERT_SIDE,
    MASKS_CONVERT_TO,
    MASKS_RULE,
)
from attenscope.viz.ui.captions import draw_caption, escape_message
from attenscope.viz.web.charts import draw_chart

EXAMPLE_KEYS = 5
"""Tokens of the example: few enough to read every number."""
MASK_PICTURE_ALT = to_say("The mask of each sample")


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
        return write_conversion_code(self.source, self.target)

    @property
    def notes(self) -> list[str]:
        return list_conversion_losses(self.allowed, self.source, self.target)


@view_fragment
def draw_converter_view() -> None:
    """Draw one mask in two conventions. A fragment: its controls leave the rest of the page alone."""
    with st.container(key="converter-mask", horizontal=True, vertical_alignment="bottom"):
        allowed, heads = _draw_mask_rule_and_head_count_controls()
    if allowed is None:
        return
    conversion = _draw_conversion(allowed, heads)
    with st.container(key="converter-code"):
        st.markdown(f"**{say('The code')}**")
        st.code(conversion.code, language="python", wrap_lines=True)
        draw_caption(say("given is the mask on the left, a torch tensor; batch, heads and queries are its sizes."))
    for note in conversion.notes:
        draw_caption(note)
    drawn = partial(_plot_mask, allowed)
    draw_chart(drawn(style.get_palette()), say(MASK_PICTURE_ALT), key="converter-picture", on_cell=lambda _, __: None)
    register_savable_view(_build_saved_view(conversion, drawn))


def _draw_mask_rule_and_head_count_controls() -> tuple[np.ndarray | None, int]:
    """(B, 1, Q, K) bool, True = may attend, by a rule; and the number of heads."""
    built = st.session_state.get(MASKS_RULE.key)
    if built and MASKS_CONVERT_RULE.key not in st.session_state and not is_in_address(MASKS_CONVERT_RULE):
        MASKS_CONVERT_RULE.put(built)  # Into the address too, which would not hold the default of a widget.
    rule = controls.text_input(say("A query may attend where"), MASKS_CONVERT_RULE, MASKS_RULE.default, width=300)
    lengths = controls.text_input(
        say("Real keys a sample"), MASKS_CONVERT_LENGTHS, f"{EXAMPLE_KEYS}, {EXAMPLE_KEYS - 2}", width=160
    )
    side = controls.selectbox(say("padded at the"), MASKS_CONVERT_SIDE, width=205)
    heads = int(controls.number_input(say("Heads"), MASKS_CONVERT_HEADS, width=120))
    try:
        return build_mask(
            rule, MaskSizes(EXAMPLE_KEYS, EXAMPLE_KEYS, parse_sample_lengths(lengths, EXAMPLE_KEYS), side)
        ), heads
    except RuleError as error:
        st.error(escape_message(str(error)))
        return None, heads


def _draw_conversion(allowed: np.ndarray, heads: int) -> Conversion:
    """The two conventions beside each other, each with its array."""
    left, right = st.columns(2, gap="large")
    with left:
        source = controls.selectbox(say("From"), MASKS_CONVERT_FROM)
        first = _draw_convention_array(CONVENTIONS[source], lambda: mask_from_boolean(allowed, source, heads))
    with right:
        target = controls.selectbox(say("To"), MASKS_CONVERT_TO)
        second = _draw_convention_array(
            CONVENTIONS[target], lambda: None if first is None else convert_mask(first, source, target, heads)
        )
    return Conversion(allowed, source, target, first, second)


def _draw_convention_array(convention: Convention, make: Callable[[], np.ndarray | None]) -> np.ndarray | None:
    """Draw what an interface's documentation asks for and the actual values; returns the array."""
    draw_caption(
        say(
            "{meaning}. Shape {shape}. {trap}.",
            meaning=describe_blocking_values(convention),
            shape=say(convention.shape),
            trap=say(convention.trap),
        )
    )
    try:
        array = make()
    except ConversionError as error:
        st.warning(escape_message(str(error)))
        return None
    if array is None:
        draw_caption(say("Nothing to convert: the other side cannot hold this mask."))
        return None
    st.code(format_array(array), language=None)
    return array


def _plot_mask(allowed: np.ndarray, palette: Palette) -> go.Figure:
    panels = [
        MaskPanel(say("sample {sample}", sample=b + 1), one[0].astype(float), one[0], sums=False)
        for b, one in enumerate(allowed)
    ]
    tokens = [str(at + 1) for at in range(EXAMPLE_KEYS)]
    return plot_mask_panels(panels, tokens, tokens, say("What it says: 1 = may attend"), Look(palette))


def _build_saved_view(conversion: Conversion, picture: Callable[[Palette], go.Figure]) -> SavedView:
    """What the mask says, how both interfaces write it, the code between them, and the mask itself as a file."""
    source, target = CONVENTIONS[conversion.source], CONVENTIONS[conversion.target]
    sides = ((source, conversion.source_array), (target, conversion.target_array))
    lines: Sequence[str] = [
        *(
            say(
                "{name}: {meaning}. Its {array}.",
                name=say(one.name),
                meaning=describe_blocking_values(one),
                array=describe_array_shape_and_type(array),
            )
            for one, array in sides
            if array is not None
        ),
        *conversion.notes,
        say("The code:"),
        *conversion.code.splitlines(),
    ]

    def build_parts(palette: Palette) -> list[Part]:
        return [
            Chart(picture(palette), say(MASK_PICTURE_ALT)),
            *map(Words, lines),
        ]  # Code is read at a desk, not in a scene.

    array = conversion.target_array
    files = {} if array is None else {"mask.npy": (say("The converted mask (NPY)"), lambda: _encode_npy(array))}
    title = say("A mask, from {source} to {target}", source=say(source.name), target=say(target.name))
    return SavedView("mask-converted", build_parts, None, title, {"code": conversion.code}, files, width=1100)


def _encode_npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


# The converter in words: what a convention means, its values in full, and what a conversion loses.


EMPTY_ROW_EFFECTS = {
    "added -inf": to_say("a row without any key becomes NaN"),
    "added finite": to_say("a row without any key becomes uniform over all keys"),
    "flash": to_say("a row without any key gives zeros"),
    "sdpa": to_say("a row without any key gives zeros in some kernels and NaN in others"),
    "other": to_say("what a row without any key gives depends on the fill the library uses"),
}
VALUE_MEANINGS: dict[MaskValues, str] = {
    "true keeps": to_say("True: may attend"),
    "true blocks": to_say("True: may not attend"),
    "one keeps": to_say("1: may attend, 0: may not"),
    "one blocks": to_say("1: may not attend, 0: may"),
}


def describe_blocking_values(convention: Convention) -> str:
    """What blocks, in words."""
    if convention.layout == "lengths":
        return say("No mask: cumulative lengths")
    if convention.values == "added":
        return say("Added to the scores: 0 where a query may attend, {fill:.3g} where not", fill=convention.fill)
    return say(VALUE_MEANINGS[convention.values])


def format_array(array: np.ndarray) -> str:
    """Shape, type and every value."""
    values = array.astype(np.int8) if array.dtype == bool else array
    shown = np.array2string(values, separator=" ", threshold=4000, max_line_width=100, precision=3)
    if array.dtype == bool:
        shown = shown.replace("0", "·").replace("1", "T")
    return f"{describe_array_shape_and_type(array)}\n{shown}"


def describe_array_shape_and_type(array: np.ndarray) -> str:
    """Shape and type."""
    said = {"shape": tuple(array.shape), "type": array.dtype}
    if array.dtype == bool:
        return say("shape {shape}, {type} (T = True, · = False)", **said)
    return say("shape {shape}, {type}", **said)


def list_conversion_losses(allowed: np.ndarray, source: str, target: str) -> list[str]:
    """What is lost or treated otherwise on the way, a sentence each."""
    lost = []
    before, after = CONVENTIONS[source], CONVENTIONS[target]
    if after.layout in ("keys", "lengths"):
        lost.append(
            say("Lost: which queries are padding. Only keys are masked, so rows of padding queries carry weights.")
        )
    if target == "hf_2d":
        lost.append(say("Lost: any causal part. The model adds its own where its class is causal."))
    if after.layout == "lengths":
        lost.append(say("Lost: padding beyond the longest sentence, which is cut off."))
    if after.values == "added" and before.values != "added":
        lost.append(
            say("The result is in float32: in half precision use the lowest number of that format as the fill.")
        )
    if not allowed.any(-1).all():
        becomes = say(EMPTY_ROW_EFFECTS[_get_empty_row_effect_key(after, target)])
        lost.append(say("Some query here has no key at all: in the target {becomes}.", becomes=becomes))
    return lost


def _get_empty_row_effect_key(convention: Convention, name: str) -> str:
    if convention.layout == "lengths":
        return "flash"
    if convention.values == "added":
        return "added -inf" if np.isneginf(convention.fill) else "added finite"
    return name if name in EMPTY_ROW_EFFECTS else "other"
