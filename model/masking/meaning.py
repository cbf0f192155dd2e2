"""What a mask is meant to be, in words: the one parser of every door, and the words of a structure.

A meaning is a structure, ``causal+window:4`` or ``causal and window 4``, or a rule with ``or``, ``not`` and brackets
(:mod:`.rule`). Both grammars are read wherever a meaning is taken. Layers that differ stand in turn, with a slash
between them: ``causal+window:4 / causal`` is a window in every other layer, beginning with the first.
"""

from __future__ import annotations

import numpy as np

from .rule import RuleError, Sizes, build_mask
from .structure import Structure
from .structure_names import parse_structure


def parse_meaning(text: str) -> Structure | None:
    """Return the structure that a text stands for; None for a rule or layers that are no single structure.

    Raises:
        RuleError: for a text that is neither; the message lists the words.
    """
    if "/" in text:
        for part in text.split("/"):
            parse_meaning(part)
        return None
    try:
        return parse_structure(text)
    except ValueError:
        build_mask(text, Sizes(1, 1, (1,)))
        return None


def meaning_mask(text: str, queries: int, keys: int) -> np.ndarray:
    """Return (Q, K) bool, True = may attend, of a meaning without its padding, in the first layer. Raises RuleError."""
    text = text.partition("/")[0]
    structure = parse_meaning(text)
    if structure is not None:
        return structure.allowed(queries, keys)
    return build_mask(text, Sizes(queries, keys, (keys,)))[0, 0]


def layer_masks(text: str, layers: int, queries: int, keys: int) -> np.ndarray:
    """Return (L, Q, K) bool, True = may attend, of a meaning, L being 1 where all layers share it. Raises RuleError."""
    parts = text.split("/")
    if len(parts) > layers:
        raise RuleError(f"“{text}” names the masks of {len(parts)} layers in turn, but the weights have {layers}.")
    each = [meaning_mask(part, queries, keys) for part in parts]
    return np.stack([each[layer % len(each)] for layer in range(layers if len(parts) > 1 else 1)])


def hides_future(text: str) -> bool:
    """Whether a meaning hides what comes after the query, in every layer. Raises RuleError."""
    if "/" in text:
        return all(map(hides_future, text.split("/")))
    structure = parse_meaning(text)
    if structure is not None:
        return structure.causal
    return not meaning_mask(text, 8, 8)[0, 7]
