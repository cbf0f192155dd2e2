"""Places that a head may look at in every row, as cells of an attention map. No torch."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal, get_args

import numpy as np

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
        "same": "the token itself",
        "previous": "previous token",
        "next": "next token",
        "first": "first token",
        "last": "last token before </s>",
        "end": "</s>",
        "punctuation": "punctuation",
        "same_word": "the same word",
        "later_piece": "later piece of the word",
        "rare": "words in several pieces",
        "aligned_predicted": "alignment of the token predicted",
        "aligned_fed": "alignment of the token fed in",
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
