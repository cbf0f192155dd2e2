"""Measure the alignment error rate of every cross-attention head against a gold alignment.

Each pair is read by teacher forcing, and its cross-attention gives links.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ..analysis.heads import ALIGNMENT_READINGS, AlignmentReading
from ..atomic_write import write_file
from ..checkpoint.measurements import MeasurementFile
from ..language import say, to_say
from ..runnable_model import InputError, Translation
from ..text.tokenizer import Tokenizer
from ..text.words import SPECIAL_TOKENS
from ..translate import Translator
from .gold import GoldAlignment, GoldError, GoldPair, Link, LinkCounts, count_links


def measure_alignment(
    translator: Translator, gold: GoldAlignment, on_progress: Callable[[int], None] = lambda pairs: None
) -> AlignmentRates:
    """Return the error rates of all heads and means. Raises GoldError where the model can read no pair."""
    found, diagonal, read = [], [], []
    for pair in gold.pairs:
        try:
            translation = translator.force(pair.source, pair.target)
        except InputError:
            continue
        finally:
            on_progress(1)
        links = derive_links_from_attention(translation, pair, translator.tokenizer)
        found.append(count_links(links.reshape(-1, *links.shape[2:]), *_make_gold_link_matrices(pair)))
        diagonal.append(count_links(make_diagonal_links(pair)[None], *_make_gold_link_matrices(pair)))
        heads = translation.trace.maps["cross"].weights.shape[:2]
        read.append(pair)
    if not read:
        raise GoldError(
            say(
                "{model} can read none of the {count} pairs of {gold}.",
                model=translator.name,
                count=len(gold.pairs),
                gold=gold.name,
            )
        )
    sure = np.array([len(pair.links.sure) for pair in read])
    counts, straight = (LinkCounts.from_pairs(one, sure) for one in (found, diagonal))
    places = _list_alignments(*heads)
    own = np.array([place[0] == "head" for _ in ALIGNMENT_READINGS for place in places])
    only_heads = LinkCounts(counts.in_sure[:, own], counts.in_possible[:, own], counts.links[:, own], sure)
    return AlignmentRates(
        translator.name,
        translator.checkpoint.hash,
        gold.name,
        gold.sha256,
        len(read),
        len(gold.pairs) - len(read),
        int(sure.sum()),
        sum(len(pair.links.possible) for pair in read) - int(sure.sum()),
        float(straight.aer()[0]),
        only_heads.compute_held_out_error_rate(),
        _make_rates(counts, places),
    )


def _make_gold_link_matrices(pair: GoldPair) -> tuple[np.ndarray, np.ndarray]:
    """The sure and the possible links: (S, T) bool each."""
    return _make_link_matrix(pair, pair.links.sure), _make_link_matrix(pair, pair.links.possible)


def _make_link_matrix(pair: GoldPair, links: frozenset[Link]) -> np.ndarray:
    cells = np.zeros((len(pair.source_words), len(pair.target_words)), dtype=bool)
    for source, target in links:
        cells[source, target] = True
    return cells


def _list_alignments(layers: int, heads: int) -> list[tuple[RatePart, int, int]]:
    """Name the alignments of :func:`derive_links_from_attention`, in its order."""
    found: list[tuple[RatePart, int, int]] = []
    for layer in range(layers):
        found += [("head", layer, head) for head in range(heads)]
        found.append(("layer", layer, -1))
    return [*found, ("all", -1, -1)]


def _make_rates(counts: LinkCounts, places: list[tuple[RatePart, int, int]]) -> tuple[AlignmentRate, ...]:
    columns = (counts.aer(), *counts.compute_bootstrap_interval(), counts.precision(), counts.recall())
    named = [(*place, reading) for reading in ALIGNMENT_READINGS for place in places]
    return tuple(
        AlignmentRate(*name, *(float(value) for value in values)) for name, *values in zip(named, *columns, strict=True)
    )


# Word links read off cross-attention: each piece of the translation is linked to the source piece of most weight.
#
# Special tokens of the source take no part. A row is read in two ways: for the token that it predicts, or for the
# token just fed in (Chen et al. 2020). Pieces are joined to words as the literature does (Zenkel et al. 2019; Garg et
# al. 2019): two words are linked when any piece of the one is linked to any piece of the other.


def match_pieces_to_words(tokenizer: Tokenizer, text: str, words: Sequence[str]) -> np.ndarray:
    """Return which words each of the N pieces of a text is a part of: (N, W) bool, without </s>. Raises GoldError."""
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


def derive_links_from_attention(translation: Translation, pair: GoldPair, tokenizer: Tokenizer) -> np.ndarray:
    """Return the links of every cross-attention head, of every layer's mean and of the mean of all heads.

    (2, L * (H + 1) + 1, S, T) bool: the readings in the order of ALIGNMENT_READINGS; of each layer its heads and then
    their mean, at the end the mean of all; S source and T target words.
    """
    cross = translation.trace.maps["cross"]
    weights = cross.weights.astype(np.float64)
    means = weights.mean(1, keepdims=True)
    every = np.concatenate([weights, means], 1).reshape(-1, *weights.shape[2:])
    every = np.concatenate([every, weights.mean((0, 1))[None]])
    special = np.array([token in SPECIAL_TOKENS for token in cross.key_tokens])
    keys = np.where(special, -1.0, every).argmax(-1)
    sources = match_pieces_to_words(tokenizer, pair.source, pair.source_words)
    targets = match_pieces_to_words(tokenizer, pair.target, pair.target_words)
    pieces = len(targets)
    # The row that predicts a token has its number; the row that it is fed into is the next one.
    rows = {"predicted": keys[:, :pieces], "fed": keys[:, 1 : pieces + 1]}
    return np.stack([_merge_piece_links_to_words(rows[reading], sources, targets) for reading in ALIGNMENT_READINGS])


def make_diagonal_links(pair: GoldPair) -> np.ndarray:
    """Link each word of the translation to the source word at the same share of its sentence: (S, T) bool."""
    sources, targets = len(pair.source_words), len(pair.target_words)
    nearest = ((np.arange(targets) + 0.5) * sources / targets).astype(int)
    return np.arange(sources)[:, None] == nearest


def _merge_piece_links_to_words(keys: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """keys (C, T pieces), sources (pieces, S), targets (pieces, T) -> (C, S, T) bool"""
    linked = np.einsum("cps,pt->cst", sources[keys].astype(np.int32), targets.astype(np.int32))
    return linked > 0


# alignment.json, beside a checkpoint.


ALIGNMENT_FILE = "alignment.json"
ALIGNMENT_FORMAT = "attenscope-alignment-1"
RatePart = Literal["head", "layer", "all"]
MAX_LAYERS_OR_HEADS = 1000
"""Layers, or heads of a layer, that a file may name."""


class AlignmentError(ValueError):
    """An alignment.json that cannot be shown; the message says why and what to do."""


_ALIGNMENT_MEASUREMENT = MeasurementFile(
    ALIGNMENT_FILE,
    ALIGNMENT_FORMAT,
    AlignmentError,
    "python -m model align --checkpoint {model}",
    to_say(
        "{model} has not been held against a gold alignment: `{how}` does it with the released one of English and "
        "German, `{how} --gold FOLDER` with one of your own."
    ),
)


@dataclass(frozen=True)
class AlignmentRate:
    """The error rate of one alignment."""

    part: RatePart
    """A head, the mean of the heads of a layer, or the mean of all heads."""
    layer: int
    """From 0; -1 for the mean of all."""
    head: int
    """From 0; -1 for a mean."""
    reading: AlignmentReading
    aer: float
    low: float
    """The 95% bootstrap interval over pairs."""
    high: float
    precision: float
    recall: float


@dataclass(frozen=True)
class AlignmentRates:
    """What `python -m model align` measured."""

    model: str
    model_hash: str
    gold: str
    gold_sha256: str
    pairs: int
    left_out: int
    """Pairs that the model cannot read."""
    sure: int
    possible: int
    """Links of the gold; possible ones that are not sure."""
    diagonal: float
    """The error rate of linking each word to that at the same share of the other sentence: what order alone gives."""
    held_out: float
    """That of the best head, chosen on one half of the pairs and measured on the other, both ways; NaN of one pair."""
    rates: tuple[AlignmentRate, ...]

    def best(self, part: RatePart) -> AlignmentRate:
        """Return the lowest error rate of the heads, of the layers or of the mean of all, at either reading."""
        return min((one for one in self.rates if one.part == part), key=lambda one: one.aer)

    def select_rate(self, part: RatePart, layer: int, head: int, reading: AlignmentReading) -> AlignmentRate:
        """Return the rate of one alignment."""
        wanted = (part, layer, head, reading)
        return next(one for one in self.rates if (one.part, one.layer, one.head, one.reading) == wanted)

    def write(self, folder: Path) -> None:
        """Write alignment.json into a checkpoint's folder."""
        write_file(
            folder / ALIGNMENT_FILE, json.dumps({"format": ALIGNMENT_FORMAT, **asdict(self)}, ensure_ascii=False) + "\n"
        )


