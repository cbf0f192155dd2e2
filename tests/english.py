"""Which sentence of another language is English in part."""

from __future__ import annotations

import re

NO_WORDS = re.compile(r"\{[^}]*\}|`[^`]*`|<[^>]*>|https?://\S+|:[a-z_]+/[a-z_]+:|\([^)]*\)|“[^”]*”|„[^“]*“")
"""What is no prose: values, code, markup, addresses, icons, shapes, what is quoted."""
ENGLISH = {
    "de": re.compile(r"(?i)\b(?:the|of|is|are|with|which|that|this|to|for|by|from|has|its|what|it|no|every|each)\b"),
    "zh": re.compile(r"(?:[A-Za-z][A-Za-z'’-]*[ ,]+){3,}[A-Za-z]+"),
}
"""What no sentence of a language has but one that is English in part: in German more than once."""
QUOTED = (
    "value cannot be converted to type at::Half without overflow",
    "value cannot be converted without overflow",
)
"""What torch says, in English."""


def is_english(text: str, language: str) -> bool:
    """Whether the prose of a text in a language has English in it."""
    for quoted in QUOTED:
        text = text.replace(quoted, "")
    return len(ENGLISH[language].findall(NO_WORDS.sub(" ", text))) > {"de": 1, "zh": 0}[language]
