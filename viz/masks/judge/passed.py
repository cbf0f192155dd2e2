"""The mask that a call of attention was given beside the one in force, of an opened trace."""

from __future__ import annotations

import numpy as np
import streamlit as st

from model.diagnosis.readers.passed_masks import PassedMasks
from model.language.say import say, say_many, sentences, to_say
from model.untrusted_trace import clean

from ...components.mask_editor import Panel, Tokens, mask_editor
from ...figures.masks.colours import mask_colours
from ...traces.verdict import LONGEST_ORIGIN
from ...ui import theme
from ...ui.captions import caption, plain
from .cells import compared
from .panels import cut, plain_panel
from .verdict import spans

WORDS = (
    to_say("blocked"),
    to_say("open"),
    to_say("open, but passed as blocked"),
    to_say("blocked, but passed as open"),
    "NaN",
    to_say("padding query"),
)
"""What the states of a cell are when one mask is compared with the other."""


def show(masks: PassedMasks, tokens: Tokens, at: tuple[int, int, int, int]) -> None:
    """Draw both masks of the layer and head that are looked at, open from the start where any layer's differ."""
    with st.expander(title(masks), expanded=bool(masks.parting())):
        for layers, sentence in masks.sentences():
            where = f"**{_layers(layers)}**" if len(masks.calls) > 1 else ""
            st.markdown(sentences(where, plain(clean(sentence, LONGEST_ORIGIN))))
        layer, head = min(at[1], len(masks.calls) - 1), at[2]
        if not masks.calls[layer].passed_cells:
            return
        with st.container(key="passed-pair"):
            drawn = panels(masks, layer, head)
            words = [say(one) for one in WORDS]
            mask_editor(drawn, mask_colours(theme.palette()), key="passed-masks", tokens=tokens, words=words)
        caption(say("A sign marks a cell in force that is not as it was passed: + open, − blocked."))


def title(masks: PassedMasks) -> str:
    """What the pictures say, in the line that opens them."""
    parting, count = masks.parting(), len(masks.calls)
    if unknown := sum(not call.passed_cells for call in masks.calls):
        return say("Passed and in force: not comparable in {unknown} of {count} layers", unknown=unknown, count=count)
    if not parting:
        same = say("Passed and in force: the same in all {count} layers", count=count)
        return same if count > 1 else say("Passed and in force: the same")
    if count == 1:
        return say("Passed and in force: they differ")
    return say_many(
        "Passed and in force: they differ in layer {layers} of {all}",
        "Passed and in force: they differ in layers {layers} of {all}",
        len(parting),
        layers=spans(tuple(parting)),
        all=count,
    )


def _layers(layers: list[int]) -> str:
    return say_many("Layer {layers}.", "Layers {layers}.", len(layers), layers=spans(tuple(layers)))


def panels(masks: PassedMasks, layer: int, head: int) -> list[Panel]:
    """Both masks of one layer and head, from 0."""
    passed, in_force = (one[layer, head if one.shape[1] > 1 else 0] for one in (masks.passed, masks.in_force))
    given = say("as the call was given it") if masks.calls[layer].passed else say("no mask arrived")
    effect = say("what took effect")
    if len(masks.calls) > 1:
        given, effect = (say("layer {layer}, {what}", layer=layer + 1, what=one) for one in (given, effect))
    counts = {"row_sums": in_force.sum(1).tolist(), "column_sums": in_force.sum(0).tolist()}
    values = in_force.astype(np.float32)
    found = Panel("in-force", say("In force"), effect, compared(in_force, passed), None, values, **counts)
    return [cut(plain_panel("passed", say("Passed"), given, passed, editable=False)), cut(found)]
