"""What a person reads on a page that AppTest has run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from streamlit.testing.v1 import AppTest

MARKUP = re.compile(r'<span class="term"[^>]*>|</span>|\\')
"""The marks of terms, and the escapes that keep text plain."""
ISOLATES = str.maketrans("", "", "\u2068\u2069")
"""What keeps the direction of a token from that of the line; for ``str.translate``."""


def captions(app: AppTest) -> list[str]:
    """Return every caption."""
    return as_read(one.value for one in app.caption)


def as_read(texts: Iterable[str]) -> list[str]:
    return [MARKUP.sub("", text) for text in texts]
