"""Measure how probable a model finds its translations of familiar and of other text, kept in familiarity.json.

A model gives lower probabilities to its translation of a sentence unlike its training text. `python -m model
familiarity` measures how well this tells such sentences: on a text, on the same sentences with their words shuffled,
and on their translations, which are in a language that the model does not read.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic_write import write_file
from ..checkpoint.measurements import CARD_FILE, CardSection, MeasurementFile
from ..decoding.greedy_and_sampling import DecodingStep
from ..language import say, to_say
from ..training.data import SentencePair
from ..translate import Translator
from .attribution import roc_area

FAMILIARITY_FILE = "familiarity.json"
FAMILIARITY_FORMAT = "attenscope-familiarity-1"
FAMILIARITY_SECTION = CardSection("familiarity", "python -m model familiarity")
FALSE_ALARMS = 0.05
"""Share of the text's own sentences that lie below the threshold."""


class FamiliarityError(ValueError):
    """A familiarity.json that cannot be read, or too little text to measure on; the message says which."""


_FAMILIARITY_MEASUREMENT = MeasurementFile(
    FAMILIARITY_FILE,
    FAMILIARITY_FORMAT,
    FamiliarityError,
    "python -m model familiarity --checkpoint {model} --data FOLDER",
    to_say("Nobody has measured how probable {model} finds its own text: `{how}` does."),
)


@dataclass(frozen=True)
class DetectionRates:
    """How well sentences of another kind are told from those of the text."""

    area: float
    """Area under the ROC curve of the mean log-probability."""
    caught: float
    """Share of them below the threshold."""


@dataclass(frozen=True)
class Familiarity:
    """The mean log-probability below which a translation is unlike those of a text, and how well this tells others."""

    model: str
    model_hash: str
    set: str
    """The name of the text, for people."""
    sentences: int
    threshold: float
    """Mean natural logarithm a piece, of the greedy translation: all but `FALSE_ALARMS` of the sentences have more."""
    shuffled: DetectionRates
    foreign: DetectionRates
    """The reference translations, given to the model as if they were in its source language."""

    def is_translation_unfamiliar(self, steps: Iterable[DecodingStep]) -> bool:
        """Return whether a translation that the model wrote itself lies below the threshold."""
        return mean_log_prob(steps) < self.threshold


def mean_log_prob(steps: Iterable[DecodingStep]) -> float:
    """Return the mean natural logarithm of the probabilities of all pieces written; 0 where there is none."""
    return float(np.mean([step.log_prob for step in steps] or [0.0]))


def measure_familiarity(
    translator: Translator, pairs: Sequence[SentencePair], name: str, sentences: int, seed: int = 0
) -> Familiarity:
    """Measure on a random choice of the pairs. Raises FamiliarityError where there are too few."""
    if not 2 <= sentences <= len(pairs):
        raise FamiliarityError(
            say(
                "{text} has {count} sentences; {sentences} are to be measured, at least 2.",
                text=name,
                count=len(pairs),
                sentences=sentences,
            )
        )
    generator = np.random.default_rng(seed)
    chosen = [pairs[at] for at in generator.permutation(len(pairs))[:sentences]]
    own = _mean_log_probs(translator, [source for source, _ in chosen])
    others = (
        _mean_log_probs(translator, [_shuffle_words(source, generator) for source, _ in chosen]),
        _mean_log_probs(translator, [target for _, target in chosen]),
    )
    threshold = float(np.quantile(own, FALSE_ALARMS))
    told = (DetectionRates(roc_area(own, other), float((other < threshold).mean())) for other in others)
    return Familiarity(translator.name, translator.checkpoint.hash, name, sentences, threshold, *told)


def write_familiarity(folder: Path, found: Familiarity) -> None:
    """Write familiarity.json into a checkpoint's folder, and what it says into its card."""
    text = json.dumps({"format": FAMILIARITY_FORMAT, **dataclasses.asdict(found)}, indent=2, ensure_ascii=False)
    write_file(folder / FAMILIARITY_FILE, text + "\n")
    card = folder / CARD_FILE
    if card.exists():
        write_file(card, replace_familiarity_section(card.read_text(encoding="utf-8"), found))


def read_familiarity(folder: Path, name: str, model_hash: str) -> Familiarity:
    """Return what was measured of the model in a folder.

    Raises FamiliarityError where nothing was, or of another model.
    """
    return _FAMILIARITY_MEASUREMENT.read(folder, name, model_hash, _parse_familiarity)


def _parse_familiarity(found: dict[str, Any]) -> Familiarity:
    kinds = {name: DetectionRates(**found[name]) for name in ("shuffled", "foreign")}
    return Familiarity(**{**found, **kinds})


def replace_familiarity_section(card: str, found: Familiarity) -> str:
    """Return a model card with its section on familiarity replaced, or added at the end."""
    return FAMILIARITY_SECTION.put(card, "Familiar text", describe_familiarity(found))


def describe_familiarity(found: Familiarity) -> str:
    """Say in two sentences where the threshold lies and what it tells."""
    return (
        f"{1 - FALSE_ALARMS:.0%} of {found.sentences} sentences of {found.set} have a greedy translation with a mean "
        f"log-probability above {found.threshold:.2f} a piece; the page says so of one below. Below lie "
        f"{found.shuffled.caught:.0%} of the same sentences with their words shuffled (area under the ROC curve "
        f"{found.shuffled.area:.3f}) and {found.foreign.caught:.0%} of their translations, read as if they were in the "
        f"source language ({found.foreign.area:.3f})."
    )


def _mean_log_probs(translator: Translator, texts: Sequence[str]) -> np.ndarray:
    return np.array([mean_log_prob(translator.translate(text, capture=False).steps) for text in texts])


def _shuffle_words(sentence: str, generator: np.random.Generator) -> str:
    """The words of a sentence in random order; of a language that writes no spaces, its characters."""
    words = sentence.split()
    parts, between = (words, " ") if len(words) > 1 else (list(sentence), "")
    return between.join(parts[at] for at in generator.permutation(len(parts)))
