"""Two texts word by word: which words stand in both, and which in one alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from .words import is_cjk, words_of


@dataclass(frozen=True)
class WordChange:
    """A run of words that stands in both texts, only in the first, or only in the second."""

    change: Literal["same", "removed", "added"]
    text: str
    """With its spaces, so that all runs but the added ones join to the first text."""


def word_difference(before: str, after: str) -> tuple[WordChange, ...]:
    """Return the runs of two texts in reading order: Chinese and Japanese by character, punctuation by itself."""
    return tuple(run for run in _runs(words_of(before), words_of(after)) if run.text)


def _runs(first: tuple[str, ...], second: tuple[str, ...]) -> Iterator[WordChange]:
    # Without their spaces: "Der" is the same word at the start of one text and inside the other.
    bare, other_bare = ([word.strip() for word in words] for words in (first, second))
    opcodes = SequenceMatcher(None, bare, other_bare, autojunk=False).get_opcodes()
    for operation, start, end, other_start, other_end in opcodes:
        removed, added = "".join(first[start:end]), "".join(second[other_start:other_end])
        if operation == "equal":
            yield WordChange("same", removed)
            continue
        yield WordChange("removed", removed)
        # The first word of a text has no space before it, but here another word may stand before it or after it.
        if removed and other_start == 0 and not is_cjk(added[:1]):
            added = f" {added}" if added else ""
        if added and start == end == 0 and "".join(second[other_end:]).startswith(" "):
            added += " "
        yield WordChange("added", added)
