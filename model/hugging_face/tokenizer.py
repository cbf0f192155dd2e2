"""The tokenizer of a folder: texts to the pieces that its model reads and writes, and back."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..text.tokenizer import WORD_START, EncodedText

BYTE_LEVEL_SPACE = "\u0120"
"""How byte-level BPE writes a space, which tells it from other tokenizers."""


class FolderTokenizer:
    """One tokenizer for both sides of a model, which may cut them differently."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, size: int, *, continues: bool, prefix: str = "") -> None:
        """`size` tokens that the model can write; `continues`: a target goes on where the source, a prompt, ends.

        `prefix` stands before every source.
        """
        self._tokenizer, self._size, self._continues, self._prefix = tokenizer, size, continues, prefix
        self._lock = Lock()
        """A fast tokenizer may not be asked by two threads at once."""
        with self._lock:
            self._special = set(tokenizer.all_special_tokens)
            self._byte_level = any(BYTE_LEVEL_SPACE in piece for piece in tokenizer.get_vocab())

    def __len__(self) -> int:
        return self._size

    def encode(self, text: str) -> EncodedText:
        return self._encode_text(f"{self._prefix}{text}")

    def encode_target(self, text: str) -> EncodedText:
        if self._continues:
            return self._encode_text(text if text[:1].isspace() else f" {text}", add_special_tokens=False)
        return self._encode_text(text, target=True)

    def encode_words(self, text: str) -> EncodedText:
        """Words inside a target, without what every target begins and ends with."""
        if self._continues:
            return self.encode_target(text)
        return self._encode_text(text, target=True, add_special_tokens=False)

    def decode(self, ids: Sequence[int]) -> str:
        with self._lock:
            return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def token(self, token_id: int) -> str:
        with self._lock:
            return self._token(token_id)

    def piece_id(self, token: str) -> int | None:
        with self._lock:
            if self._byte_level:  # whose vocabulary writes bytes as other characters
                ids = self._tokenizer(token, add_special_tokens=False)["input_ids"]
                return int(ids[0]) if len(ids) == 1 and self._token(ids[0]) == token else None
            pieces = self._tokenizer.get_vocab()
            found = next((pieces[one] for one in (token, token.replace(" ", WORD_START)) if one in pieces), None)
            return None if found is None or found == self._tokenizer.unk_token_id else int(found)

    def _encode_text(self, text: str, target: bool = False, **options: Any) -> EncodedText:
        with self._lock:
            given = {"text_target": text} if target else {"text": text}
            ids = tuple(self._tokenizer(**given, **options)["input_ids"])
            tokens = tuple(self._token(one) for one in ids)
            unknown = self._find_unknown_words(text) if self._tokenizer.unk_token_id in ids else ()
        return EncodedText(ids, tokens, unknown)

    def _find_unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that have a piece the vocabulary does not hold."""
        unknown = self._tokenizer.unk_token_id
        read = lambda word: self._tokenizer(word, add_special_tokens=False)["input_ids"]  # noqa: E731
        return tuple(word for word in text.split() if unknown in read(word))

    def _token(self, token_id: int) -> str:
        found = self._tokenizer.convert_ids_to_tokens(token_id)
        if found is None:  # some models have more rows than their tokenizer has pieces
            return f"<{token_id}>"
        piece = str(found)
        if piece in self._special:
            return piece
        if self._byte_level:
            text = str(self._tokenizer.convert_tokens_to_string([piece]))
            return piece if "\ufffd" in text else text  # a part of a character's bytes is no text yet
        return piece.replace(WORD_START, " ")
