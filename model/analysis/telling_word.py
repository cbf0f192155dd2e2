"""The telling word of a translation: what one word shows of cross-attention, and at which head. No torch.

Words are looked at, not pieces: the weights of a word's keys are summed, those of its rows averaged. A word's *match*
is the word of the sentence to which all heads together point, special tokens left out; a head *shows* a word where it
gives the match at least half of its weight. Weight on a special token tells nothing: such a row rests.

viz/export/live/telling.js is the same rule in a live file; a test holds them equal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..text.words import get_special_tokens, group_tokens_into_words, is_cjk, join_word
from ..trace import AttentionMap, cache_on_map
from .heads import HeadPlace

# The weights between words.


@dataclass(frozen=True, eq=False)
class WordWeights:
    """Cross-attention between the words of a translation and those of its sentence; special tokens stand apart."""

    rows: tuple[range, ...]
    """(R,) the captured rows of each word of the translation."""
    keys: tuple[range, ...]
    """(K,) the captured columns of each word of the sentence."""
    row_words: tuple[str, ...]
    key_words: tuple[str, ...]
    weights: np.ndarray
    """(L, H, R, K) summed over a word's keys, averaged over its rows."""
    rest: np.ndarray
    """(L, H, R) the weight on special tokens."""
    pieces: AttentionMap
    """The map as it was captured."""

    @cached_property
    def shared_weights(self) -> np.ndarray:
        """(R, K) the mean of all heads."""
        return self.weights.mean((0, 1), dtype=np.float64)

    @cached_property
    def matched_source_words(self) -> np.ndarray:
        """(R,) the word of the sentence to which all heads together point."""
        return self.shared_weights.argmax(-1)

    @cached_property
    def shares(self) -> np.ndarray:
        """(L, H, R) the weight on each word's match."""
        return self.weights[:, :, np.arange(len(self.rows)), self.matched_source_words]

    @cached_property
    def agreement(self) -> np.ndarray:
        """(L, H) the mean of the shares: how well a head shows all words."""
        return self.shares.mean(-1, dtype=np.float64)

    def row_of(self, position: int | None) -> int | None:
        """Return the word of a captured row; None for a special token."""
        return next((at for at, group in enumerate(self.rows) if position in group), None)

    def get_word_at_column(self, position: int | None) -> int | None:
        """Return the word of a captured column; None for a special token."""
        return next((at for at, group in enumerate(self.keys) if position in group), None)

    def is_punctuation_row(self, row: int) -> bool:
        """Return whether a word of the translation is punctuation."""
        return _is_punctuation_word(self.row_words[row])

    def find_previous_nonpunctuation_word(self, row: int) -> int | None:
        """Return the nearest word before `row` that is no punctuation."""
        return next((at for at in range(row - 1, -1, -1) if not self.is_punctuation_row(at)), None)


@cache_on_map
def weigh_words(cross: AttentionMap) -> WordWeights | None:
    """Return the weights between words; None where either side has no word."""
    names = get_special_tokens(cross)
    rows, keys = (_group_text_words(tokens, names) for tokens in (cross.rows("predicted"), cross.key_tokens))
    if not rows or not keys or cross.kind != "cross":
        return None
    special = [at for at, token in enumerate(cross.key_tokens) if token in names]
    by_row = np.stack([cross.weights[:, :, group.start : group.stop].mean(2) for group in rows], 2)
    return WordWeights(
        rows,
        keys,
        tuple(_join_word_pieces(cross.rows("predicted"), group) for group in rows),
        tuple(_join_word_pieces(cross.key_tokens, group) for group in keys),
        np.stack([by_row[..., group.start : group.stop].sum(-1) for group in keys], -1),
        by_row[..., special].sum(-1),
        cross,
    )


def _group_text_words(tokens: tuple[str, ...], special: AbstractSet[str]) -> tuple[range, ...]:
    return tuple(group for group in group_tokens_into_words(tokens, special) if tokens[group.start] not in special)


def _join_word_pieces(tokens: tuple[str, ...], group: range) -> str:
    return join_word([tokens[at] for at in group]).strip()


def _is_punctuation_word(word: str) -> bool:
    return all(unicodedata.category(character)[0] in "PS" for character in word)


# What a head shows of a word.


