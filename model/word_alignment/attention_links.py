"""Word links read off cross-attention: each piece of the translation is linked to the source piece of most weight.

Special tokens of the source take no part. A row is read in two ways: for the token that it predicts, or for the token
just fed in (Chen et al. 2020). Pieces are joined to words as the literature does (Zenkel et al. 2019; Garg et al.
2019): two words are linked when any piece of the one is linked to any piece of the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..analysis.alignment import READINGS
from ..language.say import say
from ..live.translation import Translation
from ..text.tokenizer import Tokenizer
from ..text.words import SPECIAL_TOKENS
from .gold import GoldPair
from .links import GoldError


def piece_words(tokenizer: Tokenizer, text: str, words: Sequence[str]) -> np.ndarray:
    """Which words each of the N pieces of a text has a part of: (N, W) bool, without </s>. GoldError."""
    spans, at, data = [], 0, text.encode()
    for word in words:
        start = data.find(word.encode(), at)
        if start < 0:
            raise GoldError(
                say("The word “{word}” is not in “{text}” behind the words before it.", word=word, text=text)
            )
        at = start + len(word.encode())
        spans.append((start, at))
    starts, ends = (np.array(side) for side in zip(*spans, strict=True))
    pieces = np.array(tokenizer.spans(text)).reshape(-1, 2)
    first, last = pieces[:, :1], np.maximum(pieces[:, 1:], pieces[:, :1] + 1)  # a byte may have no text of its own
    found: np.ndarray = (first < ends) & (last > starts)
    return found


def attention_links(translation: Translation, pair: GoldPair, tokenizer: Tokenizer) -> np.ndarray:
    """The links of every cross-attention head, of every layer's mean and of the mean of all heads.

    -> (2, L * (H + 1) + 1, S, T) bool, the readings in the order of READINGS, S and T words; of each layer its heads
    and then their mean, at the end the mean of all.
    """
    cross = translation.trace.maps["cross"]
    weights = cross.weights.astype(np.float64)
    means = weights.mean(1, keepdims=True)
    every = np.concatenate([weights, means], 1).reshape(-1, *weights.shape[2:])
    every = np.concatenate([every, weights.mean((0, 1))[None]])
    special = np.array([token in SPECIAL_TOKENS for token in cross.key_tokens])
    keys = np.where(special, -1.0, every).argmax(-1)
    sources = piece_words(tokenizer, pair.source, pair.source_words)
    targets = piece_words(tokenizer, pair.target, pair.target_words)
    pieces = len(targets)
    # The row that predicts a token has its number; the row that it is fed into is the next one.
    rows = {"predicted": keys[:, :pieces], "fed": keys[:, 1 : pieces + 1]}
    return np.stack([_word_links(rows[reading], sources, targets) for reading in READINGS])


def diagonal_links(pair: GoldPair) -> np.ndarray:
    """Each word of the translation linked to the source word at the same share of its sentence: (S, T) bool."""
    sources, targets = len(pair.source_words), len(pair.target_words)
    nearest = ((np.arange(targets) + 0.5) * sources / targets).astype(int)
    return np.arange(sources)[:, None] == nearest


def _word_links(keys: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """keys (C, T pieces), sources (pieces, S), targets (pieces, T) -> (C, S, T) bool"""
    linked = np.einsum("cps,pt->cst", sources[keys].astype(np.int32), targets.astype(np.int32))
    return linked > 0
