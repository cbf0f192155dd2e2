"""The tokenizer of a folder: texts to the pieces that its model reads and writes, and back; and their languages."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from transformers import GenerationConfig, PreTrainedTokenizerBase

from ..language import join_items, say
from ..runnable_model import LocalError
from ..text.tokenizer import WORD_START, EncodedText
from .prompt_templates import ChatTemplate, Prompt, PromptTemplate

# Languages: what every target of a folder that writes several begins with, or every source.


LANGUAGE_TOKEN = re.compile(r"__(?P<m2m>[a-z]{2,3})__|(?P<nllb>[a-z]{3}_[A-Z][a-z]{3})|(?P<mbart>[a-z]{2}_[A-Z]{2})")
"""A special token that names a language: ``__de__`` of M2M100, ``deu_Latn`` of NLLB, ``de_DE`` of mBART."""
SOURCE_TOKEN = re.compile(r">>(?P<code>.+)<<")
"""A token of Marian that stands before a source and names the language that is written."""
CODES_NAMED = 12
"""Languages that a refusal lists."""


@dataclass(frozen=True)
class ChosenLanguages:
    """What a target begins with, and what is put before every source."""

    begin: int | None = None
    source_prefix: str = ""


def resolve_requested_languages(
    folder: Path, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig, asked: Mapping[str, str]
) -> ChosenLanguages:
    """Return how the language asked for (source, target) is written, or what the folder's settings say.

    Raises LocalError for a language that cannot be told to the model, and for none where it writes several.
    """
    known = _map_language_codes_to_ids(tokenizer)
    if source := asked.get("source"):
        _set_source_language(folder, tokenizer, known, source)
    target = asked.get("target") or (str(getattr(tokenizer, "tgt_lang", None) or "") if known else "")
    if target in known:
        tokenizer.tgt_lang = target  # given translations begin with it too
        return ChosenLanguages(begin=known[target])
    source_tokens = _map_source_language_tokens(tokenizer)
    if target in source_tokens:
        tokenizer.target_lang = target
        return ChosenLanguages(source_prefix=f"{source_tokens[target]} ")
    if target and target != getattr(tokenizer, "target_lang", None):
        raise _make_unknown_language_error(folder, target, [*known, *source_tokens])
    begins = {generation.forced_bos_token_id, generation.decoder_start_token_id} & set(known.values())
    if (len(known) > 1 and not begins and not target) or (len(source_tokens) > 1 and not target):
        raise LocalError(
            say(
                "{folder} writes {count} languages: say which, as in --model 'hf:{path}?target={code}'.",
                folder=folder.name,
                count=max(len(known), len(source_tokens)),
                path=folder,
                code=next(iter(known or source_tokens)),
            )
        )
    return ChosenLanguages(generation.forced_bos_token_id)


def _map_language_codes_to_ids(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Return the codes of the languages that the tokenizer has a special token for, each with its id."""
    named = dict(getattr(tokenizer, "lang_code_to_id", None) or {})
    special = {*tokenizer.all_special_tokens, *map(str, tokenizer.added_tokens_decoder.values())}
    for token in special:
        if found := LANGUAGE_TOKEN.fullmatch(token):
            named.setdefault(next(filter(None, found.groups())), int(tokenizer.convert_tokens_to_ids(token)))
    return {code: token for code, token in sorted(named.items()) if token != tokenizer.unk_token_id}


def _list_language_tokens(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """Return the tokens that name a language, of a source or of a target."""
    own = (str(tokenizer.convert_ids_to_tokens(token)) for token in _map_language_codes_to_ids(tokenizer).values())
    return frozenset({*own, *_map_source_language_tokens(tokenizer).values()})


def _map_source_language_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, str]:
    """The codes of the languages that a token before the source names, each with that token."""
    found = [SOURCE_TOKEN.fullmatch(str(one)) for one in getattr(tokenizer, "supported_language_codes", None) or ()]
    return {one["code"]: one.group() for one in found if one}


def _set_source_language(
    folder: Path, tokenizer: PreTrainedTokenizerBase, known: Mapping[str, int], source: str
) -> None:
    """Set the language that is read, where the tokenizer has a token for it or reads no other."""
    if source in known and hasattr(tokenizer, "src_lang"):
        tokenizer.src_lang = source
    elif source != getattr(tokenizer, "source_lang", None):
        raise _make_unknown_language_error(folder, source, [*known])


def _make_unknown_language_error(folder: Path, code: str, known: list[str]) -> LocalError:
    if not known:
        return LocalError(
            say("{folder} cannot be told a language: its tokenizer has no token for one.", folder=folder.name)
        )
    listed = join_items([*known[:CODES_NAMED], *(["…"] if len(known) > CODES_NAMED else [])])
    return LocalError(
        say(
            "{folder} has no token for the language {code}; it has some for {known}.",
            folder=folder.name,
            code=code,
            known=listed,
        )
    )


# Texts and pieces.


BYTE_LEVEL_SPACE = "\u0120"
"""How byte-level BPE writes a space, which tells it from other tokenizers."""


MARKS_OF_TEXTS = ("bos", "eos", "pad", "cls", "sep")
"""What a special token may be, by the name that transformers has for it, that stands for no text."""


def find_special_tokens(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """Return the special tokens of a tokenizer, with those that it does not list as such: of roles, of languages."""
    added = (str(one) for one in tokenizer.added_tokens_decoder.values() if one.special)
    return _list_language_tokens(tokenizer).union(tokenizer.all_special_tokens, added)


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
        self.prefix, self._template = prefix, template
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
            return self._encode_text(f"{self.prefix}{prompt.text}")
        encoded = self._encode_text(prompt.text, add_special_tokens=False)
        return dataclasses.replace(encoded, roles=self._find_role_token_spans(prompt))

    def encode_target(self, text: str) -> EncodedText:
        if self._continues:
            begins = text[:1].isspace() or isinstance(self._template, ChatTemplate)  # A reply begins a line.
            return self._encode_text(text if begins else f" {text}", add_special_tokens=False)
        return self._encode_text(text, target=True)

    def encode_without_special_tokens(self, text: str) -> EncodedText:
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

    def _find_role_token_spans(self, prompt: Prompt) -> tuple[tuple[str, int, int], ...]:
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
