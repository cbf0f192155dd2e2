"""Rules, the longer form of a meaning (:mod:`.meaning`): ``causal and padding``, ``window 3 or not prefix 2``.

A rule joins kinds of masks by ``and``, ``or``, ``not`` and brackets. It is parsed token by token; nothing of it is run
as code. True = may attend throughout. ``+``, with which the short form joins its words, is read as ``and``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .padding import PaddingSide, lengths_to_keep
from .structure import Structure
from .structure_names import parse_structure

MAX_SIZE = 64
"""Largest number of queries, keys, samples or heads of a mask."""
MAX_CHARACTERS, MAX_NESTING = 400, 40
"""Largest length of a rule, and number of its brackets and nots."""
KINDS = ("causal", "padding", "window 3", "sinks 1", "prefix 2", "span 2-4", "chunked 3", "packed 3,3", "full")
"""The kinds of masks that a rule can join, with example sizes."""
_SIZES = r"(?:[\s:]*(?P<sizes>\d+(?:\s*[,-]\s*\d+)*))?"
_TOKEN = re.compile(rf"\s*(?:(?P<join>and|or|not|[()&|~+])|(?P<kind>[a-z_]+){_SIZES})")
_SIGNS = {"&": "and", "+": "and", "|": "or", "~": "not"}


class RuleError(ValueError):
    """A rule that cannot be read, or does not fit the sizes; the message says what to write."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a mask."""

    queries: int
    keys: int
    lengths: tuple[int, ...]
    """Real keys of each sample; as many as there are samples."""
    side: PaddingSide = "right"
    """Where the padding stands."""

    def keep(self) -> np.ndarray:
        """Return (B, K) bool, True = a real token."""
        return lengths_to_keep(self.lengths, self.keys, self.side)


def read_lengths(text: str, keys: int) -> tuple[int, ...]:
    """Return the number of real tokens of each sample, (6, 4) for ``6, 4``. Raises RuleError."""
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    if not parts or len(parts) > MAX_SIZE or not all(re.fullmatch(r"\d{1,4}", part) for part in parts):
        raise RuleError("Write the number of real keys of each sample, such as “6, 4” for two samples.")
    lengths = tuple(int(part) for part in parts)
    if max(lengths) > keys:
        raise RuleError(f"A sample of {max(lengths)} real keys does not fit {keys} keys.")
    return lengths


def build_mask(rule: str, sizes: Sizes) -> np.ndarray:
    """Return the mask of a rule, (B, 1, Q, K) bool, True = may attend. Raises RuleError."""
    grid = _Parser(_tokens(rule), sizes).mask()
    return np.ascontiguousarray(np.broadcast_to(grid, (len(sizes.lengths), 1, sizes.queries, sizes.keys)))


def _tokens(rule: str) -> list[tuple[str, str]]:
    """Return (word, sizes) of each token. Raises RuleError."""
    text, at, tokens = rule.strip().lower(), 0, []
    if len(text) > MAX_CHARACTERS:
        raise RuleError(f"A rule has at most {MAX_CHARACTERS} characters.")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuleError(f"“{text[at : at + 12].strip()}” is not understood. {_help()}")
        word = match["join"] or match["kind"]
        tokens.append((_SIGNS.get(word, word), match["sizes"] or ""))
        at = match.end()
    if not tokens:
        raise RuleError(f"Write a rule. {_help()}")
    if sum(word in ("(", "not") for word, _ in tokens) > MAX_NESTING:
        raise RuleError(f"A rule has at most {MAX_NESTING} brackets and nots.")
    return tokens


def _help() -> str:
    return f"A rule is made of {', '.join(KINDS)}, joined by and, or, not and brackets."


class _Parser:
    """Recursive descent: or < and < not. Brackets and nots are counted before, which bounds its depth."""

    def __init__(self, tokens: list[tuple[str, str]], sizes: Sizes) -> None:
        self.tokens, self.sizes, self.at = tokens, sizes, 0

    def mask(self) -> np.ndarray:
        grid = self._or()
        if self.at < len(self.tokens):
            raise RuleError(f"Before “{self.tokens[self.at][0]}” an and or an or is missing.")
        return grid

    def _next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _or(self) -> np.ndarray:
        grid = self._and()
        while self._next() == "or":
            self.at += 1
            grid = grid | self._and()
        return grid

    def _and(self) -> np.ndarray:
        """Kinds that stand beside each other are one structure, as in a name: a sink is seen beside its window."""
        kinds: dict[str, str] = {}
        grid = self._operand(kinds)
        while self._next() == "and":
            self.at += 1
            grid = grid & self._operand(kinds)
        if kinds:
            structure = _structure("+".join(kinds.values()))
            grid = grid & structure.allowed(self.sizes.queries, self.sizes.keys)
        return grid

    def _operand(self, kinds: dict[str, str]) -> np.ndarray:
        """The mask of the next operand; a kind is put into ``kinds`` by its word, but for one that is there already."""
        word = self._next()
        if word in ("", "and", "or", ")"):
            where = f"At “{word}”" if word else "At the end of the rule"
            raise RuleError(f"{where} a kind of mask is missing. {_help()}")
        sizes = self.tokens[self.at][1]
        self.at += 1
        if word == "not":
            inner: dict[str, str] = {}
            grid = self._operand(inner)
            return ~(grid & self._kind(*inner.values()) if inner else grid)
        if word == "(":
            grid = self._or()
            if self._next() != ")":
                raise RuleError("A bracket is not closed.")
            self.at += 1
            return grid
        if word == "padding":
            return self.sizes.keep()[:, None, None, :]
        name = f"{word}:{sizes.replace(' ', '')}" if sizes else word
        if word in kinds and word != "span":
            return self._kind(name)
        _structure(name)
        kinds[f"{word} {sizes}" if word == "span" else word] = name
        return np.ones((self.sizes.queries, self.sizes.keys), bool)

    def _kind(self, name: str) -> np.ndarray:
        return _structure(name).allowed(self.sizes.queries, self.sizes.keys)


def _structure(name: str) -> Structure:
    try:
        return parse_structure(name)
    except ValueError as error:
        text = name.replace(":", " ")
        raise RuleError(f"“{text}” is not a kind of mask, or lacks its size. {_help()}") from error
