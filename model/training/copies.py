"""Training pairs made of others: as people type, two in a line, with other numbers and names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .data import Pair

WIDE = "。！？"
"""Final punctuation after which no space stands."""
FINAL = ".!?" + WIDE
NUMBER = re.compile(r"\d{2,}")
NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
ONSETS = "b br ch d dr f g gr h j k kl l m n p r s sch sh st t th v w y z"
VOWELS = "a e i o u a e i o ai ei ee ou"
CODAS = "- - - - n r l s k m nd rt ng x"
"""What an invented name's syllables are made of; "-": nothing."""


class Copies(NamedTuple):
    """Pairs made of others."""

    pairs: list[Pair]
    origins: np.ndarray
    """(copies, originals of each): the numbers of the pairs that each was made of."""


def sloppy_copies(pairs: Sequence[Pair], share: float, seed: int, apostrophes: bool = False) -> Copies:
    """A random share of the pairs with the source as people type it: lower case, no final punctuation.

    With `apostrophes`, half of them lose these as well ("dont"), and a quarter have the curved one that phones write.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(len(pairs))[: round(share * len(pairs))])
    sources = [pairs[i][0].lower().rstrip(FINAL + " ") for i in chosen]
    if apostrophes:
        typed = ("", "", "\N{RIGHT SINGLE QUOTATION MARK}", "'")
        sources = [source.replace("'", typed[row % len(typed)]) for row, source in enumerate(sources)]
    return Copies([(source, pairs[i][1]) for source, i in zip(sources, chosen, strict=True)], chosen[:, None])


def joined_copies(pairs: Sequence[Pair], share: float, seed: int) -> Copies:
    """Lines of two sentences, `share` times as many as there are pairs: a random pair that ends in a full stop or the
    like on both sides, and any other after it."""
    random = np.random.default_rng((seed, 1))
    ended = [i for i, pair in enumerate(pairs) if all(side.endswith(tuple(FINAL)) for side in pair)]
    count = round(share * len(pairs)) if ended else 0
    origins = np.stack([random.choice(ended or [0], count), random.integers(len(pairs), size=count)], axis=1)
    return Copies([(_line(pairs[i][0], pairs[j][0]), _line(pairs[i][1], pairs[j][1])) for i, j in origins], origins)


def _line(first: str, second: str) -> str:
    return first + ("" if first[-1] in WIDE else " ") + second


def shouted_copies(pairs: Sequence[Pair], share: float, seed: int) -> Copies:
    """A random share of the pairs with the source in capitals."""
    chosen = np.sort(np.random.default_rng((seed, 2)).permutation(len(pairs))[: round(share * len(pairs))])
    return Copies([(pairs[i][0].upper(), pairs[i][1]) for i in chosen], chosen[:, None])


def renumbered_copies(pairs: Sequence[Pair], times: int, seed: int) -> Copies:
    """Each pair with numbers of two digits or more on both sides, `times` times with others of the same length."""
    random = np.random.default_rng((seed, 3))
    return _replaced(pairs, NUMBER, np.repeat(np.arange(len(pairs)), times), lambda old: _number(old, random))


def renamed_copies(pairs: Sequence[Pair], share: float, seed: int) -> Copies:
    """A random share of the pairs, as far as a capitalised word stands on both sides, with invented names in its place.

    So a name is learned as something to be copied piece by piece, whatever it is.
    """
    random = np.random.default_rng((seed, 4))
    chosen = np.sort(random.permutation(len(pairs))[: round(share * len(pairs))])
    return _replaced(pairs, NAME, chosen, lambda _: _name(random))


def _replaced(pairs: Sequence[Pair], what: re.Pattern[str], chosen: np.ndarray, new: Callable[[str], str]) -> Copies:
    """The chosen pairs, where something of a kind stands once on each side, with something new in its place."""
    copies, origins = [], []
    for i in chosen.tolist():
        source, target = (Counter(what.findall(side)) for side in pairs[i])
        others = {old: new(old) for old in sorted(source) if source[old] == target[old] == 1}
        if others:
            put = lambda match: others.get(match[0], match[0])  # noqa: B023, E731
            copies.append((what.sub(put, pairs[i][0]), what.sub(put, pairs[i][1])))
            origins.append(i)
    return Copies(copies, np.array(origins, dtype=int).reshape(-1, 1))


def _number(old: str, random: np.random.Generator) -> str:
    """Another number of as many digits. A year stays one, and what can be minutes can be minutes."""
    first = old[0] if len(old) == 4 else str(random.integers(1, 6 if int(old[0]) < 6 else 10))
    return first + "".join(map(str, random.integers(0, 10, len(old) - 1)))


def _name(random: np.random.Generator) -> str:
    """An invented name of one to three syllables."""
    syllables = [random.choice(part.split()) for _ in range(random.integers(1, 4)) for part in (ONSETS, VOWELS, CODAS)]
    return "".join(syllables).replace("-", "").capitalize()
