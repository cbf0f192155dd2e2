"""A corpus read in parts of so many lines each, whoever runs them; what cannot be used is counted with its reason."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

from ..language.say import listed, number, say, to_say
from ..live.live_model import LiveModel
from ..live.translation import InputError
from ..text.language import foreign
from ..text.tokenizer import Encoded

EMPTY, LONG, INVALID, LANGUAGE, UNEQUAL = (
    to_say("empty"),
    to_say("too long for the model"),
    to_say("not valid Unicode"),
    to_say("another language"),
    to_say("no line on the other side"),
)
NAMED = 5
"""Lines of each reason that a report names."""


@dataclass(frozen=True)
class Pair:
    """A line of the corpus that can be used."""

    line: int
    """From 0."""
    source: str
    source_encoded: Encoded
    target: str = ""
    target_encoded: Encoded | None = None
    """None where the model is to translate."""


@dataclass
class Skipped:
    """The lines of a corpus that were left out."""

    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    """The first lines of each reason, from 1."""

    def add(self, reason: str, line: int) -> None:
        """Count a line, from 0."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        self.lines.setdefault(reason, [])
        if len(self.lines[reason]) < NAMED:
            self.lines[reason].append(line + 1)

    def merge(self, other: Skipped) -> None:
        """Add what another part left out, which comes after this one."""
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
            self.lines[reason] = [*self.lines.get(reason, []), *other.lines[reason]][:NAMED]

    def sentence(self) -> str:
        """Return what was left out, in words."""
        if not self.counts:
            return say("No line was left out.")
        said = [
            say("{count:,} {reason} (line {lines})", count=count, reason=say(reason), lines=self._lines(reason))
            for reason, count in self.counts.items()
        ]
        return say("Left out: {reasons}.", reasons="; ".join(said))

    def _lines(self, reason: str) -> str:
        """The first lines of a reason, and whether there are more."""
        first = listed(number(line, ",") for line in self.lines[reason])
        return f"{first} ..." if self.counts[reason] > len(self.lines[reason]) else first


@dataclass(frozen=True)
class Corpus:
    """Two files, or one whose translations the model makes, cut into parts of so many lines."""

    source: Path
    target: Path | None
    size: int
    """Lines of a part; the last may have fewer."""
    lines: int
    offsets: tuple[tuple[int, ...], ...]
    """Where each part begins in each file, in bytes."""
    sha256: str
    """Of the lines that are used, both sides."""

    @classmethod
    def read(cls, source: Path, target: Path | None, size: int, most: int | None = None) -> Corpus:
        """Find the parts of the first `most` lines, of all without it. ValueError where there are none; OSError."""
        digest, count, offsets = hashlib.sha256(), 0, []
        at = [0] * (1 if target is None else 2)
        for lines in islice(_lines(source, target, at), most):
            if count % size == 0:
                offsets.append(tuple(at))
            digest.update(b"\n".join(line or b"" for line in lines))
            at = [place + len(line or b"") for place, line in zip(at, lines, strict=True)]
            count += 1
        if not count:
            raise ValueError(say("{file} is empty: give a text with one sentence a line.", file=source))
        return cls(source, target, size, count, tuple(offsets), digest.hexdigest())

    def part(self, number: int) -> Iterator[tuple[int, tuple[bytes | None, ...]]]:
        """Yield the lines of a part, each with its number and its sides; None where a side has ended before."""
        first = number * self.size
        lines = _lines(self.source, self.target, self.offsets[number])
        yield from enumerate(islice(lines, min(self.size, self.lines - first)), first)


def usable(translator: LiveModel, corpus: Corpus, number: int) -> tuple[list[Pair], Skipped]:
    """Return what can be used of a part, in the order of the lines, and what cannot."""
    found, skipped = [], Skipped()
    for line, sides in corpus.part(number):
        pair = _pair(translator, line, sides)
        if isinstance(pair, str):
            skipped.add(pair, line)
        else:
            found.append(pair)
    return found, skipped


def _pair(translator: LiveModel, line: int, sides: tuple[bytes | None, ...]) -> Pair | str:
    """A usable line, or the reason why it is none."""
    languages = (str(translator.card.get(f"{side}_language", "")) for side in ("source", "target"))
    read: list[tuple[str, Encoded]] = []
    for data, language, encode in zip(sides, languages, (translator.encode, translator.encode_target), strict=False):
        found = UNEQUAL if data is None else _side(data, language, encode, translator.max_length)
        if isinstance(found, str):
            return found
        read.append(found)
    (text, encoded), *other = read
    return Pair(line, text, encoded, *(other[0] if other else ()))


def _side(data: bytes, language: str, encode: Callable[[str], Encoded], max_length: int) -> tuple[str, Encoded] | str:
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return INVALID
    if not text:
        return EMPTY
    try:
        encoded = encode(text)
    except InputError:
        return LONG if len(data) >= max_length else EMPTY
    return LANGUAGE if language and foreign(text, language) else (text, encoded)


def _lines(source: Path, target: Path | None, offsets: Sequence[int]) -> Iterator[tuple[bytes | None, ...]]:
    """The lines of one file or of two side by side, each from a place on."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in (source, target) if path is not None]
        for file, offset in zip(files, offsets, strict=True):
            file.seek(offset)
        yield from zip_longest(*files)
