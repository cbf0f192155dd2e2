"""What can be saved of a judged mask: its verdict with the four pictures, and the findings as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from model.language.say import say, sentences

from ...components.mask_editor import Panel, packed
from ...export.parts import Component, Part, Words
from ...export.save import SavedView
from ...figures.masks.colours import mask_colours
from ...traces.verdict import where_in_code
from . import verdict
from .input.edits import edits
from .pictures import legend

if TYPE_CHECKING:
    from model.diagnosis import Finding

    from ...figures.palette import Palette
    from .input.mask_input import MaskInput
    from .judgement import Judgement


def saved_view(mask_input: MaskInput, judgement: Judgement, panels: Sequence[Panel]) -> SavedView:
    """The panels as they stand on the page, under the verdict; no cell can be turned over."""
    still = [replace(panel, editable=False) for panel in panels]
    findings = verdict.sorted_findings(judgement.diagnosis)
    headline = verdict.headline_text(judgement.diagnosis, bool(judgement.done))
    meaning = verdict.meaning(mask_input, judgement.diagnosis)
    marked = edits(mask_input.identity).marked

    def parts(palette: Palette) -> list[Part]:
        colours = mask_colours(palette)
        picture = packed(still, colours, marked, mask_input.tokens, legend=legend(colours))
        return [
            Words(headline, "verdict", "heading"),
            Words(meaning, "verdict"),
            Component("mask_editor", picture),
            *(Words(_in_words(one), "verdict") for one in findings),
        ]

    return SavedView("mask", parts, lambda: numbers(findings), say("A mask, judged"), {"verdict": headline}, width=1280)


def _in_words(one: Finding) -> str:
    found = say("{code}: {finding}", code=one.code, finding=one.message)
    return sentences(found, where_in_code(one), say("Fix: {line}", line=one.fix))


def numbers(findings: Sequence[Finding]) -> pd.DataFrame:
    """Every finding with its place."""
    columns = ["code", "severity", "map", "sample", "layer", "head", "message", "fix", "level"]
    return pd.DataFrame([one.as_dict() for one in findings], columns=columns).set_index("code")
