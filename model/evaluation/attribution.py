"""Evaluate attribution methods with deletion curves, and read and write attribution.json."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..atomic_write import write_file
from ..attribution.alti_and_leave_one_out import compute_source_shares, compute_target_values_without_pieces
from ..attribution.any_model import compute_log_probs_without_pieces
from ..attribution.methods import ATTRIBUTION_METHODS, Attribution, attribute_all_methods, rank_correlation
from ..attribution.target import AttributionError, Target, make_piece_target
from ..checkpoint.measurements import CARD_FILE, CardSection
from ..language import say
from ..runnable_model import LocalModel, RunnableModel
from ..training.data import SentencePair
from ..translate import Translator

# attribution.json, beside a checkpoint: which method is the best, and when a translation counts as loose.
#
# `python -m model attribution` measures both on parallel text and writes them, with a table for the model card.


ATTRIBUTION_FILE = "attribution.json"
ATTRIBUTION_SECTION = CardSection("attribution", "python -m model attribution")


class AttributionScoresError(ValueError):
    """An attribution.json that cannot be read, or too little text to measure on; the message says which."""


@dataclass(frozen=True)
class MethodScore:
    """How well one method finds the source pieces that a word rests on, over all sentences."""

    method: str
    beats_random: float
    """Share of sentences in which taking away its first two pieces lowers log p more than two random pieces."""
    drop: float
    """Mean fall of log p without its first two pieces, natural logarithm."""
    area: float
    """Mean of what is left of the probability over the whole deletion curve; the smaller, the better."""
    correlation: float
    """Mean rank correlation with leave-one-out over source and prefix."""


@dataclass(frozen=True)
class LooseThreshold:
    """When a translation counts as loose from its source: its mean source effect is below the threshold."""

    threshold: float
    """log p with the source less log p without, mean over the pieces; where the two kinds are told apart best."""
    area: float
    """Area under the ROC curve of the mean effect, true against shuffled pairs."""
    share_area: float
    """The same of the mean ALTI+ source share, for comparison."""
    false_alarms: float
    """Share of true pairs below the threshold."""
    misses: float
    """Share of shuffled pairs above it."""
    pairs: int
    """Of each kind."""


@dataclass(frozen=True)
class AttributionScores:
    """Everything that was measured of one checkpoint."""

    set: str
    """The name of the text, for people."""
    model_hash: str
    sentences: int
    methods: tuple[MethodScore, ...]
    """The best first."""
    random_drop: float
    """Mean fall of log p without two random pieces."""
    random_area: float
    loose: LooseThreshold

    @property
    def best_method(self) -> str:
        """The method that beats two random pieces in most sentences; of equal ones, that of the larger fall."""
        return self.methods[0].method


def write_attribution_scores(folder: Path, scores: AttributionScores) -> None:
    """Write attribution.json into a checkpoint's folder, and the table into its card."""
    text = json.dumps(dataclasses.asdict(scores), indent=2, ensure_ascii=False)
    write_file(folder / ATTRIBUTION_FILE, text + "\n")
    card = folder / CARD_FILE
    if card.exists():
        write_file(card, replace_attribution_table(card.read_text(encoding="utf-8"), scores))


def read_attribution_scores(folder: Path) -> AttributionScores | None:
    """Return what was measured of the checkpoint in a folder, None where nothing was. Raises AttributionScoresError."""
    path = folder / ATTRIBUTION_FILE
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        methods = tuple(MethodScore(**one) for one in found["methods"])
        return AttributionScores(**{**found, "methods": methods, "loose": LooseThreshold(**found["loose"])})
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise AttributionScoresError(
            say(
                "{file} cannot be read ({error}); `python -m model attribution` writes it anew.",
                file=f"{folder.name}/{ATTRIBUTION_FILE}",
                error=error,
            )
        ) from error


def replace_attribution_table(card: str, scores: AttributionScores) -> str:
    """Return a model card with its section on attribution replaced, or added at the end."""
    return ATTRIBUTION_SECTION.put(card, "Attribution", format_attribution_table(scores))


