"""What a head is called."""

from __future__ import annotations

from ..language import say, to_say
from ..trace import Head, Kind

HEAD_NAMES: dict[Kind, str] = {
    "encoder": to_say("encoder {layer}.{head}"),
    "decoder": to_say("decoder {layer}.{head}"),
    "cross": to_say("cross {layer}.{head}"),
}


def head_name(head: Head) -> str:
    """Return the name of a head for people: its attention, layer and head, counted from 1."""
    kind, layer, number = head
    return say(HEAD_NAMES[kind], layer=layer + 1, head=number + 1)
