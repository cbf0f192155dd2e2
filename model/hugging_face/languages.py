"""The languages of a folder that writes several: what every target begins with, or every source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from transformers import GenerationConfig, PreTrainedTokenizerBase

from ..language import join_items, say
from ..runnable_model import LocalError

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


def choose_languages(
    folder: Path, tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig, asked: Mapping[str, str]
) -> ChosenLanguages:
    """Return how the language asked for (source, target) is written, or what the folder's settings say.

    Raises LocalError for a language that cannot be told to the model, and for none where it writes several.
    """
    known = find_language_tokens(tokenizer)
    if source := asked.get("source"):
        _choose_source(folder, tokenizer, known, source)
    target = asked.get("target") or (str(getattr(tokenizer, "tgt_lang", None) or "") if known else "")
    if target in known:
        tokenizer.tgt_lang = target  # given translations begin with it too
        return ChosenLanguages(begin=known[target])
    source_tokens = _find_source_tokens(tokenizer)
    if target in source_tokens:
        tokenizer.target_lang = target
        return ChosenLanguages(source_prefix=f"{source_tokens[target]} ")
    if target and target != getattr(tokenizer, "target_lang", None):
        raise _make_unknown_error(folder, target, [*known, *source_tokens])
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


def find_language_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """Return the codes of the languages that the tokenizer has a special token for, each with its id."""
    named = dict(getattr(tokenizer, "lang_code_to_id", None) or {})
    special = {*tokenizer.all_special_tokens, *map(str, tokenizer.added_tokens_decoder.values())}
    for token in special:
        if found := LANGUAGE_TOKEN.fullmatch(token):
            named.setdefault(next(filter(None, found.groups())), int(tokenizer.convert_tokens_to_ids(token)))
    return {code: token for code, token in sorted(named.items()) if token != tokenizer.unk_token_id}


def list_language_tokens(tokenizer: PreTrainedTokenizerBase) -> frozenset[str]:
    """Return the tokens that name a language, of a source or of a target."""
    own = (str(tokenizer.convert_ids_to_tokens(token)) for token in find_language_tokens(tokenizer).values())
    return frozenset({*own, *_find_source_tokens(tokenizer).values()})


def _find_source_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[str, str]:
    """The codes of the languages that a token before the source names, each with that token."""
    found = [SOURCE_TOKEN.fullmatch(str(one)) for one in getattr(tokenizer, "supported_language_codes", None) or ()]
    return {one["code"]: one.group() for one in found if one}


def _choose_source(folder: Path, tokenizer: PreTrainedTokenizerBase, known: Mapping[str, int], source: str) -> None:
    """Set the language that is read, where the tokenizer has a token for it or reads no other."""
    if source in known and hasattr(tokenizer, "src_lang"):
        tokenizer.src_lang = source
    elif source != getattr(tokenizer, "source_lang", None):
        raise _make_unknown_error(folder, source, [*known])


def _make_unknown_error(folder: Path, code: str, known: list[str]) -> LocalError:
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
