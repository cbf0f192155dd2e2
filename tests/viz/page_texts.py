"""What a person reads and is offered on a page that AppTest has run."""

from __future__ import annotations

import json
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


def offered_kinds(app: AppTest) -> list[str]:
    """Return the kinds of attention that the drawn Transformer offers, none where it is not drawn."""
    protos = [one.proto for one in app.get("bidi_component")]
    drawn = [json.loads(one.json) for one in protos if re.search(r"transformer(_\w\w)?$", one.component_name)]
    return [stack["kind"] for one in drawn for stack in one["stacks"]]
