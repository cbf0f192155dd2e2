"""A gold alignment: pairs of sentences with the links between their words, from a folder.

source.txt    a sentence a line, as a model reads it
target.txt    its translation
links.txt     the links of each pair, see :mod:`.links`
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ..language.say import listed, number, say
from ..text.words import words_of
from .links import GoldError, Link, Links

RELEASED = Path(__file__).parent / "gold"
"""A folder for each pair of languages, such as ``en-de``."""
SOURCE, TARGET, LINKS = "source.txt", "target.txt", "links.txt"
PASSES = ("pass-1.txt", "pass-2.txt")
"""The two passes of the annotation, which the released gold is made of."""


@dataclass(frozen=True)
class GoldPair:
    """A sentence, its translation, their words and the links between these."""

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: Links


@dataclass(frozen=True)
class Gold:
    """A gold alignment."""

    name: str
    """The name of its folder."""
    pairs: tuple[GoldPair, ...]
    sha256: str
    """Of the three files."""


def released_gold(source_language: str, target_language: str) -> Path | None:
    """Return the folder of the gold that the project brings for a pair of languages, None where there is none."""
    folder = RELEASED / f"{source_language}-{target_language}"
    return folder if (folder / LINKS).is_file() else None


def read_gold(folder: Path, tokenized: bool = False) -> Gold:
    """Read a folder; with `tokenized`, words are parted by spaces, else they are cut as the pages cut them.

    GoldError, naming file and line.
    """
    texts = {name: _text(folder / name) for name in (SOURCE, TARGET, LINKS)}
    sides = {name: text.removesuffix("\n").split("\n") for name, text in texts.items()}
    counts = {name: len(lines) for name, lines in sides.items()}
    if len(set(counts.values())) != 1:
        raise GoldError(
            say(
                "The files of {folder} must have as many lines as each other; they have: {counts}.",
                folder=folder,
                counts=listed(f"{name} {number(count, ',')}" for name, count in counts.items()),
            )
        )
    pairs = []
    for line, (source, target, links) in enumerate(zip(*sides.values(), strict=True), 1):
        try:
            pairs.append(_pair(source, target, links, tokenized))
        except GoldError as error:
            raise GoldError(
                say("{file}, line {line}: {problem}", file=folder / LINKS, line=line, problem=error)
            ) from error
    return Gold(folder.name, tuple(pairs), sha256("\0".join(texts.values()).encode()).hexdigest())


def read_passes(folder: Path) -> tuple[tuple[Links, ...], ...]:
    """Return the links of both passes of an annotation. GoldError."""
    return tuple(tuple(map(Links.read, _text(folder / name).splitlines())) for name in PASSES)


def _pair(source: str, target: str, links: str, tokenized: bool) -> GoldPair:
    words = [_words(side, tokenized) for side in (source, target)]
    found = Links.read(links)
    for link in sorted(found.possible):
        _check(link, len(words[0]), len(words[1]))
    return GoldPair(source, target, words[0], words[1], found)


def _words(text: str, tokenized: bool) -> tuple[str, ...]:
    return tuple(text.split()) if tokenized else tuple(word.strip() for word in words_of(text.strip()))


def _check(link: Link, sources: int, targets: int) -> None:
    if link[0] >= sources or link[1] >= targets:
        raise GoldError(
            say(
                "the link {link} leads out of a pair of {sources} and {targets} words; they count from 0.",
                link=f"{link[0]}-{link[1]}",
                sources=sources,
                targets=targets,
            )
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise GoldError(
            say(
                "There is no file {path}: a gold alignment has {source}, {target} and {links}.",
                path=path,
                source=SOURCE,
                target=TARGET,
                links=LINKS,
            )
        ) from error
    except UnicodeDecodeError as error:
        raise GoldError(say("{path} is not UTF-8.", path=path)) from error
