"""Backends: kernels, caches, paddings and packing of one model compared, and the mask that each of them applied."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from model.language.current import current_language
from model.language.say import say, to_say
from model.live.translation import InputError

from ...export.parts import Words
from ...export.save import SavedView, save
from ...figures.labels import KIND_NAMES
from ...figures.masks.colours import mask_colours
from ...figures.masks.thumbnail import thumbnail
from ...ui import cache, controls, theme, widgets
from ...ui.addresses.masks import BACKEND_LAYER
from ...ui.captions import caption, plain
from . import texts

if TYPE_CHECKING:
    import numpy as np

    from model.behaviour.backends.compare import Comparison, MasksOfKinds
    from model.trace import Kind

STYLES = (Path(__file__).parent / "backends.css", Path(__file__).parents[1] / "trial" / "trial.css")
AS_IT_IS = to_say("unchanged")


def show() -> None:
    """The sentence, then every way with its mask."""
    for style in STYLES:
        st.html(style)
    chosen, text = controls.sentence()
    model = controls.able(chosen, "backends")
    try:
        found = cache.backends(model.name, text, current_language())
    except InputError as error:
        st.info(plain(str(error)))
        return
    _drawn(found, {"model": model.name, "sentence": text})


@st.fragment
def _drawn(found: Comparison, facts: dict[str, str]) -> None:
    with st.container(key="backends-head", horizontal=True, vertical_alignment="center"):
        st.markdown(f"### {plain(texts.headline(found))}")
        with st.container(width="content"):
            save(_saved(found, facts))
    st.html(texts.table(found))
    caption(say(texts.HOW))
    with st.container(key="backends-bar", horizontal=True, vertical_alignment="center"):
        kind = controls.kind_of(tuple(found.masks)) if len(found.masks) > 1 else next(iter(found.masks), None)
        layers = 0 if kind is None else len(found.masks[kind])
        layer = _layer(found, layers) if layers else 0
    if kind is not None:
        st.html(pictures(found, kind, layer))
        caption(say(texts.PICTURES))


def _layer(found: Comparison, layers: int) -> int:
    """The layer whose masks are shown, from 0: the first until one is chosen."""
    if layers == 1:
        return 0
    if st.session_state.get(BACKEND_LAYER.key) not in range(1, layers + 1):
        st.session_state.pop(BACKEND_LAYER.key, None)
    return (
        widgets.offer(st.selectbox, say("Masks of layer"), range(1, layers + 1), width=190, **BACKEND_LAYER.binding) - 1
    )


def pictures(found: Comparison, kind: Kind, layer: int) -> str:
    """The mask of every way that ran, of one kind and layer, as HTML; why there is none, where it is not known."""
    colours = mask_colours(theme.palette())
    ways: list[tuple[str, MasksOfKinds, str]] = [(AS_IT_IS, found.masks, "")]
    ways += [(one.name, one.masks, one.no_masks) for one in found.results if one.status != "not run"]
    drawn = []
    for way, masks, reason in ways:
        name = say(way)
        mask = _of_layer(masks, kind, layer)
        alt = say("{kind}, layer {layer}, {way}", kind=say(KIND_NAMES[kind]), layer=layer + 1, way=name)
        inside = f"<p>{html.escape(reason or say('No mask was seen.'))}</p>"
        note = ""
        if mask is not None:
            inside, note = thumbnail(mask, colours, alt), f"{mask.shape[0]} × {mask.shape[1]}"
        drawn.append(f"<figure><figcaption>{html.escape(name)} <span>{note}</span></figcaption>{inside}</figure>")
    return f'<div class="backend-masks">{"".join(drawn)}</div>'


def _of_layer(masks: MasksOfKinds, kind: Kind, layer: int) -> np.ndarray | None:
    found = masks.get(kind)
    return found[layer] if found is not None and layer < len(found) else None


def _saved(found: Comparison, facts: dict[str, str]) -> SavedView:
    lines = [say("{way}: {result}.", way=say(one.name), result=texts.result(one)) for one in found.results]
    headline, how = texts.headline(found), say(texts.HOW)

    def parts(_: object) -> list[Words]:
        return [Words(headline, "verdict", "heading"), *(Words(line, "picture") for line in lines), Words(how)]

    return SavedView("backends", parts, lambda: texts.numbers(found), say("Backends compared"), facts, width=1100)
