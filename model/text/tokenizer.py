"""Byte-pair encoding with SentencePiece, and BPE-dropout for training.

Sennrich et al. (2016); Kudo and Richardson (2018). The project trains its own vocabularies.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self

import sentencepiece

from ..language import say
from ..network.config import BOS_ID, EOS_ID, PAD_ID, SPECIAL_PIECES, UNK_ID

TYPED_CHARACTERS = "\N{RIGHT SINGLE QUOTATION MARK}"
"""Characters that phones write and training text rarely does; they get a piece where others are spelled in bytes."""


class TokenizerError(ValueError):
    """A tokenizer file that cannot be used."""


@dataclass(frozen=True)
class EncodedText:
    """A text as pieces; ids and tokens have one entry a piece, the end-of-sentence token last."""

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    """Text as people read it. A leading space says that a word begins, so joining the tokens gives the sentence."""
    unknown: tuple[str, ...]
    """The source text that the vocabulary has no pieces for: of each <unk>, and each character spelled in bytes."""
    roles: tuple[tuple[str, int, int], ...] = ()
    """Of a chat: whose text the pieces from one position to another are."""


class Tokenizer:
    """One vocabulary for both languages; the special ids are those of :mod:`model.network.config`."""

    special_tokens = frozenset(SPECIAL_PIECES) - {SPECIAL_PIECES[UNK_ID]}
    """Tokens that stand for no text."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
            ids = [self._processor.PieceToId(piece) for piece in SPECIAL_PIECES]
        except (RuntimeError, ValueError) as error:
            raise TokenizerError(
                say("The tokenizer file is not a SentencePiece model; restore it from its source.")
            ) from error
        if ids != [PAD_ID, UNK_ID, BOS_ID, EOS_ID]:
            raise TokenizerError(
                say(
                    "The tokenizer has its special pieces at {found}, not at {expected}: it belongs to another "
                    "project. Train one with `python -m model train`.",
                    found=ids,
                    expected=[PAD_ID, UNK_ID, BOS_ID, EOS_ID],
                )
            )

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(path.read_bytes())

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        vocab_size: int,
        character_coverage: float = 1.0,
        byte_fallback: bool = False,
        split_digits: bool = False,
    ) -> Self:
        """Learn a BPE vocabulary of exactly `vocab_size` pieces from raw sentences.

        `byte_fallback`: 256 of them are bytes such as <0xE4>, which spell the characters that have no piece.
        `split_digits`: every digit is a piece of its own.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.Train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                model_type="bpe",
                vocab_size=vocab_size,
                character_coverage=character_coverage,
                byte_fallback=byte_fallback,
                split_digits=split_digits,
                required_chars=TYPED_CHARACTERS if byte_fallback else "",
                pad_id=PAD_ID,
                unk_id=UNK_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                pad_piece=SPECIAL_PIECES[PAD_ID],
                minloglevel=2,
            )
        except RuntimeError as error:
            raise TokenizerError(
                say(
                    "No vocabulary of {count} pieces can be learned from this text: {error}",
                    count=vocab_size,
                    error=error,
                )
            ) from error
        return cls(model.getvalue())

    def __len__(self) -> int:
        return self._processor.GetPieceSize()

    def encode(self, text: str) -> EncodedText:
        """Split a text into pieces and a closing </s>.

        Characters outside the vocabulary become <unk> but keep their text, or become their bytes, named <0xE4> and so
        on, if the vocabulary has these.
        """
        pieces = self._processor.EncodeAsProto(text).pieces
        ids, tokens, unknown = [], [], []
        for piece in pieces:
            ids.append(piece.id)
            tokens.append(self._token(piece.piece))
            # Of a character's bytes only the last has its text.
            if piece.id == UNK_ID or (piece.surface and self.is_byte(piece.id)):
                unknown.append(piece.surface.strip())
        return EncodedText((*ids, EOS_ID), (*tokens, SPECIAL_PIECES[EOS_ID]), tuple(unknown))

    def spans(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return where each piece of a text begins and ends in it, in bytes of UTF-8, without the closing </s>.

        Of several pieces for one character, all but the last are empty and stand where it begins.
        """
        return tuple((piece.begin, piece.end) for piece in self._processor.EncodeAsProto(text).pieces)

    def encode_target(self, text: str) -> EncodedText:
        """Encode a target text as :meth:`encode` does: both languages share the vocabulary."""
        return self.encode(text)

    def encode_without_special_tokens(self, text: str) -> EncodedText:
        """Encode a text as :meth:`encode` does, without the closing </s>."""
        found = self.encode(text)
        return EncodedText(found.ids[:-1], found.tokens[:-1], found.unknown)

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts at once, ids only, each closed by </s>: what training and batch translation need."""
        return [[*ids, EOS_ID] for ids in self._processor.EncodeAsIds(list(texts))]

    def encode_ids_with_dropout(self, texts: Sequence[str], dropout: float, seed: int) -> list[list[int]]:
        """Encode many texts for training, each merge left out with chance `dropout`, by :func:`split_with_dropout`."""
        draw = Random(seed).random
        normal = (self._processor.Normalize(text) for text in texts)
        return [
            [*self._convert_pieces_to_ids(split_with_dropout(text, self._merge_ranks, dropout, draw)), EOS_ID]
            for text in normal
        ]

    @functools.cached_property
    def _merge_ranks(self) -> dict[str, int]:
        """Normal pieces by their ids, which SentencePiece gives in the order of its merges, single characters last."""
        sp = self._processor
        kinds = sp.IsControl, sp.IsUnknown, sp.IsByte, sp.IsUnused
        return {sp.IdToPiece(one): one for one in range(len(self)) if not any(is_of(one) for is_of in kinds)}

    def _convert_pieces_to_ids(self, pieces: Iterable[str]) -> Iterator[int]:
        """Ids of pieces; of one that is unknown those of its bytes, or one <unk> for a run of them."""
        before = None
        for piece in pieces:
            own = self._merge_ranks.get(piece)
            if own is None and self._processor.IsByte(first := self._processor.PieceToId("<0x00>")):
                yield from (first + byte for byte in piece.encode())
            elif own is not None:
                yield own
            elif before != UNK_ID:
                yield UNK_ID
            before = UNK_ID if own is None else own

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids; special ones are left out."""
        return self._processor.DecodeIds([token for token in ids if token > EOS_ID or token == UNK_ID])

    def token(self, token_id: int) -> str:
        """Return the piece of an id as people read it; a leading space says that a word begins."""
        return self._token(self._processor.IdToPiece(token_id))

    def piece_id(self, token: str) -> int | None:
        """Return the id of a piece as people read it, the reverse of :meth:`token`; None where there is none."""
        found = self._processor.PieceToId(token.replace(" ", WORD_START))
        return None if found == UNK_ID else found

    def is_byte(self, token_id: int) -> bool:
        """Whether a piece is one byte of the characters that have no piece."""
        return bool(self._processor.IsByte(token_id))

    @staticmethod
    def _token(piece: str) -> str:
        return piece.replace(WORD_START, " ")


