"""What can be saved of Masks: a verdict with its pictures, a fault beside its fix, a mask tried, a mask converted."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..components.mask_editor import Panel, Tokens, packed
from ..export.parts import Chart, Columns, Component, Mark, Part, Words
from ..export.save import Saved
from ..figures.labels import KIND_NAMES
from ..figures.mask_colours import mask_colours
from .trial.texts import TITLES_OF, effect

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from model.diagnosis import Finding
    from model.experiments.mask_trial import MaskTrial, TrialResult

    from ..components.versions import Version
    from ..figures.palette import Palette


def judged_mask(
    panels: Sequence[Panel],
    marked: tuple[Sequence[int], Sequence[int]],
    headline: str,
    meaning: str,
    findings: Sequence[Finding],
    tokens: Tokens = ((), ()),
) -> Saved:
    """The pictures as they stand, `marked` (queries, keys) framed, under what was found; nothing can be turned over."""
    still = [replace(panel, editable=False) for panel in panels]

    def parts(palette: Palette) -> list[Part]:
        return [
            Words(headline, "verdict", "heading"),
            Words(meaning, "verdict"),
            Component("mask_editor", packed(still, mask_colours(palette), marked, tokens)),
            *(Words(f"{one.code}: {one.message} Fix: {one.fix}", "verdict") for one in findings),
        ]

    return Saved("mask", parts, lambda: numbers(findings), "A mask, judged", {"verdict": headline}, width=1280)


def numbers(findings: Sequence[Finding]) -> pd.DataFrame:
    """Every finding with its place."""
    columns = ["code", "severity", "map", "sample", "layer", "head", "message", "fix"]
    return pd.DataFrame([one.as_dict() for one in findings], columns=columns).set_index("code")


def exhibit(
    title: str,
    how: str,
    figure: Callable[[Palette], go.Figure],
    reading: str,
    verdicts: tuple[Sequence[str], Sequence[str]],
    fix: str,
) -> Saved:
    """A fault of the gallery: broken and fixed, with the `verdicts` on both and the line that mends it."""

    def parts(palette: Palette) -> list[Part]:
        return [
            Words(how, "verdict"),
            Chart(figure(palette), f"{title}: broken beside fixed"),
            Words(reading),
            Columns(tuple([Words(line, "verdict") for line in one] for one in verdicts), (1, 1)),
            Words(f"The fix: {fix}", "verdict"),
        ]

    return Saved("mask-fault", parts, None, title, width=1100)


@dataclass(frozen=True, eq=False)
class Shown:
    """What one view of a tried mask has put on the page."""

    name: str
    parts: Callable[[Palette], Sequence[Part]]
    numbers: Callable[[], pd.DataFrame]


def tried_mask(
    tried: TrialResult, trial: MaskTrial, rows: Sequence[Version], shown: Shown, facts: Mapping[str, str]
) -> Saved:
    """The translations with the own mask and with the tried one, what it changed, and one view of it."""
    title = f"{KIND_NAMES[trial.kind]}: {TITLES_OF[trial.name].lower()}"
    told: list[tuple[Version, list[tuple[str, Mark]]]] = [
        (row, [(word, "new" if how == "new" else "gone" if how == "gone" else "same") for word, how in row.words])
        for row in rows
    ]

    def parts(palette: Palette) -> list[Part]:
        texts = (Words(row.what, "sentence", marked=((f"{row.what}: ", "same"), *marks)) for row, marks in told)
        return [*texts, Words(effect(tried), "verdict"), *shown.parts(palette)]

    return Saved(f"tried-mask-{shown.name}", parts, shown.numbers, title, facts, width=1100)


def converted(
    picture: Callable[[Palette], go.Figure], said: Sequence[str], line: str, array: np.ndarray | None, names: str
) -> Saved:
    """What a mask says, how both interfaces write it, the code between them, and the mask itself as a file."""

    def parts(palette: Palette) -> list[Part]:
        return [
            Chart(picture(palette), "The mask of each sample"),
            *(Words(one, "verdict") for one in said),
            *(Words(one, "verdict") for one in ("The code:", *line.splitlines())),
        ]

    files = {} if array is None else {"The converted mask (NPY)": ("mask.npy", lambda: _npy(array))}
    return Saved("mask-converted", parts, None, f"A mask, {names}", {"code": line}, files, width=1100)


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()
