"""The word that is to be explained, and the number that stands for it: log p(X), or logit X - logit Y."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import torch
from torch import Tensor

from ..language import say
from ..network.abstract_model import make_decoder_inputs
from ..runnable_model import RunnableModel, Translation
from ..text.words import SPECIAL_TOKENS, group_tokens_into_words, join_word


class AttributionError(ValueError):
    """A question that cannot be answered for this model and sentence; the message is the sentence to show."""


@dataclass(frozen=True)
class Target:
    """One or more neighbouring pieces X of a translation, read by teacher forcing, and what is asked of them."""

    source_ids: tuple[int, ...]
    """(S,)"""
    source_tokens: tuple[str, ...]
    """(S,) what ends a text last."""
    input_ids: tuple[int, ...]
    """(T,) what the decoder is fed up to the last piece of X, its start first; input i predicts piece i."""
    prefix_tokens: tuple[str, ...]
    """(P,) the inputs before X, the start first; of a decoder alone what was written before X, without a start."""
    token_ids: tuple[int, ...]
    """(n,) the pieces of X."""
    tokens: tuple[str, ...]
    """(n,)"""
    against_id: int | None = None
    """The piece Y, or None for log p(X)."""
    against: str | None = None
    continues: bool = False
    """Whether the prefix goes on where the source, a prompt, ends: of a decoder alone."""
    special_tokens: AbstractSet[str] = SPECIAL_TOKENS
    """Tokens that stand for no text."""

    @property
    def word(self) -> str:
        """X as people read it."""
        return join_word(self.tokens).strip()

    @property
    def position(self) -> int:
        """The position of the first piece of X in the translation, from 0: its row in the attention maps."""
        return len(self.tokens_before_target)

    @property
    def tokens_before_target(self) -> tuple[str, ...]:
        """What was written before X."""
        return self.prefix_tokens if self.continues else self.prefix_tokens[1:]

    def value(self, logits: Tensor) -> Tensor:
        """Return log p(X), summed over its pieces, or logit X - logit Y: logits (B, n, V) -> (B,) float64."""
        logits = logits.double()
        if self.against_id is not None:
            return logits[:, 0, self.token_ids[0]] - logits[:, 0, self.against_id]
        ids = torch.tensor(self.token_ids, device=logits.device)
        own = logits.gather(-1, ids.expand(len(logits), -1)[..., None])[..., 0]
        return (own - logits.logsumexp(-1)).sum(-1)

    @property
    def notes(self) -> tuple[str, ...]:
        """What has to be said of this sentence before any score is read."""
        notes = []
        special = [one for one in self.source_tokens if one in self.special_tokens]
        if not self.continues and special and self._count_words() == len(special) + 1:
            notes.append(
                say("The sentence has one word: without it only {end} is left to attend to.", end=" ".join(special))
            )
        if self.position == 0 and self.continues:
            notes.append(say("Nothing was written before this word: it rests on the prompt alone."))
        elif self.position == 0:
            notes.append(
                say("Nothing was written before this word: its prefix is {start} alone.", start=self.prefix_tokens[0])
            )
        if len(self.tokens) > 1:
            facts = {"word": self.word, "count": len(self.tokens)}
            notes.append(
                say("{word} has {count} pieces: log p is summed over them.", **facts)
                if self.against_id is None
                else say("{word} has {count} pieces: its first is compared.", **facts)
            )
        return tuple(notes)

    def _count_words(self) -> int:
        return len(group_tokens_into_words(self.source_tokens, self.special_tokens))


def make_piece_target(
    model: RunnableModel, translation: Translation, position: int, count: int = 1, against: str | int | None = None
) -> Target:
    """Return the target of `count` pieces from `position` (from 0) of a translation.

    `against` is Y as text, or its id. Raises AttributionError for pieces that are not there, and for a Y of several
    pieces, outside the vocabulary or equal to X.
    """
    ids, tokens = translation.target_ids, translation.target_tokens
    if not (position >= 0 and count > 0 and position + count <= len(ids)):
        raise AttributionError(format_missing_piece_message(position + count, len(ids)))
    end, continues = position + count, model.model.is_decoder_alone
    start = () if continues else (model.tokenizer.token(model.model.start_id),)
    against_id = find_contrast_piece_id(model, against, tokens[position]) if isinstance(against, str) else against
    if against_id is not None and not 0 <= against_id < len(model.tokenizer):
        raise AttributionError(say("There is no piece with the id {id} in this vocabulary.", id=against_id))
    if against_id == ids[position]:
        same = tokens[position].strip()
        raise AttributionError(say("X and Y are the same piece, {piece!r}: nothing differs.", piece=same))
    return Target(
        translation.source_ids,
        translation.source_tokens,
        make_decoder_inputs(ids[:end], model.model.start_id),
        (*start, *tokens[:position]),
        ids[position:end],
        tokens[position:end],
        against_id,
        None if against_id is None else model.tokenizer.token(against_id).strip(),
        continues,
        translation.special_tokens,
    )


def format_missing_piece_message(number: int, count: int) -> str:
    """Return the sentence that a translation of `count` pieces has no piece `number`, from 1."""
    return say("There is no piece {number}: this translation has {count} pieces.", number=number, count=count)


def make_word_target(
    model: RunnableModel, translation: Translation, number: int, against: str | int | None = None
) -> Target:
    """Return the target of word `number` (from 1) of a translation. Raises AttributionError."""
    groups = group_tokens_into_words(translation.target_tokens, translation.special_tokens)
    if not 1 <= number <= len(groups):
        raise AttributionError(
            say(
                "There is no word {number}: this translation has {count} words, </s> included.",
                number=number,
                count=len(groups),
            )
        )
    pieces = groups[number - 1]
    return make_piece_target(model, translation, pieces.start, len(pieces), against)


def find_contrast_piece_id(model: RunnableModel, text: str, beside: str) -> int:
    """Return the id of Y as a person types it, at a place where the piece `beside` stands.

    A piece inside a word has no space before it, and neither has its rival. Raises AttributionError.
    """
    tokenizer = model.tokenizer
    exact = None if beside.startswith(" ") else tokenizer.piece_id(text)
    if exact is not None:
        return exact
    encoded = tokenizer.encode_without_special_tokens(text)
    ids, pieces = encoded.ids, encoded.tokens
    if not ids or encoded.unknown:
        raise AttributionError(say("The vocabulary of this model does not hold {text!r}.", text=text.strip()))
    if len(ids) > 1:
        cut = " | ".join(piece.strip() for piece in pieces)
        raise AttributionError(
            say(
                "{text!r} has several pieces ({pieces}); X is compared with a Y of one piece.",
                text=text.strip(),
                pieces=cut,
            )
        )
    return ids[0]
