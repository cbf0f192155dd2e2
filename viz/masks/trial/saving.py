"""What can be saved of a mask that was tried: both translations, what the mask changed, and one view of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from ...components.versions import versions_data
from ...export.parts import Component, Part, Words
from ...export.save import SavedView
from ...figures.labels import KIND_NAMES
from ...ui.addresses.masks import MASK
from .texts import effect

if TYPE_CHECKING:
    from model.experiments.mask_trial import MaskTrial, TrialResult

    from ...components.versions import Version
    from ...figures.palette import Palette

HEADINGS = ("log-probability", "of the right one", "attention moved")


@dataclass(frozen=True, eq=False)
class Shown:
    """What one view of a tried mask has put on the page."""

    name: str
    parts: Callable[[Palette], Sequence[Part]]
    numbers: Callable[[], pd.DataFrame]


def saved_view(
    tried: TrialResult,
    trial: MaskTrial,
    rows: Sequence[Version],
    shown: Shown,
    facts: Mapping[str, str],
    written: str,
) -> SavedView:
    """What is written with the own mask and with the tried one, what it changed, and one view of it."""
    title = f"{KIND_NAMES[trial.kind]}: {MASK.label(trial.name).lower()}"

    def parts(palette: Palette) -> list[Part]:
        texts = Component("versions", versions_data(rows, HEADINGS, -1), "sentence")
        return [texts, Words(effect(tried, written)), *shown.parts(palette)]

    return SavedView(f"tried-mask-{shown.name}", parts, shown.numbers, title, facts, width=1100)
