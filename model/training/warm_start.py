"""Weights to begin a training with: those of a trained model, carried over to another vocabulary."""

from __future__ import annotations

import torch
from torch import Tensor

from ..checkpoint.load import Checkpoint, unique_weights
from ..language.say import listed, say
from ..network.config import SPECIAL_PIECES
from ..network.transformer import Transformer
from ..text.tokenizer import Tokenizer

VOCABULARIES = ("vocab_size", "target_vocab_size")


def begin_with(model: Transformer, tokenizer: Tokenizer, start: Checkpoint) -> None:
    """Copy the weights of `start` into a model of the same architecture, whose vocabulary may be another.

    A piece that both know keeps its row of an embedding or generator; any other gets the mean of the rows of the
    pieces that the old tokenizer splits it into; one that it cannot spell keeps the row it has. ValueError where the
    architectures differ in more than their vocabularies.
    """
    differences = start.model.config.differences(model.config)
    if other := sorted(set(differences) - {*VOCABULARIES, "dropout", "dropout_places"}):
        raise ValueError(
            say(
                "{model} cannot be begun with: its {fields} differ from the recipe's. Train from random weights, "
                "or keep the architecture.",
                model=start.name,
                fields=listed(other),
            )
        )
    shares = _shares(tokenizer, start.tokenizer)
    given = unique_weights(start.model)
    sizes = {getattr(start.model.config, name) for name in VOCABULARIES}
    with torch.no_grad():
        for name, own in unique_weights(model).items():
            trained = given[name].to(own)
            own.copy_(_carried(own, trained, shares) if trained.shape[0] in sizes and _is_vocabulary(name) else trained)


def _is_vocabulary(name: str) -> bool:
    return name.startswith(("source_embedding", "target_embedding", "generator"))


def _carried(own: Tensor, trained: Tensor, shares: list[list[int]]) -> Tensor:
    """Rows (new vocabulary, ...) made of the rows (old vocabulary, ...) that each new piece consists of."""
    return torch.stack([trained[ids].mean(0) if ids else row for ids, row in zip(shares, own, strict=True)])


def _shares(new: Tokenizer, old: Tokenizer) -> list[list[int]]:
    """The old ids that each new piece consists of; none for one that the old vocabulary cannot spell, or a byte."""
    special = range(len(SPECIAL_PIECES))
    return [
        [index] if index in special else [] if new.is_byte(index) else _spelled(new.token(index), old)
        for index in range(len(new))
    ]


def _spelled(token: str, old: Tokenizer) -> list[int]:
    """The old ids of a piece's text, each the longest that fits; none where some character has no piece."""
    ids = []
    while token:
        found = ((end, old.piece_id(token[:end])) for end in range(len(token), 0, -1))
        end, known = next(((end, known) for end, known in found if known is not None), (0, None))
        if known is None:
            return []
        ids.append(known)
        token = token[end:]
    return ids
