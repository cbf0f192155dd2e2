"""Names for the rows and columns of a recorded trace: what the model's user knows and the model does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ..language.say import listed, say, to_say
from ..trace import AttentionMap, AttentionTrace, Kind, TraceError, with_tokens
from .words import SPECIAL_TOKENS, START

Tokens = Sequence[str] | Sequence[Sequence[str]] | Mapping[str, Sequence[str] | Sequence[Sequence[str]]]
"""One sentence's tokens, those of each sample of a batch, or either as ``{"source": ..., "target": ...}``."""
SIDES = ("source", "target", "predicted")
"""The target tokens are those fed in; predicted are those that came out at the same rows, where that is known."""

NOT_AS_MANY = {
    "rows": to_say("The {kind} map has {count} rows, but {tokens} tokens were given for them."),
    "columns": to_say("The {kind} map has {count} columns, but {tokens} tokens were given for them."),
}


def name_tokens(trace: AttentionTrace, tokens: Tokens, sample: int = 0) -> AttentionTrace:
    """Return the trace with its rows and columns named.

    Plain tokens are for a trace that has one self-attention alone. Raises TraceError where the numbers differ.
    """
    sides = _sides(trace, tokens)
    named = {side: _of_sample(side, given, sample) for side, given in sides.items()}
    maps: dict[str, Any] = {kind: _named(one, kind, named) for kind, one in trace.maps.items()}
    source, target = (_text(named[side]) if side in named else getattr(trace, side) for side in ("source", "target"))
    return dataclasses.replace(trace, **maps, source=source, target=target)


def name_translation(
    trace: AttentionTrace, source: Sequence[str], predicted: Sequence[str], start: str = START
) -> AttentionTrace:
    """Return the trace of a translation with its rows and columns named.

    What the decoder was fed at a row is what it predicted at the row before, and `start` at the first.
    """
    return name_tokens(trace, {"source": source, "target": (start, *predicted[:-1]), "predicted": predicted})


def name_continuation(trace: AttentionTrace, prompt: Sequence[str], predicted: Sequence[str]) -> AttentionTrace:
    """Return the trace of a prompt and its continuation with its rows and columns named.

    Of a row of the prompt but its last, the token "predicted" is the next one of the prompt, which was given.
    """
    return name_tokens(trace, {"target": (*prompt, *predicted[:-1]), "predicted": (*prompt[1:], *predicted)})


def _sides(trace: AttentionTrace, tokens: Tokens) -> Mapping[str, Any]:
    if isinstance(tokens, Mapping):
        if unknown := set(tokens) - set(SIDES):
            raise TraceError(
                say(
                    "Tokens are given for {given}; the sides are {sides}.",
                    given=listed(sorted(unknown)),
                    sides=listed(SIDES),
                )
            )
        return tokens
    if isinstance(tokens, str):
        raise TraceError(say("The tokens are one text; give a list with a string for each token."))
    if len(trace.maps) != 1 or trace.cross is not None:
        raise TraceError(
            say("This model has two sides: give {code}.", code='tokens={"source": [...], "target": [...]}')
        )
    return {"target" if trace.decoder is not None else "source": tokens}


def _of_sample(side: str, given: Any, sample: int) -> tuple[str, ...]:
    rows = [given] if all(isinstance(one, str) for one in given) else list(given)
    if sample >= len(rows):
        raise TraceError(
            say(
                "The {side} tokens are of {count} samples, but sample {sample} is asked for.",
                side=side,
                count=len(rows),
                sample=sample + 1,
            )
        )
    return tuple(map(str, rows[sample]))


def _named(one: AttentionMap, kind: Kind, named: Mapping[str, tuple[str, ...]]) -> AttentionMap:
    queries = named.get("source" if kind == "encoder" else "target", one.query_tokens)
    keys = named.get("target" if kind == "decoder" else "source", one.key_tokens)
    predicted = one.predicted_tokens if kind == "encoder" else named.get("predicted", one.predicted_tokens)
    keys = (*keys, *_names_of_no_token(one.key_tokens, len(keys)))
    axes = (("rows", queries, one.query_tokens), ("columns", keys, one.key_tokens))
    for axis, names, numbers in (*axes, ("rows", predicted or one.query_tokens, one.query_tokens)):
        if len(names) != len(numbers):
            raise TraceError(say(NOT_AS_MANY[axis], kind=kind, count=len(numbers), tokens=len(names)))
    return with_tokens(one, queries, keys, predicted)


def _names_of_no_token(columns: Sequence[str], tokens: int) -> Sequence[str]:
    """Return the names of the columns after the numbered ones, such as a sink, which belong to no token."""
    numbered = [name.isdigit() for name in columns]
    return columns[tokens:] if all(numbered[:tokens]) and not any(numbered[tokens:]) else ()


def _text(tokens: Sequence[str]) -> str:
    """Tokens as one text, without the special ones: joined by spaces unless they carry their own."""
    real = [token for token in tokens if token not in SPECIAL_TOKENS]
    marked = any(token.startswith((" ", "\u2581", "\u0120")) for token in real)
    joined = ("" if marked else " ").join(real)
    return joined.replace("\u2581", " ").replace("\u0120", " ").replace(" ##", "").strip()
