"""The pictures of an entry of the gallery: its broken side beside its fixed one, where they differ most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from model.faults.exhibits import Exhibit, Side
from model.language.say import listed, say

from ...figures.masks.pair import Panel, gallery_pair
from ...figures.palette import Look

SENTENCE = ("the", "old", "man", "reads", "a", "book", "outside", "today", "and", "smiles")
TARGET = ("der", "alte", "Mann", "liest", "draußen", "ein", "Buch", "und", "lächelt", "heute")
CROSS = ("causal-on-cross", "padding-visible", "padding-swapped")


def picture(entry: Exhibit, broken: Side, fixed: Side, look: Look) -> Any:
    """The one map, of all samples, layers and heads, on which the two sides differ most."""
    sample, layer, head = place(broken, fixed)
    rows, columns = labels(entry, broken, sample)
    panels = [
        Panel(title, side.weights[sample, layer, head], side.meant[sample, layer, head], entry.recipe is not None)
        for title, side in ((say("broken"), broken), (say("fixed"), fixed))
    ]
    return gallery_pair(panels, rows, columns, where(broken, sample, layer, head), look)


def numbers(entry: Exhibit, broken: Side, fixed: Side) -> pd.DataFrame:
    """Every cell of that picture: query and key, the weight on either side, and whether it should have any."""
    sample, layer, head = place(broken, fixed)
    rows, columns = labels(entry, broken, sample)
    cells = [
        {
            "query": row,
            "key": column,
            "broken": float(broken.weights[sample, layer, head, i, j]),
            "fixed": float(fixed.weights[sample, layer, head, i, j]),
            "meant": bool(fixed.meant[sample, layer, head, i, j]),
        }
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
    return pd.DataFrame(cells).set_index("query")


def labels(entry: Exhibit, side: Side, sample: int) -> tuple[list[str], list[str]]:
    """The words at the rows and at the columns."""
    columns = named(SENTENCE, side.key_keep[sample])
    if entry.code == "top-left-causal":
        return columns[len(columns) - len(side.query_keep[sample]) :], columns
    return named(TARGET if entry.code in CROSS else SENTENCE, side.query_keep[sample]), columns


def place(broken: Side, fixed: Side) -> tuple[int, int, int]:
    """Sample, layer and head, from 0, on which the two sides differ most."""
    change = np.nan_to_num(np.abs(broken.weights.astype(np.float64) - fixed.weights), nan=1.0)
    at = np.unravel_index(int(change.sum((-1, -2)).argmax()), change.shape[:3])
    return int(at[0]), int(at[1]), int(at[2])


def where(side: Side, sample: int, layer: int, head: int) -> str:
    """The place in words, counted from 1."""
    samples, layers, heads = side.weights.shape[:3]
    parts = (
        say("sentence {at} of {count}", at=sample + 1, count=samples) if samples > 1 else "",
        say("layer {at} of {count}", at=layer + 1, count=layers) if layers > 1 else "",
        say("head {at} of {count}", at=head + 1, count=heads) if heads > 1 else "",
    )
    return listed(filter(None, parts))


def named(words: tuple[str, ...], keep: np.ndarray) -> list[str]:
    """Words for real tokens, in order, and ``pad`` for the others; keep (K,) bool."""
    left = iter(words)
    return [next(left) if real else "pad" for real in keep]
