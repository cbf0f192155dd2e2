"""The part Backends of the page Masks: kernels, caches, paddings and packing of one model compared."""

from __future__ import annotations

import html
import math
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from attenscope.language import current_language, join_items, say, say_many, to_say
from attenscope.mask_tests.backend_runs import OUTPUT_LAYER
from attenscope.mask_tests.backends import WAYS, BackendComparison, BackendResult, MasksByKind
from attenscope.runnable_model import InputError
from attenscope.trace import Kind
from attenscope.viz.export.parts import Words
from attenscope.viz.export.share_menu import SavedView, register_savable_view
from attenscope.viz.figures.figure_style import KIND_NAMES
from attenscope.viz.figures.masks import make_mask_thumbnail, mask_colours
from attenscope.viz.masks import cache
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.captions import draw_caption, escape_markdown, escape_message

BACKENDS_STYLES = (Path(__file__).parent / "backends.css", Path(__file__).parent / "trial.css")
UNCHANGED_NAME = to_say("unchanged")


def draw_backends_view() -> None:
    """Draw the sentence, then the result and the mask of every way."""
    for sheet in BACKENDS_STYLES:
        st.html(sheet)
    chosen, text = controls.draw_sentence_and_model_controls()
    model = controls.require_ability(chosen, "backends")
    try:
        found = cache.compute_backend_comparison(model.name, text, current_language())
    except InputError as error:
        st.info(escape_message(str(error)))
        return
    _draw_comparison(found, {"model": model.name, "sentence": text})


@st.fragment
def _draw_comparison(found: BackendComparison, facts: dict[str, str]) -> None:
    with st.container(key="backends-head", horizontal=True, vertical_alignment="center"):
        st.markdown(f"### {escape_markdown(describe_agreement(found))}")
        register_savable_view(_build_saved_view(found, facts))
    st.html(render_results_table(found))
    draw_caption(say(COMPARISON_EXPLANATION))
    if found.masks:
        kind, layer = controls.draw_layer_choice({kind: (len(masks), 1) for kind, masks in found.masks.items()})
        st.html(render_mask_pictures(found, kind, layer))
        draw_caption(say(MASK_PICTURES_HINT))


def render_mask_pictures(found: BackendComparison, kind: Kind, layer: int) -> str:
    """The mask of every way that ran, of one kind and layer, as HTML; why there is none, where it is not known."""
    colours = mask_colours(style.get_palette())
    ways: list[tuple[str, MasksByKind, str]] = [(UNCHANGED_NAME, found.masks, "")]
    ways += [(one.name, one.masks, one.no_masks) for one in found.results if one.status != "not run"]
    drawn = []
    for way, masks, reason in ways:
        name = say(way)
        mask = _mask_of_layer(masks, kind, layer)
        alt = say("{kind}, layer {layer}, {way}", kind=say(KIND_NAMES[kind]), layer=layer + 1, way=name)
        inside = f"<p>{html.escape(reason or say('No mask was seen.'))}</p>"
        note = ""
        if mask is not None:
            inside, note = make_mask_thumbnail(mask, colours, alt), f"{mask.shape[0]} × {mask.shape[1]}"
        drawn.append(f"<figure><figcaption>{html.escape(name)} <span>{note}</span></figcaption>{inside}</figure>")
    return f'<div class="backend-masks">{"".join(drawn)}</div>'


def _mask_of_layer(masks: MasksByKind, kind: Kind, layer: int) -> np.ndarray | None:
    found = masks.get(kind)
    return found[layer] if found is not None and layer < len(found) else None


def _build_saved_view(found: BackendComparison, facts: dict[str, str]) -> SavedView:
    lines = [say("{way}: {result}.", way=say(one.name), result=describe_result(one)) for one in found.results]
    headline, how = describe_agreement(found), say(COMPARISON_EXPLANATION)

    def build_parts(_: object) -> list[Words]:
        return [Words(headline, "verdict", "heading"), *(Words(line, "picture") for line in lines), Words(how)]

    return SavedView(
        "backends", build_parts, lambda: tabulate_results(found), say("Backends compared"), facts, width=1100
    )


