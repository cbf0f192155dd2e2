"""What can be saved of a mask that was tried: both translations, what the mask changed, and one view of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from model.language.say import say, to_say

from ...components.versions import versions_data
from ...export.parts import Component, Part, Words
from ...export.save import SavedView
from ...figures.labels import KIND_NAMES
from ...ui.addresses.masks import MASK

if TYPE_CHECKING:
    from model.experiments.mask_trial import MaskTrial

    from ...components.versions import Version
    from ...figures.palette import Palette

HEADINGS = (to_say("log-probability"), to_say("of the right one"), to_say("attention moved"))


@dataclass(frozen=True, eq=False)
class Shown:
    """What one view of a tried mask has put on the page."""

    name: str
    parts: Callable[[Palette], Sequence[Part]]
    numbers: Callable[[], pd.DataFrame]


def headings() -> list[str]:
    """What stands over the numbers of a translation."""
    return [say(one) for one in HEADINGS]


def saved_view(
    trial: MaskTrial, rows: Sequence[Version], shown: Shown, facts: Mapping[str, str], effect: str
) -> SavedView:
    """What is written with the own mask and with the tried one, the `effect` in a sentence, and one view of it."""
    title = say("{kind}: {mask}", kind=say(KIND_NAMES[trial.kind]), mask=MASK.label(trial.name))
    heads = headings()

    def parts(palette: Palette) -> list[Part]:
        texts = Component("versions", versions_data(rows, heads, -1), "sentence")
        return [texts, Words(effect), *shown.parts(palette)]

    return SavedView(f"tried-mask-{shown.name}", parts, shown.numbers, title, facts, width=1100)
