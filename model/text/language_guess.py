"""Guess the language of a text by its script and by common little words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from ..language import to_say

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
