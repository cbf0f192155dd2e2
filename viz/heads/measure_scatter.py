"""The views of Heads over all heads: a scatter plot of any two measures, and the search by pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import head_name
from attenscope.atlas.files import AtlasError
from attenscope.atlas.query import Atlas, SearchResult, parse_question
from attenscope.checkpoint.load import CheckpointError
from attenscope.language import join_items, join_sentences, say, say_many, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.trace import Head
from attenscope.viz.export.parts import Chart, Columns, Component, Part, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.curves import Curves, Mark
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.figures.heads import HeadDot, HeadLift, plot_head_lift_bars, plot_head_scatter
from attenscope.viz.heads import cache as heads_cache
from attenscope.viz.heads import one_head, texts
from attenscope.viz.ui import cache as ui_cache
from attenscope.viz.ui import controls, style
from attenscope.viz.ui.addresses.heads import (
    HEADS_BRUSHED_BOX,
    HEADS_FIRST_QUESTION,
    HEADS_MEASURE_NAMES,
    HEADS_QUESTION,
    HEADS_SECOND_MODEL,
    HEADS_VIEW,
    HEADS_X_MEASURE,
    HEADS_Y_MEASURE,
    MapBox,
)
from attenscope.viz.ui.captions import choose_model, draw_caption, escape_markdown, escape_message
from attenscope.viz.ui.links import set_explore_head
from attenscope.viz.web.charts import draw_chart, draw_curves, encode_curves

# The map: a dot for every head over any two measures.


MAX_LISTED_HEADS = 30
"""Heads of a box that are listed, of each model."""


@dataclass(frozen=True, eq=False)
class HeadMapSide:
    """A model on the map."""

    name: str
    atlas: Atlas
    heads: tuple[Head, ...]
    """The heads that have both measures."""
    dots: tuple[HeadDot, ...]


def draw_measure_scatter_view(model: RunnableModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    with bar:
        across = controls.selectbox(say("Across"), HEADS_X_MEASURE, atlas.measures, width=250)
        up = controls.selectbox(say("Up"), HEADS_Y_MEASURE, atlas.measures, width=220)
        other = _choose_second_model(model)
    sides = [build_model_scatter_dots(model.name, atlas, across, up)]
    if other is not None:
        sides.append(build_model_scatter_dots(*other, across, up))
    measures = across, up
    box = HEADS_BRUSHED_BOX.hold(of=measures)

    def draw_figure(palette: Palette) -> list[Curves]:
        return [add_box_frame(one, box) for one in plot_measure_scatters(sides, across, up, palette)]

    with st.container(key="picture"):
        shown = draw_figure(style.get_palette())
        for column, side, one in zip(st.columns(len(sides)), sides, shown, strict=True):
            with column:
                key = "head-map" if side is sides[0] else "head-map-beside"
                draw_curves(
                    one,
                    key=key,
                    on_point=_make_dot_callback(side),
                    on_box=lambda found: HEADS_BRUSHED_BOX.set(found, of=measures),
                )
                if box:
                    _draw_heads_in_box(side, box)
    said = texts.describe_measure_scatter([(side.name, side.atlas, len(side.heads)) for side in sides], across, up)
    draw_caption(said)
    draw_caption(say(texts.HEAD_MAP_HINT))
    return SavedView(
        "heads-" + "-".join(side.name for side in sides),
        lambda palette: (
            *_arrange_side_by_side([Component("curves", encode_curves(one)) for one in draw_figure(palette)]),
            Words(said),
        ),
        lambda: pd.concat({side.name: tabulate_all_heads(side.atlas) for side in sides}, names=["model"]),
        join_items(one.title for one in shown),
        texts.collect_atlas_facts(model, atlas),
        width=1100,
    )


def build_model_scatter_dots(name: str, atlas: Atlas, across: str, up: str) -> HeadMapSide:
    """A model's heads as dots."""
    known = [atlas.heads[one].to_numpy(float) if one in atlas.heads else None for one in (across, up, "cost")]
    x, y, cost = (np.full(len(atlas.names), np.nan) if one is None else one for one in known)
    at = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    found = tuple(
        HeadDot(head_name(atlas.names[n]), atlas.names[n][0], x[n], y[n], np.nan_to_num(cost[n]), atlas.labels[n].text)
        for n in at
    )
    return HeadMapSide(name, atlas, tuple(atlas.names[n] for n in at), found)


