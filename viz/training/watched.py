"""The attention of a fixed input at the steps of somebody's own training, as ``attenscope.watch`` has kept it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from model.language.say import number, say

from ..components.snapshots import Scrubbed, StopShown, packed, snapshots
from ..export.parts import Component, Words
from ..export.save import SavedView, facts_of, save
from ..traces.session import close_run
from ..ui import controls as shared
from ..ui.captions import caption, plain
from . import controls, texts

if TYPE_CHECKING:
    from model.untrusted_trace import OpenedRun


def show(run: OpenedRun) -> None:
    """Draw the bar with the name of the run, its pictures, and what they are."""
    last = run.traces[-1].drawable
    with st.container(key="openedbar", horizontal=True, vertical_alignment="center"):
        st.markdown(
            say("**{name}** · a training of {model}", name=plain(run.name), model=plain(last.model)), width="content"
        )
        st.button(say("Back to the models"), type="tertiary", key="close-run", on_click=close_run)
    st.fragment(_pictures)(run)


def _pictures(run: OpenedRun) -> None:
    """The snapshots and their controls. A fragment: nothing else on the page depends on them."""
    last = run.traces[-1].drawable
    with st.container(key="of-view", horizontal=True, vertical_alignment="center"):
        kind = shared.kind_of(tuple(last.maps))
        place = shared.place(last.maps[kind])
        look, rows = shared.look()
        menu = st.container(width="content")
    maps = [opened.drawable.maps[kind] for opened in run.traces]
    steps = list(run.steps)
    names = [say("step {step:,} of {last:,}", step=step, last=steps[-1]) for step in steps]
    shown = [StopShown(number(step, ","), name, None, None, "") for step, name in zip(steps, names, strict=True)]
    identity = f"{run.traces[-1].identity} {kind}"
    place = min(place[0], maps[0].layers - 1), min(place[1], maps[0].heads - 1)
    scrubbed = Scrubbed(shown, maps, controls.chosen_stop(steps), place, look, rows, identity)
    with st.container(key="picture"):
        stopped = lambda stop: controls.keep_stop(steps[stop])  # noqa: E731
        snapshots(scrubbed, key="watched", on_stop=stopped, on_pick=shared.choose)
    said = texts.watched(len(steps), steps[0], steps[-1])
    caption(said)
    with menu:
        save(
            SavedView(
                "training-watched",
                lambda palette: [
                    Component("snapshots", packed(replace(scrubbed, look=replace(look, palette=palette)))),
                    Words(said),
                ],
                title=say("Training of {model}", model=last.model),
                facts=facts_of(last, steps=", ".join(map(str, steps))),
                width=1280,
            )
        )
