"""Pieces merged into words, and special tokens out of the way: an AttentionMap in, an AttentionMap out. No torch.

How a piece says that a word begins depends on the tokenizer. Read here: a leading space (this project), ``▁``
(SentencePiece), ``Ġ`` (byte-level BPE), and ``##`` (WordPiece), which says the opposite.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from ..network.config import SPECIAL_PIECES
from ..trace import AttentionMap

Label = Literal["fed", "predicted"]

PAD, UNKNOWN, START, END = SPECIAL_PIECES
END_TOKENS = frozenset({END, "[SEP]", "<eos>", "<|endoftext|>"})
SPECIAL_TOKENS = END_TOKENS | {PAD, START, "[CLS]", "[PAD]", "[BOS]", "[EOS]", "<bos>"}
"""Tokens that stand for no text. ``<unk>`` stands for some, so it is not one of them."""

_STARTS = (" ", "\u2581", "\u0120")
_CONTINUES = "##"
_NO_SPACES = ((0x2E80, 0x9FFF), (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x20000, 0x3FFFF))  # blocks of code points


def words(tokens: Sequence[str]) -> tuple[range, ...]:
    """The positions of each word's tokens, in order; together they are all positions.

    A special token, a CJK token and punctuation that does not stand inside a word are words of their own.
    """
    if not tokens:
        return ()
    wordpiece = any(token.startswith(_CONTINUES) for token in tokens)
    marked = not wordpiece and any(token.startswith(_STARTS) for token in tokens)
    starts = [0]
    for place in range(1, len(tokens)):
        if wordpiece:
            begins = not tokens[place].startswith(_CONTINUES)
        else:
            # Tokens without a single mark are words already, or of a tokenizer that cannot be known: leave them apart.
            begins = not marked or _begins(tokens, place, starts[-1])
        if begins:
            starts.append(place)
    return tuple(range(start, end) for start, end in pairwise([*starts, len(tokens)]))


def word(tokens: Sequence[str]) -> str:
    """The tokens of one word joined; a leading space says that a space stood before it."""
    first, *rest = tokens
    text = first.replace("\u2581", " ").replace("\u0120", " ")
    return text + "".join(token.removeprefix(_CONTINUES) for token in rest)


def words_of(text: str) -> tuple[str, ...]:
    """A text cut into words by the same rules, each with the space before it; together they are the text."""
    marked = f" {text}"  # the space in front says how words begin here
    first, *rest = (marked[group.start : group.stop] for group in words(marked))
    return tuple(part for part in (first[1:], *rest) if part)


def merge_words(attention: AttentionMap, rows: Label = "fed") -> AttentionMap:
    """The map between words: the weights summed over a word's keys and averaged over its queries.

    A row still sums to 1. `rows` says which label of a decoder row makes its words: the token fed in or predicted.
    Tensors are dropped; a word has no query vector.
    """
    queries, keys = words(attention.rows(rows)), words(attention.key_tokens)
    starts, columns = [group.start for group in queries], [group.start for group in keys]
    lengths = np.array([len(group) for group in queries], dtype=np.float32)[:, None]
    # Words lie side by side: adding their tokens up is all the work there is, and a tenth of two matrix products.
    summed = np.add.reduceat(np.add.reduceat(attention.weights, starts, axis=-2), columns, axis=-1)

    def seen(mask: np.ndarray) -> np.ndarray:
        return np.logical_or.reduceat(np.logical_or.reduceat(mask, starts, axis=-2), columns, axis=-1)

    return AttentionMap(
        attention.kind,
        weights=(summed / lengths).astype(np.float32),
        query_tokens=_joined(attention.query_tokens, queries),
        key_tokens=_joined(attention.key_tokens, keys),
        mask=seen(attention.mask),
        layer_masks=None if attention.layer_masks is None else seen(attention.layer_masks),
        layer_paths=attention.layer_paths,
        layer_calls=attention.layer_calls,
        predicted_tokens=_joined(attention.predicted_tokens, queries) if attention.predicted_tokens else (),
    )


@dataclass(frozen=True, eq=False)
class WithoutSpecial:
    """A map without its special tokens, and what was taken out with them."""

    attention: AttentionMap
    """Each row divided by what is left of it; all zero where nothing is left."""
    hidden: tuple[str, ...]
    """The key tokens taken out."""
    hidden_mass: np.ndarray
    """(L, H, Q) the weight that each remaining row gave to them."""

    @property
    def renormalised(self) -> bool:
        """Whether rows were rescaled; the picture has to say so."""
        return bool(self.hidden)


def hide_special(attention: AttentionMap, rows: Label = "fed") -> WithoutSpecial:
    """Take out the special tokens' columns and, by the chosen row label, their rows; rescale the rest to sum to 1.

    A map of nothing but special tokens is left as it is.
    """
    queries = [row for row, token in enumerate(attention.rows(rows)) if token not in SPECIAL_TOKENS]
    keys = [column for column, token in enumerate(attention.key_tokens) if token not in SPECIAL_TOKENS]
    if not queries or not keys:
        return WithoutSpecial(attention, (), np.zeros(attention.weights.shape[:3], dtype=np.float32))
    before = attention.weights[:, :, queries]
    kept = before[..., keys]
    left = kept.sum(-1, keepdims=True)
    hidden = tuple(token for token in attention.key_tokens if token in SPECIAL_TOKENS)
    shown = dataclasses.replace(
        attention,
        weights=np.divide(kept, left, out=np.zeros_like(kept), where=left > 0) if hidden else kept,
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
    return WithoutSpecial(shown, hidden, before.sum(-1) - left[..., 0])


def _begins(tokens: Sequence[str], place: int, start: int) -> bool:
    """Whether a word begins at `place`, where the word before it began at `start`."""
    token, before = tokens[place], tokens[place - 1]
    if token.startswith(_STARTS) or _apart(token) or _apart(before):
        return True
    if before in _STARTS:  # a space that is a piece by itself belongs to what follows
        return False
    if is_cjk(token[:1]) or is_cjk(before[-1:]):
        return True
    inside = any(not _is_punctuation(one) for one in tokens[start:place])
    if not _is_punctuation(token):
        return not inside  # after an opening bracket or quote
    return not (inside and _word_goes_on(tokens, place))


def _word_goes_on(tokens: Sequence[str], place: int) -> bool:
    """Whether letters follow the punctuation at `place` without a space: don't, U-Bahn, 3.5."""
    for token in tokens[place + 1 :]:
        if token.startswith(_STARTS) or _apart(token) or is_cjk(token[:1]):
            return False
        if not _is_punctuation(token):
            return True
    return False


def _apart(token: str) -> bool:
    return token in SPECIAL_TOKENS or token == UNKNOWN


def is_cjk(character: str) -> bool:
    """Whether a character is Chinese or Japanese, which put no space between words. Korean does."""
    return character != "" and any(low <= ord(character) <= high for low, high in _NO_SPACES)


def _is_punctuation(token: str) -> bool:
    text = token.lstrip("".join(_STARTS))
    return text != "" and all(unicodedata.category(character)[0] in "PS" for character in text)


def _joined(tokens: tuple[str, ...], groups: tuple[range, ...]) -> tuple[str, ...]:
    return tuple(word([tokens[place] for place in group]) for group in groups)
