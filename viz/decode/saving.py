"""What can be saved of Decode: the whole player, the beam tree, and the steps as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from model.language.say import say

from ..components.beam_tree import tree_data
from ..components.decode_player import PlayerStart, packed
from ..components.presenter import on_stage
from ..export.live_file import live_files
from ..export.parts import Component, Part, Words
from ..export.save import SavedView, facts_of
from ..figures.labels import readable

if TYPE_CHECKING:
    from model.decoding.beam_tree import BeamTree
    from model.live.live_model import LiveModel
    from model.translate import Translation

    from ..figures.palette import Look, Palette
    from .request import Request


def saved_view(
    model: LiveModel,
    result: Translation,
    start: PlayerStart,
    look: Look,
    tree: BeamTree | None,
    sentences: Sequence[str],
    request: Request,
    path: tuple[int, ...],
) -> SavedView:
    """The player from `start` on, the tree of a beam search with its `path` (token ids), and the sentences below."""

    staged = on_stage()

    def parts(palette: Palette) -> list[Part]:
        # A scene shows the tree alone, which does not have the sentence in it as the player does.
        drawn: list[Part] = [Words(result.source, "sentence", "large")] if tree and staged else []
        drawn.append(
            Component("decode_player", packed(result, start, replace(look, palette=palette), "saved"), "decoding")
        )
        if tree:
            chosen = path or result.target_ids
            drawn += [
                *([] if staged else [Words(say("Beam tree"), "tree", "heading")]),
                Component("beam_tree", tree_data(tree, chosen), "tree"),
            ]
        return [*drawn, *map(Words, sentences)]

    facts = facts_of(result.trace, strategy=request.name, **({"changes": request.changes} if request.changes else {}))
    live = live_files(model)
    name = f"decode-{request.method}"
    return SavedView(name, parts, lambda: numbers(result), say("Decoded step by step"), facts, live, width=1280)


def numbers(result: Translation) -> pd.DataFrame:
    """Every step with the token written, its probability and rank, and each candidate with its probability."""
    rows = []
    for step in result.steps:
        row = {"token": readable(step.token), "probability": math.exp(step.log_prob), "rank": step.rank}
        for at, one in enumerate(step.candidates, start=1):
            row |= {f"candidate {at}": readable(one.token), f"probability {at}": math.exp(one.log_prob)}
        rows.append(row)
    return pd.DataFrame(rows, index=pd.RangeIndex(1, len(rows) + 1, name="step"))
