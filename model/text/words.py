"""Words of a text: merged from tokens, compared, named on the axes of a trace; and the language that they tell."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np

from ..language import join_items, say, to_say
from ..network.config import SPECIAL_PIECES
from ..trace import AttentionMap, AttentionTrace, Kind, TraceError, replace_tokens

# Merging pieces into words, and hiding special tokens: an AttentionMap in, an AttentionMap out.
#
# How a piece says that a word begins depends on the tokenizer. Read here: a leading space (this project), ``▁``
# (SentencePiece), ``Ġ`` (byte-level BPE), and ``##`` (WordPiece), which says the opposite.


RowLabel = Literal["fed", "predicted"]

PAD_TOKEN, UNKNOWN_TOKEN, START_TOKEN, END_TOKEN = SPECIAL_PIECES
END_TOKENS = frozenset({END_TOKEN, "[SEP]", "<eos>", "<|endoftext|>"})
SPECIAL_TOKENS = END_TOKENS | {PAD_TOKEN, START_TOKEN, "[CLS]", "[PAD]", "[BOS]", "[EOS]", "<bos>"}
"""The usual tokens that stand for no text, where no tokenizer says which do. ``<unk>`` stands for some."""

_WORD_START_MARKS = (" ", "\u2581", "\u0120")
_CONTINUATION_MARK = "##"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_CJK_BLOCKS = ((0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x20000, 0x3FFFF))  # blocks of code points


def get_special_tokens(attention: AttentionMap) -> AbstractSet[str]:
    """Return the tokens that stand for no text: the usual ones, and those that the map's tokenizer names."""
    return SPECIAL_TOKENS | attention.special_tokens


def group_tokens_into_words(tokens: Sequence[str], special: AbstractSet[str] = SPECIAL_TOKENS) -> tuple[range, ...]:
    """Return the positions of each word's tokens, in order; together they are all positions.

    A special token, a line break, a CJK token and punctuation that does not stand inside a word are words of their own.
    """
    if not tokens:
        return ()
    wordpiece = any(token.startswith(_CONTINUATION_MARK) for token in tokens)
    marked = not wordpiece and any(token.startswith(_WORD_START_MARKS) for token in tokens)
    starts = [0]
    for place in range(1, len(tokens)):
        if wordpiece:
            begins = not tokens[place].startswith(_CONTINUATION_MARK)
        else:
            # Tokens without a single mark are words already, or of a tokenizer that cannot be known: leave them apart.
            begins = not marked or _begins_word(tokens, place, starts[-1], special)
        if begins:
            starts.append(place)
    return tuple(range(start, end) for start, end in pairwise([*starts, len(tokens)]))


def join_word(tokens: Sequence[str]) -> str:
    """Join the tokens of one word; a leading space says that a space stood before it.

    Tokens that are bytes, such as ``<0xC3><0xA9>``, are read as UTF-8 where they are characters.
    """
    first, *rest = tokens
    parts = [first.replace("\u2581", " ").replace("\u0120", " ")]
    parts += [token.removeprefix(_CONTINUATION_MARK) for token in rest]
    runs = groupby(parts, key=lambda part: _BYTE_TOKEN.fullmatch(part) is not None)
    return "".join(_decode_byte_tokens("".join(run)) if are_bytes else "".join(run) for are_bytes, run in runs)


