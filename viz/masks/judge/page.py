"""Judge a mask, or the weights it led to: four pictures, and a verdict with its fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.faults.printed_examples import EXAMPLES
from model.language.say import say, sentences

from ...components.presenter import on_stage, presenting
from ...export.save import save
from ...talk import beside
from ...traces.kept import KeptError
from ...traces.session import Handed
from ...ui import widgets
from ...ui.addresses.masks import FROM
from ...ui.captions import caption, plain
from . import passed, pictures, saving, steps, verdict
from .input import build, edits, from_trace, paste, upload
from .input.mask_input import MaskInput
from .judgement import judge_with_edits

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

STYLE = Path(__file__).parent / "judge.css"
Way = Callable[[], MaskInput | None]
HANDED = "mask on stage"
"""Of the session of the stage: what the visitor judged as they went there, None for nothing."""
WAYS: dict[str, Way] = {"paste": paste.mask_input, "upload": upload.mask_input, "build": build.mask_input}


@st.fragment
def show() -> None:
    """Draw one way to hand over a mask at a time. A fragment: its controls leave the rest of the page alone."""
    st.html(STYLE)
    with st.container(key="lead"):
        st.markdown(say("Paste the mask or the weights you printed, or start from an example that is broken:"))
        with st.container(key="mask-examples", horizontal=True, gap="small"):
            for name in EXAMPLES:
                st.button(say(name), key=f"broken-{name}", on_click=paste.take_example, args=(name,))
    if presenting() and HANDED in st.session_state:
        _on_stage(st.session_state[HANDED])
        return
    ways = WAYS | ({from_trace.SOURCE: from_trace.mask_input} if from_trace.is_open() else {})
    way = widgets.segmented_control(say("From"), FROM, tuple(ways))
    left, right = st.columns([0.42, 0.58], gap="large")
    with left:
        mask_input = ways[way]()
    _hand_over(mask_input)
    if mask_input is not None:
        _draw(mask_input, right.container(key="verdict"), built=way == "build")


def _on_stage(mask_input: MaskInput | None) -> None:
    """Draw what the visitor judged as they went on the stage."""
    if mask_input is None:
        st.info(say("Nothing is judged yet: paste, upload or build a mask first."))
        return
    _draw(mask_input, st.container(key="verdict"), built=False)


def _hand_over(mask_input: MaskInput | None) -> None:
    """Let the stage show the same mask with the same edits; pasted arrays stand in no address."""
    if on_stage():
        return
    made = {edits.KEY: edits.edits(mask_input.identity)} if mask_input else {}
    size = sum(array.nbytes for array in mask_input.arrays.values()) if mask_input else 0
    try:
        beside.hand_over(Handed({HANDED: mask_input, **made}), size)
    except KeptError as error:
        caption(sentences(say("On the whole screen it cannot be shown."), str(error)))


def _draw(mask_input: MaskInput, top: DeltaGenerator, *, built: bool) -> None:
    """Draw the verdict at the top, the pictures below it, and all else that is to be said."""
    try:
        judgement = judge_with_edits(mask_input, edits.edits(mask_input.identity))
    except ValueError as error:
        st.error(plain(str(error)))
        return
    if built:
        edits.in_address(mask_input.identity, "given")
    with top:
        verdict.headline(mask_input, judgement)
    with st.container(key="mask-bar", horizontal=True, vertical_alignment="center"):
        at = pictures.place(mask_input, judgement)
        if edits.edits(mask_input.identity).cells:
            label = say("Turn all cells back")
            st.button(label, key="reset-cells", on_click=edits.reset, args=(mask_input.identity,))
        menu = st.container(width="content")
    drawn = pictures.show(mask_input, judgement, at)
    with menu:
        save(saving.saved_view(mask_input, judgement, drawn))
    verdict.rest(mask_input, judgement)
    if mask_input.passed is not None:
        passed.show(mask_input.passed, mask_input.tokens, at)
    with st.expander(say("Step by step: scores, mask, softmax, dropout")):
        steps.show(judgement, at)
