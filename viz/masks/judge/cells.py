"""From arrays to the cells of the four pictures: what each is, and by what it was blocked."""

from __future__ import annotations

import numpy as np

from ...components.mask_editor import Mark, State


def compared(open_cells: np.ndarray, meant: np.ndarray | None) -> np.ndarray:
    """(Q, K) booleans against what was meant, as states; nothing contradicts when that is not known."""
    if meant is None:
        return np.where(open_cells, State.ALLOWED, State.BLOCKED).astype(np.uint8)
    agreed = np.where(meant, State.ALLOWED, State.BLOCKED)
    return np.where(open_cells == meant, agreed, np.where(open_cells, State.LEAK, State.OVER)).astype(np.uint8)


def given_marks(bias: np.ndarray | None, allowed: np.ndarray) -> np.ndarray:
    """By what a cell of an additive mask is blocked; nothing for booleans, whose fill is not known."""
    marks = np.zeros(allowed.shape, np.uint8)
    if bias is None:
        return marks
    soft = np.isin(bias, (0, 1)).all() and bool((bias == 1).any())
    marks[np.isneginf(bias)] = Mark.INFINITE
    marks[np.isfinite(bias) & ~allowed & (bias < 0)] = Mark.FINITE
    marks[(bias == 1) & soft] = Mark.ADDED
    return marks


def effect(
    weights: np.ndarray,
    meant: np.ndarray | None,
    rounded: np.ndarray,
    idle: np.ndarray,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """States and marks of weights (Q, K).

    ``rounded`` (Q,) are rows in which a zero may be nothing but rounding, ``idle`` (Q,) those of padding queries,
    which nothing reads.
    """
    nan = np.isnan(weights)
    lit = np.where(nan, 0, weights) > 0
    states = compared(lit, meant)
    states[(states == State.OVER) & rounded[:, None]] = State.ALLOWED
    states[idle[:, None] & lit] = State.DIM
    states[idle[:, None] & ~lit] = State.BLOCKED
    states[nan] = State.NAN
    marks = np.zeros(states.shape, np.uint8)
    marks[uniform(weights, meant, allowed)] = Mark.UNIFORM
    return states, marks


def uniform(weights: np.ndarray, meant: np.ndarray | None, allowed: np.ndarray | None = None) -> np.ndarray:
    """(Q,): rows of one same weight everywhere, although not every key was meant to be seen, or none was allowed."""
    clean = np.nan_to_num(weights, nan=-1.0)
    level = (clean.max(-1) - clean.min(-1) <= 1e-6) & (clean.max(-1) > 0) & (weights.shape[-1] > 1)
    empty = np.zeros(len(weights), bool) if allowed is None else ~allowed.any(-1)
    return level & (empty | ~meant.all(-1)) if meant is not None else level
