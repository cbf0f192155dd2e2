"""Synthetic English-German pairs: frames such as "The [noun] is [state]." filled from lists of words, with the German
article, adjective and pronoun that the noun asks for."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..language.say import say
from .data import Pair

SLOT = re.compile(r"\[(?:(?P<article>[a-z]+) )?(?:(?P<adjective>adjective) )?(?P<slot>[a-z]+?\d?)(?P<many>s?)\]")
GENDERS = "mfn"
ARTICLES = {
    "der": "der die das",
    "den": "den die das",
    "dem": "dem der dem",
    "er": "er sie es",
    "im": "im in_der im",
    "zum": "zum zur zum",
    "beim": "beim bei_der beim",
    "dieser": "dieser diese dieses",
    "welcher": "welcher welche welches",
}
"""Masculine, feminine and neuter. "er" stands for its noun."""
POSSESSIVE = {"": "_ e _", "en": "en e _", "em": "em er em"}
"""Endings of "ein", "mein" and the like."""
POSSESSIVE_FORM = re.compile(r"^([kmds]?ein|ihr)(|en|em)$")
AFTER_THE = {"der": "e e e", "den": "en e e", "dem": "en en en"}
AFTER_A = {"": "er e es", "en": "en e es", "em": "en en en"}
"""Endings of an adjective after either."""
DIGITS = "zero one two three four five six seven eight nine", "null eins zwei drei vier fünf sechs sieben acht neun"
MOST = 60
"""Draws for one frame; of equal pairs one is kept."""


class Entry(NamedTuple):
    """A word of a list, in both languages."""

    english: str
    german: str
    gender: str = ""
    english_plural: str = ""
    german_plural: str = ""


class Frames(NamedTuple):
    """Frames and the lists that fill them, by name."""

    frames: list[Pair]
    lists: dict[str, list[Entry]]


def read(path: Path) -> Frames:
    """Read a table of frames and words: kind, English, German, and of a noun its gender and both plurals.

    ValueError with the line that is none, or with the slot that nothing can fill.
    """
    frames, lists = [], defaultdict(list)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        kind, *parts = line.split("\t")
        if not line or line.startswith("#"):
            continue
        if not 2 <= len(parts) <= len(Entry._fields) or not all(parts[:2]):
            raise ValueError(say("Line {line} of {path} is no frame and no word.", line=number, path=path))
        if kind == "frame":
            frames.append((parts[0], parts[1]))
        else:
            lists[kind].append(Entry(*parts))
    _check(path, frames, lists)
    return Frames(frames, dict(lists))


def _check(path: Path, frames: list[Pair], lists: Mapping[str, list[Entry]]) -> None:
    """Every slot of the German side stands on the English one, and each has enough words to fill it."""
    for english, german in frames:
        asked = Counter(_kind(name) for name in _names(english))
        short = [kind for kind, count in asked.items() if kind not in NUMBERS and len(lists.get(kind, [])) < count]
        short += sorted(_names(german) - _names(english))
        if short := short or [slot[0][1:-1] for slot in SLOT.finditer(german) if not _declinable(slot, lists)]:
            raise ValueError(
                say('{path}: nothing fills the slot "{slot}" of "{frame}".', path=path, slot=short[0], frame=english)
            )


def _declinable(slot: re.Match[str], lists: Mapping[str, list[Entry]]) -> bool:
    """Whether there is such an article, and a gender of each word that it can stand before."""
    article, genders = slot["article"], [entry.gender for entry in lists.get(_kind(slot["slot"]), [])]
    known = article in ARTICLES or (article and POSSESSIVE_FORM.fullmatch(article))
    return not article or bool(known and genders and all(gender in ("m", "f", "n") for gender in genders))


def _names(frame: str) -> set[str]:
    """The slots of one side, "noun2" for a second noun."""
    return {name for slot in SLOT.finditer(frame) for name in (slot["adjective"], slot["slot"]) if name}


def _kind(name: str) -> str:
    return name.rstrip("0123456789")


def filled(frames: Frames, seed: int) -> list[Pair]:
    """Return the distinct pairs of :data:`MOST` random draws for each frame, the same ones for the same seed."""
    random = np.random.default_rng(seed)
    found: dict[Pair, None] = {}
    for english, german in frames.frames:
        of_one = {_fill(english, german, frames.lists, random): None for _ in range(MOST)}
        found.update(of_one)
    return list(found)


def _fill(english: str, german: str, lists: dict[str, list[Entry]], random: np.random.Generator) -> Pair:
    words: dict[str, Entry] = {}
    for slot in SLOT.finditer(english):
        for name in filter(None, (slot["adjective"], slot["slot"])):
            words[name] = words.get(name) or _other(name, words, lists, random)
    left = SLOT.sub(lambda slot: _english(slot, words), english)
    right = SLOT.sub(lambda slot: _german(slot, words), german)
    left = re.sub(r"\ba (?=[aeiou])", "an ", left)
    return left[0].upper() + left[1:], right[0].upper() + right[1:]


def _other(name: str, words: dict[str, Entry], lists: dict[str, list[Entry]], random: np.random.Generator) -> Entry:
    """A random word for a slot, of a list another one than those before it."""
    kind = _kind(name)
    if kind in NUMBERS:
        return NUMBERS[kind](random)
    free = [entry for entry in lists[kind] if entry not in words.values()]
    return free[random.integers(len(free))]


def _english(slot: re.Match[str], words: dict[str, Entry]) -> str:
    entry = words[slot["slot"]]
    return entry.english_plural if slot["many"] else entry.english


def _german(slot: re.Match[str], words: dict[str, Entry]) -> str:
    """A slot in German: the word, with the article before it and the adjective between them declined."""
    entry, article = words[slot["slot"]], slot["article"]
    if slot["many"]:
        return entry.german_plural
    if not article:
        return entry.german
    row = GENDERS.index(entry.gender)
    if article in ARTICLES:
        first, endings = _of(ARTICLES[article], row), AFTER_THE.get(article, "e e e")
    else:
        stem, ending = _possessive(article)
        first, endings = stem + _of(POSSESSIVE[ending], row), AFTER_A[ending]
    if article == "er":
        return first
    adjective = [_declined(words["adjective"].german) + _of(endings, row)] if slot["adjective"] else []
    return " ".join([first, *adjective, entry.german])


def _of(forms: str, row: int) -> str:
    return forms.split()[row].strip("_").replace("_", " ")


def _possessive(article: str) -> tuple[str, str]:
    """("mein", "en") of "meinen"."""
    stem, ending = POSSESSIVE_FORM.findall(article)[0]
    return stem, ending


def _declined(adjective: str) -> str:
    """The stem before an ending: "teuer" loses its e."""
    return "teur" if adjective == "teuer" else adjective


def _same(low: int, high: int) -> Callable[[np.random.Generator], Entry]:
    """Numbers that both languages write alike, from `low` to `high`."""
    return lambda random: Entry(*[str(random.integers(low, high + 1))] * 2)


def _comma(random: np.random.Generator) -> Entry:
    number = f"{random.integers(1, 100)}.{random.integers(1, 10)}"
    return Entry(number, number.replace(".", ","))


def _price(random: np.random.Generator) -> Entry:
    number = f"{random.integers(1, 300)}.{random.integers(10, 100)}"
    return Entry(number, number.replace(".", ","))


def _thousand(random: np.random.Generator) -> Entry:
    number = f"{random.integers(1, 1000)},{random.integers(0, 10)}{random.choice(['00', '50', '25'])}"
    return Entry(number, number.replace(",", "."))


def _hour(random: np.random.Generator) -> Entry:
    return Entry(*[f"{random.integers(1, 24)}:{random.integers(10, 60)}"] * 2)


def _spoken(random: np.random.Generator) -> Entry:
    """Three to seven digits in words."""
    digits = random.integers(0, 10, random.integers(3, 8))
    english, german = (" ".join(names.split()[digit] for digit in digits) for names in DIGITS)
    return Entry(english, german)


NUMBERS: dict[str, Callable[[np.random.Generator], Entry]] = {
    "int": _same(2, 999),
    "small": _same(2, 99),
    "date": _same(1, 31),
    "year": _same(1750, 2035),
    "phone": _same(10_000, 9_999_999),
    "decimal": _comma,
    "price": _price,
    "thousand": _thousand,
    "hour": _hour,
    "spoken": _spoken,
}
"""What no list holds."""
