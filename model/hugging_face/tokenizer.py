"""The tokenizer of a folder: texts to the pieces that its model reads and writes, and back."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from threading import Lock
from typing import Any

from transformers import PreTrainedTokenizerBase

from ..text.tokenizer import WORD_START, EncodedText
from .languages import list_language_tokens
from .prompt_templates import ChatTemplate, Prompt, PromptTemplate

BYTE_LEVEL_SPACE = "\u0120"
"""How byte-level BPE writes a space, which tells it from other tokenizers."""


MARKS_OF_TEXTS = ("bos", "eos", "pad", "cls", "sep")
"""What a special token may be, by the name that transformers has for it, that stands for no text."""


def find_special_tokens(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """Return the special tokens of a tokenizer, with those that it does not list as such: of roles, of languages."""
    added = (str(one) for one in tokenizer.added_tokens_decoder.values() if one.special)
    return list_language_tokens(tokenizer).union(tokenizer.all_special_tokens, added)


class FolderTokenizer:
    """One tokenizer for both sides of a model, which may cut them differently."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        size: int,
        *,
        continues: bool,
        prefix: str = "",
        template: PromptTemplate | None = None,
    ) -> None:
        """`size` tokens that the model can write; `continues`: a target goes on where the source, a prompt, ends.

        `prefix` stands before every source, which the `template` is applied to.
        """
        self._tokenizer, self._size, self._continues = tokenizer, size, continues
        self._prefix, self._template = prefix, template
        self._lock = Lock()
        """A fast tokenizer may not be asked by two threads at once."""
        with self._lock:
            self._special = find_special_tokens(tokenizer)
            self._byte_level = any(BYTE_LEVEL_SPACE in piece for piece in tokenizer.get_vocab())

    def __len__(self) -> int:
        return self._size

    @property
    def special_tokens(self) -> frozenset[str]:
        """Tokens that stand for no text: not those for what is unknown or masked, which stand for some."""
        names = self._tokenizer.special_tokens_map
        marks = {names.get(f"{name}_token") for name in MARKS_OF_TEXTS}
        return frozenset(self._special - ({names.get("unk_token"), names.get("mask_token")} - marks))

    def with_template(self, template: PromptTemplate | None) -> FolderTokenizer:
        """Return the same tokenizer for texts that another template is applied to, or none."""
        other = copy.copy(self)
        other._template = template
        return other

    def encode(self, text: str) -> EncodedText:
        """Return the pieces of a source. Raises InputError where the template cannot be applied to it."""
        prompt = Prompt(text) if self._template is None else self._template.apply(text)
        if not prompt.is_whole:
            return self._encode_text(f"{self._prefix}{prompt.text}")
        encoded = self._encode_text(prompt.text, add_special_tokens=False)
        return dataclasses.replace(encoded, roles=self._find_pieces_of_roles(prompt))

    def encode_target(self, text: str) -> EncodedText:
        if self._continues:
            begins = text[:1].isspace() or isinstance(self._template, ChatTemplate)  # A reply begins a line.
            return self._encode_text(text if begins else f" {text}", add_special_tokens=False)
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

    def _find_pieces_of_roles(self, prompt: Prompt) -> tuple[tuple[str, int, int], ...]:
        """The pieces that have a part of each role's text; none where the tokenizer does not say where they stand."""
        if not self._tokenizer.is_fast:
            return ()
        with self._lock:
            read = self._tokenizer(prompt.text, add_special_tokens=False, return_offsets_mapping=True)
        found = []
        for role, start, end in prompt.roles:
            own = [at for at, (first, last) in enumerate(read["offset_mapping"]) if first < end and last > start]
            found += [(role, own[0], own[-1] + 1)] if own else []
        return tuple(found)

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