# BPE-dropout, Provilkov et al. (2020), arXiv 1910.13267, algorithm 1: a word in other pieces than usual, by chance.
#
# SentencePiece samples too, but differently in each process whatever its seed is, and a training must go on after a
# kill with the text that it was begun with.


WORD_START = "\u2581"
"""SentencePiece's mark for a space."""
WORD_PATTERN = re.compile(f"{WORD_START}[^{WORD_START}]*|[^{WORD_START}]+")


def split_with_dropout(text: str, ranks: Mapping[str, int], dropout: float, draw: Callable[[], float]) -> list[str]:
    """Return the pieces of a normalised text, each possible merge left out at each step with the chance `dropout`.

    `ranks`: the pieces that a merge may give, the most wanted one with the lowest number; `draw`: numbers over [0, 1).
    """
    return [
        piece for word in WORD_PATTERN.findall(text) for piece in _split_word_with_dropout(word, ranks, dropout, draw)
    ]


def _split_word_with_dropout(
    word: str, ranks: Mapping[str, int], dropout: float, draw: Callable[[], float]
) -> list[str]:
    pieces = list(word)
    while True:
        best, at = None, -1
        for place in range(len(pieces) - 1):
            rank = ranks.get(pieces[place] + pieces[place + 1])
            # Of those that stay the best one is taken, so only what would be the best is worth a draw.
            if rank is not None and (best is None or rank < best) and draw() >= dropout:
                best, at = rank, place
        if best is None:
            return pieces
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
