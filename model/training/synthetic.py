"""Synthetic sentence pairs: filled frames, and altered copies of other pairs."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..language import say
from .data import SentencePair

# Frames such as "The [noun] is [state]." in English and German, filled from lists of words, with the German article,
# adjective and pronoun that the noun asks for.


SLOT_PATTERN = re.compile(
    r"\[(?:(?P<article>[a-z]+) )?(?:(?P<adjective>adjective) )?(?P<slot>[a-z]+?\d?)(?P<many>s?)\]"
)
GENDER_ORDER = "mfn"
ARTICLE_FORMS = {
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
POSSESSIVE_ENDINGS = {"": "_ e _", "en": "en e _", "em": "em er em"}
"""Endings of "ein", "mein" and the like."""
POSSESSIVE_PATTERN = re.compile(r"^([kmds]?ein|ihr)(|en|em)$")
ENDINGS_AFTER_THE = {"der": "e e e", "den": "en e e", "dem": "en en en"}
ENDINGS_AFTER_A = {"": "er e es", "en": "en e es", "em": "en en en"}
"""Endings of an adjective after either."""
DIGIT_WORDS = (
    "zero one two three four five six seven eight nine",
    "null eins zwei drei vier fünf sechs sieben acht neun",
)
DRAWS_PER_FRAME = 60
"""Draws for one frame; of equal pairs one is kept."""


class WordEntry(NamedTuple):
    """A word of a list, in both languages."""

    english: str
    german: str
    gender: str = ""
    english_plural: str = ""
    german_plural: str = ""


class Frames(NamedTuple):
    """Frames and the lists that fill them, by name."""

    frames: list[SentencePair]
    lists: dict[str, list[WordEntry]]


def read_sentence_frames(path: Path) -> Frames:
    """Read a table of frames and words: kind, English, German, and of a noun its gender and both plurals.

    Raises ValueError, naming the line that is neither, or the slot that nothing can fill.
    """
    frames, lists = [], defaultdict(list)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        kind, *parts = line.split("\t")
        if not line or line.startswith("#"):
            continue
        if not 2 <= len(parts) <= len(WordEntry._fields) or not all(parts[:2]):
            raise ValueError(say("Line {line} of {path} is no frame and no word.", line=number, path=path))
        if kind == "frame":
            frames.append((parts[0], parts[1]))
        else:
            lists[kind].append(WordEntry(*parts))
    _check_sentence_frames(path, frames, lists)
    return Frames(frames, dict(lists))


def _check_sentence_frames(path: Path, frames: list[SentencePair], lists: Mapping[str, list[WordEntry]]) -> None:
    """Raise ValueError unless every German slot stands on the English side and each has enough words to fill it."""
    for english, german in frames:
        asked = Counter(_strip_slot_number(name) for name in _slot_names(english))
        short = [
            kind for kind, count in asked.items() if kind not in NUMBER_DRAWERS and len(lists.get(kind, [])) < count
        ]
        short += sorted(_slot_names(german) - _slot_names(english))
        if short := short or [
            slot[0][1:-1] for slot in SLOT_PATTERN.finditer(german) if not _is_declinable(slot, lists)
        ]:
            raise ValueError(
                say('{path}: nothing fills the slot "{slot}" of "{frame}".', path=path, slot=short[0], frame=english)
            )


def _is_declinable(slot: re.Match[str], lists: Mapping[str, list[WordEntry]]) -> bool:
    """Whether there is such an article, and a gender of each word that it can stand before."""
    article, genders = slot["article"], [entry.gender for entry in lists.get(_strip_slot_number(slot["slot"]), [])]
    known = article in ARTICLE_FORMS or (article and POSSESSIVE_PATTERN.fullmatch(article))
    return not article or bool(known and genders and all(gender in ("m", "f", "n") for gender in genders))


def _slot_names(frame: str) -> set[str]:
    """The slots of one side, "noun2" for a second noun."""
    return {name for slot in SLOT_PATTERN.finditer(frame) for name in (slot["adjective"], slot["slot"]) if name}


def _strip_slot_number(name: str) -> str:
    return name.rstrip("0123456789")


def fill_sentence_frames(frames: Frames, seed: int) -> list[SentencePair]:
    """Return the distinct pairs of :data:`DRAWS_PER_FRAME` random draws a frame, the same ones for the same seed."""
    random = np.random.default_rng(seed)
    found: dict[SentencePair, None] = {}
    for english, german in frames.frames:
        of_one = {_fill_sentence_frame(english, german, frames.lists, random): None for _ in range(DRAWS_PER_FRAME)}
        found.update(of_one)
    return list(found)


def _fill_sentence_frame(
    english: str, german: str, lists: dict[str, list[WordEntry]], random: np.random.Generator
) -> SentencePair:
    words: dict[str, WordEntry] = {}
    for slot in SLOT_PATTERN.finditer(english):
        for name in filter(None, (slot["adjective"], slot["slot"])):
            words[name] = words.get(name) or _draw_word(name, words, lists, random)
    left = SLOT_PATTERN.sub(lambda slot: _fill_english_slot(slot, words), english)
    right = SLOT_PATTERN.sub(lambda slot: _fill_german_slot(slot, words), german)
    left = re.sub(r"\ba (?=[aeiou])", "an ", left)
    return left[0].upper() + left[1:], right[0].upper() + right[1:]


def _draw_word(
    name: str, words: dict[str, WordEntry], lists: dict[str, list[WordEntry]], random: np.random.Generator
) -> WordEntry:
    """A random word for a slot, of a list another one than those before it."""
    kind = _strip_slot_number(name)
    if kind in NUMBER_DRAWERS:
        return NUMBER_DRAWERS[kind](random)
    free = [entry for entry in lists[kind] if entry not in words.values()]
    return free[random.integers(len(free))]


def _fill_english_slot(slot: re.Match[str], words: dict[str, WordEntry]) -> str:
    entry = words[slot["slot"]]
    return entry.english_plural if slot["many"] else entry.english


def _fill_german_slot(slot: re.Match[str], words: dict[str, WordEntry]) -> str:
    """A slot in German: the word, with the article before it and the adjective between them declined."""
    entry, article = words[slot["slot"]], slot["article"]
    if slot["many"]:
        return entry.german_plural
    if not article:
        return entry.german
    row = GENDER_ORDER.index(entry.gender)
    if article in ARTICLE_FORMS:
        first, endings = _pick_form(ARTICLE_FORMS[article], row), ENDINGS_AFTER_THE.get(article, "e e e")
    else:
        stem, ending = _split_possessive(article)
        first, endings = stem + _pick_form(POSSESSIVE_ENDINGS[ending], row), ENDINGS_AFTER_A[ending]
    if article == "er":
        return first
    adjective = [_adjective_stem(words["adjective"].german) + _pick_form(endings, row)] if slot["adjective"] else []
    return " ".join([first, *adjective, entry.german])


def _pick_form(forms: str, row: int) -> str:
    return forms.split()[row].strip("_").replace("_", " ")


def _split_possessive(article: str) -> tuple[str, str]:
    """("mein", "en") of "meinen"."""
    stem, ending = POSSESSIVE_PATTERN.findall(article)[0]
    return stem, ending


def _adjective_stem(adjective: str) -> str:
    """The stem before an ending: "teuer" loses its e."""
    return "teur" if adjective == "teuer" else adjective


def _make_number_drawer(low: int, high: int) -> Callable[[np.random.Generator], WordEntry]:
    """Numbers that both languages write alike, from `low` to `high`."""
    return lambda random: WordEntry(*[str(random.integers(low, high + 1))] * 2)


def _draw_decimal(random: np.random.Generator) -> WordEntry:
    number = f"{random.integers(1, 100)}.{random.integers(1, 10)}"
    return WordEntry(number, number.replace(".", ","))


def _draw_price(random: np.random.Generator) -> WordEntry:
    number = f"{random.integers(1, 300)}.{random.integers(10, 100)}"
    return WordEntry(number, number.replace(".", ","))


def _draw_thousands(random: np.random.Generator) -> WordEntry:
    number = f"{random.integers(1, 1000)},{random.integers(0, 10)}{random.choice(['00', '50', '25'])}"
    return WordEntry(number, number.replace(",", "."))


def _draw_clock_time(random: np.random.Generator) -> WordEntry:
    return WordEntry(*[f"{random.integers(1, 24)}:{random.integers(10, 60)}"] * 2)


def _draw_spoken_digits(random: np.random.Generator) -> WordEntry:
    """Three to seven digits in words."""
    digits = random.integers(0, 10, random.integers(3, 8))
    english, german = (" ".join(names.split()[digit] for digit in digits) for names in DIGIT_WORDS)
    return WordEntry(english, german)


NUMBER_DRAWERS: dict[str, Callable[[np.random.Generator], WordEntry]] = {
    "int": _make_number_drawer(2, 999),
    "small": _make_number_drawer(2, 99),
    "date": _make_number_drawer(1, 31),
    "year": _make_number_drawer(1750, 2035),
    "phone": _make_number_drawer(10_000, 9_999_999),
    "decimal": _draw_decimal,
    "price": _draw_price,
    "thousand": _draw_thousands,
    "hour": _draw_clock_time,
    "spoken": _draw_spoken_digits,
}
"""Slots that are filled with random numbers instead of words from a list."""

# Altered copies of pairs: as people type, two in a line, with other numbers and names.


WIDE_PUNCTUATION = "。！？"
"""Final punctuation after which no space stands."""
FINAL_PUNCTUATION = ".!?" + WIDE_PUNCTUATION
NUMBER_PATTERN = re.compile(r"\d{2,}")
NAME_PATTERN = re.compile(r"\b[A-Z][a-z]{2,}\b")
ONSETS = "b br ch d dr f g gr h j k kl l m n p r s sch sh st t th v w y z"
VOWELS = "a e i o u a e i o ai ei ee ou"
CODAS = "- - - - n r l s k m nd rt ng x"
"""What an invented name's syllables are made of; "-": nothing."""