ReadingKind = Literal[
    "copied", "back", "ahead", "twice", "two", "unread", "clear", "other", "weak", "rest", "only", "nothing"
]
"""What is seen:

- copied: every piece of the word looks at the same piece of the sentence;
- back: its match lies before that of the word before it, which the head shows as well and no later word comes back to;
  ahead: beyond words that are written later;
- twice: another word of the translation, not beside it, has the same match;
- two: the weight is shared by two words;
- unread: a word of the sentence at which no row of any head looks;
- clear: the head shows the word; other: it looks at another word than the match; weak: at none mostly;
- rest: it rests on special tokens; only: the sentence has one word; nothing: no row of this head looks at this word."""
TELLING_KINDS: tuple[ReadingKind, ...] = ("back", "two", "ahead", "copied", "unread", "clear", "weak", "rest")
"""In the order in which a page prefers them. `twice` is told of a word that is asked for: of two that look at one word
often only one is written for it."""

SHOWN, SHARED, READ, NEAR = 0.5, 0.3, 0.25, 0.05
"""The least weight with which a head shows a word, of each of two words that share a row, below which a word of the
sentence is unread; and how much less than the best a head may give that agrees better."""
LONG_JUMP = 2
"""Words between one match and the next from which on a jump is told before all else."""
COUNTED_SIZE = 3
"""Up to which a jump counts: a long word tells more than an article that has jumped far with its noun."""
SHORTER = 1
"""Letters by which a later word with the same match may be shorter and still be the one that is written for it."""
ARTICLE_LETTERS = 3
"""The most letters of an article: der, the."""
LEAST_MATCH, MATCH_MARGIN = 0.25, 1.5
"""The least weight that all heads together give the match of a word that is told, and how many times as much as they
give any other: half of a compound, or a word of an idiom, is no pair that a newcomer may take home."""
MIN_AHEAD_LETTERS = 4
"""Letters of the word that a jump ahead is told to: shorter ones stand in other places in every language."""
MIN_UNREAD_LETTERS = 4
"""Letters of a word that may be told to be unread: shorter ones often have no match of their own."""


@dataclass(frozen=True)
class WordReading:
    """What one head shows of one word."""

    kind: ReadingKind
    layer: int
    head: int
    """Both from 0."""
    row: int | None
    """The word of the translation, among those of :class:`WordWeights`; None where the word is one of the sentence."""
    key: int | None
    """The word of the sentence that it looks at; None where it rests."""
    share: float
    """The weight on that word, 0 to 1; of a row that rests, the weight on special tokens."""
    beside: int | None = None
    """back, ahead: the word of the sentence that is jumped from or over; twice: the other word of the translation; two:
    the second word of the sentence; other: the match."""
    beside_share: float = 0.0
    better: HeadPlace | None = None
    """A head that shows the word where this one does not."""
    size: int = 0
    """copied: pieces; back, ahead: words jumped; twice: words between the two."""


def read_target_word(
    words: WordWeights, row: int, place: HeadPlace, left_out: Collection[HeadPlace] = ()
) -> WordReading:
    """Return what a head shows of a word of the translation; a better head is none of those `left_out`."""
    weights, match = words.weights[(*place, row)], int(words.matched_source_words[row])
    own = int(weights.argmax())
    shown = bool(weights[match] >= SHOWN)
    better = None if shown else _find_better_head(words, row, place, left_out)
    if len(words.keys) == 1:
        return WordReading("only", *place, row, own, float(weights[own]))
    if words.rest[(*place, row)] >= SHOWN:
        return WordReading("rest", *place, row, None, float(words.rest[(*place, row)]), better=better)
    if shown:
        found = next(_list_remarkable_readings(words, row, place, match), None)
        return found or WordReading("clear", *place, row, match, float(weights[match]))
    if found := _compute_compound_reading(words, row, place):
        return found
    kind: ReadingKind = "other" if weights[own] >= SHOWN else "weak"
    return WordReading(kind, *place, row, own, float(weights[own]), match, float(weights[match]), better)