def _decode_byte_tokens(names: str) -> str:
    """Return the characters of byte tokens; their names where they are no UTF-8 or control characters."""
    try:
        text = bytes(int(value, 16) for value in _BYTE_TOKEN.findall(names)).decode()
    except UnicodeDecodeError:
        return names
    return names if any(unicodedata.category(character) == "Cc" for character in text) else text


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into words by the rules of :func:`group_tokens_into_words`, each with the space before it."""
    marked = f" {text}"  # the space in front says how words begin here
    first, *rest = (marked[group.start : group.stop] for group in group_tokens_into_words(marked))
    return tuple(part for part in (first[1:], *rest) if part)


def merge_map_into_words(attention: AttentionMap, rows: RowLabel = "fed") -> AttentionMap:
    """Return the map between words: the weights summed over a word's keys and averaged over its queries.

    A row still sums to 1. `rows` says which label of a decoder row makes its words: the token fed in or predicted.
    Tensors are dropped; a word has no query vector.
    """
    special = get_special_tokens(attention)
    queries, keys = (
        group_tokens_into_words(attention.rows(rows), special),
        group_tokens_into_words(attention.key_tokens, special),
    )
    starts, columns = [group.start for group in queries], [group.start for group in keys]
    lengths = np.array([len(group) for group in queries], dtype=np.float32)[:, None]
    # Words lie side by side: adding their tokens up is all the work there is, and a tenth of two matrix products.
    summed = np.add.reduceat(np.add.reduceat(attention.weights, starts, axis=-2), columns, axis=-1)

    def find_seen_keys(mask: np.ndarray) -> np.ndarray:
        return np.logical_or.reduceat(np.logical_or.reduceat(mask, starts, axis=-2), columns, axis=-1)

    return AttentionMap(
        attention.kind,
        weights=(summed / lengths).astype(np.float32),
        query_tokens=_join_groups(attention.query_tokens, queries),
        key_tokens=_join_groups(attention.key_tokens, keys),
        mask=find_seen_keys(attention.mask),
        layer_masks=None if attention.layer_masks is None else find_seen_keys(attention.layer_masks),
        layer_paths=attention.layer_paths,
        layer_calls=attention.layer_calls,
        predicted_tokens=_join_groups(attention.predicted_tokens, queries) if attention.predicted_tokens else (),
        special_tokens=attention.special_tokens,
    )


def hide_special_tokens(attention: AttentionMap, rows: RowLabel = "fed") -> AttentionMap:
    """Return the map without the special tokens' columns and, by the chosen row label, their rows.

    No weight changes: a row sums to 1 less what lies on the columns taken out. Tensors are dropped. A map of nothing
    but special tokens is returned as it is.
    """
    special = get_special_tokens(attention)
    queries, keys = find_text_tokens(attention.rows(rows), special), find_text_tokens(attention.key_tokens, special)
    return select_tokens(attention, queries, keys) if queries and keys else attention


def select_tokens(attention: AttentionMap, queries: Sequence[int], keys: Sequence[int]) -> AttentionMap:
    """Return the map of some of its rows and columns. No weight changes; tensors are dropped."""
    queries, keys = list(queries), list(keys)
    return dataclasses.replace(
        attention,
        weights=attention.weights[:, :, queries][..., keys],
        query_tokens=tuple(attention.query_tokens[row] for row in queries),
        key_tokens=tuple(attention.key_tokens[column] for column in keys),
        predicted_tokens=tuple(attention.predicted_tokens[row] for row in queries)
        if attention.predicted_tokens
        else (),
        mask=attention.mask[np.ix_(queries, keys)],
        layer_masks=None if attention.layer_masks is None else attention.layer_masks[:, :, queries][..., keys],
        passed_masks=None,
        tensors={},
    )


def find_text_tokens(tokens: Sequence[str], special: AbstractSet[str] = SPECIAL_TOKENS) -> list[int]:
    """Return the positions of the tokens that stand for text."""
    return [position for position, token in enumerate(tokens) if token not in special]


def _begins_word(tokens: Sequence[str], place: int, start: int, special: AbstractSet[str]) -> bool:
    """Whether a word begins at `place`, where the word before it began at `start`."""
    token, before = tokens[place], tokens[place - 1]
    if token.startswith(_WORD_START_MARKS) or any(_is_separate_token(one, special) for one in (token, before)):
        return True
    if before in _WORD_START_MARKS:  # a space that is a piece by itself belongs to what follows
        return False
    if is_cjk(token[:1]) or is_cjk(before[-1:]):
        return True
    inside = any(not _is_punctuation(one) for one in tokens[start:place])
    if not _is_punctuation(token):
        return not inside  # after an opening bracket or quote
    return not (inside and _continues_word(tokens, place, special))


def _continues_word(tokens: Sequence[str], place: int, special: AbstractSet[str]) -> bool:
    """Whether letters follow the punctuation at `place` without a space: don't, U-Bahn, 3.5."""
    for token in tokens[place + 1 :]:
        if token.startswith(_WORD_START_MARKS) or _is_separate_token(token, special) or is_cjk(token[:1]):
            return False
        if not _is_punctuation(token):
            return True
    return False