class PairCopies(NamedTuple):
    """Pairs made from others."""

    pairs: list[SentencePair]
    origins: np.ndarray
    """(copies, originals of each): the numbers of the pairs that each was made of."""


def make_lowercase_unpunctuated_copies(
    pairs: Sequence[SentencePair], share: float, seed: int, apostrophes: bool = False
) -> PairCopies:
    """Copy a random share of the pairs with the source as people type it: lower case, no final punctuation.

    With `apostrophes`, half of them lose these as well ("dont"), and a quarter have the curved one that phones write.
    """
    chosen = np.sort(np.random.default_rng(seed).permutation(len(pairs))[: round(share * len(pairs))])
    sources = [pairs[i][0].lower().rstrip(FINAL_PUNCTUATION + " ") for i in chosen]
    if apostrophes:
        typed = ("", "", "\N{RIGHT SINGLE QUOTATION MARK}", "'")
        sources = [source.replace("'", typed[row % len(typed)]) for row, source in enumerate(sources)]
    return PairCopies([(source, pairs[i][1]) for source, i in zip(sources, chosen, strict=True)], chosen[:, None])


def make_joined_copies(pairs: Sequence[SentencePair], share: float, seed: int) -> PairCopies:
    """Make lines of two sentences, `share` times as many as there are pairs.

    The first is a random pair that ends in a full stop or the like on both sides, the second any other.
    """
    random = np.random.default_rng((seed, 1))
    ended = [i for i, pair in enumerate(pairs) if all(side.endswith(tuple(FINAL_PUNCTUATION)) for side in pair)]
    count = round(share * len(pairs)) if ended else 0
    origins = np.stack([random.choice(ended or [0], count), random.integers(len(pairs), size=count)], axis=1)
    return PairCopies(
        [(_join_sentences(pairs[i][0], pairs[j][0]), _join_sentences(pairs[i][1], pairs[j][1])) for i, j in origins],
        origins,
    )