def format_attribution_table(scores: AttributionScores) -> str:
    """Return the scores as Markdown, in words below."""
    loose = scores.loose
    lines = [
        "| method | beats two random pieces | fall of log p | probability left | rank correlation |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {one.method} | {one.beats_random:.1%} | {one.drop:.2f} | {one.area:.1%} | {one.correlation:.2f} |"
            for one in scores.methods
        ),
        f"| random order |  | {scores.random_drop:.2f} | {scores.random_area:.1%} |  |",
        "",
        f"{scores.set}, {scores.sentences} sentences, a random piece of each translation: the two source pieces that a "
        "method ranks first are taken away; the probability left is the mean over the whole deletion curve; the rank "
        "correlation is that with leave-one-out.",
        "",
        f"A translation counts as loose from its source where its pieces gain less than {loose.threshold:.2f} nats "
        f"from the source on average. {loose.pairs} true against {loose.pairs} shuffled pairs: area under the "
        f"ROC curve {loose.area:.3f} (of the ALTI+ share alone {loose.share_area:.3f}), false alarms "
        f"{loose.false_alarms:.1%}, misses {loose.misses:.1%}.",
        "",
    ]
    return "\n".join(lines)


# Measuring every method, and the threshold below which a translation is loose, on parallel text.


FEWEST_PIECES = 5  # of a source; of fewer, two random pieces are too often the right ones
FEWEST_SENTENCES = 2  # of one, the shuffled pair would be the true one
TOP_PIECES = 2
"""Pieces taken away."""


def measure_attribution(
    translator: Translator, pairs: Sequence[SentencePair], name: str, sentences: int, seed: int = 0
) -> AttributionScores:
    """Measure on a random choice of the pairs. Raises AttributionScoresError where there are too few."""
    generator = np.random.default_rng(seed)
    encoded = [pair for pair in pairs if len(translator.tokenizer.encode(pair[0]).ids) >= FEWEST_PIECES]
    if not FEWEST_SENTENCES <= sentences <= len(encoded):
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
    methods, drop, area = _score_methods(translator, [source for source, _ in chosen], generator)
    loose = find_mismatched_pair_threshold(translator, chosen)
    return AttributionScores(name, translator.checkpoint.hash, sentences, methods, drop, area, loose)


def find_mismatched_pair_threshold(translator: Translator, pairs: Sequence[SentencePair]) -> LooseThreshold:
    """Return the threshold that tells the pairs from the same pairs with each target moved on to the next source."""
    shifted = [(source, pairs[at - 1][1]) for at, (source, _) in enumerate(pairs)]
    (true, true_share), (shuffled, shuffled_share) = (
        _mean_source_effects_and_shares(translator, kind) for kind in (pairs, shifted)
    )
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


