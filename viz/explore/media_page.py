"""The page Explore for a model that reads a sound or a picture: a file of its folder, or one that is uploaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from attenscope.hugging_face.media import MediaModel, Medium
from attenscope.language import say, to_say
from attenscope.runnable_model import LocalError
from attenscope.text.patches import Patches
from attenscope.trace import AttentionMap
from attenscope.viz.explore.controls import MODEL_OF_PICTURE
from attenscope.viz.explore.picture_view import is_over_patches
from attenscope.viz.explore.screen import draw_screen
from attenscope.viz.explore.trace_page import StaticTrace, draw_trace
from attenscope.viz.traces.session import (
    OPEN_ERROR_KEY,
    UPLOAD_MARK,
    UPLOADED_FILE_KEY,
    UploadedFile,
    get_uploaded_file,
)
from attenscope.viz.ui import cache, controls
from attenscope.viz.ui.address import is_in_address
from attenscope.viz.ui.addresses.explore import EXPLORE_FILE, EXPLORE_VIEW, SingleView
from attenscope.viz.ui.addresses.shared import HEAD, KIND, LAYER, PIN
from attenscope.viz.ui.captions import escape_message

MAX_FILE_MEGABYTES = 20
FILE_LABELS: Mapping[Medium, str] = {"sound": to_say("Sound"), "picture": to_say("Picture")}
UPLOAD_LABELS: Mapping[Medium, str] = {"sound": to_say("Upload a sound"), "picture": to_say("Upload a picture")}


def draw_media_page(own: MediaModel) -> None:
    """Draw the choice of a file, and what the model attends to while it reads it."""
    name, uploaded = _draw_file_choice(own)
    if name.startswith(UPLOAD_MARK) and uploaded is None:
        st.info(say("This address names a file that was uploaded, and files stay with their visitor: upload it here."))
        return
    try:
        given = (uploaded.name, uploaded.data) if uploaded else (name, None)
        reading = cache.compute_media_reading(own.name, *given)
    except LocalError as error:
        st.info(escape_message(str(error)))
        return
    PIN.hold(of=name)
    if reading.patches:
        _open_on_picture(own.name, name, reading)
    draw_trace(reading.opened, partial(draw_screen, MediaTrace(reading.opened, seen=reading.patches, name=name)))


def _draw_file_choice(own: MediaModel) -> tuple[str, UploadedFile | None]:
    """Draw the list of files and the uploader; return the chosen name, and the file where it is an uploaded one."""
    box = st.container(key="sentence-box", horizontal=True, vertical_alignment="center")
    with st.container(key="try", horizontal=True, vertical_alignment="center", gap="small"):
        controls.draw_model_choice()
    uploaded = get_uploaded_file()
    uploads = [uploaded.address] if uploaded else []
    names = [*uploads, *own.list_files()]
    asked = EXPLORE_FILE.get() or ""
    if asked.startswith(UPLOAD_MARK) and asked not in names:
        names = [asked, *names]
    label = say(FILE_LABELS[own.medium])
    with box:
        if controls.is_text_fixed():
            shown = asked if asked in names else next(iter(names), "")
            controls.draw_fixed_text(uploaded.name if uploaded and shown in uploads else shown)
        else:
            shown = ""
            if names:
                called = lambda one: uploaded.name if uploaded and one in uploads else one  # noqa: E731
                shown = controls.selectbox_with_default(label, EXPLORE_FILE, names, names[0], format_func=called)
            with st.popover(say(UPLOAD_LABELS[own.medium])):
                _draw_uploader(own)
    return shown, uploaded if shown in uploads else None


def _draw_uploader(own: MediaModel) -> None:
    def keep() -> None:
        file = st.session_state["medium-file"]
        if file is None:
            return
        kept = UploadedFile(file.name, file.getvalue())
        try:
            own.load_input(kept.name, kept.data)
        except LocalError as error:
            st.session_state[OPEN_ERROR_KEY] = str(error)
            return
        st.session_state[UPLOADED_FILE_KEY] = kept
        EXPLORE_FILE.set(kept.address)

    controls.file_uploader(
        say(UPLOAD_LABELS[own.medium]),
        MAX_FILE_MEGABYTES,
        type=[one.removeprefix(".") for one in own.suffixes],
        key="medium-file",
        label_visibility="collapsed",
        on_change=keep,
    )
    st.caption(say("It stays in your session alone."))


def _open_on_picture(model: str, name: str, reading: cache.OpenedMedium) -> None:
    """Show the picture, and the head of the last layer whose first row looks most at one place, where nothing is asked.

    Once for each model: afterwards the visitor chooses.
    """
    if st.session_state.get(MODEL_OF_PICTURE) == model:
        return
    st.session_state[MODEL_OF_PICTURE] = model
    maps = reading.opened.drawable.maps
    over = next(one for one in maps.values() if is_over_patches(one, reading.patches))
    if not is_in_address(EXPLORE_VIEW):
        EXPLORE_VIEW.set("picture")
    if not any(is_in_address(one) for one in (KIND, LAYER, HEAD)):
        head = find_sharpest_head(over, reading.patches)
        if len(maps) > 1:  # The only one is shown without being chosen: another model need not have it.
            KIND.put(over.kind)
        LAYER.put(over.layers)
        HEAD.put(head + 1)
        controls.remember_auto_selected_head(model, name, (over.layers - 1, head))


def find_sharpest_head(attention: AttentionMap, patches: Patches | None) -> int:
    """Return the head of the last layer, from 0, whose first row has the largest share of its patches on one."""
    assert patches is not None
    grids = [patches.grid_of(attention, attention.layers - 1, head) for head in range(attention.heads)]
    return int(np.argmax([one.max() / max(one.sum(), 1e-9) for one in grids]))


@dataclass(frozen=True, eq=False)
class MediaTrace(StaticTrace):
    """The trace of a model that has read a file."""

    seen: Patches | None = None
    name: str = ""

    @property
    def patches(self) -> Patches | None:
        return self.seen

    @property
    def identity(self) -> str:
        return self.name

    @property
    def impossible_views(self) -> tuple[SingleView, ...]:
        shown = self.trace.maps.get(KIND.get()) or next(reversed(self.trace.maps.values()))
        views = super().impossible_views
        return tuple(one for one in views if one != "picture") if is_over_patches(shown, self.patches) else views