def read_alignment_rates(folder: Path, name: str, model_hash: str) -> AlignmentRates:
    """Return what was measured of the model in a folder.

    Raises AlignmentError where nothing was, or of another model.
    """
    return _ALIGNMENT_MEASUREMENT.read(folder, name, model_hash, _parse_rates)


def _parse_rates(found: dict[str, Any]) -> AlignmentRates:
    rates = AlignmentRates(**found | {"rates": tuple(_parse_rate(one) for one in found["rates"])})
    if {one.part for one in rates.rates} != set(get_args(RatePart)):
        raise ValueError("it lacks the rates of heads, layers or all")
    return rates


def _parse_rate(found: dict[str, Any]) -> AlignmentRate:
    rate = AlignmentRate(**found)
    numbers = rate.aer, rate.low, rate.high, rate.precision, rate.recall
    places = (rate.layer, rate.head)
    if rate.part not in get_args(RatePart) or rate.reading not in ALIGNMENT_READINGS:
        raise ValueError("a rate is of no part or reading")
    if not all(isinstance(one, int) and -1 <= one < MAX_LAYERS_OR_HEADS for one in places):
        raise ValueError("a rate has no layer and head")
    aer, low, high, precision, recall = (float(one) for one in numbers)
    return AlignmentRate(rate.part, rate.layer, rate.head, rate.reading, aer, low, high, precision, recall)
