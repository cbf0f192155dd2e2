"""One decoding, step by step: both sentences, what the step looks at, what it considered; scrubbed in the browser."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from model.language.say import say

from ...figures.labels import readable
from ..bundle import component, told
from ..packing import pack, quantise

if TYPE_CHECKING:
    from model.decoding.steps import Candidate, DecodingStep
    from model.translate import Translation

    from ...figures.palette import Look

_mount = component("decode_player")
CANDIDATES = 8


@dataclass(frozen=True)
class PlayerStart:
    """What the player begins with; changed in the browser from then on."""

    step: int
    """From 0."""
    cross: str
    """Cross-attention of ``aligning``, or ``3.1``: a head, or ``3.mean``: a layer's mean; counted from 1."""
    own: str
    """The same for the decoder's self-attention, which has no aligning head."""
    aligning: tuple[int, int] | None
    """Layer and head, from 0, of the best aligning head; None where none is offered."""


def decode_player(
    result: Translation,
    start: PlayerStart,
    look: Look,
    *,
    key: str,
    run: str,
    on_step: Callable[[int], None],
    on_view: Callable[[str, str], None],
    on_pick: Callable[[int, int], None],
    on_forbid: Callable[[int, int], None],
    on_word: Callable[[int], None],
) -> None:
    """Draw all steps of `result`; another `run` starts anew.

    Heard of, steps from 0: `on_step(step)` a step one has come to rest at, `on_view(cross, own)` the heads chosen,
    `on_pick(step, token_id)` and `on_forbid(step, token_id)` a candidate to go on from or never to write,
    `on_word(step)` a word of the translation that was pressed.
    """
    state = lambda: told(key)  # noqa: E731  (what the browser sent, read when a callback runs)
    _mount(
        key=key,
        data=packed(result, start, look, run),
        on_step_change=lambda: on_step(int(state().step)),
        on_view_change=lambda: on_view(str(state().view["cross"]), str(state().view["own"])),
        on_pick_change=lambda: on_pick(int(state().pick["step"]), int(state().pick["id"])),
        on_word_change=lambda: on_word(int(state().word)),
        on_forbid_change=lambda: on_forbid(int(state().forbid["step"]), int(state().forbid["id"])),
    )


def packed(result: Translation, start: PlayerStart, look: Look, run: str) -> bytes:
    """What decode_player.js reads: the words, then the cross (L, H + 1, T, S) and the decoder's (L, H + 1, T, T) bytes.

    After a layer's heads stands their mean: a mean of bytes would not have the decimals of the mean.
    """
    cross, own = result.to_source, result.to_target
    header = {
        "id": run,
        "start": min(start.step, len(result.steps) - 1),
        "source": _words(result.source_tokens),
        "target": _words((own.query_tokens[0], *result.target_tokens)),
        "steps": _steps(result.steps),
        "cross": {"shape": cross.weights.shape, "chosen": start.cross, "name": _name(result)},
        "own": {"shape": own.weights.shape, "chosen": start.own},
        "aligning": start.aligning,
        "stops": look.stops,
        "scale": look.scale,
        "masked": look.palette.masked,
        "background": look.palette.background,
        "inks": (look.palette.ink, look.palette.background),
        "line": look.palette.line,
        "accent": look.palette.accent,
    }
    return pack(header, b"".join(quantise(_with_means(one.weights), one.mask).tobytes() for one in (cross, own)))


def _name(result: Translation) -> str:
    """What the attention to the first line is called."""
    return say("attention to the prompt") if result.trace.cross is None else say("cross-attention")


def _with_means(weights: np.ndarray) -> np.ndarray:
    """Return weights (L, H, Q, K) and the mean of each layer's heads as (L, H + 1, Q, K) float64."""
    return np.concatenate([weights, weights.mean(axis=1, keepdims=True, dtype=np.float64)], axis=1)


def _words(tokens: Sequence[str]) -> list[dict[str, Any]]:
    return [{"text": readable(token), "space": token.startswith(" ")} for token in tokens]


def _steps(steps: Sequence[DecodingStep]) -> list[dict[str, Any]]:
    total, found = 0.0, []
    for step in steps:
        total += step.log_prob
        chosen = {"id": step.token_id, "text": readable(step.token), "p": math.exp(step.log_prob), "rank": step.rank}
        candidates = [_candidate(one) for one in step.candidates[:CANDIDATES]]
        found.append({"total": total, "chosen": chosen, "candidates": candidates})
    return found


def _candidate(one: Candidate) -> dict[str, Any]:
    row: dict[str, Any] = {"id": one.token_id, "text": readable(one.token), "p": math.exp(one.log_prob)}
    if one.drawn is not None:
        row["drawn"] = one.drawn
    return row | {"forbidden": True} if one.forbidden else row
