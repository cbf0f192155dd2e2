"""Random tokens that are repeated, on which heads of a decoder alone are measured beside a corpus.

Nothing but repetition tells what comes next, so that a head which looks where a token stood before, or at what followed
it, does so by induction. As in Olsson et al. (2022), "In-context Learning and Induction Heads", 25 tokens stand four
times in a row behind what the tokenizer begins every text with. They are drawn from all tokens that stand for text;
the paper leaves out the most and the least common ones.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

import numpy as np

from ..runnable_model import RunnableModel
from .forward import Sentence, tag_pieces

SEED = 0


class Repeats(NamedTuple):
    """How many sequences there are, of how many random tokens, and how often these stand in a row."""

    sequences: int = 50
    tokens: int = 25
    times: int = 4


def plan_repeats(model: RunnableModel) -> Repeats | None:
    """Return what a model reads of repeated tokens, fewer where it has not so many; None where they are one or none."""
    wanted = Repeats()
    room = model.max_length - len(_find_beginning(model)) - 1
    tokens = min(wanted.tokens, room // wanted.times, len(_draw_tokens(model, wanted.tokens, SEED)))
    return wanted._replace(tokens=tokens) if tokens > 1 else None


def make_repeated_sequences(model: RunnableModel, repeats: Repeats) -> list[Sentence]:
    """Return the sequences, drawn from the vocabulary the same way every time; their numbers count from 0.

    The token that is predicted last is the first once more, so that all repetitions are fed in.
    """
    found = []
    for number in range(repeats.sequences):
        drawn = _draw_tokens(model, repeats.tokens, SEED + number)
        ids = [*_find_beginning(model), *drawn * repeats.times, drawn[0]]
        whole = tag_pieces([model.tokenizer.token(one) for one in ids], "")
        found.append(Sentence.from_text(number, "", ids, whole))
    return found


def _draw_tokens(model: RunnableModel, count: int, seed: int) -> list[int]:
    """So many ids, or as many as there are, of tokens that stand for some text and are written in different ways."""
    tokenizer = model.tokenizer
    found: dict[str, int] = {}
    for one in np.random.default_rng(seed).permutation(len(tokenizer)).tolist():
        if len(found) == count:
            break
        if _is_text(model, one):
            found.setdefault(tokenizer.token(one), one)
    return list(found.values())


def _find_beginning(model: RunnableModel) -> list[int]:
    """The ids of the special tokens that every text begins with; often one, or none."""
    return list(takewhile(lambda one: not _is_text(model, one), model.tokenizer.encode("a").ids))


def _is_text(model: RunnableModel, token_id: int) -> bool:
    """Whether a token stands for whole characters, one of which is no space."""
    text = model.tokenizer.decode([token_id])
    return text.strip() != "" and "\ufffd" not in text
