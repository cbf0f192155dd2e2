"""Names of structures, the short form of a meaning (:mod:`.meaning`): ``causal+window:4``, ``causal and window 4``.

Words are ``causal``, ``full``, ``padding``, ``window:W``, ``prefix:N`` and ``packed:2,3,4``, joined by ``+`` or
``and``.
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from .structure import FULL, Structure


def parse_structure(name: str) -> Structure:
    """Return the structure that ``name`` stands for.

    ``padding``, ``encoder`` and ``cross`` mean every real key; ``decoder`` is causal. ``window:W`` keeps keys nearer
    than W positions, so that ``causal+window:4`` is four keys wide, the query's own included.

    Raises:
        ValueError: for a name of another form; the message lists the words.
    """
    structure = FULL
    for part in _parts(name):
        word, _, number = part.partition(":")
        structure = _add_part(structure, word, number, name)
    return structure


def _parts(name: str) -> list[str]:
    """Return ``word:sizes`` of each part."""
    joined = re.sub(r"\band\b|&", "+", name.lower())
    return re.sub(r"\s+", "", re.sub(r"([a-z])\s+(?=\d)", r"\1:", joined)).split("+")


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
    if structure.spans:
        return ""
    if not band or not structure.starts:
        return band
    sizes = np.diff([0, *structure.starts, keys])
    return f"{band}+packed:{','.join(map(str, sizes))}" if (sizes > 0).all() else ""


def _add_part(structure: Structure, word: str, number: str, name: str) -> Structure:
    if word in ("full", "padding", "encoder", "cross") and not number:
        return structure
    if word in ("causal", "decoder") and not number:
        return dataclasses.replace(structure, hi=0)
    try:
        sizes = [int(size) for size in number.split(",")]
    except ValueError:
        sizes = []
    if sizes and min(sizes) > 0 and max(sizes) < 10**6:
        if word == "window" and len(sizes) == 1:
            return dataclasses.replace(structure, lo=1 - sizes[0], hi=0 if structure.hi == 0 else sizes[0] - 1)
        if word == "prefix" and len(sizes) == 1:
            return dataclasses.replace(structure, hi=0, prefix=sizes[0])
        if word == "packed":
            return dataclasses.replace(structure, starts=tuple(int(end) for end in np.cumsum(sizes)[:-1]))
    raise ValueError(
        f"{name!r} is not a kind of mask: say causal, padding, full, window:W, prefix:N or packed:N,N,..., joined by +."
    )
