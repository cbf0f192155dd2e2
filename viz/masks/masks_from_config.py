"""The part From a configuration of the page Masks: the mask of each kind of layer, without any weights."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import streamlit as st

from attenscope.language import current_language, join_items, say, say_many, to_say
from attenscope.masks.findings import Verdict
from attenscope.masks.index_ranges import format_index_ranges
from attenscope.runnable_model import LocalError
from attenscope.viz.export.parts import Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view
from attenscope.viz.fair_queue import BusyError
from attenscope.viz.figures.masks import make_mask_thumbnail, mask_colours
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.addresses.masks import MASKS_ARCHITECTURE_TEXT
from attenscope.viz.ui.cache import cache_for_all_visitors
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message
from attenscope.viz.worker_process import call_in_worker

STYLES = (Path(__file__).parent / "backends.css", Path(__file__).parent / "architecture.css")
EXAMPLE_CONFIGURATION = json.dumps(
    {
        "model_type": "gemma3_text",
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention"] * 5 + ["full_attention"],
        "sliding_window": 4,
    },
    indent=2,
)
"""One that shows two kinds of layers."""
VERDICT_WORDS: dict[Verdict, str] = {
    "sound": to_say("✓ as the configuration says"),
    "faulty": to_say("✗ not as the configuration says"),
    "question": to_say("? perhaps not as the configuration says"),
    "open": to_say("nothing is known of what it should be"),
}
MAX_CONFIGURATION_CHARACTERS = 200_000
_EXAMPLE_TEXT = "the cat sat on the mat today"
_CONFIGURATION_KEY, _FILE_KEY = "architecture-configuration", "architecture-file"


@dataclass(frozen=True, eq=False)
class ShownMask:
    """The mask of one kind of layer, in the reader's language."""

    place: str
    """The kind of layer, and its layers."""
    allowed: np.ndarray
    """(Q, K) bool, True = may attend."""
    words: tuple[str, ...]
    """What is in force and meant, by which kernels, the verdict and its findings."""


@dataclass(frozen=True, eq=False)
class ShownMasks:
    """The masks of all kinds of layers. The classes of transformers stay in the worker process."""

    title: str
    masks: tuple[ShownMask, ...]
    notes: tuple[str, ...]
    """Kernels that the architecture does not run with, and why."""


def build_masks_from_config(configuration: str, text: str) -> ShownMasks:
    """Return the masks that the text of a config.json makes on a text. Raises LocalError."""
    from attenscope.hugging_face.masks import read_architecture_masks  # transformers takes seconds to import

    if len(configuration) > MAX_CONFIGURATION_CHARACTERS:
        most = MAX_CONFIGURATION_CHARACTERS
        raise LocalError(say("The configuration has more than {most:,} characters; fewer are read.", most=most))
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "configuration"
        folder.mkdir()
        (folder / "config.json").write_text(configuration, encoding="utf-8")
        found = read_architecture_masks(folder, text)
    title = say("{model}, {count} tokens, random weights", model=found.model, count=len(found.tokens))
    masks = []
    for one in found.masks:
        place = say_many(
            "{kind}, layer {layers}",
            "{kind}, layers {layers}",
            len(one.layers),
            kind=one.layer_kind or one.map,
            layers=format_index_ranges(one.layers),
        )
        words = [say("in force: {mask}", mask=one.words), say("meant: {meant}", meant=one.meant)]
        words.append(say("by {kernels}", kernels=join_items(one.kernels)))
        if one.diagnosis is not None:
            words.append(say(VERDICT_WORDS[one.diagnosis.verdict]))
            words += [f"{f.code}: {f.message}" for f in one.diagnosis.findings if f.severity != "info"]
        masks.append(ShownMask(place, one.allowed, tuple(words)))
    notes = [say("Not by {kernel}: {reason}", kernel=kernel, reason=why) for kernel, why in found.left_out.items()]
    return ShownMasks(title, tuple(masks), tuple(notes))


@cache_for_all_visitors(to_say("Building it small, and running it …"), 32)
def _build_masks_in_worker(configuration: str, text: str, language: str) -> ShownMasks:
    """The masks, made in the worker process, in the present ``language``."""
    return call_in_worker(build_masks_from_config, configuration, text)


def draw_architecture_view() -> None:
    """Draw the configuration and the text, then the masks."""
    for sheet in STYLES:
        st.html(sheet)
    draw_caption(say(EXPLANATION, most=MAX_CONFIGURATION_CHARACTERS))
    left, right = st.columns([2, 3], gap="large")
    with left:
        configuration = _draw_config_input()
    with right:
        text = controls.text_input(say("Text, words apart by blanks"), MASKS_ARCHITECTURE_TEXT, _EXAMPLE_TEXT)
        try:
            found = _build_masks_in_worker(configuration, text, current_language())
        except (LocalError, BusyError) as error:
            st.error(escape_message(str(error)))
            return
        _draw_masks(found)


def _draw_config_input() -> str:
    """The text of a config.json, pasted or of a file; the file goes first."""
    st.session_state.setdefault(_CONFIGURATION_KEY, EXAMPLE_CONFIGURATION)
    pasted: str = st.text_area("config.json", key=_CONFIGURATION_KEY, height=280, persist_state="session")
    file = controls.file_uploader(say("or a file"), 1, type="json", key=_FILE_KEY)
    if file is None:
        return pasted
    given: bytes = file.getvalue()
    return given[: MAX_CONFIGURATION_CHARACTERS + 1].decode("utf-8", errors="replace")


def _draw_masks(found: ShownMasks) -> None:
    with st.container(key="architecture-head"):
        st.markdown(f"### {escape_markdown(found.title)}")
    register_savable_view(_build_saved_view(found))
    st.html(render_masks(found))
    for note in found.notes:
        draw_caption(note)


EXPLANATION = to_say(
    "Paste a config.json of Hugging Face: one layer of each kind is built small, with random weights, and run on the "
    "text. Nothing of the configuration is executed, and at most {most:,} characters of it are read. <image> and "
    "<audio> stand for one token of an image or of sound."
)


def render_masks(found: ShownMasks) -> str:
    """Every mask with its words, as HTML."""
    colours = mask_colours(style.get_palette())
    drawn = []
    for one in found.masks:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in one.words)
        image = make_mask_thumbnail(one.allowed, colours, one.place)
        drawn.append(f"<figure><figcaption>{html.escape(one.place)}</figcaption>{image}{lines}</figure>")
    return f'<div class="backend-masks architecture-masks">{"".join(drawn)}</div>'


def tabulate_masks(found: ShownMasks) -> pd.DataFrame:
    """A row for each query of each mask, 1 = may attend."""
    tables = [pd.DataFrame(one.allowed.astype(int)).assign(mask=one.place) for one in found.masks]
    return pd.concat(tables).set_index("mask")


def _build_saved_view(found: ShownMasks) -> SavedView:
    def build_parts(_: object) -> list[Words]:
        lines = (join_items([one.place, *one.words]) for one in found.masks)
        return [Words(found.title, "verdict", "heading"), *(Words(line, "picture") for line in lines)]

    return SavedView("architecture", build_parts, lambda: tabulate_masks(found), say("Masks of an architecture"))
