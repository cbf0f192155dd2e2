"""The masks that calls of attention were given beside those in force, layer by layer, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...masking.attention_call import AttentionCall
from ...trace import AttentionMap


@dataclass(frozen=True, eq=False)
class PassedMasks:
    """Both masks of every layer, (L, 1 or H, Q, K) bool, True = may attend."""

    passed: np.ndarray
    """All open where none arrived."""
    in_force: np.ndarray
    calls: tuple[AttentionCall, ...]
    """(L,) what arrived at each layer."""

    def layer(self, at: int) -> PassedMasks:
        """Return one layer, from 0, alone."""
        one = slice(at, at + 1)
        return PassedMasks(self.passed[one], self.in_force[one], self.calls[one])

    def parting(self) -> list[int]:
        """Return the layers, from 0, in which the mask in force is not what was passed."""
        differ = (self.passed != self.in_force).any((1, 2, 3))
        return [at for at, (one, call) in enumerate(zip(differ, self.calls, strict=True)) if one and call.passed_cells]

    def sentences(self) -> list[tuple[list[int], str]]:
        """Return (layers from 0, what became of the mask passed to them), layers of one sentence together."""
        found: dict[str, list[int]] = {}
        for at, call in enumerate(self.calls):
            found.setdefault(passed_in_words(call, self.passed[at], self.in_force[at]), []).append(at)
        return [(layers, sentence) for sentence, layers in found.items()]


def passed_masks_of(attention: AttentionMap, calls: Sequence[AttentionCall]) -> PassedMasks | None:
    """Return both masks of a captured map; None where it was not recorded what its ``calls`` (L,) were given."""
    if not calls or any(call.passed is None for call in calls):
        return None
    in_force, passed = attention.masks, attention.passed_masks
    if passed is None:
        passed = np.ones((1, 1, *in_force.shape[2:]), bool)
    shape = (len(calls), max(passed.shape[1], in_force.shape[1]), *in_force.shape[2:])
    return PassedMasks(np.broadcast_to(passed, shape), np.broadcast_to(in_force, shape), tuple(calls))


def passed_in_words(call: AttentionCall, passed: np.ndarray, in_force: np.ndarray) -> str:
    """Return what became of the mask that was passed to one layer.

    ``passed`` and ``in_force`` are (H, Q, K) bool, True = may attend; a cell counts once, in whatever head.
    """
    if not call.passed_cells:
        return f"What was passed is not drawn: {call.passed}."
    blocked = _cells(~in_force)
    of = f"{len(blocked):,} of {passed.shape[1] * passed.shape[2]:,} cells"
    if not call.passed:
        if not len(blocked):
            return "No mask arrived, and none is in force."
        return f"No mask arrived; what blocks {of} was made inside of {call.module}."
    ignored, added = _cells(~passed & in_force), _cells(passed & ~in_force)
    if not len(ignored) and not len(added):
        return f"In force as passed ({call.passed}): {of} are blocked."
    hidden = len(_cells(~passed))
    sentences = [f"Passed was {call.passed}."]
    if len(ignored) and not (~passed & ~in_force).any():
        sentences.append(f"It takes no effect: none of the {hidden:,} cells that it blocks is blocked in force.")
    elif len(ignored):
        are = "is" if len(ignored) == 1 else "are"
        sentences.append(
            f"{len(ignored):,} of the {hidden:,} cells that it blocks {are} open in force, {_first(ignored)}."
        )
    if len(added):
        are = "cell that it leaves open is" if len(added) == 1 else "cells that it leaves open are"
        sentences.append(f"{len(added):,} {are} blocked in force, {_first(added)}.")
    return " ".join(sentences)


def _cells(mask: np.ndarray) -> np.ndarray:
    """(N, 2): the queries and keys where any head has True."""
    return np.argwhere(mask.any(0))


def _first(cells: np.ndarray) -> str:
    query, key = cells[0] + 1
    return f"such as query {query}, key {key}"
