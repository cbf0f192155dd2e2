"""Rules and meanings: parse what a mask is meant to be, in words, and build the mask."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..language import join_items, join_sentences, say
from .softmax import PaddingSide, lengths_to_keep_mask
from .structure import REPEATABLE_WORDS, Structure, name_structure, parse_structure, recognise_structure

# Rules, the longer form of a meaning: ``causal and padding``, ``window 3 or not prefix 2``.
#
# A rule joins kinds of masks by ``and``, ``or``, ``not`` and brackets. It is parsed token by token; nothing of it is
# run as code. True = may attend throughout. ``+``, with which the short form joins its words, is read as ``and``.


MAX_MASK_SIZE = 64
"""Largest number of queries, keys, samples or heads of a mask."""
MAX_RULE_CHARACTERS, MAX_NESTING = 400, 40
"""Largest length of a rule, and number of its brackets and nots."""
MASK_KINDS = (
    *("causal", "padding", "window 3", "ahead 1", "sinks 1", "keys 2-3", "prefix 2", "span 2-4"),
    *("chunked 3", "blocks 3", "tree 0,0,1,1", "packed 3,3", "full"),
)
"""The kinds of masks that a rule can join, with example sizes."""
_SIZES_PATTERN = r"(?:[\s:]*(?P<sizes>\d+(?:\s*[,-]\s*\d+)*))?"
_TOKEN_PATTERN = re.compile(rf"\s*(?:(?P<join>and|or|not|[()&|~+])|(?P<kind>[a-z_]+){_SIZES_PATTERN})")
_SIGN_WORDS = {"&": "and", "+": "and", "|": "or", "~": "not"}


class RuleError(ValueError):
    """A rule that cannot be read, or does not fit the sizes; the message says what to write."""


@dataclass(frozen=True)
class MaskSizes:
    """The sizes of a mask."""

    queries: int
    keys: int
    lengths: tuple[int, ...]
    """Real keys of each sample; as many as there are samples."""
    side: PaddingSide = "right"
    """Where the padding stands."""

    def keep(self) -> np.ndarray:
        """Return (B, K) bool, True = a real token."""
        return lengths_to_keep_mask(self.lengths, self.keys, self.side)


def parse_sample_lengths(text: str, keys: int) -> tuple[int, ...]:
    """Return the number of real tokens of each sample, (6, 4) for ``6, 4``. Raises RuleError."""
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    if not parts or len(parts) > MAX_MASK_SIZE or not all(re.fullmatch(r"\d{1,4}", part) for part in parts):
        raise RuleError(say("Write the number of real keys of each sample, such as “6, 4” for two samples."))
    lengths = tuple(int(part) for part in parts)
    if max(lengths) > keys:
        raise RuleError(say("A sample of {length} real keys does not fit {keys} keys.", length=max(lengths), keys=keys))
    return lengths


def build_mask(rule: str, sizes: MaskSizes) -> np.ndarray:
    """Return the mask of a rule, (B, 1, Q, K) bool, True = may attend. Raises RuleError."""
    grid = _RuleParser(_split_rule_words(rule), sizes).mask()
    return np.ascontiguousarray(np.broadcast_to(grid, (len(sizes.lengths), 1, sizes.queries, sizes.keys)))


def _split_rule_words(rule: str) -> list[tuple[str, str]]:
    """Return (word, sizes) of each token. Raises RuleError."""
    text, at, tokens = rule.strip().lower(), 0, []
    if len(text) > MAX_RULE_CHARACTERS:
        raise RuleError(say("A rule has at most {most} characters.", most=MAX_RULE_CHARACTERS))
    while at < len(text):
        match = _TOKEN_PATTERN.match(text, at)
        if match is None:
            raise RuleError(
                join_sentences(say("“{text}” is not understood.", text=text[at : at + 12].strip()), _rule_help_text())
            )
        word = match["join"] or match["kind"]
        tokens.append((_SIGN_WORDS.get(word, word), match["sizes"] or ""))
        at = match.end()
    if not tokens:
        raise RuleError(join_sentences(say("Write a rule."), _rule_help_text()))
    if sum(word in ("(", "not") for word, _ in tokens) > MAX_NESTING:
        raise RuleError(say("A rule has at most {most} brackets and nots.", most=MAX_NESTING))
    return tokens


def _rule_help_text() -> str:
    return say("A rule is made of {kinds}, joined by and, or, not and brackets.", kinds=join_items(MASK_KINDS))


class _RuleParser:
    """Recursive descent: or < and < not. Brackets and nots are counted before, which bounds its depth."""

    def __init__(self, tokens: list[tuple[str, str]], sizes: MaskSizes) -> None:
        self.tokens, self.sizes, self.at = tokens, sizes, 0

    def mask(self) -> np.ndarray:
        grid = self._parse_or()
        if self.at < len(self.tokens):
            raise RuleError(say("Before “{word}” an and or an or is missing.", word=self.tokens[self.at][0]))
        return grid

    def _peek_word(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _parse_or(self) -> np.ndarray:
        grid = self._parse_and()
        while self._peek_word() == "or":
            self.at += 1
            grid = grid | self._parse_and()
        return grid

    def _parse_and(self) -> np.ndarray:
        """Kinds that stand beside each other are one structure, as in a name: a sink is seen beside its window."""
        kinds: dict[str, str] = {}
        grid = self._parse_operand(kinds)
        while self._peek_word() == "and":
            self.at += 1
            grid = grid & self._parse_operand(kinds)
        if kinds:
            structure = _parse_kind("+".join(kinds.values()))
            grid = grid & structure.build_mask(self.sizes.queries, self.sizes.keys)
        return grid

    def _parse_operand(self, kinds: dict[str, str]) -> np.ndarray:
        """Return the mask of the next operand; a kind goes into ``kinds`` instead, unless its word is there already."""
        word = self._peek_word()
        if word in ("", "and", "or", ")"):
            at_end = say("At the end of the rule a kind of mask is missing.")
            missing = say("At “{word}” a kind of mask is missing.", word=word) if word else at_end
            raise RuleError(join_sentences(missing, _rule_help_text()))
        sizes = self.tokens[self.at][1]
        self.at += 1
        if word == "not":
            inner: dict[str, str] = {}
            grid = self._parse_operand(inner)
            return ~(grid & self._kind(*inner.values()) if inner else grid)
        if word == "(":
            grid = self._parse_or()
            if self._peek_word() != ")":
                raise RuleError(say("A bracket is not closed."))
            self.at += 1
            return grid
        if word == "padding":
            return self.sizes.keep()[:, None, None, :]
        name = f"{word}:{sizes.replace(' ', '')}" if sizes else word
        if word in kinds and word not in REPEATABLE_WORDS:
            return self._kind(name)
        _parse_kind(name)
        kinds[f"{word} {sizes}" if word in REPEATABLE_WORDS else word] = name
        return np.ones((self.sizes.queries, self.sizes.keys), bool)

    def _kind(self, name: str) -> np.ndarray:
        return _parse_kind(name).build_mask(self.sizes.queries, self.sizes.keys)


def _parse_kind(name: str) -> Structure:
    try:
        return parse_structure(name)
    except ValueError as error:
        unknown = say("“{text}” is not a kind of mask, or lacks its size.", text=name.replace(":", " "))
        raise RuleError(join_sentences(unknown, _rule_help_text())) from error


# Meanings: what a mask is meant to be, in words, parsed here for pages, command line and Python alike.
#
# A meaning is a structure, ``causal+window:4`` or ``causal and window 4``, or a rule with ``or``, ``not`` and brackets.
# Both grammars are read wherever a meaning is taken. Layers that differ stand in turn, with a slash between them:
# ``causal+window:4 / causal`` is a window in every other layer, beginning with the first, and
# ``5 x causal+window:4 / causal`` in five of six. ``causal+window:4 on odd layers, else causal`` counts layers from 1.


MAX_LAYERS = 1000
MAX_MEANING_CHARACTERS = 20_000
"""Longest meaning, since position ids are long; a rule has at most MAX_RULE_CHARACTERS."""
_LAYERS_PATTERN = re.compile(r" on (odd|even) layers")
_SECOND_PATTERN = re.compile(r" ?[,;]? ?(?:and|else)? (?=.)")
_TIMES_PATTERN = re.compile(r"(\d{1,9}) ?x (.+)")


def split_layer_meanings(text: str) -> list[str]:
    """Return the meanings of the layers, in turn; one where all share it. Raises RuleError."""
    if len(text) > MAX_MEANING_CHARACTERS:
        raise RuleError(say("A rule has at most {most} characters.", most=MAX_MEANING_CHARACTERS))
    text = " ".join(text.split())
    for layers in _LAYERS_PATTERN.finditer(text):
        between = _SECOND_PATTERN.match(text, layers.end())
        if layers.start() and (between or layers.end() == len(text)):
            return _order_odd_even_meanings(text[: layers.start()], layers[1], text[between.end() :] if between else "")
    found: list[str] = []
    for part in map(str.strip, text.split("/")):
        repeated = _TIMES_PATTERN.fullmatch(part)
        times = int(repeated[1]) if repeated else 1
        if not 0 < times <= MAX_LAYERS or len(found) > MAX_LAYERS:
            most = say("“{text}”: a pattern repeats over 1 to {most} layers.", text=part, most=MAX_LAYERS)
            raise RuleError(most)
        found += [repeated[2] if repeated else part] * times
    return found


def _order_odd_even_meanings(first: str, which: str, second: str) -> list[str]:
    """Return the meanings of the odd and of the even layers; ``which`` are those of ``first``. Raises RuleError."""
    other = next((name for name in ("odd", "even") if second.endswith(f" on {name} layers")), "")
    second = second.removesuffix(f" on {other} layers")
    if not second or which == other:
        example = f"{first} on {which} layers, else causal"
        raise RuleError(say("Say both the odd and the even layers: “{example}”.", example=example))
    return [first, second] if which == "odd" else [second, first]


def parse_meaning(text: str) -> Structure | None:
    """Return the structure that a text stands for; None for a rule or layers that are no single structure.

    Raises:
        RuleError: for a text that is neither; the message lists the words.
    """
    parts = split_layer_meanings(text)
    if len(parts) > 1:
        for part in dict.fromkeys(parts):
            parse_meaning(part)
        return None
    text = parts[0]
    try:
        return parse_structure(text)
    except ValueError:
        build_mask(text, MaskSizes(1, 1, (1,)))
        return None


def build_meaning_mask(text: str, queries: int, keys: int) -> np.ndarray:
    """Return (Q, K) bool, True = may attend, of a meaning without its padding, in the first layer. Raises RuleError."""
    text = split_layer_meanings(text)[0]
    structure = parse_meaning(text)
    if structure is not None:
        return structure.build_mask(queries, keys)
    return build_mask(text, MaskSizes(queries, keys, (keys,)))[0, 0]


def build_layer_masks(text: str, layers: int, queries: int, keys: int) -> np.ndarray:
    """Return (L, Q, K) bool, True = may attend, of a meaning, L being 1 where all layers share it. Raises RuleError."""
    parts = split_layer_meanings(text)
    if len(parts) > layers:
        raise RuleError(
            say(
                "“{text}” names the masks of {named} layers in turn, but the weights have {layers}.",
                text=text,
                named=len(parts),
                layers=layers,
            )
        )
    each = [build_meaning_mask(part, queries, keys) for part in parts]
    return np.stack([each[layer % len(each)] for layer in range(layers if len(parts) > 1 else 1)])


def simpler_meanings_text(text: str, queries: int, keys: int) -> str:
    """Return a sentence that names the simpler meaning that each layer's part comes to at these sizes, or nothing.

    Raises RuleError.
    """
    return join_sentences(
        *(
            say(
                "At {queries} queries and {keys} keys “{rule}” is the same as “{simpler}”.",
                queries=queries,
                keys=keys,
                rule=part,
                simpler=simpler,
            )
            for part in dict.fromkeys(split_layer_meanings(text))
            if (simpler := _find_simpler_meaning(part, queries, keys))
        )
    )


def _find_simpler_meaning(text: str, queries: int, keys: int) -> str:
    """Return the name, of fewer words and sizes, of the mask that a meaning builds; empty where there is none."""
    structure = parse_meaning(text)
    if structure is None and "padding" in text.lower():
        return ""  # What is real is not known here.
    mask = build_meaning_mask(text, queries, keys)
    found = recognise_structure(mask, np.ones_like(mask))
    name = "" if found is None or found.origin else name_structure(found, keys)  # a name leaves the origin open
    own = text if structure is None else name_structure(structure, keys) or text
    return name if name and _count_words(name) < _count_words(own) else ""


def _count_words(text: str) -> int:
    return len(re.findall(r"[a-z_]+|\d+", text.lower()))


def names_padding(text: str) -> bool:
    """Whether a meaning names padding as blocked, in some layer."""
    return bool(re.search(r"\bpadding\b", text.lower()))


def hides_future(text: str) -> bool:
    """Whether a meaning hides what comes after the query, in every layer. Raises RuleError."""
    parts = split_layer_meanings(text)
    if len(parts) > 1:
        return all(map(hides_future, dict.fromkeys(parts)))
    structure = parse_meaning(text)
    if structure is not None:
        return structure.causal
    return not build_meaning_mask(text, 8, 8)[0, 7]
