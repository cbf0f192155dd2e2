"""Changes made to a model, and what they do to its translation, in words."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from model.interventions.changes import HeadChange, parse
from model.language.say import listed, say, sentences, to_say
from viz.export.parts import Part, Words
from viz.ui import cache
from viz.ui.addresses.shared import KIND
from viz.ui.translation_changes import MARKS

if TYPE_CHECKING:
    from model.experiments.ablation import Comparison
    from model.interventions.changes import Change
    from model.text.word_difference import WordChange
    from model.trace import Kind

    from .run_key import RunKey

REMARKS = {
    "off": to_say("This head is off: it still computes these weights, but nothing it reads is passed on."),
    "uniform": to_say("This head is made uniform: every key that it may attend to has the same weight."),
    "copy": to_say("This head has the weights of another head; the values it reads are its own."),
}
NAMES = {"off": to_say("off"), "uniform": to_say("uniform")}
PHRASES = {
    "off": to_say("{kind} layer {layer} {heads} off"),
    "uniform": to_say("{kind} layer {layer} {heads} uniform"),
    "copy": to_say("{kind} layer {layer} {heads} as head {source}"),
}
TAGS = {"same": "span", "removed": "del", "added": "ins"}


def effect_in_words(comparison: Comparison) -> str:
    """The changes, and how the translation and its probability change with them."""
    changes = say("With {changes}.", changes=listed(changes_in_words(comparison.changes)))
    return sentences(changes, comparison.sentence)


def saved_effect(run: RunKey) -> list[Part]:
    """The effect of a run's changes for a saved file: the new translation with its marks, and the sentence."""
    comparison = cache.with_changes(run.model, run.sentence, run.changes, run.given)
    marked = [(one.text, MARKS[one.change]) for one in comparison.words]
    text = "".join(one.text for one in comparison.words)
    translation: list[Part] = [] if run.given else [Words(text, "translation", marked=marked)]
    return [*translation, Words(effect_in_words(comparison), "translation")]


def head_remark(run: RunKey, kind: Kind, layer: int, head: int) -> str:
    """What to know of a picture of a head, counted from 0, that the run has changed; "" for an unchanged one."""
    for one in parse(run.changes):
        if isinstance(one, HeadChange) and (one.kind, one.layer, one.head) == (kind, layer, head):
            return say(REMARKS[one.change])
    return ""


def difference_html(words: Sequence[WordChange]) -> str:
    """Words as HTML, what is gone struck through and what is new underlined."""
    return "".join(f"<{TAGS[one.change]}>{html.escape(one.text)}</{TAGS[one.change]}>" for one in words)


def change_name(change: HeadChange) -> str:
    """A change of one head, as its control names it."""
    return say("as head {head}", head=change.source + 1) if change.source is not None else say(NAMES[change.change])


def changes_in_words(changes: Sequence[Change]) -> list[str]:
    """A phrase for the changed heads of each layer; a change that no control makes is given in its text form."""
    heads: dict[HeadChange, list[int]] = {}
    others = []
    for one in changes:
        if isinstance(one, HeadChange):
            heads.setdefault(replace(one, head=0), []).append(one.head + 1)
        else:
            others.append(str(one))
    phrases = (
        say(
            PHRASES[one.change],
            kind=KIND.label(one.kind),
            layer=one.layer + 1,
            heads=_heads(numbers),
            source=(one.source or 0) + 1,
        )
        for one, numbers in heads.items()
    )
    return [*phrases, *others]


def _heads(numbers: Sequence[int]) -> str:
    """Heads of a layer, such as "head 3" or "heads 1 to 4 and 6"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    if len(numbers) == 1:
        return say("head {head}", head=numbers[0])
    *several, last = [
        name
        for run in runs
        for name in ([say("{first} to {last}", first=run[0], last=run[-1])] if len(run) > 2 else map(str, run))
    ]
    if not several:
        return say("heads {heads}", heads=last)
    return say("heads {heads} and {last}", heads=listed(several), last=last)
