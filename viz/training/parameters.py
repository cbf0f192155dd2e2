"""How many numbers the model has learned, by part and by tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from model.checkpoint.parameters import StateTensor, parameters_by_part, state_tensors
from model.language.say import listed, number, say

from ..components.presenter import on_stage
from ..ui.captions import caption
from ..ui.table import Cell, download, table

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from model.translate import Translator


def show(model: Translator, bar: DeltaGenerator) -> None:
    counts, tensors = parameters_by_part(model.model), state_tensors(model.model)
    total = sum(counts.values())
    left, right = st.columns([0.34, 0.66], gap="large")
    with left:
        rows: list[list[Cell]] = [
            [say(part), number(count, ","), number(count / total, ".1%")] for part, count in counts.items()
        ]
        table(
            [say("part"), say("parameters"), say("share")],
            [*rows, [say("all"), (number(total, ","), "own"), ""]],
            say("Parameters by part"),
        )
        caption(sharing_text(tensors))
    with right:
        rows = [[one.name, " × ".join(map(str, one.shape)), _count(one)] for one in tensors]
        with st.container(key="tensors", height="content" if on_stage() else 560, border=False):
            table([say("state dict"), say("shape"), say("parameters")], rows, say("State dict"))
    with bar, st.container(key="saving", horizontal=True, width="content"):
        download(
            say("Parts as CSV"),
            lambda: pd.DataFrame({"part": list(counts), "parameters": list(counts.values())}),
            f"parts-{model.name}",
        )
        download(say("State dict as CSV"), lambda: numbers(tensors), f"state-dict-{model.name}")


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
    columns = {"name": [one.name for one in tensors], "shape": ["x".join(map(str, one.shape)) for one in tensors]}
    counts = {"parameters": [one.parameters for one in tensors], "shared with": [one.shared_with for one in tensors]}
    return pd.DataFrame(columns | counts)


def _count(one: StateTensor) -> tuple[str, str]:
    return (f"= {one.shared_with}", "same") if one.shared_with else (number(one.parameters, ","), "")
