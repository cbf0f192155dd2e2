"""Translate again with the model changed, and say what that did: to the words, and to the old translation's odds."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..decoding.steps import GREEDY, Strategy
from ..interventions.apply import intervening
from ..interventions.changes import Change, text_of
from ..language.say import say
from ..live.live_model import LiveModel
from ..live.translation import Translation
from ..text.word_difference import WordChange, word_difference


@dataclass(frozen=True, eq=False)
class Comparison:
    """A translation, the same sentence translated by the changed model, and what the change did."""

    before: Translation
    after: Translation
    changes: tuple[Change, ...]
    words: tuple[WordChange, ...]
    log_probs_before: tuple[float, ...]
    """The log-probability of each token of the translation before, teacher-forced through the model as it is."""
    log_probs_after: tuple[float, ...]
    """The same tokens through the changed model."""

    @property
    def log_prob_change(self) -> float:
        """How much more (or, below 0, less) probable the old translation is to the changed model, in nats."""
        return sum(self.log_probs_after) - sum(self.log_probs_before)

    @property
    def sentence(self) -> str:
        odds = {
            "before": sum(self.log_probs_before),
            "after": sum(self.log_probs_after),
            "change": self.log_prob_change,
        }
        if is_teacher_forced(self.before):
            return say(
                "The log-probability of the given translation is {before:.2f} without the changes and {after:.2f} with "
                "them ({change:+.2f}).",
                **odds,
            )
        if self.before.target_ids == self.after.target_ids:
            return say(
                "The translation stays the same. Its log-probability is {before:.2f} without the changes and "
                "{after:.2f} with them ({change:+.2f}).",
                **odds,
            )
        return say(
            "The translation changes. The log-probability of the one before is {before:.2f} without the changes and "
            "{after:.2f} with them ({change:+.2f}).",
            **odds,
        )


def translate_changed(
    translator: LiveModel,
    text: str,
    changes: Sequence[Change],
    strategy: Strategy = GREEDY,
    capture: bool = True,
) -> Translation:
    """Translate with the changes made; the trace shows the changed attention and its settings name the changes.

    Raises InputError for the text and InterventionError for changes the model cannot make.
    """
    with intervening(translator.model, changes):
        return _with_settings(translator.translate(text, strategy, capture=capture), changes)


def force_changed(
    translator: LiveModel,
    text: str,
    target: str | Sequence[int],
    changes: Sequence[Change],
    capture: bool = True,
    tensors: Collection[str] = (),
) -> Translation:
    """Read a given translation with the changes made; `tensors` as in `Translator.force`.

    Raises InputError and InterventionError.
    """
    with intervening(translator.model, changes):
        return _with_settings(translator.force(text, target, capture=capture, tensors=tensors), changes)


def compare(
    translator: LiveModel, before: Translation, changes: Sequence[Change], strategy: Strategy = GREEDY
) -> Comparison:
    """Make the changes, translate the same sentence again and weigh the old translation. Raises InterventionError.

    A translation that was given is not made again but read again.
    """
    if is_teacher_forced(before):
        after = force_changed(translator, before.source, before.target_ids, changes)
    else:
        after = translate_changed(translator, before.source, changes, strategy)
    # Both by teacher forcing, so that no change at all is a difference of exactly zero.
    forced = [
        force_changed(translator, before.source, before.target_ids, made, capture=False) for made in ((), changes)
    ]
    as_it_was, as_it_is = (tuple(step.log_prob for step in one.steps) for one in forced)
    difference = word_difference(before.text, after.text)
    return Comparison(before, after, tuple(changes), difference, as_it_was, as_it_is)


def is_teacher_forced(translation: Translation) -> bool:
    """Whether the model only read this translation, by teacher forcing, and wrote none of it."""
    return all(step.forced for step in translation.steps)


def _with_settings(translation: Translation, changes: Sequence[Change]) -> Translation:
    if translation.captured is None or not changes:
        return translation
    settings = {**translation.captured.settings, "changes": text_of(changes)}
    return dataclasses.replace(translation, captured=dataclasses.replace(translation.captured, settings=settings))
