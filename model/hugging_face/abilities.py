"""What a folder's model cannot do on the pages, in sentences, and what of its generation settings is not applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..live.abilities import Ability

OURS = "a model of this project can"
LACKS_OF_TRANSLATION: Mapping[Ability, str] = {
    "cache check": "",
    "examples": "",
    "attribution": f"What a word rests on is not computed for a model from a folder; {OURS}.",
    "position pictures": "",
    "training": f"A folder says nothing of its training; {OURS}.",
    "atlas": f"Heads are not measured over a corpus for a model from a folder; {OURS} have an atlas.",
}
LACKS_OF_CONTINUATION: Mapping[Ability, str] = {
    **LACKS_OF_TRANSLATION,
    "source words": f"What a word rests on is not computed for a decoder alone; {OURS}.",
    "translate": "A decoder alone has no source to attend to.",
    "word facts": "",
}
"""The empty sentence: what is lacking is a part of a view, which is left out."""
NO_POSITIONS = (
    "No table of positions is added to this model's token embeddings, as where attention itself knows distances "
    "(relative or rotary positions), so there is none to read and to move."
)
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
    return (f"The folder's generation settings also ask for {', '.join(left)}, which is not applied here.",)
