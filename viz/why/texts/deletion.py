"""What the view Deletion says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.evaluation.deletion_curves import BAND
from viz.figures.labels import percent, quoted, signed

if TYPE_CHECKING:
    from model.attribution.methods import Attribution
    from model.evaluation.attribution_scores import AttributionScores
    from model.evaluation.deletion_curves import DeletionCurves

RANDOM = "random order"
_ORDERS = (
    "An order that finds what the word rests on falls at once. The thick line is the chosen method, thin "
    f"lines are the others; between the {BAND[0]}th and the {BAND[1]}th percentile of random orders lies the band, "
    "dotted is their mean."
)
EXPLAINED = (
    "Source pieces are taken away, the largest score first: blocked in every mask of every layer, with a zero "
    f"embedding. {_ORDERS}"
)
EXPLAINED_BY_EMBEDDINGS = (
    "Source pieces are taken away, the largest score first: their embeddings are made zero, as the masks of this model "
    f"cannot be reached. {_ORDERS}"
)
NOT_MEASURED = (
    "For this model nothing was measured over many sentences: `python -m model attribution` does it and keeps the "
    "table beside the checkpoint."
)


def first_two(curves: DeletionCurves, found: Attribution) -> str:
    """What is left without the first two pieces of a method, beside two random pieces."""
    count = min(2, len(found.source))
    order = np.argsort(-found.source, kind="stable")[:count]
    names = " and ".join(quoted(found.target.source_tokens[at]) for at in order)
    low, mean, high = (line[count] for line in curves.band)
    left = curves.left(curves.methods[found.method])[count]
    show, of = (percent, "of the probability is left") if curves.against is None else (signed, "is the difference left")
    return (
        f"Without {names}, the first by {found.method}, {show(float(left))} {of}; in random orders {show(float(mean))} "
        f"on average after as many pieces (band {show(float(low))} to {show(float(high))})."
    )


def areas(curves: DeletionCurves) -> dict[str, float]:
    """What each order leaves on average over its curve, that of random orders too: the smaller, the better."""
    found = {name: curves.area(values) for name, values in curves.methods.items()}
    return found | {RANDOM: curves.area(curves.random)}


def best(curves: DeletionCurves) -> str:
    """The order that leaves least of this word, and the methods that leave more than a random order."""
    found = areas(curves)
    methods = {name: area for name, area in found.items() if name != RANDOM}
    least = min(methods, key=methods.__getitem__)
    worse = [name for name, area in methods.items() if area > found[RANDOM]]
    line = f"For this word the order of {least} leaves least."
    if worse:
        line += f" No better than a random order: {', '.join(worse)}."
    return line


def over_sentences(scores: AttributionScores) -> str:
    """What was measured, on what, and which method was best."""
    return (
        f"{scores.set}, {scores.sentences} sentences, a random piece of each translation, the model as it was "
        f"released: in {scores.methods[0].beats_random:.1%} of them taking away the first two pieces by "
        f"{scores.best_method} lowers log p more than two random pieces do. Fall of log p in nats; left on average is "
        "the mean over the whole curve."
    )
