"""The translation as running text, the pieces of which the model was unsure underlined; click a piece to pin it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.language.say import listed, say

from ...figures.labels import percent, readable
from ..bundle import component

if TYPE_CHECKING:
    from model.decoding.steps import DecodingStep

_mount = component("tokens")

SURE = 0.6
"""The probability below which a piece is underlined."""


def tokens(
    steps: Sequence[DecodingStep],
    pinned: int | None,
    *,
    key: str,
    on_pin: Callable[[int], None] | None,
    keep: bool = False,
    word: Sequence[int] = (),
) -> None:
    """Draw the pieces of `steps`; `on_pin(position)` hears of a click. `keep`: a click never lets go of a piece.

    Without `on_pin` the pinned piece stays. `word`: the positions of the word that the pinned piece stands for, marked
    with it.
    """

    def clicked() -> None:
        if on_pin:
            on_pin(int(st.session_state[key].pin["position"]))

    data = line(steps, pinned, keep=keep, word=word) | {"fixed": on_pin is None}
    _mount(key=key, data=data, on_pin_change=clicked)


def line(
    steps: Sequence[DecodingStep], pinned: int | None, *, keep: bool = False, word: Sequence[int] = ()
) -> dict[str, Any]:
    """What tokens.js reads."""
    return {"pieces": [_piece(step) for step in steps], "pinned": pinned, "keep": keep, "word": list(word)}


def _piece(step: DecodingStep) -> dict[str, Any]:
    """Doubt is 1 minus the probability that the model gave to the piece it wrote."""
    return {
        "text": step.token,
        "doubt": round(1 - math.exp(step.log_prob), 3),
        "unsure": is_unsure(step),
        "special": step.stopped == "eos",
        "note": _note(step),
    }


def is_unsure(step: DecodingStep) -> bool:
    """Whether the model gave the piece that it wrote less than `SURE`."""
    return math.exp(step.log_prob) < SURE


def _note(step: DecodingStep) -> str:
    others = [
        f"{readable(one.token)} {percent(math.exp(one.log_prob))}"
        for one in step.candidates
        if one.token_id != step.token_id
    ]
    own = f"{readable(step.token)} {percent(math.exp(step.log_prob))}"
    return say("{piece}; next best: {others}", piece=own, others=listed(others[:3])) if others else own
