"""What a mask is meant to be, in words: the one parser of every door, and the words of a structure.

A meaning is a structure, ``causal+window:4`` or ``causal and window 4``, or a rule with ``or``, ``not`` and brackets
(:mod:`.rule`). Both grammars are read wherever a meaning is taken. Layers that differ stand in turn, with a slash
between them: ``causal+window:4 / causal`` is a window in every other layer, beginning with the first, and
``5 x causal+window:4 / causal`` in five of six. ``causal+window:4 on odd layers, else causal`` counts layers from 1.
"""

from __future__ import annotations

import re

import numpy as np

from ..language.say import say
from .rule import RuleError, Sizes, build_mask
from .structure import Structure
from .structure_names import parse_structure

MOST_LAYERS = 1000
MOST_CHARACTERS = 20_000
"""Of a meaning: position ids are long, and a rule is shorter (:mod:`.rule`)."""
_LAYERS = re.compile(r" on (odd|even) layers")
_SECOND = re.compile(r" ?[,;]? ?(?:and|else)? (?=.)")
_TIMES = re.compile(r"(\d{1,9}) ?x (.+)")


def in_turn(text: str) -> list[str]:
    """Return the meanings of the layers, in turn; one where all share it. Raises RuleError."""
    if len(text) > MOST_CHARACTERS:
        raise RuleError(say("A rule has at most {most} characters.", most=MOST_CHARACTERS))
    text = " ".join(text.split())
    for layers in _LAYERS.finditer(text):
        between = _SECOND.match(text, layers.end())
        if layers.start() and (between or layers.end() == len(text)):
            return _by_number(text[: layers.start()], layers[1], text[between.end() :] if between else "")
    found: list[str] = []
    for part in map(str.strip, text.split("/")):
        repeated = _TIMES.fullmatch(part)
        times = int(repeated[1]) if repeated else 1
        if not 0 < times <= MOST_LAYERS or len(found) > MOST_LAYERS:
            most = say("“{text}”: a pattern repeats over 1 to {most} layers.", text=part, most=MOST_LAYERS)
            raise RuleError(most)
        found += [repeated[2] if repeated else part] * times
    return found


def _by_number(first: str, which: str, second: str) -> list[str]:
    """Return the meanings of the odd and of the even layers; ``which`` are those of ``first``. Raises RuleError."""
    other = next((name for name in ("odd", "even") if second.endswith(f" on {name} layers")), "")
    second = second.removesuffix(f" on {other} layers")
    if not second or which == other:
        example = f"{first} on {which} layers, else causal"
        raise RuleError(say("Say both the odd and the even layers: “{example}”.", example=example))
    return [first, second] if which == "odd" else [second, first]


def parse_meaning(text: str) -> Structure | None:
    """Return the structure that a text stands for; None for a rule or layers that are no single structure.

    Raises:
        RuleError: for a text that is neither; the message lists the words.
    """
    parts = in_turn(text)
    if len(parts) > 1:
        for part in dict.fromkeys(parts):
            parse_meaning(part)
        return None
    text = parts[0]
    try:
        return parse_structure(text)
    except ValueError:
        build_mask(text, Sizes(1, 1, (1,)))
        return None


def meaning_mask(text: str, queries: int, keys: int) -> np.ndarray:
    """Return (Q, K) bool, True = may attend, of a meaning without its padding, in the first layer. Raises RuleError."""
    text = in_turn(text)[0]
    structure = parse_meaning(text)
    if structure is not None:
        return structure.allowed(queries, keys)
    return build_mask(text, Sizes(queries, keys, (keys,)))[0, 0]


def layer_masks(text: str, layers: int, queries: int, keys: int) -> np.ndarray:
    """Return (L, Q, K) bool, True = may attend, of a meaning, L being 1 where all layers share it. Raises RuleError."""
    parts = in_turn(text)
    if len(parts) > layers:
        raise RuleError(
            say(
                "“{text}” names the masks of {named} layers in turn, but the weights have {layers}.",
                text=text,
                named=len(parts),
                layers=layers,
            )
        )
    each = [meaning_mask(part, queries, keys) for part in parts]
    return np.stack([each[layer % len(each)] for layer in range(layers if len(parts) > 1 else 1)])


def hides_future(text: str) -> bool:
    """Whether a meaning hides what comes after the query, in every layer. Raises RuleError."""
    parts = in_turn(text)
    if len(parts) > 1:
        return all(map(hides_future, dict.fromkeys(parts)))
    structure = parse_meaning(text)
    if structure is not None:
        return structure.causal
    return not meaning_mask(text, 8, 8)[0, 7]
