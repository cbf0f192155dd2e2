"""The view of Explore that lays a row of attention over the picture that a model was given."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from attenscope.language import format_number, join_sentences, say, to_say
from attenscope.text.patches import Patches
from attenscope.trace import AttentionMap
from attenscope.viz.explore import controls
from attenscope.viz.explore.saving import DrawnView, build_chart_view
from attenscope.viz.explore.texts import WEIGHTS_TEXT, ViewText
from attenscope.viz.explore.view_data import Scene
from attenscope.viz.figures.patches import patch_heatmap
from attenscope.viz.figures.text_alternatives import describe_strongest_row_keys
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.charts import draw_chart

PICTURE_TEXT = ViewText(
    to_say("What one query gives to each patch of the picture, drawn over the picture as the model sees it."),
    (
        to_say(
            "The picture is scaled, and perhaps cut, as the model's own settings say, and divided into patches; each "
            "is a key. Click a patch to make it the query, where patches are queries too, or else to pin it. Colour is "
            "the weight, from 0 to the largest of the row; the picture itself is in grey."
        ),
        *WEIGHTS_TEXT,
    ),
)


def is_over_patches(attention: AttentionMap, patches: Patches | None) -> bool:
    """Return whether the keys of a map are the patches of a picture and the tokens beside them."""
    return patches is not None and attention.key_tokens == tuple(patches)


def draw_picture_view(scene: Scene) -> DrawnView | None:
    """Draw the row of the pinned query, or the first, over the picture."""
    attention, patches = scene.tokens.original, scene.source.patches
    if patches is None or not is_over_patches(attention, patches):
        st.info(say("The keys of this attention are no patches of a picture: choose another kind of attention."))
        return None
    row = controls.draw_query_choice(scene)
    draw = partial(
        patch_heatmap, attention, patches, scene.layer, scene.head, row, rows=scene.rows, key=scene.captured_key
    )
    text = describe_patch_row(scene, attention, patches, row)

    def choose(line: int, column: int) -> None:
        place = patches.first + line * patches.grid[1] + column
        if attention.kind == "encoder":
            scene.pin_captured(place)
        else:
            scene.pin_captured_key(place)

    draw_chart(draw(look=scene.look), text, key=scene.element_key("over-picture"), on_cell=choose)
    draw_caption(join_sentences(say(PICTURE_TEXT.line), text))
    return build_chart_view(draw, text, lambda: tabulate_patch_row(scene, patches, row), {})


def describe_patch_row(scene: Scene, attention: AttentionMap, patches: Patches, row: int) -> str:
    """Where a row looks, and how much of it lies on tokens that are no patches."""
    weights = attention.weights[scene.layer, scene.head, row]
    own = float(patches.grid_of(attention, scene.layer, scene.head, row).sum(dtype=np.float64))
    share = max(0.0, 1 - own)
    return join_sentences(
        describe_strongest_row_keys(attention.rows(scene.rows)[row], attention.key_tokens, weights),
        say("{share} of the row lies on tokens that are no patches.", share=format_number(share, ".0%"))
        if len(attention.key_tokens) > patches.grid[0] * patches.grid[1]
        else "",
    )


def tabulate_patch_row(scene: Scene, patches: Patches, row: int) -> pd.DataFrame:
    """The weights of a row as the grid of the picture."""
    weights = patches.grid_of(scene.tokens.original, scene.layer, scene.head, row)
    rows, columns = (range(1, size + 1) for size in patches.grid)
    return pd.DataFrame(weights, index=pd.Index(rows, name="row"), columns=[str(one) for one in columns])
