"""BPE-dropout (Provilkov et al. 2020): words are cut into other pieces each time they are read, to learn from few.

SentencePiece can do so too, but its random generator starts from another state in every process, and a run must go on
as it began, on one process or many.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from .config import EOS_ID, UNK_ID
from .tokenizer import Tokenizer

CUTS = 32
"""Ways of cutting that are drawn for one word; each reading of it takes one of them."""
Word = tuple[int, ...]


class BpeDropout:
    """Call it with rows of ids and a seed: the same texts in other pieces, a function of these and nothing else."""

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        """`dropout` is the probability that a merge is left out, each time that it is possible."""
        self.dropout = dropout
        self._pieces = [tokenizer.token(number) for number in range(len(tokenizer))]
        self._ids = {piece: number for number, piece in enumerate(self._pieces) if number > EOS_ID}
        self._cut = lru_cache(maxsize=2**21)(self._draw)

    def __call__(self, rows: Sequence[Sequence[int]], seed: int) -> list[list[int]]:
        """rows of ids, each closed by </s> -> the same."""
        chance = random.Random(seed)
        return [
            [*(one for word in self._words(row) for one in self._cut(word, chance.randrange(CUTS))), EOS_ID]
            for row in rows
        ]

    def _words(self, row: Sequence[int]) -> list[Word]:
        words: list[list[int]] = []
        for one in row[:-1]:
            if words and not self._pieces[one].startswith(" "):
                words[-1].append(one)
            else:
                words.append([one])
        return [tuple(word) for word in words]

    def _draw(self, word: Word, number: int) -> Word:
        """The cut of this number; one with an unknown character in it stays as it is."""
        if UNK_ID in word:
            return word
        text = "".join(self._pieces[one] for one in word)
        return tuple(self._ids[part] for part in self._merged(list(text), random.Random(f"{number}{text}")))

    def _merged(self, parts: list[str], chance: random.Random) -> list[str]:
        """Merge as BPE does, the earliest learned first, but forget each possible merge with some probability."""
        while found := [
            (self._ids[one + other], place)
            for place, (one, other) in enumerate(pairwise(parts))
            if one + other in self._ids and chance.random() >= self.dropout
        ]:
            _, place = min(found)
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        return parts
