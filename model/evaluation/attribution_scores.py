"""attribution.json beside a checkpoint: which method tells best what a word rests on, and when to raise the alarm.

`python -m model attribution` measures both on parallel text and writes them, with a table for the model card.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from ..atomic_write import write_file
from ..checkpoint.bleu_scores import CARD
from ..checkpoint.card_section import CardSection
from ..language.say import say

FILE = "attribution.json"
SECTION = CardSection("attribution", "python -m model attribution")


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


def write_scores(folder: Path, scores: AttributionScores) -> None:
    """Write attribution.json into a checkpoint's folder, and the table into its card."""
    text = json.dumps(dataclasses.asdict(scores), indent=2, ensure_ascii=False)
    write_file(folder / FILE, text + "\n")
    card = folder / CARD
    if card.exists():
        write_file(card, with_table(card.read_text(encoding="utf-8"), scores))


def read_attribution_scores(folder: Path) -> AttributionScores | None:
    """Return what was measured of the checkpoint in a folder, None where nothing was. AttributionScoresError."""
    path = folder / FILE
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
                file=f"{folder.name}/{FILE}",
                error=error,
            )
        ) from error


def with_table(card: str, scores: AttributionScores) -> str:
    """Return a model card with its section on attribution replaced, or added at the end."""
    return SECTION.put(card, "Attribution", table(scores))


def table(scores: AttributionScores) -> str:
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
