"""Every attribution method judged on parallel text, and the threshold below which a translation is loose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attribution.methods import METHODS, attribute_all, rank_correlation
from ..attribution.source_shares import source_shares
from ..attribution.target import target_pieces
from ..language.say import say
from ..training.data import Pair
from ..translate import Translator
from .attribution_scores import AttributionScores, AttributionScoresError, LooseThreshold, MethodScore
from .deletion_curves import DeletionCurves, deletion_curves

FEWEST_PIECES = 5  # of a source; of fewer, two random pieces are too often the right ones
TOP = 2
"""Pieces taken away."""


def measure(
    translator: Translator, pairs: Sequence[Pair], name: str, sentences: int, seed: int = 0
) -> AttributionScores:
    """Measure on a random choice of the pairs. AttributionScoresError where there are too few."""
    generator = np.random.default_rng(seed)
    encoded = [pair for pair in pairs if len(translator.tokenizer.encode(pair[0]).ids) >= FEWEST_PIECES]
    if len(encoded) < max(sentences, 2):
        raise AttributionScoresError(
            say(
                "{text} has {count} sentences of at least {pieces} pieces; {sentences} are to be measured.",
                text=name,
                count=len(encoded),
                pieces=FEWEST_PIECES,
                sentences=sentences,
            )
        )
    chosen = [encoded[at] for at in generator.permutation(len(encoded))[:sentences]]
    methods, drop, area = _deletion(translator, [source for source, _ in chosen], generator)
    loose = loose_threshold(translator, chosen)
    return AttributionScores(name, translator.checkpoint.hash, sentences, methods, drop, area, loose)


def loose_threshold(translator: Translator, pairs: Sequence[Pair]) -> LooseThreshold:
    """Return the threshold between the pairs and the same with each target moved on to the next source."""
    shifted = [(source, pairs[at - 1][1]) for at, (source, _) in enumerate(pairs)]
    (true, true_share), (shuffled, shuffled_share) = (_means(translator, kind) for kind in (pairs, shifted))
    candidates = np.sort(np.concatenate([true, shuffled]))
    middles = (candidates[1:] + candidates[:-1]) / 2
    errors = [(true < middle).mean() + (shuffled >= middle).mean() for middle in middles]
    threshold = float(middles[int(np.argmin(errors))])
    return LooseThreshold(
        threshold,
        roc_area(true, shuffled),
        roc_area(true_share, shuffled_share),
        float((true < threshold).mean()),
        float((shuffled >= threshold).mean()),
        len(pairs),
    )


def roc_area(higher: np.ndarray, lower: np.ndarray) -> float:
    """Return the area under the ROC curve: how often a value of the first kind is above one of the second."""
    return float((higher[:, None] > lower).mean() + (higher[:, None] == lower).mean() / 2)


def _means(translator: Translator, pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
    """Mean effect and mean share of the source of each pair, (N,) each."""
    found = [source_shares(translator, translator.force(source, target, capture=False)) for source, target in pairs]
    return np.array([one.mean_effect for one in found]), np.array([one.source.mean() for one in found])


def _deletion(
    translator: Translator, sentences: Sequence[str], generator: np.random.Generator
) -> tuple[tuple[MethodScore, ...], float, float]:
    """Every method's scores, the best first; the mean fall and area of random orders."""
    curves: list[DeletionCurves] = []
    correlations: list[list[float]] = []
    for sentence in sentences:
        translation = translator.translate(sentence, capture=False)
        last = max(len(translation.target_ids) - 1, 1)  # </s> says little of the source
        target = target_pieces(translator, translation, int(generator.integers(last)))
        found = attribute_all(translator, target)
        curves.append(deletion_curves(translator, target, found, 1, int(generator.integers(2**31))))
        correlations.append([rank_correlation(one, found["leave-one-out"]) for one in found.values()])
    falls = {method: _falls([one.methods[method] for one in curves]) for method in METHODS}
    random = _falls([one.random[0] for one in curves])
    mean_correlations = np.nanmean(np.array(correlations), 0)
    scores = [
        MethodScore(
            method,
            float((falls[method] > random).mean()),
            float(falls[method].mean()),
            float(np.mean([one.area(one.methods[method]) for one in curves])),
            float(correlation),
        )
        for method, correlation in zip(METHODS, mean_correlations, strict=True)
    ]
    best_first = tuple(sorted(scores, key=lambda one: (-one.beats_random, -one.drop)))
    return best_first, float(random.mean()), float(np.mean([one.area(one.random[0]) for one in curves]))


def _falls(values: Sequence[np.ndarray]) -> np.ndarray:
    """How far each curve has fallen after the first pieces, (N,)."""
    return np.array([one[0] - one[TOP] for one in values])
