"""What observing a model changed and what it left out: kept with a trace as codes and values, said when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...language.say import listed, say, sentences, to_say

Remark = tuple[str, Mapping[str, Any]]
"""A code of :data:`SENTENCES` or :data:`REASONS`, and the values of its message; JSON as it stands."""
NOTES = "observed"
"""The setting of a trace that keeps the remarks on it."""
SHOWN = 8
"""Modules that are named of those that were left out."""
SENTENCES = {
    "unchanged": to_say("The model computed these weights itself, and observing it changed nothing."),
    "fast-path": to_say(
        "Unobserved, torch would have taken the fused fast path of nn.TransformerEncoder or nn.MultiheadAttention; "
        "observed, its plain path ran: outputs of real tokens may differ in the last digits, those of padding more."
    ),
    "explicit": to_say(
        "Unobserved, a fused kernel would have run; weights times values were computed in its place, so that "
        "gradients reach the weights: outputs may differ in the last digits."
    ),
    "fused-dropout": to_say(
        "A fused kernel ran, as it does unobserved; the weights were computed beside it, before dropout."
    ),
    "fused": to_say(
        "A fused kernel ran, as it does unobserved; the weights were computed beside it, and weights times values "
        "differ from its output by at most {difference:.1e}."
    ),
    "not-laid-out": to_say(
        "Not recorded, because it cannot be laid out as samples, heads, queries and keys: softmax of {modules}."
    ),
    "not-understood": to_say("Not recorded, because its effect on the weights is not known: {modules}."),
}
"""What a remark on a capture says; `modules` is a list of (path, code of a reason, values)."""
REASONS = {
    "axis": to_say("axis {axis} of {shape}"),
    "axis-heads": to_say("axis {axis} of {shape}, {heads} heads"),
    "over-features": to_say("attention of features over features, not of tokens over tokens"),
    "no-product": to_say("of one projection alone, as in linear attention: no product of queries and keys"),
    "several": to_say("several attentions in one call, of {first} and {second}"),
    "argument": to_say("{arguments} of {kernel}"),
    "lengths": to_say("its cumulative lengths of {kernel}"),
}
"""Why the attention of a module was left out."""
PLACES = {"not-laid-out": to_say("{module} ({reason})"), "not-understood": to_say("{reason}, in {module}")}
"""How a module and the reason stand together."""


def in_words(remarks: Iterable[Remark]) -> str:
    """Return remarks in the reader's language. Raises KeyError, TypeError or ValueError for what is no remark."""
    return sentences(*(_sentence(code, values) for code, values in remarks))


def of_settings(settings: Mapping[str, Any]) -> str:
    """Return what a saved trace, which nobody vouches for, says of its making; empty where it says nothing.

    A trace that has no remarks may have a sentence, which stands there in the language that it was written in.
    """
    try:
        return in_words(settings[NOTES])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        effect = settings.get("observer_effect")
        return effect if isinstance(effect, str) else ""


def left_out(code: str, reasons: Mapping[str, Remark]) -> Remark:
    """Return the remark on modules that were left out, by path."""
    return code, {"modules": [[path, *reason] for path, reason in sorted(reasons.items())][:SHOWN]}


def path_in_words(path: str) -> str:
    """Return the path of a module; the model's own is empty."""
    return path or say("the model itself")


def _sentence(code: str, values: Mapping[str, Any]) -> str:
    if code not in PLACES:
        return say(SENTENCES[code], **values)
    return say(SENTENCES[code], modules=listed(_module(PLACES[code], *one) for one in values["modules"][:SHOWN]))


def _module(place: str, path: str, code: str, values: Mapping[str, Any]) -> str:
    return say(place, module=path_in_words(path), reason=say(REASONS[code], **values))