def _is_separate_token(token: str, special: AbstractSet[str]) -> bool:
    return token in special or token == UNKNOWN_TOKEN or ("\n" in token and token.isspace())


def has_space_before(token: str, special: AbstractSet[str] = SPECIAL_TOKENS) -> bool:
    """Whether a token is set off from the one before it in a line of text: it begins a word, or is a special token."""
    return token.startswith(_WORD_START_MARKS) or _is_separate_token(token, special)


def is_cjk(character: str) -> bool:
    """Whether a character is Chinese or Japanese, which put no space between words. Korean does."""
    return character != "" and any(low <= ord(character) <= high for low, high in _CJK_BLOCKS)


def _is_punctuation(token: str) -> bool:
    text = token.lstrip("".join(_WORD_START_MARKS))
    return text != "" and all(unicodedata.category(character)[0] in "PS" for character in text)


def _join_groups(tokens: tuple[str, ...], groups: tuple[range, ...]) -> tuple[str, ...]:
    return tuple(join_word([tokens[place] for place in group]) for group in groups)


# Comparing two texts word by word: which words stand in both, and which in one alone.


@dataclass(frozen=True)
class WordChange:
    """A run of words that stands in both texts, only in the first, or only in the second."""

    change: Literal["same", "removed", "added"]
    text: str
    """With its spaces, so that all runs but the added ones join to the first text."""


def compare_texts_by_word(before: str, after: str) -> tuple[WordChange, ...]:
    """Return the runs of two texts in reading order: Chinese and Japanese by character, punctuation by itself."""
    return tuple(run for run in _find_change_runs(split_words(before), split_words(after)) if run.text)


def _find_change_runs(first: tuple[str, ...], second: tuple[str, ...]) -> Iterator[WordChange]:
    # Without their spaces: "Der" is the same word at the start of one text and inside the other.
    bare, other_bare = ([word.strip() for word in words] for words in (first, second))
    opcodes = SequenceMatcher(None, bare, other_bare, autojunk=False).get_opcodes()
    for operation, start, end, other_start, other_end in opcodes:
        removed, added = "".join(first[start:end]), "".join(second[other_start:other_end])
        if operation == "equal":
            yield WordChange("same", removed)
            continue
        yield WordChange("removed", removed)
        # The first word of a text has no space before it, but here another word may stand before it or after it.
        if removed and other_start == 0 and not is_cjk(added[:1]):
            added = f" {added}" if added else ""
        if added and start == end == 0 and "".join(second[other_end:]).startswith(" "):
            added += " "
        yield WordChange("added", added)


# Whose text a token of a chat is.


ROLES = ("system", "user", "assistant")
ROLES_SETTING = "roles"
"""The setting of a trace that says from which token to which, from 0, a chat has the text of which role."""


def list_chat_token_roles(trace: AttentionTrace, length: int) -> tuple[str, ...]:
    """Return the role of each of `length` tokens fed in, and of the one predicted last; "" for a template's own tokens.

    () for a trace that says nothing of roles. What a file says that is no role is left out.
    """
    spans = trace.settings.get(ROLES_SETTING)
    found = [""] * (length + 1)
    for span in spans if isinstance(spans, list) else ():
        match span:
            case [str(role), int(start), int(end)] if role in ROLES and 0 <= start < end <= length + 1:
                found[start:end] = [role] * (end - start)
    return tuple(found) if any(found) else ()


# Naming the rows and columns of a recorded trace, which the model's user knows and the model does not.


TokenNames = Sequence[str] | Sequence[Sequence[str]] | Mapping[str, Sequence[str] | Sequence[Sequence[str]]]
"""One sentence's tokens, those of each sample of a batch, or either as ``{"source": ..., "target": ...}``."""
TOKEN_SIDES = ("source", "target", "predicted")
"""The target tokens are those fed in; predicted are those that came out at the same rows, where that is known."""

TOKEN_COUNT_MESSAGES = {
    "rows": to_say("The {kind} map has {count} rows, but {tokens} tokens were given for them."),
    "columns": to_say("The {kind} map has {count} columns, but {tokens} tokens were given for them."),
}


