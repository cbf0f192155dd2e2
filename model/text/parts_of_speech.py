"""Parts of speech, coarse and the same for every language, as the Universal Dependencies name them.

English and German are tagged by HanTa (Wartena 2019, "A Probabilistic Morphology Model for German Lemmatization"),
which brings its models in the package; its tags, those of the British National Corpus and of the STTS, become the
coarse ones below. For other languages there is no model: of their words only punctuation and numbers are known.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from .words import END_TOKENS, SPECIAL_TOKENS

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
