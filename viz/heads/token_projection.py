"""The view Projection of Heads: tokens of the corpus as dots, by their queries, keys or vectors in the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import head_name
from attenscope.atlas.projection import Projection, ProjectionSpace
from attenscope.atlas.query import Atlas, HeadRow
from attenscope.language import say, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.trace import Head
from attenscope.viz.export.parts import Component, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.curves import Curves
from attenscope.viz.figures.figure_style import Palette, readable_token
from attenscope.viz.figures.heads import (
    OTHER_GROUP,
    TokenDots,
    assign_part_of_speech_colours,
    assign_query_key_colours,
    assign_sentence_position_colours,
    classify_sentence_position,
    plot_token_projection,
    translate_token_group_name,
)
from attenscope.viz.heads import cache, one_head, texts
from attenscope.viz.heads.measure_scatter import add_box_frame
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.addresses.heads import (
    HEADS_BRUSHED_BOX,
    HEADS_MARKED_WORD,
    HEADS_PROJECTION_COLOUR,
    HEADS_PROJECTION_SPACE,
    PROJECTION_SPACES,
    MapBox,
    ProjectionColour,
)
from attenscope.viz.ui.captions import draw_caption
from attenscope.viz.web.charts import draw_curves, encode_curves

MAX_LISTED_SENTENCES = 40
"""Sentences of a box that are listed."""
CLICK_BOX_SHARE = 0.015
"""Half the side of the box that a click on a dot draws, as a share of the picture's."""
TOKEN_LABELS = {
    "query": to_say("query of “{piece}” in “{around}”"),
    "key": to_say("key of “{piece}” in “{around}”"),
    "": to_say("“{piece}” in “{around}”"),
}


