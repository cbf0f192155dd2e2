"""What the view Deletion says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model.evaluation.deletion_curves import BAND
from model.language.say import listed, say, sentences, to_say
from viz.figures.labels import percent, quoted, signed

from .word import both

if TYPE_CHECKING:
    from model.attribution.methods import Attribution
    from model.evaluation.attribution_scores import AttributionScores
    from model.evaluation.deletion_curves import DeletionCurves

RANDOM = to_say("random order")
BY_MASKS = to_say(
    "Source pieces are taken away, the largest score first: blocked in every mask of every layer, with a zero "
    "embedding."
)
BY_EMBEDDINGS = to_say(
    "Source pieces are taken away, the largest score first: their embeddings are made zero, as the masks of this model "
    "cannot be reached."
)
NOT_MEASURED = to_say(
    "For this model nothing was measured over many sentences: `python -m model attribution` does it and keeps the "
    "table beside the checkpoint."
)
NEVER_MEASURED = to_say("Of a model from a folder nothing is measured over many sentences.")


def explained(how: str) -> str:
    """How pieces are taken away, :data:`BY_MASKS` or :data:`BY_EMBEDDINGS`, and what the lines are."""
    lines = say(
        "An order that finds what the word rests on falls at once. The thick line is the chosen method, thin lines are "
        "the others; between the {low}th and the {high}th percentile of random orders lies the band, dotted is their "
        "mean.",
        low=BAND[0],
        high=BAND[1],
    )
    return sentences(say(how), lines)


def first_two(curves: DeletionCurves, found: Attribution) -> str:
    """What is left without the first two pieces of a method, beside two random pieces."""
    count = min(2, len(found.source))
    order = np.argsort(-found.source, kind="stable")[:count]
    pieces = [quoted(found.target.source_tokens[at]) for at in order]
    show = percent if curves.against is None else signed
    low, mean, high = (show(float(line[count])) for line in curves.band)
    left = show(float(curves.left(curves.methods[found.method])[count]))
    facts = {"names": both(pieces), "method": say(found.method), "left": left, "low": low, "mean": mean, "high": high}
    if curves.against is None:
        return say(
            "Without {names}, the first by {method}, {left} of the probability is left; in random orders {mean} on "
            "average after as many pieces (band {low} to {high}).",
            **facts,
        )
    return say(
        "Without {names}, the first by {method}, {left} is the difference left; in random orders {mean} on average "
        "after as many pieces (band {low} to {high}).",
        **facts,
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
    return sentences(
        say("For this word the order of {method} leaves least.", method=say(least)),
        say("No better than a random order: {methods}.", methods=listed(map(say, worse))) if worse else "",
    )


def over_sentences(scores: AttributionScores) -> str:
    """What was measured, on what, and which method was best."""
    return say(
        "{set}, {sentences} sentences, a random piece of each translation, the model as it was released: in "
        "{share:.1%} of them taking away the first two pieces by {method} lowers log p more than two random pieces do. "
        "Fall of log p in nats; left on average is the mean over the whole curve.",
        set=scores.set,
        sentences=scores.sentences,
        share=scores.methods[0].beats_random,
        method=say(scores.best_method),
    )
