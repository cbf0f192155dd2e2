"""What a head is called."""

from __future__ import annotations

from ..language.say import say, to_say
from ..trace import Head, Kind

NAMES: dict[Kind, str] = {
    "encoder": to_say("encoder {layer}.{head}"),
    "decoder": to_say("decoder {layer}.{head}"),
    "cross": to_say("cross {layer}.{head}"),
}


def head_name(head: Head) -> str:
    """Return what a person reads: the attention, layer and head from 1."""
    kind, layer, number = head
    return say(NAMES[kind], layer=layer + 1, head=number + 1)
