"""What a table of positional encodings is as geometry: similarity, shift as rotation, uniqueness, wavelengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .table import BASE, pair_exponent

ROWS_AT_ONCE = 512  # so that 5,000 positions need megabytes, not hundreds of them


def wavelengths(d_model: int, base: float = BASE, *, inclusive: bool = False) -> np.ndarray:
    """(ceil(D / 2),) positions after which pair i repeats, 2 pi base^exponent(i): from 2 pi towards 2 pi base.

    `inclusive` is the progression of tensor2tensor and fairseq, which reaches 2 pi base itself.
    """
    pairs = (d_model + 1) // 2
    return (
        2
        * np.pi
        * base ** np.array([float(pair_exponent(pair, d_model, inclusive=inclusive)) for pair in range(pairs)])
    )


def similarity(table: np.ndarray, *, cosine: bool = False) -> np.ndarray:
    """Dot products, or cosines, between all positions: (P, D) -> (P, P) float64. A zero row has cosine 0 with all."""
    rows = table.astype(np.float64)
    if cosine:
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return rows @ rows.T


@dataclass(frozen=True, eq=False)
class DistanceProfile:
    """Similarity by distance between two positions: all (P,) float64."""

    mean: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    @property
    def spread(self) -> float:
        """How much two pairs at one distance differ at most: 0 where similarity depends on distance alone."""
        return float((self.highest - self.lowest).max())


def by_distance(similarities: np.ndarray) -> DistanceProfile:
    """(P, P) symmetric -> mean, lowest and highest of each diagonal."""
    size = len(similarities)
    beside = np.pad(similarities.astype(np.float64), ((0, 0), (0, size)), constant_values=np.nan)
    # Row i begins at its own diagonal, so that column d holds all pairs at distance d, and NaN where there are none.
    row, cell = beside.strides
    pairs = np.lib.stride_tricks.as_strided(beside, (size, size), (row + cell, cell), writeable=False)
    mean = np.where(np.isnan(pairs), 0.0, pairs).sum(0) / np.arange(size, 0, -1)
    return DistanceProfile(mean, np.fmin.reduce(pairs), np.fmax.reduce(pairs))


def shift_blocks(d_model: int, shift: float, base: float = BASE, *, inclusive: bool = False) -> np.ndarray:
    """(D // 2, 2, 2): block i turns (sin, cos) of pair i by `shift` positions: [[cos, sin], [-sin, cos]] of k w_i."""
    turn = shift * 2 * np.pi / wavelengths(d_model, base, inclusive=inclusive)[: d_model // 2]
    sin, cos = np.sin(turn), np.cos(turn)
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], -2)


def shift_matrix(d_model: int, shift: float, base: float = BASE, *, inclusive: bool = False) -> np.ndarray:
    """M_k (D, D) with PE(pos + k) = M_k PE(pos) for every pos.

    An odd D leaves its last sine without the cosine it would need: that row and column are zero.
    """
    matrix = np.zeros((d_model, d_model))
    for pair, block in enumerate(shift_blocks(d_model, shift, base, inclusive=inclusive)):
        matrix[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = block
    return matrix


def shift_error(table: np.ndarray, shift: int, base: float = BASE, *, inclusive: bool = False) -> np.ndarray:
    """(D // 2,) largest |M_k PE(pos) - PE(pos + k)| of each pair, over every pos that has a pos + k in `table` (P, D).

    Raises ValueError where none has.
    """
    positions = np.arange(max(0, -shift), len(table) - max(0, shift))
    if not len(positions):
        raise ValueError(f"A table of {len(table)} positions holds no two that are {abs(shift)} apart.")
    paired = table.astype(np.float64)[:, : table.shape[1] // 2 * 2].reshape(len(table), -1, 2)
    start, end = paired[positions], paired[positions + shift]
    turned = np.empty_like(start)
    blocks = shift_blocks(table.shape[1], shift, base, inclusive=inclusive)
    for row, (of_sine, of_cosine) in enumerate(np.moveaxis(blocks, 0, -1)):
        turned[..., row] = of_sine * start[..., 0] + of_cosine * start[..., 1]
    return np.abs(turned - end).max(axis=(0, 2))


@dataclass(frozen=True, eq=False)
class Uniqueness:
    """How well positions can be told apart."""

    nearest: np.ndarray
    """(P,) the position most like each."""
    distance: np.ndarray
    """(P,) Euclidean distance to it."""

    @property
    def pair(self) -> tuple[int, int]:
        """The two positions that are closest."""
        one = int(self.distance.argmin())
        return one, int(self.nearest[one])

    @property
    def smallest(self) -> float:
        return float(self.distance.min())


def uniqueness(table: np.ndarray) -> Uniqueness:
    """The nearest other position of every position: (P, D), P of at least 2."""
    if len(table) < 2:
        raise ValueError("Uniqueness compares positions, so it needs at least two.")
    rows = table.astype(np.float64)
    square = np.square(rows).sum(1)
    nearest = np.empty(len(rows), dtype=int)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, len(rows))
        squared = square[start:stop, None] + square - 2 * rows[start:stop] @ rows.T
        squared[np.arange(stop - start), np.arange(start, stop)] = np.inf
        nearest[start:stop] = squared.argmin(1)
    # Again from the rows themselves: the sum above loses small distances to rounding.
    return Uniqueness(nearest, np.linalg.norm(rows - rows[nearest], axis=1))