def plot_measure_scatters(sides: Sequence[HeadMapSide], across: str, up: str, palette: Palette) -> list[Curves]:
    """A map of each model; two share their axes and the sizes of their dots."""
    every = [dot for side in sides for dot in side.dots]
    x, y = say(HEADS_MEASURE_NAMES[across]), say(HEADS_MEASURE_NAMES[up])
    titles = (say("Heads of {model}: {up} over {across}", model=side.name, up=y, across=x) for side in sides)
    return [
        plot_head_scatter(side.dots, x, y, title, palette, every) for side, title in zip(sides, titles, strict=True)
    ]


def add_box_frame(shown: Curves, box: MapBox | None) -> Curves:
    """A map with a frame around a part of it."""
    if box is None:
        return shown
    left, right, low, high = box
    corners = np.array([[left, low], [right, low], [right, high], [left, high], [left, low]])
    return replace(shown, marks=[*shown.marks, Mark("line", corners, shown.palette.accent, 1.5)])


def find_heads_in_box(side: HeadMapSide, box: MapBox) -> list[tuple[Head, HeadDot]]:
    """The heads in a part of the map, those that cost most first."""
    left, right, low, high = box
    found = [
        (head, dot)
        for head, dot in zip(side.heads, side.dots, strict=True)
        if left <= dot.x <= right and low <= dot.y <= high
    ]
    return sorted(found, key=lambda one: -one[1].cost)


def tabulate_all_heads(atlas: Atlas) -> pd.DataFrame:
    """All measures, a row a head, with its label; layers and heads from 1."""
    labels = [label.text for label in atlas.labels]
    table = atlas.heads.assign(layer=atlas.heads["layer"] + 1, head=atlas.heads["head"] + 1)
    table.insert(3, "label", labels)
    return table.set_index(["map", "layer", "head"])


def open_one_head_view(head: Head) -> None:
    """Look at one head; for callbacks."""
    set_explore_head(head)
    st.session_state[HEADS_VIEW.key] = "head"


def _make_dot_callback(side: HeadMapSide) -> Callable[[int, int], None]:
    """A callback that looks at the head of a dot, in the model that it is of."""

    def open_dot(mark: int, _: int) -> None:
        choose_model(side.name)
        open_one_head_view(side.heads[mark])

    return open_dot


def _draw_heads_in_box(side: HeadMapSide, box: MapBox) -> None:
    """The heads of the box by name and label; a button opens each."""
    found = find_heads_in_box(side, box)
    draw_caption(texts.describe_heads_in_box(side.name, len(found), len(side.dots)))
    with st.container(key=f"brushed-{side.name}", horizontal=True):
        for at, (_, dot) in enumerate(found[:MAX_LISTED_HEADS]):
            open_it = partial(_make_dot_callback(side), side.dots.index(dot), 0)
            st.button(
                escape_markdown(f"{dot.name}: {dot.label}"),
                key=f"in-{side.name}-{at}",
                type="tertiary",
                on_click=open_it,
            )
        st.button(say("No box"), key=f"no-box-{side.name}", type="tertiary", on_click=HEADS_BRUSHED_BOX.reset)


def _choose_second_model(model: RunnableModel) -> tuple[str, Atlas] | None:
    """The second model, chosen among those that have an atlas; None, with the reason, where it cannot be shown."""
    names = ["", *(name for name in heads_cache.list_models_with_atlas() if name != model.name)]
    HEADS_SECOND_MODEL.hold(names)
    says = lambda name: say("beside {model}", model=name) if name else say("no other model")  # noqa: E731
    name = controls.draw_untranslated_choice(
        st.selectbox,
        say("Beside"),
        names,
        format_func=says,
        label_visibility="collapsed",
        width=230,
        **HEADS_SECOND_MODEL.synced_widget_arguments,
    )
    if not name:
        return None
    try:
        return name, heads_cache.load_atlas(name, ui_cache.load_translator(name).checkpoint.hash)
    except (AtlasError, CheckpointError) as error:
        st.info(escape_message(str(error)))
        return None


