"""Places of the residual stream in words: experiments name them in English, as the tables that are saved do."""

from __future__ import annotations

import re

from .speech import say, to_say

NAME = re.compile(r"(?P<what>layer|head) (?P<number>\d+) ?(?P<sublayer>[\w-]*)")
PLACES = {
    ("layer", ""): to_say("layer {number}"),
    ("head", ""): to_say("head {number}"),
    ("layer", "self-attention"): to_say("layer {layer} self-attention"),
    ("layer", "cross-attention"): to_say("layer {layer} cross-attention"),
    ("layer", "feed-forward"): to_say("layer {layer} feed-forward"),
}


def place_name(name: str) -> str:
    """The name of a place, such as ``layer 2 feed-forward``, in the reader's language; anything else as it stands."""
    return say("embedding") if name == "embedding" else numbered_name(name)


def numbered_name(name: str) -> str:
    """The name of a layer, a sublayer or a head in the reader's language; anything else, such as a token, stays."""
    found = NAME.fullmatch(name)
    if found is None:
        return name
    message = PLACES.get((found["what"], found["sublayer"]))
    return name if message is None else say(message, number=found["number"], layer=found["number"])
