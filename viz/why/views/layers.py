"""Layers: the translation read from each encoder layer, and the decoder's prediction after each sublayer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.attribution.target import AttributionError
from model.language.say import number, say, sentences, to_say
from viz.components.chart import chart
from viz.components.presenter import on_stage
from viz.export.parts import Chart, Columns, Part, Words
from viz.export.save import SavedView, facts_of
from viz.figures.explore.lens import lens_grid, lens_ranks
from viz.figures.labels import percent, quoted
from viz.figures.palette import Look
from viz.figures.places import place_name
from viz.figures.words import lens_in_words
from viz.ui.captions import caption
from viz.ui.table import table

from .. import cache
from ..controls import choose_word
from ..texts import lens as texts

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

    from model.experiments.decoder_lens import DecoderLens
    from model.experiments.logit_lens import Lens
    from viz.figures.palette import Palette

    from ..cache import ReadingKey
    from ..controls import Question

HEADINGS = to_say("Encoder read from"), to_say("Translation"), to_say("Rank"), to_say("Probability")


def show(question: Question, palette: Palette) -> SavedView:
    """Draw the translations by encoder layer, the lens after each sublayer, and the ranks of X and of Y."""
    reading, at = question.key.reading, question.key.position
    read, refused = _lens_of(reading)
    encoder, lens = cache.decoder_lens(reading), read(reading)
    ranked = [(question.target.tokens[0], lens)]
    if question.target.against_id is not None:
        ranked.append((question.target.against or "", read(reading, question.target.against_id)))
    if on_stage():
        ranked = []  # There the picture of so many rows has all the room.
    st.subheader(say("The encoder: DecoderLens"), anchor=False)
    with st.container(key="from-layers"):
        table([say(one) for one in HEADINGS], rows(encoder, at), say("The translation from each encoder layer"))
    says = [texts.encoder(encoder, at), lens_in_words(lens, at), say(texts.EXPLAINED)]
    if refused:
        says.append(sentences(refused, say(texts.LAYERS_ALONE)))
    caption(sentences(says[0], say(texts.DECODER_LENS)))
    st.subheader(say("The decoder: logit lens"), anchor=False)
    titles = texts.titles(sublayers=not refused)
    with st.container(key="picture"):
        chart(
            lens_grid(lens, look=Look(palette), pinned=at),
            titles[0],
            key="lens",
            on_cell=lambda _, column: choose_word(question.result.source, column),
        )
        for column, one in zip(st.columns(2, gap="large"), ranked, strict=False):
            with column:
                chart(_ranks(one, at, palette), titles[1], key=f"ranks-{one is ranked[0]}", on_cell=lambda _, __: None)
    caption(sentences(*says[1:]))

    def parts(of: Palette) -> list[Part]:
        grid = Chart(lens_grid(lens, look=Look(of), pinned=at), titles[0])
        charts = tuple([Chart(_ranks(one, at, of), titles[1])] for one in ranked)
        places = map(place_name, encoder.places)
        written = [Words(f"{place}: {text}") for place, text in zip(places, encoder.texts, strict=True)]
        both = [Columns(charts, (1 / len(charts),) * len(charts))] if charts else []
        return [*question.saved_texts, *written, grid, *both, *map(Words, says)]

    facts = facts_of(question.result.trace, **question.facts)
    return SavedView("why-layers", parts, lambda: numbers(encoder, lens), titles[0], facts, width=1280)


def _lens_of(reading: ReadingKey) -> tuple[Callable[..., Lens], str]:
    """What reads the decoder after each sublayer, or after each layer with why not."""
    try:
        cache.sublayer_lens(reading)
    except AttributionError as error:
        return cache.layer_lens, str(error)
    return cache.sublayer_lens, ""


def rows(found: DecoderLens, position: int) -> list[list[str]]:
    """The translation from each place, with rank and probability of the piece at a position, from 0."""
    return [
        [
            place_name(place),
            text,
            number(int(found.ranks[at, position]), ","),
            percent(math.exp(found.log_probs[at, position])),
        ]
        for at, (place, text) in enumerate(zip(found.places, found.texts, strict=True))
    ]


def numbers(encoder: DecoderLens, lens: Lens) -> pd.DataFrame:
    """Rank and log-probability of every piece of the translation, from each encoder layer and after each sublayer."""
    listed = [
        (side, place, at + 1, token, ranks[at], log_probs[at])
        for side, places, tokens, all_ranks, all_log_probs in (
            ("encoder", encoder.places, encoder.target_tokens, encoder.ranks, encoder.log_probs),
            ("decoder", lens.places, lens.target_tokens, lens.ranks, lens.target_log_probs),
        )
        for place, ranks, log_probs in zip(places, all_ranks, all_log_probs, strict=True)
        for at, token in enumerate(tokens)
    ]
    return pd.DataFrame(listed, columns=["stack", "after", "position", "piece", "rank", "log-probability"])


def _ranks(ranked: tuple[str, Lens], position: int, palette: Palette) -> go.Figure:
    token, lens = ranked
    return lens_ranks(lens, position, look=Look(palette), token=quoted(token))
