"""Training text between what a model writes and a reference: sequence-level interpolation, Kim and Rush (2016),
arXiv 1606.07947, section 3.3."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import sacrebleu

LEAST = 60.0
"""chrF++ below which a hypothesis says something else than the reference more often than the same in other words."""


def closest(hypotheses: Sequence[str], reference: str, source: str) -> str:
    """Return the hypothesis with the highest chrF++ (Popović 2017) against the reference, of equals the first.

    A hypothesis that lost one of :func:`copied` words does not count: a name is a small part of a score, and a model
    that learns from its own slips of names slips more often. The reference stays where no hypothesis is left with at
    least :data:`LEAST`.
    """
    kept = copied(source, reference)
    left = [one for one in hypotheses if kept <= _words(one)]
    chrf = sacrebleu.CHRF(word_order=2)
    scores = [100.0 if one == reference else chrf.sentence_score(one, [reference]).score for one in left]
    best = max(scores, default=0.0)
    return left[scores.index(best)] if best >= LEAST else reference


def copied(source: str, reference: str) -> Counter[str]:
    """Return the words with a capital or a digit that stand on both sides, as often as they stand on both: names and
    numbers."""
    shared = _words(source) & _words(reference)
    return Counter({word: count for word, count in shared.items() if re.search(r"\d", word) or word != word.lower()})


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))
