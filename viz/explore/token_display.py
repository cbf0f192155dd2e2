"""A map in pieces or words, with or without special tokens, and the way back to the tokens as captured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from model.text.words import SPECIAL_TOKENS, Label, hide_special, merge_words, words
from model.trace import AttentionMap
from viz.figures.palette import Look

Groups = tuple[tuple[int, ...], ...]
"""For each token of a display, the positions of the captured tokens that it stands for."""


@dataclass(frozen=True)
class Display:
    """How maps are shown: the choices of the menu Display."""

    look: Look
    rows: Label
    merge: bool
    """Pieces are merged into words."""
    hide: bool
    """Special tokens are hidden."""
    numbers: bool
    """Weights are written into the cells."""


@dataclass(frozen=True, eq=False)
class TokenDisplay:
    """A map for display, and which captured positions its rows and columns stand for."""

    attention: AttentionMap
    original: AttentionMap
    """The map as it was captured."""
    queries: Groups
    keys: Groups
    merged: bool
    """Whether pieces were merged into words."""
    hidden: tuple[str, ...]
    """The key tokens taken out; rows were divided by what was left."""
    hidden_mass: float
    """The share of the weight of the rows that are displayed that lay on them, 0 to 1, over all layers and heads."""

    def row(self, position: int | None) -> int | None:
        """The row of a captured query; None where it is hidden."""
        return _group_of(self.queries, position)

    def column(self, position: int | None) -> int | None:
        """The column of a captured key; None where it is hidden."""
        return _group_of(self.keys, position)


# A map is frozen and known by its identity; views and heads are changed far more often than what is hidden.
@lru_cache(maxsize=8)
def display_tokens(original: AttentionMap, rows: Label, *, merge: bool, hide: bool) -> TokenDisplay:
    """Hide special tokens and merge pieces into words; the `rows` label tells which rows are special or one word."""
    attention = original
    hidden: tuple[str, ...] = ()
    if hide:
        without = hide_special(original, rows)
        attention, hidden = without.attention, without.hidden
    queries = _single_groups(original.rows(rows), len(attention.query_tokens))
    keys = _single_groups(original.key_tokens, len(attention.key_tokens))
    if merge:
        queries = _merge_groups(queries, words(attention.rows(rows)))
        keys = _merge_groups(keys, words(attention.key_tokens))
        attention = merge_words(attention, rows)
    mass = _hidden_mass(original, queries, keys) if hidden else 0.0
    return TokenDisplay(attention, original, queries, keys, merge, hidden, mass)


def _hidden_mass(original: AttentionMap, queries: Groups, keys: Groups) -> float:
    """The share of the weight of the displayed rows, each a mean of captured ones, that lies on no displayed key."""
    rows = np.stack([original.weights[:, :, list(group)].mean(2, dtype=np.float64) for group in queries], 2)
    shown = [position for group in keys for position in group]
    return float(1 - rows[..., shown].sum() / rows.sum())


def special_places(attention: AttentionMap, rows: Label) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows and the columns of a map that are special tokens: what hiding these takes away."""
    queries, keys = (
        tuple(position for position, token in enumerate(tokens) if token in SPECIAL_TOKENS)
        for tokens in (attention.rows(rows), attention.key_tokens)
    )
    return queries, keys


def _single_groups(tokens: Sequence[str], count: int) -> Groups:
    """A group for each position; where only `count` of the tokens are left, for each that is not special."""
    if count == len(tokens):
        return tuple((position,) for position in range(count))
    return tuple((position,) for position, token in enumerate(tokens) if token not in SPECIAL_TOKENS)


def _merge_groups(groups: Groups, spans: Sequence[range]) -> Groups:
    """One group for each span of groups."""
    return tuple(tuple(position for group in span for position in groups[group]) for span in spans)


def _group_of(groups: Groups, position: int | None) -> int | None:
    return next((index for index, group in enumerate(groups) if position in group), None)
