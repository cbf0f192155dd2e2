"""Bring a mask or weights, see them in four pictures, and read a verdict with its fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from model.faults.printed_examples import EXAMPLES

from ...export.save import save
from ...ui import widgets
from ...ui.addresses.masks import FROM
from ...ui.captions import plain
from ..saving import judged_mask
from . import build, edits, from_trace, paste, pictures, upload, verdict
from . import steps as pipeline
from .input import Brought
from .judged import judged

STYLE = Path(__file__).parent / "judge.css"
Way = Callable[[], Brought | None]
WAYS: dict[str, Way] = {"paste": paste.pasted, "upload": upload.uploaded, "build": build.built}


@st.fragment
def show() -> None:
    """One way to bring a mask at a time. A fragment: its controls leave the rest of the page alone."""
    st.html(STYLE)
    with st.container(key="lead"):
        st.markdown("Paste the mask or the weights you printed, or start from an example that is broken:")
        with st.container(key="mask-examples", horizontal=True, gap="small"):
            for name in EXAMPLES:
                st.button(name, key=f"broken-{name}", on_click=paste.take_example, args=(name,))
    ways = WAYS | ({from_trace.WAY: from_trace.brought} if from_trace.offered() else {})
    way = widgets.segmented_control("From", FROM, tuple(ways))
    left, right = st.columns([0.42, 0.58], gap="large")
    with left:
        brought = ways[way]()
    if brought is None:
        return
    top = right.container(key="verdict")
    _judged(brought, top, way == "build")


def _judged(brought: Brought, top: Any, built: bool) -> None:
    try:
        found = judged(brought, edits.edits(brought.identity))
    except ValueError as error:
        st.error(plain(str(error)))
        return
    if built:
        edits.in_address(brought.identity, "given")
    with top:
        verdict.headline(brought, found)
    with st.container(key="mask-bar", horizontal=True, vertical_alignment="center"):
        at = pictures.place(brought, found)
        if edits.edits(brought.identity).cells:
            st.button("Turn all cells back", key="reset-cells", on_click=edits.reset, args=(brought.identity,))
        menu = st.container(width="content")
    drawn = pictures.show(brought, found, at)
    with menu:
        ranked = verdict.sorted_findings(found.diagnosis)
        bad = [one for one in ranked if one.severity != "info"]
        headline = verdict.headline_words(bad, bool(found.done))
        marked = edits.edits(brought.identity).marked
        save(judged_mask(drawn, marked, headline, verdict.meaning(brought, found.diagnosis), ranked, brought.tokens))
    verdict.rest(brought, found)
    with st.expander("Step by step: scores, mask, softmax, dropout"):
        pipeline.show(found, at)