def draw_projection_view(model: RunnableModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView:
    with bar:
        spaces = [one for one in PROJECTION_SPACES if one != "encoder outputs" or not atlas.is_one_text]
        space = controls.selectbox(say("Of"), HEADS_PROJECTION_SPACE, spaces, label_visibility="collapsed", width=190)
    of_head = space == "queries and keys"
    head = cache.draw_head_selector(atlas, bar) if of_head else atlas.names[0]
    with st.container(key="colouring", horizontal=True, vertical_alignment="center"):
        offered = HEADS_PROJECTION_COLOUR.options[0 if of_head else 1 :]
        colour = controls.selectbox(
            say("Coloured by"), HEADS_PROJECTION_COLOUR, offered, label_visibility="collapsed", width=170
        )
        marked = controls.text_input(
            say("Mark"), HEADS_MARKED_WORD, label_visibility="collapsed", placeholder=say("mark a word"), width=150
        )
    marked = marked.strip()
    found = cache.compute_token_projection(
        cache.make_atlas_identity(atlas), model.name, model.weights_hash, space, head, marked, atlas
    )
    owner = (space, head if of_head else None)
    box = HEADS_BRUSHED_BOX.hold(of=owner)
    title = make_projection_title(space, head, model.name)

    def draw_figure(palette: Palette) -> Curves:
        groups = group_dots_by_colour(found, colour, marked, palette)
        return add_box_frame(
            plot_token_projection(groups, texts.make_projection_axis_titles(found), title, palette), box
        )

    shown = draw_figure(style.get_palette())
    places = [mark.points for mark in shown.marks]

    def select_around_dot(mark: int, at: int) -> None:
        HEADS_BRUSHED_BOX.set(make_box_around_dot(places[mark][at], shown), of=owner)

    said = texts.describe_projection(found, space)
    with st.container(key="picture"):
        draw_curves(
            shown,
            key="projection",
            on_point=select_around_dot,
            on_box=lambda drawn: HEADS_BRUSHED_BOX.set(drawn, of=owner),
        )
    if marked:
        draw_caption(texts.describe_marked_word(found, marked))
    draw_caption(said)
    draw_caption(say(texts.PROJECTION_HINT))
    if box:
        _draw_sentences_in_box(found, box)
    return SavedView(
        f"heads-projection-{model.name}",
        lambda palette: (Component("curves", encode_curves(draw_figure(palette))), Words(said)),
        lambda: tabulate_projection(found),
        title,
        texts.collect_atlas_facts(model, atlas) | ({"head": head_name(head)} if of_head else {}),
        width=1100,
    )


def make_projection_title(space: ProjectionSpace, head: Head, model: str) -> str:
    """What is drawn, and of which model."""
    if space == "queries and keys":
        return say("Queries and keys: {head} of {model}", head=head_name(head), model=model)
    if space == "encoder outputs":
        return say("Encoder outputs: {model}", model=model)
    return say("Token embeddings: {model}", model=model)


def group_dots_by_colour(found: Projection, colour: ProjectionColour, marked: str, palette: Palette) -> list[TokenDots]:
    """The tokens by colour, in the order of the legend; those of the marked word first, and large."""
    tokens = found.tokens
    names, colours = _assign_token_colour_groups(found, colour, palette)
    chosen = find_marked_tokens(found, marked)
    groups = [(say("“{word}”", word=marked), palette.ink, chosen)] if chosen.any() else []
    groups += [(translate_token_group_name(name), of, (names == name) & ~chosen) for name, of in colours.items()]
    patterns = {side: say(pattern) for side, pattern in TOKEN_LABELS.items()}
    read = [format_token_context_label(found, row, patterns) for row in tokens.itertuples(index=False)]
    points = tokens[["x", "y"]].to_numpy(float)
    return [
        TokenDots(name, of, points[at], [read[one] for one in np.flatnonzero(at)], at is chosen)
        for name, of, at in groups
        if at.any()
    ]


def find_marked_tokens(found: Projection, marked: str) -> np.ndarray:
    """(N,) bool: the tokens of a word, whatever its capitals; none for no word."""
    words = found.tokens["word"].str.casefold() == marked.casefold()
    return np.asarray(words & bool(marked), dtype=bool)


def find_tokens_in_box(found: Projection, box: MapBox) -> pd.DataFrame:
    """The tokens in a part of the picture, from its middle outwards."""
    left, right, low, high = box
    tokens = found.tokens
    within = tokens[tokens["x"].between(left, right) & tokens["y"].between(low, high)]
    middle = (left + right) / 2, (low + high) / 2
    away = (within["x"] - middle[0]) ** 2 + (within["y"] - middle[1]) ** 2
    return within.loc[away.sort_values(kind="stable").index]


def make_box_around_dot(point: np.ndarray, shown: Curves) -> MapBox:
    """A small box around a dot."""
    x, y = (float(one) for one in point)
    wide, tall = (CLICK_BOX_SHARE * (axis.high - axis.low) for axis in (shown.x, shown.y))
    return x - wide, x + wide, y - tall, y + tall


def build_sentence_rows(found: Projection, tokens: pd.DataFrame) -> list[HeadRow]:
    """The sentences of tokens, each token framed."""
    rows = []
    for line, text, place in zip(tokens["sentence"], tokens["text"], tokens["place"], strict=True):
        pieces = found.sides[int(line), str(text)]
        rows.append(HeadRow(int(line), int(place), pieces, pieces, np.zeros(len(pieces), dtype=np.float32)))
    return rows


def tabulate_projection(found: Projection) -> pd.DataFrame:
    """A row a token; sentences and places from 1."""
    table = found.tokens.assign(sentence=found.tokens["sentence"] + 1, place=found.tokens["place"] + 1)
    return table[["sentence", "text", "place", "side", "piece", "word", "tag", "x", "y"]].set_index("sentence")


def format_token_context_label(found: Projection, row: object, patterns: Mapping[str, str]) -> str:
    """Return the label of a token: its piece and the words around it, in the pattern of its side."""
    line, text, place, piece, side = (getattr(row, name) for name in ("sentence", "text", "place", "piece", "side"))
    pieces = found.sides[line, text]
    around = "".join(pieces[max(0, place - 4) : place + 5]).strip()
    return patterns[side].format(piece=readable_token(piece), around=around)


def _assign_token_colour_groups(
    found: Projection, colour: ProjectionColour, palette: Palette
) -> tuple[np.ndarray, dict[str, str]]:
    """What each token is called by its colour (N,), and the colours by name."""
    tokens = found.tokens
    if colour == "side":
        return tokens["side"].to_numpy(str), assign_query_key_colours(palette)
    if colour == "part of speech":
        colours = assign_part_of_speech_colours(Counter(tokens["tag"]), palette)
        return tokens["tag"].where(tokens["tag"].isin(list(colours)), OTHER_GROUP).to_numpy(str), colours
    last = [len(found.sides[line, text]) - 1 for line, text in zip(tokens["sentence"], tokens["text"], strict=True)]
    names = [classify_sentence_position(place, end) for place, end in zip(tokens["place"], last, strict=True)]
    return np.array(names, dtype=str), assign_sentence_position_colours(palette)


def _draw_sentences_in_box(found: Projection, box: MapBox) -> None:
    """The sentences of the box; a button lets go of it."""
    tokens = find_tokens_in_box(found, box)
    listed = tokens[:MAX_LISTED_SENTENCES]
    with st.container(key="brushed-tokens", horizontal=True, vertical_alignment="center"):
        draw_caption(texts.describe_tokens_in_box(len(tokens), len(found.tokens), len(listed)))
        st.button(say("No box"), key="no-box", type="tertiary", on_click=HEADS_BRUSHED_BOX.reset)
    sides = [say(side) if side else "" for side in listed["side"]]
    st.html(
        one_head.render_shaded_rows(
            build_sentence_rows(found, listed), ["own"] * len(listed), say("Sentences in the box"), sides
        )
    )