def name_trace_rows_columns(trace: AttentionTrace, tokens: TokenNames, sample: int = 0) -> AttentionTrace:
    """Return the trace with its rows and columns named.

    Plain tokens are for a trace that has one self-attention alone. Raises TraceError where the numbers differ.
    """
    sides = _split_by_side(trace, tokens)
    named = {side: _select_sample_tokens(side, given, sample) for side, given in sides.items()}
    maps: dict[str, Any] = {kind: _name_map_rows_columns(one, kind, named) for kind, one in trace.maps.items()}
    source, target = (
        _join_tokens(named[side]) if side in named else getattr(trace, side) for side in ("source", "target")
    )
    return dataclasses.replace(trace, **maps, source=source, target=target)


def name_translation_trace_rows_columns(
    trace: AttentionTrace, source: Sequence[str], predicted: Sequence[str], start: str = START_TOKEN
) -> AttentionTrace:
    """Return the trace of a translation with its rows and columns named.

    What the decoder was fed at a row is what it predicted at the row before, and `start` at the first.
    """
    return name_trace_rows_columns(
        trace, {"source": source, "target": (start, *predicted[:-1]), "predicted": predicted}
    )


def name_continuation_trace_rows_columns(
    trace: AttentionTrace, prompt: Sequence[str], predicted: Sequence[str]
) -> AttentionTrace:
    """Return the trace of a prompt and its continuation with its rows and columns named.

    Of a row of the prompt but its last, the token "predicted" is the next one of the prompt, which was given.
    """
    return name_trace_rows_columns(
        trace, {"target": (*prompt, *predicted[:-1]), "predicted": (*prompt[1:], *predicted)}
    )


def mark_special_tokens(trace: AttentionTrace, special: AbstractSet[str]) -> AttentionTrace:
    """Return the trace whose maps know which of their tokens are `special`, as a tokenizer says."""

    def mark(one: AttentionMap) -> AttentionMap:
        tokens = {*one.query_tokens, *one.key_tokens, *one.predicted_tokens}
        return dataclasses.replace(one, special_tokens=frozenset(tokens & special))

    maps: dict[str, Any] = {kind: mark(one) for kind, one in trace.maps.items()}
    return dataclasses.replace(trace, **maps)


def _split_by_side(trace: AttentionTrace, tokens: TokenNames) -> Mapping[str, Any]:
    if isinstance(tokens, Mapping):
        if unknown := set(tokens) - set(TOKEN_SIDES):
            raise TraceError(
                say(
                    "Tokens are given for {given}; the sides are {sides}.",
                    given=join_items(sorted(unknown)),
                    sides=join_items(TOKEN_SIDES),
                )
            )
        return tokens
    if isinstance(tokens, str):
        raise TraceError(say("The tokens are one text; give a list with a string for each token."))
    if len(trace.maps) != 1 or trace.cross is not None:
        raise TraceError(
            say("This model has two sides: give {code}.", code='tokens={"source": [...], "target": [...]}')
        )
    return {"target" if trace.decoder is not None else "source": tokens}


def _select_sample_tokens(side: str, given: Any, sample: int) -> tuple[str, ...]:
    rows = [given] if all(isinstance(one, str) for one in given) else list(given)
    if sample >= len(rows):
        raise TraceError(
            say(
                "The {side} tokens are of {count} samples, but sample {sample} is asked for.",
                side=side,
                count=len(rows),
                sample=sample + 1,
            )
        )
    return tuple(map(str, rows[sample]))


def _name_map_rows_columns(one: AttentionMap, kind: Kind, named: Mapping[str, tuple[str, ...]]) -> AttentionMap:
    queries = named.get("source" if kind == "encoder" else "target", one.query_tokens)
    keys = named.get("target" if kind == "decoder" else "source", one.key_tokens)
    predicted = one.predicted_tokens if kind == "encoder" else named.get("predicted", one.predicted_tokens)
    keys = (*keys, *_find_extra_column_names(one.key_tokens, len(keys)))
    axes = (("rows", queries, one.query_tokens), ("columns", keys, one.key_tokens))
    for axis, names, numbers in (*axes, ("rows", predicted or one.query_tokens, one.query_tokens)):
        if len(names) != len(numbers):
            raise TraceError(say(TOKEN_COUNT_MESSAGES[axis], kind=kind, count=len(numbers), tokens=len(names)))
    return replace_tokens(one, queries, keys, predicted)


