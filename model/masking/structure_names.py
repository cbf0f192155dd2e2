"""Names of structures, the short form of a meaning (:mod:`.meaning`): ``causal+window:4``, ``causal and window 4``.

Words are :data:`WORDS`, joined by ``+`` or ``and``. Documents that are packed into one row are said by their sizes, by
cumulative lengths or by position ids that begin anew; a span, by its first and last token, counted from 1.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from ..language.say import listed, say
from .structure import FULL, Structure

WORDS = (
    *("causal", "padding", "full", "window:W", "sinks:N", "prefix:N", "span:A-B", "chunked:N"),
    *("packed:N,N,...", "cu_seqlens:0,N,...", "position_ids:0,1,0,..."),
)

MOST_PARTS = 64
"""Words of one structure."""


def parse_structure(name: str) -> Structure:
    """Return the structure that ``name`` stands for.

    ``padding``, ``encoder`` and ``cross`` mean every real key; ``decoder`` is causal. ``window:W`` keeps keys nearer
    than W positions, so that ``causal+window:4`` is four keys wide, the query's own included; ``sinks:N`` keeps the
    first N keys beside it.

    Raises:
        ValueError: for a name of another form; the message lists the words.
    """
    structure = FULL
    parts = _parts(name)
    if len(parts) > MOST_PARTS:
        raise ValueError(say("A kind of mask has at most {most} parts.", most=MOST_PARTS))
    for part in parts:
        word, _, number = part.partition(":")
        structure = _add_part(structure, word, number, name)
    return structure


def _parts(name: str) -> list[str]:
    """Return ``word:sizes`` of each part."""
    joined = re.sub(r"\band\b|&", "+", " ".join(name.lower().split()))
    return re.sub(r"([a-z]) (?=\d)", r"\1:", joined).replace(" ", "").split("+")


def structure_name(structure: Structure, keys: int) -> str:
    """Return the name of a structure of so many keys, which :func:`parse_structure` reads; empty where it has none."""
    if structure.prefix:
        band = f"prefix:{structure.prefix}" if (structure.lo, structure.hi) == (None, 0) else ""
    elif structure.lo is None:
        band = {None: "padding", 0: "causal"}.get(structure.hi, "")
    elif structure.hi == 0:
        band = f"causal+window:{1 - structure.lo}"
    else:
        band = f"window:{1 - structure.lo}" if structure.hi == -structure.lo else ""
    sizes = np.diff([0, *structure.starts, keys])
    if not band or (structure.spans and structure.prefix) or (structure.starts and (sizes <= 0).any()):
        return ""
    parts = [
        band,
        *([f"sinks:{structure.sinks}"] if structure.sinks else []),
        *(f"span:{first + 1}-{end}" for first, end in structure.spans),
        *([f"chunked:{structure.chunk}"] if structure.chunk else []),
        *([f"packed:{','.join(map(str, sizes))}"] if structure.starts else []),
    ]
    return "+".join(parts)


def _add_part(structure: Structure, word: str, number: str, name: str) -> Structure:
    if word in ("full", "padding", "encoder", "cross") and not number:
        return structure
    if word in ("causal", "decoder") and not number:
        return dataclasses.replace(structure, hi=0)
    try:
        sizes = [int(size) for size in re.split("-" if word == "span" else ",", number)]
    except ValueError:
        sizes = []
    found = _SIZED[word](structure, sizes) if sizes and word in _SIZED and max(sizes) < 10**6 else None
    if found is None:
        raise ValueError(
            say("{name} is not a kind of mask: say {words}, joined by +.", name=repr(name), words=listed(WORDS))
        )
    return found


def _window(structure: Structure, sizes: list[int]) -> Structure | None:
    if len(sizes) != 1 or sizes[0] < 1:
        return None
    return dataclasses.replace(structure, lo=1 - sizes[0], hi=0 if structure.hi == 0 else sizes[0] - 1)


def _sinks(structure: Structure, sizes: list[int]) -> Structure | None:
    return dataclasses.replace(structure, sinks=sizes[0]) if len(sizes) == 1 and sizes[0] > 0 else None


def _prefix(structure: Structure, sizes: list[int]) -> Structure | None:
    return dataclasses.replace(structure, hi=0, prefix=sizes[0]) if len(sizes) == 1 and sizes[0] > 0 else None


def _chunked(structure: Structure, sizes: list[int]) -> Structure | None:
    return dataclasses.replace(structure, chunk=sizes[0]) if len(sizes) == 1 and sizes[0] > 0 else None


def _span(structure: Structure, ends: list[int]) -> Structure | None:
    if len(ends) != 2 or not 1 <= ends[0] < ends[1]:
        return None
    return dataclasses.replace(structure, spans=tuple(sorted({*structure.spans, (ends[0] - 1, ends[1])})))


def _packed(structure: Structure, sizes: list[int]) -> Structure | None:
    if min(sizes) < 1:
        return None
    return dataclasses.replace(structure, starts=tuple(int(end) for end in np.cumsum(sizes)[:-1]))


def _cumulative(structure: Structure, ends: list[int]) -> Structure | None:
    """The documents between cumulative lengths, 0 first."""
    return _packed(structure, [b - a for a, b in pairwise(ends)]) if ends[0] == 0 and len(ends) > 1 else None


def _positions(structure: Structure, positions: list[int]) -> Structure | None:
    """The documents of position ids, each of which counts on or begins anew at 0."""
    if positions[0] != 0 or any(b not in (0, a + 1) for a, b in pairwise(positions)):
        return None
    starts = tuple(at for at, position in enumerate(positions) if position == 0)[1:]
    return dataclasses.replace(structure, starts=starts)


_SIZED: dict[str, Callable[[Structure, list[int]], Structure | None]] = {
    "window": _window,
    "sinks": _sinks,
    "prefix": _prefix,
    "chunked": _chunked,
    "span": _span,
    "packed": _packed,
    "cu_seqlens": _cumulative,
    "position_ids": _positions,
}
"""The words that have sizes: what they make of a structure, None for sizes that they cannot have."""
