"""In the sentence: what is added to what, and how long either is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from model.language.say import say
from model.live.live_model import LiveModel
from model.live.translation import Translation
from model.positions.embedding_parts import EmbeddingParts, embedding_parts

from ..components.chart import chart
from ..components.matrix import Matrix, matrix, packed
from ..export.parts import Chart, Component, Part, Words
from ..export.save import SavedView, facts_of
from ..figures.diverging import diverging
from ..figures.labels import readable
from ..figures.palette import Palette
from ..figures.positions.effects import lengths
from ..ui import theme, widgets
from ..ui.addresses.positions import PIECE, SIDE
from ..ui.captions import caption
from . import controls, texts


def show(model: LiveModel, result: Translation) -> SavedView | None:
    with st.container(horizontal=True, vertical_alignment="center"):
        side = widgets.segmented_control(say("Side"), SIDE) if model.can("translate") else "target"
        parts = embedding_parts(model, result, side)
        last = len(parts.pieces)
        piece = int(controls.number(say("Piece"), PIECE, 1, last, min(2, last))) - 1
    alt = say("Length of embeddings and encodings")
    with st.container(key="picture"):
        bars = lengths(parts, piece, theme.palette())
        chart(bars, alt, key="lengths-bars", on_cell=lambda _, x: _take(round(x), last))
        matrix(_picture(parts, piece, theme.palette()), key="sum")
    caption(texts.sentence(parts))
    caption(texts.three_vectors(parts))

    def drawn(palette: Palette) -> list[Part]:
        return [
            Words(result.trace.source, "sentence", "large"),
            Chart(lengths(parts, piece, palette), alt),
            Component("matrix", packed(_picture(parts, piece, palette))),
            Words(texts.sentence(parts)),
        ]

    return SavedView("positions-sentence", drawn, lambda: numbers(parts), alt, facts_of(result.trace))


def numbers(parts: EmbeddingParts) -> pd.DataFrame:
    """Every piece with its lengths."""
    columns = {
        "embedding": np.linalg.norm(parts.tokens, axis=1),
        "embedding before scaling": np.linalg.norm(parts.tokens, axis=1) / parts.scale,
        "encoding": np.linalg.norm(parts.encoding, axis=1),
        "sum": np.linalg.norm(parts.total, axis=1),
    }
    return pd.DataFrame({"piece": [readable(piece) for piece in parts.pieces]} | columns).rename_axis("position")


def _picture(parts: EmbeddingParts, piece: int, palette: Palette) -> Matrix:
    values = np.stack([parts.tokens[piece], parts.encoding[piece], parts.total[piece]])
    high = float(np.abs(values).max())
    title = say("What “{piece}” is made of", piece=readable(parts.pieces[piece]))
    rows, columns = [say("embedding"), say("encoding"), say("sum")], list(range(values.shape[1]))
    return Matrix(values, title, rows, columns, "", say("dimension"), -high, high, diverging(palette), height=96)


def _take(at: int, last: int) -> None:
    st.session_state[PIECE.key] = min(max(at, 0), last - 1) + 1
