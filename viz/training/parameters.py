"""How many numbers the model has learned, by part and by tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.checkpoint.parameters import StateTensor, parameters_by_part, state_tensors
from model.language.say import listed, number, say

from ..components.presenter import on_stage
from ..export.parts import Columns, Part, Table, Words
from ..export.save import SavedView, save, table_csv
from ..ui.captions import caption
from ..ui.table import Cell, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlit.delta_generator import DeltaGenerator

    from model.translate import Translator

SHARES = (0.34, 0.66)
"""Widths of the table of parts and of that of all tensors."""


def show(model: Translator, bar: DeltaGenerator) -> None:
    counts, tensors = parameters_by_part(model.model), state_tensors(model.model)
    total = sum(counts.values())
    cells: list[list[Cell]] = [
        [say(part), number(count, ","), number(count / total, ".1%")] for part, count in counts.items()
    ]
    cells.append([say("all"), (number(total, ","), "own"), ""])
    by_part = Table([say("part"), say("parameters"), say("share")], cells, say("Parameters by part"))
    rows: list[list[Cell]] = [[one.name, "\u00a0×\u00a0".join(map(str, one.shape)), _count(one)] for one in tensors]
    by_tensor = Table([say("state dict"), say("shape"), say("parameters")], rows, say("State dict"))
    said = sharing_text(tensors)
    left, right = st.columns(SHARES, gap="large")
    with left:
        table(by_part.headings, by_part.rows, by_part.name)
        caption(said)
    with right, st.container(key="tensors", height="content" if on_stage() else 560, border=False):
        table(by_tensor.headings, by_tensor.rows, by_tensor.name)
    with bar, st.container(key="saving", width="content"):
        save(_saved(model, [Columns(([by_part, Words(said)], [by_tensor]), SHARES)], counts, tensors))


def _saved(
    model: Translator, parts: list[Part], counts: Mapping[str, int], tensors: tuple[StateTensor, ...]
) -> SavedView:
    """Both tables; the state dict as numbers, and the parts as a file beside it."""
    name, title = f"state-dict-{model.name}", say("Parameters of {model}", model=model.name)
    of_parts = pd.DataFrame({"part": list(counts), "parameters": list(counts.values())})
    files = {f"parts-{model.name}.csv": (say("Parts as CSV"), lambda: table_csv(of_parts, index=False).encode())}
    facts = {"model": model.name, "hash": model.checkpoint.hash}
    return SavedView(name, lambda _: parts, lambda: numbers(tensors), title, facts, files)


def sharing_text(tensors: tuple[StateTensor, ...]) -> str:
    shared = [one for one in tensors if one.shared_with]
    if not shared:
        return say("No tensor is shared: every part has its own.")
    return say(
        "Shared tensors count once, where they stand first: {names} are the same numbers as {first}.",
        names=listed(one.name for one in shared),
        first=shared[0].shared_with,
    )


def numbers(tensors: tuple[StateTensor, ...]) -> pd.DataFrame:
    """Every tensor with its shape, a row each."""
    columns = {"shape": ["x".join(map(str, one.shape)) for one in tensors]}
    counts = {"parameters": [one.parameters for one in tensors], "shared with": [one.shared_with for one in tensors]}
    return pd.DataFrame(columns | counts, pd.Index([one.name for one in tensors], name="name"))


def _count(one: StateTensor) -> tuple[str, str]:
    return (f"= {one.shared_with}", "same") if one.shared_with else (number(one.parameters, ","), "")
