"""Places that a head may look at in every row, as cells of an attention map. No torch."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

from ..language.say import to_say
from ..trace import Kind
from .tokens import Side

Place = Literal[
    "same",
    "previous",
    "next",
    "first",
    "last",
    "end",
    "punctuation",
    "same_word",
    "later_piece",
    "rare",
    "aligned_predicted",
    "aligned_fed",
]
PLACES: tuple[Place, ...] = get_args(Place)
ALIGNED: tuple[Place, Place] = ("aligned_predicted", "aligned_fed")
"""Known only once the weights are: see :func:`.forward.aligned_cells`."""
SELF_ATTENTION: frozenset[Place] = frozenset({"same", "previous", "next", "later_piece"})
NAMES: MappingProxyType[Place, str] = MappingProxyType(
    {
        "same": to_say("the token itself"),
        "previous": to_say("previous token"),
        "next": to_say("next token"),
        "first": to_say("first token"),
        "last": to_say("last token before </s>"),
        "end": "</s>",
        "punctuation": to_say("punctuation"),
        "same_word": to_say("the same word"),
        "later_piece": to_say("later piece of the word"),
        "rare": to_say("words in several pieces"),
        "aligned_predicted": to_say("alignment of the token predicted"),
        "aligned_fed": to_say("alignment of the token fed in"),
    }
)


def place_cells(kind: Kind, queries: Side, keys: Side) -> np.ndarray:
    """Return the cells of every place but the alignments, whatever may be attended to: (Q, K, P) bool.

    In self-attention queries and keys are the tokens fed in; in cross-attention the queries are the tokens predicted.
    """
    count = len(queries.pieces), len(keys.pieces)
    rows, columns = np.indices(count)
    spelled = queries.spelled()[:, None]
    end = keys.special & (columns[0] > 0)
    text = np.flatnonzero(~keys.special)
    same_word = (spelled == keys.spelled()) & (spelled != "")
    found: dict[Place, np.ndarray] = {
        "first": columns == 0,
        "end": np.broadcast_to(end, count),
        "punctuation": np.broadcast_to(keys.punctuation, count),
        "rare": np.broadcast_to(keys.in_pieces, count),
    }
    if kind != "decoder" and text.size:
        found["last"] = columns == text[-1]
    if kind != "cross":
        same = rows == columns
        found |= {"same": same, "previous": columns == rows - 1, "next": columns == rows + 1}
        found["later_piece"] = (queries.word_numbers[:, None] == keys.word_numbers) & (columns > rows)
        same_word = same_word & ~same
    found["same_word"] = same_word
    nowhere = np.zeros(count, dtype=bool)
    return np.stack([found.get(place, nowhere) for place in PLACES], -1)
