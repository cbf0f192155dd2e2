"""BPE-dropout, Provilkov et al. (2020), arXiv 1910.13267, algorithm 1: a word in other pieces than usual, by chance.

SentencePiece samples too, but differently in each process whatever its seed is, and training is to go on after a kill
with the text that it was begun with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

WORD_START = "\u2581"
"""SentencePiece's mark for a space."""
WORD = re.compile(f"{WORD_START}[^{WORD_START}]*|[^{WORD_START}]+")


def split(text: str, ranks: Mapping[str, int], dropout: float, draw: Callable[[], float]) -> list[str]:
    """Return the pieces of a normalised text, each possible merge left out at each step with the chance `dropout`.

    `ranks`: the pieces that a merge may give, the most wanted one with the lowest number; `draw`: numbers over [0, 1).
    """
    return [piece for word in WORD.findall(text) for piece in _split_word(word, ranks, dropout, draw)]


def _split_word(word: str, ranks: Mapping[str, int], dropout: float, draw: Callable[[], float]) -> list[str]:
    pieces = list(word)
    while True:
        best, at = None, -1
        for place in range(len(pieces) - 1):
            rank = ranks.get(pieces[place] + pieces[place + 1])
            # Of those that stay the best one is taken, so only what would be the best is worth a draw.
            if rank is not None and (best is None or rank < best) and draw() >= dropout:
                best, at = rank, place
        if best is None:
            return pieces
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