def _join_sentences(first: str, second: str) -> str:
    return first + ("" if first[-1] in WIDE_PUNCTUATION else " ") + second


def make_uppercase_copies(pairs: Sequence[SentencePair], share: float, seed: int) -> PairCopies:
    """Copy a random share of the pairs with the source in capitals."""
    chosen = np.sort(np.random.default_rng((seed, 2)).permutation(len(pairs))[: round(share * len(pairs))])
    return PairCopies([(pairs[i][0].upper(), pairs[i][1]) for i in chosen], chosen[:, None])


def make_replaced_number_copies(pairs: Sequence[SentencePair], times: int, seed: int) -> PairCopies:
    """Copy each pair with numbers of two digits or more on both sides `times` times, with others of the same length."""
    random = np.random.default_rng((seed, 3))
    return _copy_with_replaced_match(
        pairs, NUMBER_PATTERN, np.repeat(np.arange(len(pairs)), times), lambda old: _draw_similar_number(old, random)
    )


def make_replaced_name_copies(pairs: Sequence[SentencePair], share: float, seed: int) -> PairCopies:
    """Copy a random share of the pairs that have a capitalised word on both sides, with invented names in its place.

    So a name is learned as something to be copied piece by piece, whatever it is.
    """
    random = np.random.default_rng((seed, 4))
    chosen = np.sort(random.permutation(len(pairs))[: round(share * len(pairs))])
    return _copy_with_replaced_match(pairs, NAME_PATTERN, chosen, lambda _: _invent_name(random))


def _copy_with_replaced_match(
    pairs: Sequence[SentencePair], what: re.Pattern[str], chosen: np.ndarray, new: Callable[[str], str]
) -> PairCopies:
    """Copy the chosen pairs in which a match stands once on each side, with something new in its place."""
    copies, origins = [], []
    for i in chosen.tolist():
        source, target = (Counter(what.findall(side)) for side in pairs[i])
        others = {old: new(old) for old in sorted(source) if source[old] == target[old] == 1}
        if others:
            put = lambda match: others.get(match[0], match[0])  # noqa: B023, E731
            copies.append((what.sub(put, pairs[i][0]), what.sub(put, pairs[i][1])))
            origins.append(i)
    return PairCopies(copies, np.array(origins, dtype=int).reshape(-1, 1))


def _draw_similar_number(old: str, random: np.random.Generator) -> str:
    """Another number of as many digits. A year stays one, and what can be minutes can be minutes."""
    first = old[0] if len(old) == 4 else str(random.integers(1, 6 if int(old[0]) < 6 else 10))
    return first + "".join(map(str, random.integers(0, 10, len(old) - 1)))


def _invent_name(random: np.random.Generator) -> str:
    """An invented name of one to three syllables."""
    syllables = [random.choice(part.split()) for _ in range(random.integers(1, 4)) for part in (ONSETS, VOWELS, CODAS)]
    return "".join(syllables).replace("-", "").capitalize()
