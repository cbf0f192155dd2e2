"""Masks from words: ``causal and padding``, ``window 3 or prefix 2``, ``packed 3,2,3 and not cells 4-1``.

A rule is a small expression over kinds of masks, joined by ``and``, ``or``, ``not`` and brackets. It is read sign by
sign; nothing of it is evaluated as code. True = may attend throughout.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .structure import Structure, parse

Side = Literal["right", "left"]
MOST = 64
"""Largest number of queries, keys, samples or heads of a built mask."""
LONGEST, DEEPEST = 400, 40
KINDS = ("causal", "padding", "window 3", "prefix 2", "packed 3,3", "full")
"""What a rule can be made of, with sizes to start from."""
_TOKEN = re.compile(r"\s*(?:(?P<join>and|or|not|[()&|~])|(?P<kind>[a-z]+)(?:[\s:]*(?P<sizes>\d+(?:\s*,\s*\d+)*))?)")
_SIGNS = {"&": "and", "|": "or", "~": "not"}


class RuleError(ValueError):
    """A rule that cannot be read, or does not fit the sizes; the message says what to write."""


@dataclass(frozen=True)
class Sizes:
    """Of the mask that is built."""

    queries: int
    keys: int
    lengths: tuple[int, ...]
    """Real keys of each sample; as many as there are samples."""
    side: Side = "right"
    """Where the padding stands."""

    def keep(self) -> np.ndarray:
        """(B, K) bool, True = a real token."""
        return kept(self.lengths, self.keys, self.side)


def kept(lengths: Sequence[int], size: int, side: Side) -> np.ndarray:
    """Lengths (B,) -> (B, size) bool, True = a real token."""
    start = np.array([0 if side == "right" else size - length for length in lengths])[:, None]
    position = np.arange(size)[None, :]
    return (position >= start) & (position < start + np.array(lengths)[:, None])


def read_lengths(text: str, keys: int) -> tuple[int, ...]:
    """``6, 4`` -> (6, 4): one number of real tokens for each sample. Raises RuleError."""
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    if not parts or len(parts) > MOST or not all(re.fullmatch(r"\d{1,4}", part) for part in parts):
        raise RuleError("Write the number of real keys of each sample, such as “6, 4” for two samples.")
    lengths = tuple(int(part) for part in parts)
    if max(lengths) > keys:
        raise RuleError(f"A sample of {max(lengths)} real keys does not fit {keys} keys.")
    return lengths


def build(rule: str, sizes: Sizes) -> np.ndarray:
    """The mask (B, 1, Q, K) bool, True = may attend. Raises RuleError."""
    tokens = _tokens(rule)
    grid = _Reader(tokens, sizes).whole()
    return np.ascontiguousarray(np.broadcast_to(grid, (len(sizes.lengths), 1, sizes.queries, sizes.keys)))


def _tokens(rule: str) -> list[tuple[str, str]]:
    """(word, sizes) each."""
    text, at, found = rule.strip().lower(), 0, []
    if len(text) > LONGEST:
        raise RuleError(f"A rule has at most {LONGEST} characters.")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuleError(f"“{text[at : at + 12].strip()}” is not understood. {_help()}")
        word = match["join"] or match["kind"]
        found.append((_SIGNS.get(word, word), match["sizes"] or ""))
        at = match.end()
    if not found:
        raise RuleError(f"Write a rule. {_help()}")
    if sum(word in ("(", "not") for word, _ in found) > DEEPEST:
        raise RuleError(f"A rule has at most {DEEPEST} brackets and nots.")
    return found


def _help() -> str:
    return f"A rule is made of {', '.join(KINDS)}, joined by and, or, not and brackets."


class _Reader:
    """Recursive descent: or < and < not. Brackets and nots are counted before, which bounds its depth."""

    def __init__(self, tokens: list[tuple[str, str]], sizes: Sizes) -> None:
        self.tokens, self.sizes, self.at = tokens, sizes, 0

    def whole(self) -> np.ndarray:
        grid = self._either()
        if self.at < len(self.tokens):
            raise RuleError(f"Before “{self.tokens[self.at][0]}” an and or an or is missing.")
        return grid

    def _next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _either(self) -> np.ndarray:
        grid = self._both()
        while self._next() == "or":
            self.at += 1
            grid = grid | self._both()
        return grid

    def _both(self) -> np.ndarray:
        grid = self._one()
        while self._next() == "and":
            self.at += 1
            grid = grid & self._one()
        return grid

    def _one(self) -> np.ndarray:
        word = self._next()
        if word in ("", "and", "or", ")"):
            where = f"At “{word}”" if word else "At the end of the rule"
            raise RuleError(f"{where} a kind of mask is missing. {_help()}")
        sizes = self.tokens[self.at][1]
        self.at += 1
        if word == "not":
            return ~self._one()
        if word == "(":
            grid = self._either()
            if self._next() != ")":
                raise RuleError("A bracket is not closed.")
            self.at += 1
            return grid
        return self._kind(word, sizes)

    def _kind(self, word: str, numbers: str) -> np.ndarray:
        if word == "padding":
            return self.sizes.keep()[:, None, None, :]
        return _structure(word, numbers).allowed(self.sizes.queries, self.sizes.keys)


def _structure(word: str, numbers: str) -> Structure:
    try:
        return parse(f"{word}:{numbers.replace(' ', '')}" if numbers else word)
    except ValueError as error:
        said = f"{word} {numbers}".strip()
        raise RuleError(f"“{said}” is not a kind of mask, or lacks its size. {_help()}") from error
