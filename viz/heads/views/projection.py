"""The projection: tokens of the corpus as dots, by the queries, keys or vectors that the model makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from model.heads.atlas import head_name
from model.heads.rows import ShownRow
from model.language.say import say, to_say

from ...components.curves import curves, packed
from ...export.parts import Component, Words
from ...export.save import SavedView
from ...figures.heads.projection import (
    OTHER,
    Dots,
    group_name,
    part_of,
    position_colours,
    projection,
    side_colours,
    tag_colours,
)
from ...figures.labels import readable
from ...ui import theme, widgets
from ...ui.addresses.heads import BRUSH, COLOURED, MARKED, SPACE
from ...ui.captions import caption
from .. import cache, controls, shaded, texts
from .all_heads import with_frame

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.heads.atlas import Atlas
    from model.heads.projection import Projection, Space
    from model.live.live_model import LiveModel
    from model.trace import Head

    from ...figures.curves import Curves
    from ...figures.palette import Palette
    from ...ui.addresses.heads import Box, Colour

LISTED = 40
"""Sentences of a box that are listed."""
AROUND = 0.015
"""Half the side of the box that a click on a dot draws, as a share of the picture's."""
AT_TOKEN = {
    "query": to_say("query of “{piece}” in “{around}”"),
    "key": to_say("key of “{piece}” in “{around}”"),
    "": to_say("“{piece}” in “{around}”"),
}


