"""Gold word alignments: the Pharaoh link format, annotated sentence pairs and the alignment error rate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from ..language import format_number, join_items, say
from ..text.words import split_words

# A gold alignment is a folder of pairs of sentences with the links between their words:
#
#     source.txt  a sentence a line, as a model reads it
#     target.txt  its translation
#     links.txt   the links of each pair, see :class:`PairLinks`


GOLD_FOLDER = Path(__file__).parent / "gold"
"""A folder for each pair of languages, such as ``en-de``."""
SOURCE_FILE, TARGET_FILE, LINKS_FILE = "source.txt", "target.txt", "links.txt"
PASS_FILES = ("pass-1.txt", "pass-2.txt")
"""The two passes of the annotation, which the released gold is made of."""


@dataclass(frozen=True)
class GoldPair:
    """A sentence, its translation, their words and the links between these."""

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    links: PairLinks


@dataclass(frozen=True)
class GoldAlignment:
    """A gold alignment."""

    name: str
    """The name of its folder."""
    pairs: tuple[GoldPair, ...]
    sha256: str
    """Of the three files."""


def find_bundled_gold_folder(source_language: str, target_language: str) -> Path | None:
    """Return the folder of the gold that the project brings for a pair of languages, None where there is none."""
    folder = GOLD_FOLDER / f"{source_language}-{target_language}"
    return folder if (folder / LINKS_FILE).is_file() else None


def read_gold(folder: Path, tokenized: bool = False) -> GoldAlignment:
    """Read a folder. With `tokenized`, words are separated by spaces, else :func:`split_words` finds them.

    Raises GoldError, naming file and line.
    """
    texts = {name: _read_text(folder / name) for name in (SOURCE_FILE, TARGET_FILE, LINKS_FILE)}
    sides = {name: text.removesuffix("\n").split("\n") for name, text in texts.items()}
    counts = {name: len(lines) for name, lines in sides.items()}
    if len(set(counts.values())) != 1:
        raise GoldError(
            say(
                "The files of {folder} must have as many lines as each other; they have: {counts}.",
                folder=folder,
                counts=join_items(f"{name} {format_number(count, ',')}" for name, count in counts.items()),
            )
        )
    pairs = []
    for line, (source, target, links) in enumerate(zip(*sides.values(), strict=True), 1):
        try:
            pairs.append(_parse_pair(source, target, links, tokenized))
        except GoldError as error:
            raise GoldError(
                say("{file}, line {line}: {problem}", file=folder / LINKS_FILE, line=line, problem=error)
            ) from error
    return GoldAlignment(folder.name, tuple(pairs), sha256("\0".join(texts.values()).encode()).hexdigest())


def read_annotation_passes(folder: Path) -> tuple[tuple[PairLinks, ...], ...]:
    """Return the links of both passes of an annotation. Raises GoldError."""
    return tuple(tuple(map(PairLinks.read, _read_text(folder / name).splitlines())) for name in PASS_FILES)


def _parse_pair(source: str, target: str, links: str, tokenized: bool) -> GoldPair:
    words = [_split_words(side, tokenized) for side in (source, target)]
    found = PairLinks.read(links)
    for link in sorted(found.possible):
        _check_link(link, len(words[0]), len(words[1]))
    return GoldPair(source, target, words[0], words[1], found)


def _split_words(text: str, tokenized: bool) -> tuple[str, ...]:
    return tuple(text.split()) if tokenized else tuple(word.strip() for word in split_words(text.strip()))


def _check_link(link: Link, sources: int, targets: int) -> None:
    if link[0] >= sources or link[1] >= targets:
        raise GoldError(
            say(
                "the link {link} leads out of a pair of {sources} and {targets} words; they count from 0.",
                link=f"{link[0]}-{link[1]}",
                sources=sources,
                targets=targets,
            )
        )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise GoldError(
            say(
                "There is no file {path}: a gold alignment has {source}, {target} and {links}.",
                path=path,
                source=SOURCE_FILE,
                target=TARGET_FILE,
                links=LINKS_FILE,
            )
        ) from error
    except UnicodeDecodeError as error:
        raise GoldError(say("{path} is not UTF-8.", path=path)) from error


# Links in the Pharaoh format: a line a pair of sentences, ``0-0 1-2 3?1``, source and target word from 0.
#
# ``-`` is a sure link; ``?`` or ``p`` a possible one, as in the gold alignments of Vilar et al. (2006) and others.


Link = tuple[int, int]
"""Source word and target word, from 0."""
_LINK_PATTERN = re.compile(r"^(\d+)([-?p])(\d+)$")


class GoldError(ValueError):
    """A gold alignment that cannot be used; the message says where and why."""


@dataclass(frozen=True)
class PairLinks:
    """The links of one pair of sentences."""

    sure: frozenset[Link]
    possible: frozenset[Link]
    """All that are at least possible, sure ones included (Och and Ney 2003)."""

    @classmethod
    def read(cls, line: str) -> PairLinks:
        """Read a line. Raises GoldError."""
        sure, possible = set(), set()
        for text in line.split():
            found = _LINK_PATTERN.match(text)
            if found is None:
                raise GoldError(
                    say("“{text}” is no link: 2-3 is a sure one, 2?3 a possible one, words counted from 0.", text=text)
                )
            link = int(found[1]), int(found[3])
            possible.add(link)
            if found[2] == "-":
                sure.add(link)
        return cls(frozenset(sure), frozenset(possible))

    @property
    def text(self) -> str:
        """As it is written."""
        return " ".join(f"{i}{'-' if (i, j) in self.sure else '?'}{j}" for i, j in sorted(self.possible))


@dataclass(frozen=True)
class PassAgreement:
    """How far two passes of an annotation agree: twice the links of both over the links of each, 0 to 1 (Dice 1945)."""

    any: float
    """Of all links, sure or possible."""
    sure: float
    """Of the sure ones."""
    pairs: int
    identical: int
    """Pairs of sentences whose links are the same, each as sure."""


def combine_annotation_passes(first: PairLinks, second: PairLinks) -> PairLinks:
    """Return the gold made of two passes: sure is what both say is sure, possible what either says."""
    return PairLinks(first.sure & second.sure, first.possible | second.possible)


def compare_annotation_passes(first: Sequence[PairLinks], second: Sequence[PairLinks]) -> PassAgreement:
    """Compare two passes over the same pairs."""
    both = list(zip(first, second, strict=True))
    return PassAgreement(
        _dice_coefficient((one.possible, other.possible) for one, other in both),
        _dice_coefficient((one.sure, other.sure) for one, other in both),
        len(both),
        sum(one == other for one, other in both),
    )


def _dice_coefficient(pairs: Iterable[tuple[frozenset[Link], frozenset[Link]]]) -> float:
    common = total = 0
    for one, other in pairs:
        common += 2 * len(one & other)
        total += len(one) + len(other)
    return common / total if total else 1.0


# The alignment error rate (Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", 2.3).
#
# With A the links of a model, S the sure links of the gold and P its possible ones (S among them), over a whole
# corpus:
#
#     AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)     precision = |A & P| / |A|     recall = |A & S| / |S|


BOOTSTRAP_RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class LinkCounts:
    """Links counted pair by pair, of C alignments at once."""

    in_sure: np.ndarray
    """(N, C) |A & S|"""
    in_possible: np.ndarray
    """(N, C) |A & P|"""
    links: np.ndarray
    """(N, C) |A|"""
    sure: np.ndarray
    """(N,) |S|"""

    @classmethod
    def from_pairs(cls, pairs: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], sure: np.ndarray) -> LinkCounts:
        """Join what :func:`count_links` returned for each pair."""
        in_sure, in_possible, links = (np.array(one) for one in zip(*pairs, strict=True))
        return cls(in_sure, in_possible, links, sure)

    def aer(self, pairs: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the error rate (C,) over some of the pairs, by default all; NaN where there is no link at all."""
        hits = (self.in_sure[pairs] + self.in_possible[pairs]).sum(0)
        total = self.links[pairs].sum(0) + self.sure[pairs].sum()
        return 1 - np.divide(hits, total, out=np.full(hits.shape, np.nan), where=total > 0)

    def precision(self) -> np.ndarray:
        """Return the share (C,) of links that are at least possible; NaN where there is none."""
        return _ratio_or_nan(self.in_possible.sum(0), self.links.sum(0))

    def recall(self) -> np.ndarray:
        """Return the share (C,) of sure links that are found; NaN where there is none."""
        return _ratio_or_nan(self.in_sure.sum(0), np.broadcast_to(self.sure.sum(), self.in_sure.shape[1:]))

    def compute_bootstrap_interval(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends (C,) and (C,) of the 95% bootstrap interval: pairs drawn again, with replacement."""
        random = np.random.default_rng(seed)
        drawn = [self.aer(random.integers(0, len(self.sure), len(self.sure))) for _ in range(BOOTSTRAP_RESAMPLES)]
        low, high = np.quantile(np.array(drawn), (0.025, 0.975), axis=0)
        return low, high

    def compute_held_out_error_rate(self) -> float:
        """Return the error rate of the best alignment, chosen on one half of the pairs and measured on the other.

        Even and odd pairs are the halves, both ways, so that every pair is measured once. NaN where a half has no link
        to choose by, as of a single pair.
        """
        hits = total = 0
        for chosen_on in (0, 1):
            rates = self.aer(slice(chosen_on, None, 2))
            if np.isnan(rates).all():
                return math.nan
            best = int(np.nanargmin(rates))
            measured = slice(1 - chosen_on, None, 2)
            hits += int((self.in_sure[measured, best] + self.in_possible[measured, best]).sum())
            total += int(self.links[measured, best].sum() + self.sure[measured].sum())
        return 1 - hits / total


def count_links(links: np.ndarray, sure: np.ndarray, possible: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """links (C, S, T), sure and possible (S, T), all bool, of one pair -> |A & S|, |A & P| and |A|, (C,) each."""
    found = ((links & sure), (links & possible), links)
    return found[0].sum((1, 2)), found[1].sum((1, 2)), found[2].sum((1, 2))


def _ratio_or_nan(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
