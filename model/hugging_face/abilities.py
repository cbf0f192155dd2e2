"""What a folder's model cannot do on the pages, in sentences, and what of its generation settings is not applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..language.say import listed, say, to_say
from ..live.abilities import Ability

LACKS_OF_TRANSLATION: Mapping[Ability, str] = {
    "cache check": "",
    "examples": "",
    "parts": to_say(
        "The parts of a logit and of an attention score are not computed for a model from a folder, whose norms and "
        "feed-forward networks are not known one by one; a model of this project can."
    ),
    "position pictures": "",
    "training": to_say("A folder says nothing of its training; a model of this project can."),
    "kept measures": to_say(
        "Alignment, pruning and the course of training are not measured of a model from a folder, whose heads have an "
        "atlas alone: Map, Head, Search and Projection."
    ),
}
LACKS_OF_CONTINUATION: Mapping[Ability, str] = {
    **LACKS_OF_TRANSLATION,
    "atlas": to_say(
        "Heads are not measured over a corpus for a decoder alone; a model of this project can have an atlas."
    ),
    "attribution": to_say("What a word rests on is not computed for a decoder alone; a model of this project can."),
    "translate": to_say("A decoder alone has no source to attend to."),
    "word facts": "",
}
"""For :meth:`LiveModel.cannot` to say. The empty sentence: what is lacking is a part of a view, which is left out."""
NO_POSITIONS = to_say(
    "No table of positions is added to this model's token embeddings, as where attention itself knows distances "
    "(relative or rotary positions), so there is none to read and to move."
)
NO_STREAMS: Mapping[Ability, str] = {
    "lens": to_say(
        "The layers of this model hand on more than one stream, so none can be read as if it were the last, nor be put "
        "into another run."
    ),
    "word facts": "",
}
NOT_APPLIED: Mapping[str, Any] = {
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "min_length": 0,
    "min_new_tokens": 0,
    "begin_suppress_tokens": (),
}
"""Settings of generation that would change what is written, and the value at which each does nothing."""


def generation_notes(settings: Any) -> tuple[str, ...]:
    """Return what a page has to say of a folder's generation settings, `transformers.GenerationConfig`."""
    asked = {name: getattr(settings, name, None) for name in NOT_APPLIED}
    left = [f"{name} {value}" for name, value in asked.items() if value and value != NOT_APPLIED[name]]
    if not left:
        return ()
    return (
        say(
            "The folder's generation settings also ask for {settings}, which is not applied here.",
            settings=listed(left),
        ),
    )