# The comparison in words and as tables.


COMPARISON_EXPLANATION = to_say(
    "The sentence and its first half, padded at the right, run in one batch as torch runs them by itself, and then in "
    "each of these ways. Outputs of all layers are compared at the real tokens. Noise is four times what the same "
    "sentences twice in a batch change, and at least 256 units of rounding. Torch's efficient and flash kernels are "
    "chosen for a whole process, so attenscope.testing.compare_backends compares them, in one of its own."
)
MASK_PICTURES_HINT = to_say(
    "The mask that each way applied to its last sample, queries down, keys across, coloured where some head may "
    "attend. Sizes differ where a way has other padding, more room in its cache, or both samples in one row."
)


def describe_agreement(found: BackendComparison) -> str:
    """Return one line: how many ways give the same result, and which do not."""
    ran = sum(one.status != "not run" for one in found.results)
    left = len(found.results) - ran
    if found.differing_results:
        return _describe_disagreement(found, ran, left)
    if left:
        return say("All {count} ways that ran give the same, within noise; {left} could not run.", count=ran, left=left)
    return say("All {count} ways that ran give the same, within noise.", count=ran)


def _describe_disagreement(found: BackendComparison, ran: int, left: int) -> str:
    said = {"ran": ran, "ways": join_items(say(one.name) for one in found.differing_results)}
    if left:
        return say_many(
            "{count} of {ran} ways that ran parts from the model as it is: {ways}; {left} could not run.",
            "{count} of {ran} ways that ran part from the model as it is: {ways}; {left} could not run.",
            len(found.differing_results),
            left=left,
            **said,
        )
    return say_many(
        "{count} of {ran} ways that ran parts from the model as it is: {ways}.",
        "{count} of {ran} ways that ran part from the model as it is: {ways}.",
        len(found.differing_results),
        **said,
    )


def describe_result(one: BackendResult) -> str:
    """Return the result of one way in words; samples and tokens are counted from 1."""
    if one.status == "not run":
        return say("not run: {reason}", reason=one.reason)
    if one.status == "same" and not one.difference:
        return say("the same, to the last bit")
    if one.status == "same":
        return say("the same, up to {difference:.1e}", difference=one.difference)
    where = {
        "place": say("the output") if one.layer == OUTPUT_LAYER else one.layer,
        "sample": one.sample + 1,
        "token": one.row + 1,
    }
    if not math.isfinite(one.difference):
        return say(
            "parts at {place}, sample {sample}, token {token}: outputs of this layer are NaN or infinite", **where
        )
    times = one.difference / one.noise
    return say(
        "parts at {place}, sample {sample}, token {token}, by {difference:.2g}: {size}",
        difference=one.difference,
        size=say("{times:,.0f} times the noise", times=times)
        if times < 1e6
        else say("more than a million times the noise"),
        **where,
    )


def render_results_table(found: BackendComparison) -> str:
    """All ways as an HTML table."""
    rows = "".join(
        f"<tr><td>{html.escape(say(one.name))}</td><td>{html.escape(say(WAYS[one.name]))}</td>{_render_result_cell(one)}</tr>"
        for one in found.results
    )
    heads = (say("Way"), say("What it is"), say("Against the model as it is"))
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    return f'<table class="checks ways"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _render_result_cell(one: BackendResult) -> str:
    words = html.escape(describe_result(one))
    if one.status == "same":
        return f"<td>✓ {words}</td>"
    if one.status == "parts":
        return f'<td><span class="fault">●</span> {words}</td>'
    return f'<td class="not">{words}</td>'


def tabulate_results(found: BackendComparison) -> pd.DataFrame:
    """Return a row for each way, with the first layer, sample and token that differ, from 1."""
    rows = [
        {
            "way": one.name,
            "result": one.status,
            "layer": one.layer,
            "sample": one.sample + 1 if one.status == "parts" else None,
            "token": one.row + 1 if one.status == "parts" else None,
            "difference": one.difference,
            "noise": one.noise,
            "reason": one.reason,
        }
        for one in found.results
    ]
    return pd.DataFrame(rows).set_index("way")