def _list_remarkable_readings(words: WordWeights, row: int, place: HeadPlace, match: int) -> Iterator[WordReading]:
    """What is remarkable about a word that a head shows, the most telling first."""
    share = float(words.weights[(*place, row, match)])
    if pieces := _count_copied_pieces(words, row, match, place):
        yield WordReading("copied", *place, row, match, share, size=pieces)
    if words.is_punctuation_row(row) or _is_punctuation_word(words.key_words[match]):
        return
    before = words.find_previous_nonpunctuation_word(row)
    if before is not None and words.shares[(*place, before)] >= SHOWN:
        left = int(words.matched_source_words[before])
        ahead_of_time = (
            left in words.matched_source_words[row + 1 :]
        )  # The word before looked at what a later word is written for.
        if match < left and not ahead_of_time and not _is_punctuation_word(words.key_words[left]):
            yield WordReading("back", *place, row, match, share, left, size=left - match)
        later_rows = (later for later in range(row + 1, len(words.rows)) if _is_word_shown_by_head(words, later, place))
        over = [int(words.matched_source_words[later]) for later in later_rows]
        passed = [one for one in over if left < one < match]
        if passed and len(words.key_words[match]) >= MIN_AHEAD_LETTERS:
            yield WordReading("ahead", *place, row, match, share, passed[0], size=match - left)
    for other in range(row - 2, -1, -1):
        if words.matched_source_words[other] == match and _is_word_shown_by_head(words, other, place):
            if words.row_words[other].casefold() != words.row_words[row].casefold():
                yield WordReading("twice", *place, row, match, share, other, size=row - other)
            return


def _is_word_shown_by_head(words: WordWeights, row: int, place: HeadPlace) -> bool:
    """Whether a head shows a word that is no punctuation, by one that is none either."""
    return bool(words.shares[(*place, row)] >= SHOWN) and not (
        words.is_punctuation_row(row) or _is_punctuation_word(words.key_words[words.matched_source_words[row]])
    )


def _count_copied_pieces(words: WordWeights, row: int, key: int, place: HeadPlace) -> int:
    """The pieces of a word that is the same in both texts, each of which looks most at itself; 0 for any other."""
    rows, keys = words.rows[row], words.keys[key]
    named, tokens = words.pieces.rows("predicted"), words.pieces.key_tokens
    same = [named[at].strip() for at in rows] == [tokens[at].strip() for at in keys]
    if len(rows) < 2 or not same:
        return 0
    strongest = words.pieces.weights[place][rows.start : rows.stop].argmax(-1)
    if strongest.tolist() != list(keys):
        return 0
    written = sum(1 for at in rows if named[at].strip())  # A space may be a piece by itself.
    return written if written > 1 else 0


def _compute_compound_reading(words: WordWeights, row: int, place: HeadPlace) -> WordReading | None:
    """A row that two words share, as a compound shares it."""
    weights = words.weights[(*place, row)]
    first, second = (int(at) for at in np.argsort(-weights, kind="stable")[:2])
    texts = words.row_words[row], words.key_words[first], words.key_words[second]
    if (
        weights[second] < SHARED
        or words.matched_source_words[row] not in (first, second)
        or any(map(_is_punctuation_word, texts))
    ):
        return None
    left, right = sorted((first, second))
    return WordReading("two", *place, row, left, float(weights[left]), right, float(weights[right]))


def find_best_head(words: WordWeights, row: int, left_out: Collection[HeadPlace] = ()) -> HeadPlace:
    """Return the head that shows a word best: of those nearly as good, the one that shows all words best."""
    shares = words.shares[:, :, row].astype(np.float64)
    for place in left_out:
        shares[place] = -1
    agreement = np.where(shares >= shares.max() - NEAR, words.agreement, -1)
    layer, head = np.unravel_index(agreement.argmax(), agreement.shape)
    return int(layer), int(head)


def _find_better_head(
    words: WordWeights, row: int, place: HeadPlace, left_out: Collection[HeadPlace]
) -> HeadPlace | None:
    best = find_best_head(words, row, left_out)
    if best in left_out:
        return None
    return best if best != place and words.shares[(*best, row)] >= SHOWN else None


def read_source_word(words: WordWeights, key: int, place: HeadPlace) -> WordReading:
    """Return which word of the translation looks most at a word of the sentence, in a head."""
    column = words.weights[place][:, key]
    row, largest = int(column.argmax()), float(column.max())
    if largest >= READ:
        return WordReading("clear", *place, row, key, largest)
    everywhere = float(words.weights[..., key].max())
    kind: ReadingKind = "unread" if everywhere < READ else "nothing"
    return WordReading(kind, *place, None, key, largest, beside_share=everywhere)


# The telling word of a translation.


