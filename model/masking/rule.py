"""Rules, the longer form of a meaning (:mod:`.meaning`): ``causal and padding``, ``window 3 or not prefix 2``.

A rule joins kinds of masks by ``and``, ``or``, ``not`` and brackets. It is parsed token by token; nothing of it is run
as code. True = may attend throughout. ``+``, with which the short form joins its words, is read as ``and``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..language.say import listed, say, sentences
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
        raise RuleError(say("Write the number of real keys of each sample, such as “6, 4” for two samples."))
    lengths = tuple(int(part) for part in parts)
    if max(lengths) > keys:
        raise RuleError(say("A sample of {length} real keys does not fit {keys} keys.", length=max(lengths), keys=keys))
    return lengths


def build_mask(rule: str, sizes: Sizes) -> np.ndarray:
    """Return the mask of a rule, (B, 1, Q, K) bool, True = may attend. Raises RuleError."""
    grid = _Parser(_tokens(rule), sizes).mask()
    return np.ascontiguousarray(np.broadcast_to(grid, (len(sizes.lengths), 1, sizes.queries, sizes.keys)))


def _tokens(rule: str) -> list[tuple[str, str]]:
    """Return (word, sizes) of each token. Raises RuleError."""
    text, at, tokens = rule.strip().lower(), 0, []
    if len(text) > MAX_CHARACTERS:
        raise RuleError(say("A rule has at most {most} characters.", most=MAX_CHARACTERS))
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise RuleError(sentences(say("“{text}” is not understood.", text=text[at : at + 12].strip()), _help()))
        word = match["join"] or match["kind"]
        tokens.append((_SIGNS.get(word, word), match["sizes"] or ""))
        at = match.end()
    if not tokens:
        raise RuleError(sentences(say("Write a rule."), _help()))
    if sum(word in ("(", "not") for word, _ in tokens) > MAX_NESTING:
        raise RuleError(say("A rule has at most {most} brackets and nots.", most=MAX_NESTING))
    return tokens


def _help() -> str:
    return say("A rule is made of {kinds}, joined by and, or, not and brackets.", kinds=listed(KINDS))


class _Parser:
    """Recursive descent: or < and < not. Brackets and nots are counted before, which bounds its depth."""

    def __init__(self, tokens: list[tuple[str, str]], sizes: Sizes) -> None:
        self.tokens, self.sizes, self.at = tokens, sizes, 0

    def mask(self) -> np.ndarray:
        grid = self._or()
        if self.at < len(self.tokens):
            raise RuleError(say("Before “{word}” an and or an or is missing.", word=self.tokens[self.at][0]))
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
            at_end = say("At the end of the rule a kind of mask is missing.")
            missing = say("At “{word}” a kind of mask is missing.", word=word) if word else at_end
            raise RuleError(sentences(missing, _help()))
        sizes = self.tokens[self.at][1]
        self.at += 1
        if word == "not":
            inner: dict[str, str] = {}
            grid = self._operand(inner)
            return ~(grid & self._kind(*inner.values()) if inner else grid)
        if word == "(":
            grid = self._or()
            if self._next() != ")":
                raise RuleError(say("A bracket is not closed."))
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
        unknown = say("“{text}” is not a kind of mask, or lacks its size.", text=name.replace(":", " "))
        raise RuleError(sentences(unknown, _help())) from error
