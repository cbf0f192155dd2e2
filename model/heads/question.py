"""What is searched for in an atlas, as it is typed: ``pos=NOUN -> pos=DET distance=-1 map=encoder weight>=0.5``.

Left of the arrow stands what is asked of the query, the token that attends, right of it what is asked of the key; the
rest may stand anywhere.

    word=dog  word~^un   a word, whatever its case, or a regular expression (RE2) that is found in it
    pos=NOUN             a part of speech, see :data:`model.text.tags.TAGS`
    distance=-1          the place of the key minus that of the query, in tokens; distance=-3..-1 is any of these
    weight>=0.5          the least weight of a link
    map=cross            one of the maps
    head=2.3             layer and head, from 1; needs a map
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import Any

from ..language.say import listed, say, say_many
from ..text.tags import TAGS
from ..trace import KINDS, Kind

LONGEST = 300
_TERM = re.compile(r"^(word|pos|distance|weight|map|head)(=|~|>=)(.+)$", re.DOTALL)
_SIGNS = {"word": ("=", "~"), "weight": (">=",)}


class QuestionError(ValueError):
    """A question that cannot be read; the message says where and what there is."""


@dataclass(frozen=True)
class Token:
    """What is asked of a token; nothing where all is empty."""

    word: str = ""
    pattern: str = ""
    """A regular expression."""
    tag: str = ""

    @property
    def text(self) -> str:
        """As it is typed."""
        found = [("word=", self.word), ("word~", self.pattern), ("pos=", self.tag)]
        return " ".join(shlex.quote(f"{name}{value}") for name, value in found if value)

    @property
    def words(self) -> str:
        """As a person reads it."""
        parts = [say("the word “{word}”", word=self.word)] if self.word else []
        parts += [say("a word that matches “{pattern}”", pattern=self.pattern)] if self.pattern else []
        parts += [say("a token tagged {tag}", tag=self.tag)] if self.tag else []
        return listed(parts) or say("any token")


@dataclass(frozen=True)
class Question:
    """What is searched for."""

    query: Token = Token()
    key: Token = Token()
    distance: tuple[int, int] | None = None
    """The least and the most, signed."""
    weight: float = 0.0
    kind: Kind | None = None
    head: tuple[int, int] | None = None
    """Layer and head, from 0."""

    @property
    def text(self) -> str:
        """As it is typed; :func:`read_question` reads it back."""
        parts = [self.query.text, "->", self.key.text]
        if self.distance:
            low, high = self.distance
            parts.append(f"distance={low}" if low == high else f"distance={low}..{high}")
        parts += [f"weight>={self.weight:g}"] if self.weight else []
        parts += [f"map={self.kind}"] if self.kind else []
        parts += [f"head={self.head[0] + 1}.{self.head[1] + 1}"] if self.head else []
        return " ".join(part for part in parts if part)

    @property
    def words(self) -> str:
        """As a person reads it."""
        ends = {"where": self._where, "query": self.query.words, "key": self.key.words}
        if not self.distance:
            if not self.weight:
                return say("Links of {where} from {query} to {key}.", **ends)
            return say(
                "Links of {where} with a weight of at least {weight:g} from {query} to {key}.",
                weight=self.weight,
                **ends,
            )
        ends["distance"] = _distance_words(*self.distance)
        if not self.weight:
            return say("Links of {where} from {query} to {key}, {distance}.", **ends)
        return say(
            "Links of {where} with a weight of at least {weight:g} from {query} to {key}, {distance}.",
            weight=self.weight,
            **ends,
        )

    @property
    def _where(self) -> str:
        """The heads that are asked for; the map by the name that is typed."""
        if not self.kind:
            return say("any head of any map")
        if not self.head:
            return say("any head of the {map} map", map=self.kind)
        layer, head = self.head
        return say("head {layer}.{head} of the {map} map", layer=layer + 1, head=head + 1, map=self.kind)


def read_question(text: str) -> Question:
    """Read a question. QuestionError."""
    if len(text) > LONGEST:
        raise QuestionError(
            say("A question has at most {most} characters; this one has {count:,}.", most=LONGEST, count=len(text))
        )
    try:
        # Backslashes belong to regular expressions, so they are not signs of the shell here.
        lexer = shlex.shlex(text, posix=True)
        lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
        parts = list(lexer)
    except ValueError as error:
        raise QuestionError(say("A quotation mark in “{text}” is not closed.", text=text)) from error
    if parts.count("->") != 1:
        raise QuestionError(say("A question has one arrow, between query and key: pos=NOUN -> pos=DET distance=-1."))
    found, side = Question(), "query"
    for part in parts:
        if part == "->":
            side = "key"
            continue
        found = _with_term(found, side, part)
    if found.head and not found.kind:
        raise QuestionError(say("A head needs its map: add map=encoder, map=decoder or map=cross."))
    return found


def _with_term(question: Question, side: str, part: str) -> Question:
    found = _TERM.match(part)
    if found is None or found[2] not in _SIGNS.get(found[1], ("=",)):
        raise QuestionError(
            say(
                "“{part}” is not understood: there are word=, word~, pos=, distance=, weight>=, map=, head=.", part=part
            )
        )
    name, sign, value = found.groups()
    if name in ("word", "pos"):
        token: Token = getattr(question, side)
        field = "tag" if name == "pos" else "word" if sign == "=" else "pattern"
        read = _tag(value) if name == "pos" else value
        more: dict[str, Any] = {side: replace(token, **{field: read})}
        return replace(question, **more)
    if name == "distance":
        return replace(question, distance=_distance(value))
    if name == "weight":
        return replace(question, weight=_weight(value))
    if name == "map":
        return replace(question, kind=_kind(value))
    return replace(question, head=_head(value))


def _tag(value: str) -> str:
    if value.upper() not in TAGS:
        raise QuestionError(
            say(
                "There is no part of speech “{value}”; there are {tags}.",
                value=value,
                tags=listed(tag for tag in TAGS if tag),
            )
        )
    return value.upper()


def _distance(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"([+-]?\d{1,6})(?:\.\.([+-]?\d{1,6}))?", value)
    if found is None:
        raise QuestionError(say("“{value}” is no distance: write -1, or -3..-1 for any of these.", value=value))
    low = int(found[1])
    high = int(found[2]) if found[2] else low
    if high < low:
        raise QuestionError(say("The distances {value} are none: the lower one comes first.", value=value))
    return low, high


def _weight(value: str) -> float:
    if not re.fullmatch(r"[01]?\.?\d{0,6}", value) or value in ("", ".") or not 0 <= float(value) <= 1:
        raise QuestionError(say("“{value}” is no weight: it is a number from 0 to 1.", value=value))
    return float(value)


def _kind(value: str) -> Kind:
    found = next((kind for kind in KINDS if kind == value), None)
    if found is None:
        raise QuestionError(say("There is no map “{value}”; there are {maps}.", value=value, maps=listed(KINDS)))
    return found


def _head(value: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", value)
    if found is None or not int(found[1]) or not int(found[2]):
        raise QuestionError(say("“{value}” is no head: write layer and head from 1, as in 2.3.", value=value))
    return int(found[1]) - 1, int(found[2]) - 1


def _distance_words(low: int, high: int) -> str:
    if low != high:
        return say("{low} to {high} tokens away", low=low, high=high)
    if low == 0:
        return say("at the same place")
    if low < 0:
        return say_many("{count} token before", "{count} tokens before", -low)
    return say_many("{count} token after", "{count} tokens after", low)
