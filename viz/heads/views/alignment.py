"""The alignment: the error rate of every cross-attention head, of their means, against links drawn by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.alignment import READINGS
from model.heads.atlas import head_name
from model.language.say import say, sentences, to_say

from ...components.chart import chart
from ...export.parts import Chart, Words
from ...export.save import SavedView
from ...figures.heads.error_rates import RateTable, first_row, rate_tables
from ...ui import theme
from ...ui.captions import caption, plain
from .. import cache, kept_texts
from .all_heads import open_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.trace import Head
    from model.translate import Translator
    from model.word_alignment.rates import Rates

    from ...figures.palette import Palette

READING_NAMES = {"predicted": to_say("Read at the token predicted"), "fed": to_say("Read at the token fed in")}


def show(model: Translator, bar: DeltaGenerator) -> SavedView:
    found = cache.alignment(model.name, model.checkpoint.hash)
    tables = tables_of(found)
    said = kept_texts.alignment(found)
    title = say("Alignment error rate, %: {model}", model=model.name)

    def drawn(palette: Palette) -> Chart:
        return Chart(rate_tables(tables, title, palette), say("{title}. {text}", title=title, text=said))

    caption(kept_texts.gold(found))
    with st.container(key="finding"):
        st.markdown(plain(said))
    rows, columns = tables[0].rates.shape
    heads: dict[tuple[int, int], Head] = {
        (first_row(at, rows) + layer, head): ("cross", layer, head)
        for at in range(len(tables))
        for layer in range(rows - 1)
        for head in range(columns - 1)
    }
    nodes = [(*cell, head_name(head)) for cell, head in heads.items()]
    with st.container(key="picture"):
        shown = drawn(theme.palette())
        on_cell = lambda row, column: open_head(heads[row, column]) if (row, column) in heads else None  # noqa: E731
        chart(shown.figure, shown.alt, key="alignment", on_cell=on_cell, nodes=nodes)
    caption(say(kept_texts.ERROR_RATE))
    return SavedView(
        f"heads-alignment-{model.name}",
        lambda palette: (drawn(palette), Words(sentences(said, kept_texts.gold(found)))),
        lambda: numbers(found),
        title,
        {"model": model.name, "hash": model.checkpoint.hash, "gold": kept_texts.gold(found)},
    )


def tables_of(found: Rates) -> list[RateTable]:
    """The rates laid out for the figure, a table a reading."""
    layers = 1 + max(one.layer for one in found.rates)
    heads = 1 + max(one.head for one in found.rates)
    tables = []
    for reading in READINGS:
        rates = np.full((layers + 1, heads + 1), np.nan)
        for one in found.rates:
            if one.reading == reading:  # -1, of a mean, is the last row or column
                rates[one.layer, one.head] = one.aer
        tables.append(RateTable(say(READING_NAMES[reading]), rates))
    return tables


def numbers(found: Rates) -> pd.DataFrame:
    """Every rate, layers and heads from 1; a mean has no head."""
    from_one = [vars(one) | {name: _from_one(getattr(one, name)) for name in ("layer", "head")} for one in found.rates]
    return pd.DataFrame(from_one).set_index(["part", "layer", "head", "reading"])


def _from_one(number: int) -> str:
    return "" if number < 0 else str(number + 1)
