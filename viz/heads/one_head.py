"""The view of one head: its measures, example rows as shaded text, parts of speech, and costs."""

from __future__ import annotations

import html
from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import head_name
from attenscope.atlas.measure import COST_MEASURE, SHARE_MEASURES
from attenscope.atlas.query import Atlas, HeadRow
from attenscope.language import format_number, say
from attenscope.runnable_model import RunnableModel
from attenscope.trace import Head
from attenscope.viz.export.parts import Chart, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.figure_style import KIND_NAMES, Palette, readable_token
from attenscope.viz.figures.heads import MeasureStrip, plot_measure_strips
from attenscope.viz.heads import cache, texts
from attenscope.viz.ui import style
from attenscope.viz.ui.addresses.heads import HEADS_MEASURE_NAMES
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.ui.links import open_head_in_explore, set_explore_head
from attenscope.viz.ui.style import draw_table
from attenscope.viz.web.charts import draw_chart

MAX_TAG_PAIRS = 10


def draw_one_head_view(model: RunnableModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView | None:
    head = cache.draw_head_selector(atlas, bar)
    label = atlas.label(head)
    kind, layer, place = head
    title = say(
        "{kind}, layer {layer}, head {head}: {label}",
        kind=say(KIND_NAMES[kind]),
        layer=layer + 1,
        head=place + 1,
        label=label.text,
    )
    named = say("{head} among the heads of its map", head=head_name(head))

    def draw_figure(palette: Palette) -> Chart:
        return Chart(
            plot_measure_strips(build_measure_strips(atlas, head), named, palette),
            say("{title}. {text}", title=title, text=texts.describe_head_ablation_cost(atlas, head)),
        )

    st.markdown(f"**{escape_markdown(title)}**")
    with st.container(key="picture"):
        shown = draw_figure(style.get_palette())
        draw_chart(shown.figure, shown.alt, key="head-measures", on_cell=lambda _, __: None)
    draw_caption(texts.describe_head_ablation_cost(atlas, head))
    with st.container(key="like", horizontal=True, vertical_alignment="center"):
        draw_caption(say("Most like it"))
        for other, _ in atlas.nearest_heads(head):
            name = head_name(other)
            st.button(
                escape_markdown(name), key=f"like-{name}", type="tertiary", on_click=set_explore_head, args=(other,)
            )
        st.button(
            say("Open on Explore"), key="on-explore", type="tertiary", on_click=open_head_in_explore, args=(head,)
        )
    _draw_example_rows(atlas, head)
    with st.container(key="of-speech"):
        _draw_part_of_speech_pairs(model, atlas, head)
    with st.container(key="missed"):
        _draw_costliest_sentences(atlas, head)
    facts = texts.collect_atlas_facts(model, atlas) | {"head": head_name(head)}
    return SavedView(
        f"head-{kind}-{layer + 1}.{place + 1}",
        lambda palette: (
            Words(title, "picture", "heading"),
            draw_figure(palette),
            Words(texts.describe_head_ablation_cost(atlas, head)),
        ),
        lambda: tabulate_one_head(atlas, head),
        title,
        facts,
    )


def build_measure_strips(atlas: Atlas, head: Head) -> list[MeasureStrip]:
    """The measures of a head among the heads of its map; the last is what it costs."""
    own, table = atlas.row(head), atlas.heads[atlas.heads["map"] == head[0]]
    ordered = list_known_measures(atlas, head)
    return [
        MeasureStrip(say(HEADS_MEASURE_NAMES[name]), float(own[name]), tuple(table[name].dropna().tolist()))
        for name in ordered
    ]


def list_known_measures(atlas: Atlas, head: Head) -> list[str]:
    """The measures that a head has, in the order of the figure."""
    own = atlas.row(head)
    names = [name for name in atlas.measures if not pd.isna(own[name])]
    return sorted(names, key=lambda name: (name == COST_MEASURE, name in SHARE_MEASURES))


def tabulate_one_head(atlas: Atlas, head: Head) -> pd.DataFrame:
    """The measures of a head, a row each, by their names in the address."""
    own, names = atlas.row(head), list_known_measures(atlas, head)
    rows = {"name": [HEADS_MEASURE_NAMES[name] for name in names], "own": [float(own[name]) for name in names]}
    return pd.DataFrame(rows).set_index("name")


def _draw_example_rows(atlas: Atlas, head: Head) -> None:
    found = cache.load_head_example_rows(cache.make_atlas_identity(atlas), head, atlas)
    draw_caption(texts.describe_shaded_rows(atlas))
    with st.container(key="tenths"):
        for column, (name, rows) in zip(st.columns(len(found), gap="large"), found.items(), strict=True):
            with column:
                said = say(texts.TENTH_HEADINGS[name])
                draw_caption(said)
                st.html(render_shaded_rows(rows, [head[0]] * len(rows), said))


def _draw_part_of_speech_pairs(model: RunnableModel, atlas: Atlas, head: Head) -> None:
    identity = cache.make_atlas_identity(atlas)
    found = cache.load_tag_pairs(identity, head, atlas)[:MAX_TAG_PAIRS]
    title = say("From part of speech to part of speech")
    st.markdown(f"**{escape_markdown(title)}**")
    languages = str(model.card.get("source_language", "")), str(model.card.get("target_language", ""))
    if atlas.is_one_text:
        missing = texts.explain_untagged_decoder_text(cache.load_tags(identity, atlas))
    else:
        missing = texts.describe_untagged_sides(languages)
    if missing:
        draw_caption(missing)
    if found.empty:
        draw_caption(say("No pair of parts of speech is common enough in this corpus."))
        return
    rows = [
        [
            f"{query} → {key}",
            format_number(lift, ".1f"),
            format_number(share, ".0%"),
            format_number(even, ".0%"),
            format_number(count, ",.0f"),
        ]
        for query, key, count, share, even, lift in found.itertuples(index=False)
    ]
    draw_table(["", say("lift"), say("share"), say("evenly"), say("rows")], rows, title)
    draw_caption(say(texts.TAG_PAIRS_HINT))


def _draw_costliest_sentences(atlas: Atlas, head: Head) -> None:
    found = cache.load_costliest_sentences(cache.make_atlas_identity(atlas), head, atlas)
    if found.empty:
        return
    title = say("Where switching it off costs most")
    st.markdown(f"**{escape_markdown(title)}**")
    rows = [
        [
            format_number(cost, ".2f"),
            *([source] if atlas.is_one_text else [source, target]),
            f"{readable_token(token)} ({format_number(most, '.2f')})",
        ]
        for _, source, target, cost, token, most in found.itertuples(index=False)
    ]
    read = [say("text")] if atlas.is_one_text else [say("sentence"), say("translation")]
    draw_table([say("nats"), *read, say("most at")], rows, title)


# Example rows as shaded text: HTML in which every token is escaped.


SHADE_STEPS = 10
"""Number of shades; each is a class of heads.css."""


def render_shaded_rows(rows: Sequence[HeadRow], kinds: Sequence[str], name: str, heads: Sequence[str] = ()) -> str:
    """A list of rows; `kinds` says the map that each is of, `name` tells screen readers what the list is.

    `heads` names the head of each row, where they are of several.
    """
    names = [f'<span class="of">{html.escape(head)}</span>' for head in heads] or [""] * len(rows)
    found = zip(rows, kinds, names, strict=True)
    items = "".join(f"<li>{of}{_render_row(row, kind == 'cross')}</li>" for row, kind, of in found)
    return f'<ol class="shaded" aria-label="{html.escape(name)}">{items}</ol>'


def _render_row(row: HeadRow, two_sides: bool) -> str:
    """In self-attention one text, in cross-attention the token predicted before the source."""
    own = None if two_sides else row.query
    pieces = "".join(_render_piece(piece, float(row.weights[at]), at == own) for at, piece in enumerate(row.keys))
    before = f"{_render_piece(row.queries[row.query], 0.0, True)} ← " if two_sides else ""
    return f"{before}<span>{pieces}</span>"


def _render_piece(piece: str, weight: float, attends: bool) -> str:
    space = " " if piece.startswith((" ", "<", "▁")) else ""
    looks = [f"w{round(weight * SHADE_STEPS)}"] if weight > 0 else []
    looks += ["attends"] if attends else []
    share = say("{share} of the weight", share=format_number(weight, ".0%"))
    title = f' title="{html.escape(share)}"' if weight > 0 else ""
    return f'{space}<span class="{" ".join(looks)}"{title}>{html.escape(readable_token(piece))}</span>'
