"""What a mask is meant to be, in words: the one parser of every door, and the words of a structure.

A meaning is a structure, ``causal+window:4`` or ``causal and window 4``, or a rule with ``or``, ``not`` and brackets
(:mod:`.rule`). Both grammars are read wherever a meaning is taken.
"""

from __future__ import annotations

import numpy as np

from .rule import Sizes, build_mask
from .structure import Structure
from .structure_names import parse_structure


def parse_meaning(text: str) -> Structure | None:
    """Return the structure that a text stands for; None for a rule that is no single structure.

    Raises:
        RuleError: for a text that is neither; the message lists the words.
    """
    try:
        return parse_structure(text)
    except ValueError:
        build_mask(text, Sizes(1, 1, (1,)))
        return None


def meaning_mask(text: str, queries: int, keys: int) -> np.ndarray:
    """Return (Q, K) bool, True = may attend, of a meaning without its padding. Raises RuleError."""
    structure = parse_meaning(text)
    if structure is not None:
        return structure.allowed(queries, keys)
    return build_mask(text, Sizes(queries, keys, (keys,)))[0, 0]


def hides_future(text: str) -> bool:
    """Whether a meaning hides what comes after the query. Raises RuleError."""
    structure = parse_meaning(text)
    if structure is not None:
        return structure.causal
    return not meaning_mask(text, 8, 8)[0, 7]
