"""The tokens of one side of a sentence, with what the measures ask of each: its word and part of speech. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..text.tags import START_TAG, is_punctuation, tag_words
from ..text.words import SPECIAL_TOKENS, START, word, words


@dataclass(frozen=True, eq=False)
class Side:
    """The N tokens of a source or a translation."""

    pieces: tuple[str, ...]
    words: tuple[str, ...]
    """(N,) the word that each piece is of, without spaces around it."""
    tags: tuple[str, ...]
    """(N,) the part of speech of that word."""
    word_numbers: np.ndarray
    """(N,) the number of that word, from 0."""

    @property
    def special(self) -> np.ndarray:
        """(N,) bool: the tokens that stand for no text."""
        return np.array([piece in SPECIAL_TOKENS for piece in self.pieces])

    @property
    def punctuation(self) -> np.ndarray:
        """(N,) bool: the tokens of words that are punctuation."""
        return np.array([is_punctuation(one) for one in self.words])

    @property
    def in_pieces(self) -> np.ndarray:
        """(N,) bool: the tokens of words that the tokenizer cuts into two pieces or more."""
        return np.bincount(self.word_numbers)[self.word_numbers] > 1

    def spelled(self) -> np.ndarray:
        """(N,) the word of each token in lower case; "" where it is no word but punctuation or a special token."""
        no_word = self.special | self.punctuation
        return np.array(["" if no else one.casefold() for one, no in zip(self.words, no_word, strict=True)], dtype=str)

    def fed(self, start: str = START) -> Side:
        """Return the tokens fed in where these are predicted: the start, then all but the last."""
        return Side(
            (start, *self.pieces[:-1]),
            (start, *self.words[:-1]),
            (START_TAG, *self.tags[:-1]),
            np.concatenate([[0], self.word_numbers[:-1] + 1]),
        )


def side_of(pieces: Sequence[str], language: str) -> Side:
    """Merge pieces into words and tag these."""
    groups = words(pieces)
    spelled = [word(pieces[group.start : group.stop]).strip() for group in groups]
    numbers = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    tags = tag_words(spelled, language)
    return Side(tuple(pieces), tuple(spelled[at] for at in numbers), tuple(tags[at] for at in numbers), numbers)