def show(model: LiveModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView:
    with bar:
        space = widgets.selectbox(say("Of"), SPACE, label_visibility="collapsed", width=190)
    of_head = space == "queries and keys"
    head = controls.chosen_head(atlas, bar) if of_head else atlas.names[0]
    with st.container(key="colouring", horizontal=True, vertical_alignment="center"):
        offered = COLOURED.options[0 if of_head else 1 :]
        colour = widgets.selectbox(say("Coloured by"), COLOURED, offered, label_visibility="collapsed", width=170)
        marked = widgets.text_input(
            say("Mark"), MARKED, label_visibility="collapsed", placeholder=say("mark a word"), width=150
        )
    marked = marked.strip()
    found = cache.projection(cache.identity(atlas), model.name, model.weights_hash, space, head, marked, atlas)
    owner = (space, head if of_head else None)
    box = BRUSH.hold(of=owner)
    title = title_of(space, head, model.name)

    def drawn(palette: Palette) -> Curves:
        groups = groups_of(found, colour, marked, palette)
        return with_frame(projection(groups, texts.components(found), title, palette), box)

    shown = drawn(theme.palette())
    places = [mark.points for mark in shown.marks]

    def around(mark: int, at: int) -> None:
        BRUSH.set(box_around(places[mark][at], shown), of=owner)

    said = texts.projected(found, space)
    with st.container(key="picture"):
        curves(shown, key="projection", on_point=around, on_box=lambda drawn: BRUSH.set(drawn, of=owner))
    if marked:
        caption(texts.marked(found, marked))
    caption(said)
    caption(say(texts.BRUSH_TOKENS))
    if box:
        _brushed(found, box)
    return SavedView(
        f"heads-projection-{model.name}",
        lambda palette: (Component("curves", packed(drawn(palette))), Words(said)),
        lambda: numbers(found),
        title,
        texts.facts(model, atlas) | ({"head": head_name(head)} if of_head else {}),
        width=1100,
    )


def title_of(space: Space, head: Head, model: str) -> str:
    """What is drawn, and of which model."""
    if space == "queries and keys":
        return say("Queries and keys: {head} of {model}", head=head_name(head), model=model)
    if space == "encoder outputs":
        return say("Encoder outputs: {model}", model=model)
    return say("Token embeddings: {model}", model=model)


def groups_of(found: Projection, colour: Colour, marked: str, palette: Palette) -> list[Dots]:
    """The tokens by colour, in the order of the legend; those of the marked word first, and large."""
    tokens = found.tokens
    names, colours = _coloured(found, colour, palette)
    chosen = is_marked(found, marked)
    groups = [(say("“{word}”", word=marked), palette.ink, chosen)] if chosen.any() else []
    groups += [(group_name(name), of, (names == name) & ~chosen) for name, of in colours.items()]
    patterns = {side: say(pattern) for side, pattern in AT_TOKEN.items()}
    read = [said(found, row, patterns) for row in tokens.itertuples(index=False)]
    points = tokens[["x", "y"]].to_numpy(float)
    return [
        Dots(name, of, points[at], [read[one] for one in np.flatnonzero(at)], at is chosen)
        for name, of, at in groups
        if at.any()
    ]


def is_marked(found: Projection, marked: str) -> np.ndarray:
    """(N,) bool: the tokens of a word, whatever its capitals; none for no word."""
    words = found.tokens["word"].str.casefold() == marked.casefold()
    return np.asarray(words & bool(marked), dtype=bool)


def inside(found: Projection, box: Box) -> pd.DataFrame:
    """The tokens in a part of the picture, from its middle outwards."""
    left, right, low, high = box
    tokens = found.tokens
    within = tokens[tokens["x"].between(left, right) & tokens["y"].between(low, high)]
    middle = (left + right) / 2, (low + high) / 2
    away = (within["x"] - middle[0]) ** 2 + (within["y"] - middle[1]) ** 2
    return within.loc[away.sort_values(kind="stable").index]


def box_around(point: np.ndarray, shown: Curves) -> Box:
    """A small box around a dot."""
    x, y = (float(one) for one in point)
    wide, tall = (AROUND * (axis.high - axis.low) for axis in (shown.x, shown.y))
    return x - wide, x + wide, y - tall, y + tall


def rows_of(found: Projection, tokens: pd.DataFrame) -> list[ShownRow]:
    """The sentences of tokens, each token framed."""
    rows = []
    for line, text, place in zip(tokens["sentence"], tokens["text"], tokens["place"], strict=True):
        pieces = found.sides[int(line), str(text)]
        rows.append(ShownRow(int(line), int(place), pieces, pieces, np.zeros(len(pieces), dtype=np.float32)))
    return rows


def numbers(found: Projection) -> pd.DataFrame:
    """A row a token; sentences and places from 1."""
    table = found.tokens.assign(sentence=found.tokens["sentence"] + 1, place=found.tokens["place"] + 1)
    return table[["sentence", "text", "place", "side", "piece", "word", "tag", "x", "y"]].set_index("sentence")


def said(found: Projection, row: object, patterns: Mapping[str, str]) -> str:
    """What is read at a token: it, and the words around it, in the pattern of its side."""
    line, text, place, piece, side = (getattr(row, name) for name in ("sentence", "text", "place", "piece", "side"))
    pieces = found.sides[line, text]
    around = "".join(pieces[max(0, place - 4) : place + 5]).strip()
    return patterns[side].format(piece=readable(piece), around=around)


def _coloured(found: Projection, colour: Colour, palette: Palette) -> tuple[np.ndarray, dict[str, str]]:
    """What each token is called by its colour (N,), and the colours by name."""
    tokens = found.tokens
    if colour == "side":
        return tokens["side"].to_numpy(str), side_colours(palette)
    if colour == "part of speech":
        colours = tag_colours(Counter(tokens["tag"]), palette)
        return tokens["tag"].where(tokens["tag"].isin(list(colours)), OTHER).to_numpy(str), colours
    last = [len(found.sides[line, text]) - 1 for line, text in zip(tokens["sentence"], tokens["text"], strict=True)]
    names = [part_of(place, end) for place, end in zip(tokens["place"], last, strict=True)]
    return np.array(names, dtype=str), position_colours(palette)


def _brushed(found: Projection, box: Box) -> None:
    """The sentences of the box; a button lets go of it."""
    tokens = inside(found, box)
    listed = tokens[:LISTED]
    with st.container(key="brushed-tokens", horizontal=True, vertical_alignment="center"):
        caption(texts.brushed_tokens(len(tokens), len(found.tokens), len(listed)))
        st.button(say("No box"), key="no-box", type="tertiary", on_click=BRUSH.reset)
    sides = [say(side) if side else "" for side in listed["side"]]
    st.html(shaded.rows_markup(rows_of(found, listed), ["own"] * len(listed), say("Sentences in the box"), sides))
