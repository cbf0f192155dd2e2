"""A map as a visitor wants it shown, with or without special tokens and in pieces or words, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from model.text.words import SPECIAL_TOKENS, Label, hide_special, merge_words, words
from model.trace import AttentionMap

Groups = tuple[tuple[int, ...], ...]
"""For each token shown, the positions of the captured tokens that it stands for."""


@dataclass(frozen=True, eq=False)
class Arranged:
    """A map for showing, and which captured positions its rows and columns stand for."""

    attention: AttentionMap
    captured: AttentionMap
    """The map as it was captured."""
    queries: Groups
    keys: Groups
    merged: bool
    """Whether pieces were made into words."""
    hidden: tuple[str, ...]
    """The key tokens taken out; rows were divided by what was left."""
    hidden_mass: float
    """The share of all weight that lay on them, 0 to 1."""

    def row(self, position: int | None) -> int | None:
        """The row shown of a captured query; None where it is hidden."""
        return _holding(self.queries, position)

    def column(self, position: int | None) -> int | None:
        """The column shown of a captured key; None where it is hidden."""
        return _holding(self.keys, position)


# A map is frozen and known by its identity; views and heads are changed far more often than what is hidden.
@lru_cache(maxsize=8)
def arrange(captured: AttentionMap, rows: Label, *, merge: bool, hide: bool) -> Arranged:
    """Hide special tokens and merge pieces into words, as asked; `rows` is the label by which both are told."""
    attention, mass = captured, 0.0
    hidden: tuple[str, ...] = ()
    if hide:
        without = hide_special(captured, rows)
        attention, hidden = without.attention, without.hidden
        mass = float(without.hidden_mass.mean())
    queries = _kept(captured.rows(rows), len(attention.query_tokens))
    keys = _kept(captured.key_tokens, len(attention.key_tokens))
    if merge:
        queries = _grouped(queries, words(attention.rows(rows)))
        keys = _grouped(keys, words(attention.key_tokens))
        attention = merge_words(attention, rows)
    return Arranged(attention, captured, queries, keys, merge, hidden, mass)


def special_places(attention: AttentionMap, rows: Label) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows and the columns of a map that are special tokens: what hiding these takes away."""
    queries, keys = (
        tuple(position for position, token in enumerate(tokens) if token in SPECIAL_TOKENS)
        for tokens in (attention.rows(rows), attention.key_tokens)
    )
    return queries, keys


def _kept(tokens: Sequence[str], left: int) -> Groups:
    """The positions that are left of `tokens`, each by itself."""
    if left == len(tokens):
        return tuple((position,) for position in range(left))
    return tuple((position,) for position, token in enumerate(tokens) if token not in SPECIAL_TOKENS)


def _grouped(groups: Groups, joined: Sequence[range]) -> Groups:
    return tuple(tuple(position for group in one for position in groups[group]) for one in joined)


def _holding(groups: Groups, position: int | None) -> int | None:
    return next((at for at, group in enumerate(groups) if position in group), None)
