"""What can be saved of Masks: the four pictures with their verdict, and a fault of the gallery beside its fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from ..components.mask_editor import Panel, packed
from ..export.parts import Chart, Columns, Component, Part, Words
from ..figures.mask_colours import mask_colours
from ..save import Saved

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

    from model.diagnosis import Finding

    from ..figures.palette import Palette


def judged_mask(
    panels: Sequence[Panel],
    marked: tuple[Sequence[int], Sequence[int]],
    headline: str,
    meaning: str,
    findings: Sequence[Finding],
) -> Saved:
    """The pictures as they stand, `marked` (queries, keys) framed, under what was found; nothing can be turned over."""
    still = [replace(panel, editable=False) for panel in panels]

    def parts(palette: Palette) -> list[Part]:
        return [
            Words(headline, "verdict", "heading"),
            Words(meaning, "verdict"),
            Component("mask_editor", packed(still, mask_colours(palette), marked)),
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