@cache_on_map
def pick_telling_word(cross: AttentionMap, left_out: frozenset[HeadPlace] = frozenset()) -> WordReading | None:
    """Return the word that tells most, and the head that shows it best, of those not `left_out`; None without words."""
    words = weigh_words(cross)
    if words is None or len(set(left_out)) >= words.agreement.size:
        return None
    found = list(_list_telling_readings(words, left_out))
    return min(found, key=lambda one: _make_sort_key(words, one)) if found else None


def _list_telling_readings(words: WordWeights, left_out: Collection[HeadPlace]) -> Iterator[WordReading]:
    marks = [words.is_punctuation_row(row) for row in range(len(words.rows))]
    agreement = words.agreement.copy()
    for place in left_out:
        agreement[place] = -1
    for row, mark in enumerate(marks):
        if mark and not all(marks):
            continue
        shares = words.shares[:, :, row]
        best = find_best_head(words, row, left_out)
        yield read_target_word(words, row, best)
        shown = np.argwhere(shares >= max(SHOWN, float(shares[best]) - NEAR)).tolist()
        yield from (
            read_target_word(words, row, (layer, head)) for layer, head in shown if (layer, head) not in left_out
        )
    for key, word in enumerate(words.key_words):
        if words.weights[..., key].max() < READ and _has_enough_letters(word):
            layer, head = np.unravel_index(agreement.argmax(), agreement.shape)
            yield read_source_word(words, key, (int(layer), int(head)))


def _has_enough_letters(word: str) -> bool:
    return any(map(is_cjk, word)) or sum(map(str.isalpha, word)) >= MIN_UNREAD_LETTERS


def _has_other_word_with_same_match(words: WordWeights, row: int) -> bool:
    """Whether a later word that is no shorter, or a longer one before, has the same match, as "Hamburg" behind "nach".

    What such a word looks at is not what it is written for. A participle before its shorter auxiliary is told.
    """
    own = len(words.row_words[row])
    alike = np.flatnonzero(words.matched_source_words == words.matched_source_words[row])
    return any(
        len(words.row_words[at]) >= own - SHORTER if at > row else len(words.row_words[at]) > own for at in alike
    )


def _is_match_contested(words: WordWeights, row: int) -> bool:
    """Whether all heads together give the match of a word little, or another word nearly as much."""
    *others, most = np.sort(words.shared_weights[row])
    return bool(most < LEAST_MATCH or (others and most < MATCH_MARGIN * others[-1]))


def _jumps_with_next_word(words: WordWeights, one: WordReading) -> bool:
    """Whether it is an article or as short, and so is its match, and the next word looks at the word after that."""
    if one.row is None or one.key is None or one.row + 1 == len(words.rows):
        return False
    pair = words.row_words[one.row], words.key_words[one.key]
    short = all(len(word) <= ARTICLE_LETTERS and not any(map(is_cjk, word)) for word in pair)
    return short and bool(words.matched_source_words[one.row + 1] == one.key + 1)


def _count_telling_letters(words: WordWeights, row: int) -> int:
    """Return the letters of a word, as far as its match has as many: "meinem" at "my" is no long word."""
    own, match = words.row_words[row], words.key_words[words.matched_source_words[row]]
    return len(own) if any(map(is_cjk, own + match)) else min(len(own), len(match) + 1)


def _make_sort_key(words: WordWeights, one: WordReading) -> tuple[float, ...]:
    """What a reading is sorted by, the most telling first."""
    kind = "clear" if one.kind in ("back", "ahead") and one.size < LONG_JUMP else one.kind
    on_mark = one.key is not None and _is_punctuation_word(words.key_words[one.key])
    doubtful = one.row is not None and (
        _has_other_word_with_same_match(words, one.row) or _is_match_contested(words, one.row)
    )
    if (
        (kind == "clear" and on_mark)
        or (kind in ("back", "ahead") and _jumps_with_next_word(words, one))
        or (kind in ("clear", "back", "ahead") and doubtful)
    ):
        kind = "weak"
    rank = TELLING_KINDS.index(kind) if kind in TELLING_KINDS else len(TELLING_KINDS)
    letters = 0 if one.row is None else _count_telling_letters(words, one.row)
    near = round(one.share / NEAR)  # Of two that are nearly as clear, the head that shows the others better.
    return (
        rank,
        -(min(one.size, COUNTED_SIZE) + letters),
        -near,
        -float(words.agreement[one.layer, one.head]),
        one.row or 0,
    )