def _arrange_side_by_side(drawn: Sequence[Component]) -> Sequence[Part]:
    if len(drawn) == 1:
        return drawn
    return [Columns(tuple([one] for one in drawn), (1.0,) * len(drawn))]


# The search: which heads do what the question says more often than the others, and where.


EXAMPLE_QUESTIONS = {
    to_say("A noun looks back at its article"): HEADS_FIRST_QUESTION,
    to_say("A verb looks for a noun"): "pos=VERB -> pos=NOUN",
    to_say("Something rests on punctuation"): "-> pos=PUNCT weight>=0.5",
}
"""Questions in words -> in the language of the search."""
MAX_SEARCH_BARS = 16
"""Heads that have a bar."""


def draw_link_search_view(model: RunnableModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    asked = controls.text_input(
        say("Search"), HEADS_QUESTION, label_visibility="collapsed", placeholder=HEADS_QUESTION.default
    )
    with st.container(key="questions", horizontal=True, gap="small"):
        for words, written in EXAMPLE_QUESTIONS.items():
            st.button(say(words), key=f"ask {written}", on_click=_set_link_search_question, args=(written,))
    draw_caption(say(texts.SEARCH_HINT, map=tuple(atlas.sizes)[-1]))
    question = parse_question(asked or HEADS_QUESTION.default)
    found, rows, links = heads_cache.search_atlas_by_question(
        heads_cache.make_atlas_identity(atlas), question.text, atlas
    )
    st.markdown(f"**{escape_markdown(question.words)}**")
    draw_caption(join_sentences(found.sentence, texts.explain_link_search_counts(atlas)))
    bars = build_lift_bars(found)
    title = say("How often, beside all heads of the map")

    def draw_figure(palette: Palette) -> Chart:
        return Chart(plot_head_lift_bars(bars, title, palette), join_sentences(question.words, found.sentence))

    if bars:
        with st.container(key="picture"):
            shown = draw_figure(style.get_palette())
            places = list(zip(found.heads["map"], found.heads["layer"], found.heads["head"], strict=True))
            nodes = [(at, 0, one.name) for at, one in enumerate(bars)]
            draw_chart(
                shown.figure,
                shown.alt,
                key="lifts",
                on_cell=lambda row, _: open_one_head_view((places[row][0], int(places[row][1]), int(places[row][2]))),
                nodes=nodes,
            )
        drawn_from = say_many(
            "{count} link, drawn from all that are as asked whatever their weight.",
            "{count} links, drawn from all that are as asked whatever their weight.",
            len(rows),
        )
        draw_caption(join_sentences(texts.describe_shaded_rows(atlas), drawn_from))
        columns = (links[name].tolist() for name in ("map", "layer", "head"))
        names = [head_name(one) for one in zip(*columns, strict=True)]
        with st.container(key="found"):
            st.html(one_head.render_shaded_rows(rows, links["map"].tolist(), question.words, names))
    facts = texts.collect_atlas_facts(model, atlas) | {"question": question.text}
    asked_for, said = (
        Words(question.words, "picture", "heading"),
        Words(join_sentences(found.sentence, texts.explain_link_search_counts(atlas))),
    )
    return SavedView(
        "heads-search",
        lambda palette: (asked_for, draw_figure(palette), said) if bars else (asked_for, said),
        lambda: tabulate_link_search(found),
        question.words,
        facts,
    )


def _set_link_search_question(question: str) -> None:
    st.session_state[HEADS_QUESTION.key] = question


def build_lift_bars(found: SearchResult) -> list[HeadLift]:
    """Return a bar for each head that answers the question, the largest lift first; none where rows are too few."""
    known = found.heads[found.heads["lift"].notna()][:MAX_SEARCH_BARS]
    return [
        HeadLift(head_name((kind, int(layer), int(head))), int(hits), int(links), float(lift))
        for kind, layer, head, hits, links, lift in zip(
            *(known[name] for name in ("map", "layer", "head", "hits", "links", "lift")), strict=True
        )
    ]


def tabulate_link_search(found: SearchResult) -> pd.DataFrame:
    """Counts and lift of every head, layers and heads from 1."""
    table = found.heads.assign(layer=found.heads["layer"] + 1, head=found.heads["head"] + 1)
    return table.set_index(["map", "layer", "head"])