def _mean_source_effects_and_shares(
    translator: Translator, pairs: Sequence[SentencePair]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean effect and mean share of the source of each pair, (N,) each."""
    found = [
        compute_source_shares(translator, translator.force(source, target, capture=False)) for source, target in pairs
    ]
    return np.array([one.mean_effect for one in found]), np.array([one.source.mean() for one in found])


def _score_methods(
    translator: Translator, sentences: Sequence[str], generator: np.random.Generator
) -> tuple[tuple[MethodScore, ...], float, float]:
    """Every method's scores, the best first; the mean fall and area of random orders."""
    curves: list[DeletionCurves] = []
    correlations: list[list[float]] = []
    for sentence in sentences:
        translation = translator.translate(sentence, capture=False)
        last = max(len(translation.target_ids) - 1, 1)  # </s> says little of the source
        target = make_piece_target(translator, translation, int(generator.integers(last)))
        found = attribute_all_methods(translator, target)
        curves.append(measure_deletion_curves(translator, target, found, 1, int(generator.integers(2**31))))
        correlations.append([rank_correlation(one, found["leave-one-out"]) for one in found.values()])
    falls = {
        method: _compute_initial_curve_drops([one.methods[method] for one in curves]) for method in ATTRIBUTION_METHODS
    }
    random = _compute_initial_curve_drops([one.random[0] for one in curves])
    mean_correlations = np.nanmean(np.array(correlations), 0)
    scores = [
        MethodScore(
            method,
            float((falls[method] > random).mean()),
            float(falls[method].mean()),
            float(np.mean([one.area(one.methods[method]) for one in curves])),
            float(correlation),
        )
        for method, correlation in zip(ATTRIBUTION_METHODS, mean_correlations, strict=True)
    ]
    best_first = tuple(sorted(scores, key=lambda one: (-one.beats_random, -one.drop)))
    return best_first, float(random.mean()), float(np.mean([one.area(one.random[0]) for one in curves]))


def _compute_initial_curve_drops(values: Sequence[np.ndarray]) -> np.ndarray:
    """How far each curve has fallen after the first pieces, (N,)."""
    return np.array([one[0] - one[TOP_PIECES] for one in values])


# Deletion curves: take away the pieces that a method ranks first, and see what is left of the probability.
#
# Samek et al. (2017), "Evaluating the Visualization of What a Deep Neural Network Has Learned" (pixel flipping);
# DeYoung et al. (2020), ERASER, comprehensiveness. Source pieces alone are taken away, </s> included, so that every
# method, cross-attention too, orders the same pieces; a random order with its band is what a method has to beat.


MOST_DELETED_PIECES = 64
"""Pieces of the longest source on a page."""
RANDOM_ORDERS = 10
BAND_PERCENTILES = (10, 90)
"""Percentiles of the random orders between which the band lies."""


@dataclass(frozen=True, eq=False)
class DeletionCurves:
    """The value of the target after 0, 1, ..., S source pieces have been taken away, by the order of each method."""

    methods: Mapping[str, np.ndarray]
    """Name -> (S + 1,) log p(X), or logit X - logit Y."""
    random: np.ndarray
    """(R, S + 1) the same in random orders."""
    against: str | None

    def remaining_share(self, values: np.ndarray) -> np.ndarray:
        """Return what is left of the probability, as a share of the whole: values (..., S + 1) -> (..., S + 1).

        Of a difference of logits, the difference itself.
        """
        return values if self.against is not None else np.exp(values - values[..., :1])

    def area(self, values: np.ndarray) -> float:
        """Return the mean of what is left, over the curve after the first deletion: the smaller, the better."""
        return float(self.remaining_share(values)[..., 1:].mean())

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is left in a random order: lower percentile, mean and upper percentile, (S + 1,) each."""
        left = self.remaining_share(self.random)
        low, high = np.percentile(left, BAND_PERCENTILES, axis=0)
        return low, left.mean(0), high


def check_deletion_length(pieces: int) -> None:
    """Raise AttributionError for a source of too many pieces: every order takes a row for each."""
    if pieces > MOST_DELETED_PIECES:
        raise AttributionError(
            say(
                "Deletion takes a source of at most {most} pieces; this one has {count}.",
                most=MOST_DELETED_PIECES,
                count=pieces,
            )
        )


def measure_deletion_curves(
    translator: RunnableModel,
    target: Target,
    attributions: Mapping[str, Attribution],
    random_orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> DeletionCurves:
    """Take the source pieces away in the order of each method, all rows of few forward passes."""
    pieces = len(target.source_ids)
    removed = _removal_masks(attributions, pieces, random_orders, seed)
    keep = torch.from_numpy(~removed.reshape(-1, pieces))
    whole = torch.ones(len(keep), len(target.prefix_tokens), dtype=torch.bool, device="cpu")
    values = compute_target_values_without_pieces(translator.model, target, keep, whole).numpy()
    return _make_curves(attributions, values.reshape(removed.shape[:2]), target.against)


def measure_local_model_deletion_curves(
    model: LocalModel,
    text: str,
    word: int,
    attributions: Mapping[str, Attribution],
    random_orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> DeletionCurves:
    """Do the same for piece `word` (from 1) of any model, in which a removed piece has a zero embedding.

    Every deletion takes a forward pass, since it is not known how such a model takes several sentences.
    """
    pieces = len(next(iter(attributions.values())).source)
    removed = _removal_masks(attributions, pieces, random_orders, seed)
    values = compute_log_probs_without_pieces(model, text, word, removed.reshape(-1, pieces))
    return _make_curves(attributions, values.reshape(removed.shape[:2]), None)


def _removal_masks(attributions: Mapping[str, Attribution], pieces: int, random_orders: int, seed: int) -> np.ndarray:
    """(orders, S + 1, S) bool: the pieces that are away after each deletion; random orders last."""
    generator = np.random.default_rng(seed)
    orders = [np.argsort(-one.source, kind="stable") for one in attributions.values()]
    orders += [generator.permutation(pieces) for _ in range(random_orders)]
    removed_at = np.argsort(np.array(orders), axis=1)  # (orders, S): the step at which each piece goes
    return removed_at[:, None, :] < np.arange(pieces + 1)[None, :, None]


def _make_curves(attributions: Mapping[str, Attribution], values: np.ndarray, against: str | None) -> DeletionCurves:
    return DeletionCurves(dict(zip(attributions, values, strict=False)), values[len(attributions) :], against)
