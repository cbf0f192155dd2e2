"""Guess the language of a text, tag its parts of speech, and find repetitions."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..language import to_say
from .words import END_TOKENS, SPECIAL_TOKENS

# The language of a text, by its script and by common little words.


LITTLE_WORDS = {
    "en": "the a an and is are was were of to in you it that he she i we my not have has do did with for on what how",
    "de": "der die das und ist war ein eine nicht ich du er sie wir ihr es mit von zu den dem auf für wie was hat kein",
    "fr": "le la les un une des et est sont je tu il elle nous vous ils ne pas que qui dans pour avec ce ma de du où",
    "es": "el la los las un una y es yo tú él ella no que en de con por para mi su este esta qué dónde cómo está del",
    "it": "il lo la gli le un una e è sono io tu lui lei non che di in con per mio questo questa dove come del della",
    "nl": "de het een en is zijn was ik jij hij zij wij niet met van voor op dat dit waar hoe wat naar ook geen",
    "pt": "o a os as um uma e é são eu ele ela não que em de com por para meu este esta onde como do da",
}
_LITTLE_WORD_SETS = {language: frozenset(words.split()) for language, words in LITTLE_WORDS.items()}
SCRIPT_LANGUAGES = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "ARABIC": "ar",
    "HEBREW": "he",
    "CYRILLIC": "ru",
    "GREEK": "el",
    "THAI": "th",
    "DEVANAGARI": "hi",
}
"""First word of a character's Unicode name -> the language it most likely stands for."""
LANGUAGE_NAMES = {
    "en": to_say("English"),
    "de": to_say("German"),
    "fr": to_say("French"),
    "es": to_say("Spanish"),
    "it": to_say("Italian"),
    "nl": to_say("Dutch"),
    "pt": to_say("Portuguese"),
    "zh": to_say("Chinese"),
    "ja": to_say("Japanese"),
    "ko": to_say("Korean"),
    "ar": to_say("Arabic"),
    "he": to_say("Hebrew"),
    "ru": to_say("Russian"),
    "el": to_say("Greek"),
    "th": to_say("Thai"),
    "hi": to_say("Hindi"),
}


def guess_language(text: str) -> str | None:
    """Return the language code of `text` where it is plain to see, else None, as for most short texts."""
    scripts = Counter(_character_script(character) for character in text if character.isalpha())
    if scripts:
        script, count = scripts.most_common(1)[0]
        if script in SCRIPT_LANGUAGES and 2 * count > scripts.total():
            japanese = scripts["HIRAGANA"] + scripts["KATAKANA"] > 0
            return "ja" if japanese else SCRIPT_LANGUAGES[script]
    words = re.findall(r"[^\W\d_]+", text.lower())
    found = {language: sum(word in little for word in words) for language, little in _LITTLE_WORD_SETS.items()}
    ranked = sorted(found, key=lambda language: found[language], reverse=True)
    if found[ranked[0]] >= 2 and found[ranked[0]] >= 2 * found[ranked[1]]:
        return ranked[0]
    return None


def detect_foreign_language(text: str, language: str) -> str | None:
    """Return the code of the language that `text` is in, if it is clearly another than `language` (a code too)."""
    found = guess_language(text)
    if found is None or found == language:
        return None
    words = set(re.findall(r"[^\W\d_]+", text.lower()))
    # One little word of the model's own language is enough to keep silent: a wrong warning is worse than none.
    return None if words & _LITTLE_WORD_SETS.get(language, frozenset()) else found


def _character_script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


# Parts of speech, coarse and the same for every language, as the Universal Dependencies name them.
#
# English and German are tagged by HanTa (Wartena 2019, "A Probabilistic Morphology Model for German Lemmatization"),
# which brings its models in the package; its tags, those of the British National Corpus and of the STTS, become the
# coarse ones below. For other languages there is no model: of their words only punctuation and numbers are known.


UNKNOWN_TAG = ""
"""The tag of a word whose part of speech is not known."""
START_TAG, END_TAG = "<S>", "</S>"
WORD_TAGS = (
    *("NOUN", "PROPN", "VERB", "AUX", "ADJ", "ADV", "PRON", "DET", "ADP", "CONJ", "PART", "NUM", "INTJ", "X"),
    *("PUNCT", START_TAG, END_TAG, UNKNOWN_TAG),
)
"""Every tag. CONJ is CCONJ and SCONJ together, which the taggers do not part alike."""
TAGGER_MODELS = {"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz"}