def _find_extra_column_names(columns: Sequence[str], tokens: int) -> Sequence[str]:
    """Return the names of the columns after the numbered ones, such as a sink, which belong to no token."""
    numbered = [name.isdigit() for name in columns]
    return columns[tokens:] if all(numbered[:tokens]) and not any(numbered[tokens:]) else ()


def _join_tokens(tokens: Sequence[str]) -> str:
    """Tokens as one text, without the special ones: joined by spaces unless they carry their own."""
    real = [token for token in tokens if token not in SPECIAL_TOKENS]
    marked = any(token.startswith((" ", "\u2581", "\u0120")) for token in real)
    joined = ("" if marked else " ").join(real)
    return joined.replace("\u2581", " ").replace("\u0120", " ").replace(" ##", "").strip()


# Guessing the language of a text by its script and by common little words.


LITTLE_WORDS = {
    "en": "the a an and is are was were of to in you it that he she i we my not have has do did with for on what how",
    "de": "der die das und ist war ein eine nicht ich du er sie wir ihr es mit von zu den dem auf für wie was hat kein",
    "fr": "le la les un une des et est sont je tu il elle nous vous ils ne pas que qui dans pour avec ce ma de du où",
    "es": "el la los las un una y es yo tú él ella no que en de con por para mi su este esta qué dónde cómo está del",
    "it": "il lo la gli le un una e è sono io tu lui lei non che di in con per mio questo questa dove come del della",
    "nl": "de het een en is zijn was ik jij hij zij wij niet met van voor op dat dit waar hoe wat naar ook geen",
    "pt": "o a os as um uma e é são eu ele ela não que em de com por para meu este esta onde como do da",
}
_LITTLE_WORD_SETS = {language: frozenset(words.split()) for language, words in LITTLE_WORDS.items()}
SCRIPT_LANGUAGES = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "ARABIC": "ar",
    "HEBREW": "he",
    "CYRILLIC": "ru",
    "GREEK": "el",
    "THAI": "th",
    "DEVANAGARI": "hi",
}
"""First word of a character's Unicode name -> the language it most likely stands for."""
LANGUAGE_NAMES = {
    "en": to_say("English"),
    "de": to_say("German"),
    "fr": to_say("French"),
    "es": to_say("Spanish"),
    "it": to_say("Italian"),
    "nl": to_say("Dutch"),
    "pt": to_say("Portuguese"),
    "zh": to_say("Chinese"),
    "ja": to_say("Japanese"),
    "ko": to_say("Korean"),
    "ar": to_say("Arabic"),
    "he": to_say("Hebrew"),
    "ru": to_say("Russian"),
    "el": to_say("Greek"),
    "th": to_say("Thai"),
    "hi": to_say("Hindi"),
}


def guess_language(text: str) -> str | None:
    """Return the language code of `text` where it is plain to see, else None, as for most short texts."""
    scripts = Counter(_character_script(character) for character in text if character.isalpha())
    if scripts:
        script, count = scripts.most_common(1)[0]
        if script in SCRIPT_LANGUAGES and 2 * count > scripts.total():
            japanese = scripts["HIRAGANA"] + scripts["KATAKANA"] > 0
            return "ja" if japanese else SCRIPT_LANGUAGES[script]
    words = re.findall(r"[^\W\d_]+", text.lower())
    found = {language: sum(word in little for word in words) for language, little in _LITTLE_WORD_SETS.items()}
    ranked = sorted(found, key=lambda language: found[language], reverse=True)
    if found[ranked[0]] >= 2 and found[ranked[0]] >= 2 * found[ranked[1]]:
        return ranked[0]
    return None


def detect_foreign_language(text: str, language: str) -> str | None:
    """Return the code of the language that `text` is in, if it is clearly another than `language` (a code too)."""
    found = guess_language(text)
    if found is None or found == language:
        return None
    words = set(re.findall(r"[^\W\d_]+", text.lower()))
    # One little word of the model's own language is enough to keep silent: a wrong warning is worse than none.
    return None if words & _LITTLE_WORD_SETS.get(language, frozenset()) else found


def _character_script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]
