"""The masks that calls of attention were given beside those in force, layer by layer, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...language.say import say, say_many, sentences
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
        return say("What was passed is not drawn: {passed}.", passed=call.passed_in_words)
    blocked = {"blocked": len(_cells(~in_force)), "cells": passed.shape[1] * passed.shape[2]}
    if not call.passed:
        if not blocked["blocked"]:
            return say("No mask arrived, and none is in force.")
        return say(
            "No mask arrived; what blocks {blocked:,} of {cells:,} cells was made inside of {module}.",
            **blocked,
            module=call.module,
        )
    ignored, added = _cells(~passed & in_force), _cells(passed & ~in_force)
    if not len(ignored) and not len(added):
        return say(
            "In force as passed ({passed}): {blocked:,} of {cells:,} cells are blocked.",
            passed=call.passed_in_words,
            **blocked,
        )
    said = [say("Passed was {passed}.", passed=call.passed_in_words)]
    hidden = len(_cells(~passed))
    if len(ignored) and not (~passed & ~in_force).any():
        said.append(
            say("It takes no effect: none of the {cells:,} cells that it blocks is blocked in force.", cells=hidden)
        )
    elif len(ignored):
        said.append(
            say_many(
                "{count:,} of the {cells:,} cells that it blocks is open in force, such as query {query}, key {key}.",
                "{count:,} of the {cells:,} cells that it blocks are open in force, such as query {query}, key {key}.",
                len(ignored),
                cells=hidden,
                **_first(ignored),
            )
        )
    if len(added):
        said.append(
            say_many(
                "{count:,} cell that it leaves open is blocked in force, such as query {query}, key {key}.",
                "{count:,} cells that it leaves open are blocked in force, such as query {query}, key {key}.",
                len(added),
                **_first(added),
            )
        )
    return sentences(*said)


def _cells(mask: np.ndarray) -> np.ndarray:
    """(N, 2): the queries and keys where any head has True."""
    return np.argwhere(mask.any(0))


def _first(cells: np.ndarray) -> dict[str, int]:
    query, key = cells[0].tolist()
    return {"query": query + 1, "key": key + 1}