_ENGLISH_TAGS = {
    **{"NN": "NOUN", "NP": "PROPN", "VV": "VERB", "VB": "AUX", "VD": "AUX", "VH": "AUX", "VM": "AUX", "AJ": "ADJ"},
    **{"AV": "ADV", "PN": "PRON", "DP": "DET", "AT": "DET", "DT": "DET", "EX": "PRON", "PRP": "ADP", "PRF": "ADP"},
    **{"IN": "ADP", "CJ": "CONJ", "XX": "PART", "TO": "PART", "POS": "PART", "CRD": "NUM", "ORD": "ADJ", "IT": "INTJ"},
}
_GERMAN_TAGS = {
    **{"NN": "NOUN", "NE": "PROPN", "VV": "VERB", "VA": "AUX", "VM": "AUX", "ADJ": "ADJ", "ADV": "ADV", "PROAV": "ADV"},
    **{"PWAV": "ADV", "PPOSAT": "DET", "PDAT": "DET", "PIAT": "DET", "PWAT": "DET", "PRELAT": "DET", "ART": "DET"},
    **{"P": "PRON", "APPR": "ADP", "APPO": "ADP", "APZR": "ADP", "KO": "CONJ", "PTK": "PART", "CARD": "NUM"},
    **{"ITJ": "INTJ"},
}
_TAG_TABLES = {"en": _ENGLISH_TAGS, "de": _GERMAN_TAGS}
_CONTRACTION = re.compile(r"^(\w+?)(n't|'(?:s|m|re|ve|ll|d))$", re.IGNORECASE)


def tag_words(words: Sequence[str], language: str) -> tuple[str, ...]:
    """Return the tag of every word, which has no spaces around it; special tokens have tags of their own."""
    known = [_tag_by_characters(word) for word in words]
    text = [(at, word) for at, (word, tag) in enumerate(zip(words, known, strict=True)) if tag in (None, "PUNCT")]
    if language not in TAGGER_MODELS or not any(known[at] is None for at, _ in text):
        return tuple(UNKNOWN_TAG if tag is None else tag for tag in known)
    # A contraction is tagged as its first part: "doesn't" as "does", the verb that it is.
    parts = [_CONTRACTION.sub(r"\1", word) if language == "en" else word for _, word in text]
    found = _load_tagger(language).tag_sent(parts)
    coarse = {at: _coarsen_tag(tag, language) for (at, _), (_, _, tag) in zip(text, found, strict=True)}
    return tuple(coarse[at] if tag is None else tag for at, tag in enumerate(known))


def is_punctuation(word: str) -> bool:
    """Whether a word is made of punctuation and symbols alone."""
    return word != "" and word not in SPECIAL_TOKENS and all(unicodedata.category(one)[0] in "PS" for one in word)


def _tag_by_characters(word: str) -> str | None:
    """The tag that the characters tell; None for a word that only a tagger knows."""
    if word in END_TOKENS:
        return END_TAG
    if word in SPECIAL_TOKENS:
        return START_TAG
    if not word:
        return UNKNOWN_TAG
    if is_punctuation(word):
        return "PUNCT"
    return "NUM" if word[0].isdigit() and not any(one.isalpha() for one in word) else None


def _coarsen_tag(tag: str, language: str) -> str:
    """The longest beginning of a tag that the table has; X where it has none."""
    table = _TAG_TABLES[language]
    return next((table[tag[:end]] for end in range(len(tag), 0, -1) if tag[:end] in table), "X")


@cache
def _load_tagger(language: str) -> Any:
    from HanTa.HanoverTagger import HanoverTagger  # which an installed attenscope does not bring

    return HanoverTagger(TAGGER_MODELS[language])


# Repetition: a decoder that falls into a loop, a known fault of likelihood-maximising decoding (Holtzman et al. 2020).


LEAST_REPETITIONS = 3
"""How often something must be said in a row before it counts as a loop."""


@dataclass(frozen=True)
class Repetition:
    """`length` tokens from `start`, said `times` times in a row."""

    start: int
    length: int
    times: int


def find_repetition(tokens: Sequence[Hashable]) -> Repetition | None:
    """Return the longest stretch of a sequence that repeats itself LEAST_REPETITIONS times or more, if there is one."""
    found: Repetition | None = None
    for length in range(1, len(tokens) // LEAST_REPETITIONS + 1):
        same = 0  # positions in a row that equal the one `length` before
        for at in range(length, len(tokens)):
            same = same + 1 if tokens[at] == tokens[at - length] else 0
            times = same // length + 1
            if times >= LEAST_REPETITIONS and (found is None or length * times > found.length * found.times):
                found = Repetition(at - same - length + 1, length, times)
    return found
