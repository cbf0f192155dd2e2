"""One word of a translation: its probability, what else was considered, where it looked, and the heads that matter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from model.heads.names import head_name
from model.language.say import say

from ...figures.labels import percent, quoted, readable, signed
from ...figures.places import place_name
from ..bundle import component

if TYPE_CHECKING:
    from model.decoding.steps import DecodingStep
    from model.experiments.word_facts import WordFacts
    from model.trace import Head

_mount = component("word_card")
ROWS = 4
"""Rows of each part of the card."""


@dataclass(frozen=True)
class CardActions:
    """What a card does when it is pressed."""

    close: Callable[[], None]
    candidate: Callable[[int], None]
    """Of a token id, to be written instead."""
    head: Callable[[Head], None]
    why: Callable[[], None]
    """Of "Why this word?"."""
    open: Callable[[], None] | None = None
    """Of "Open in Decode"; None where the card stands there."""


def word_card(data: dict[str, Any], actions: CardActions, *, key: str) -> None:
    """Draw a card of what :func:`card_data` gives."""
    state = lambda: st.session_state[key]  # noqa: E731  (what the browser sent, read when a callback runs)

    def head() -> None:
        kind, layer, number = state().head
        actions.head((kind, int(layer), int(number)))

    _mount(
        key=key,
        data=data | {"why": True, "open": say("Open in Decode") if actions.open else ""},
        on_close_change=actions.close,
        on_candidate_change=lambda: actions.candidate(int(state().candidate)),
        on_head_change=head,
        on_open_change=actions.open or (lambda: None),
        on_why_change=actions.why,
    )


def card_data(step: DecodingStep, facts: WordFacts, heads: Sequence[tuple[Head, float]]) -> dict[str, Any]:
    """What word_card.js reads. `heads` and the change of the token's log-probability without each, largest first."""
    name, position = readable(step.token), step.position
    others = [one for one in step.candidates if one.token_id != step.token_id and not one.forbidden][:ROWS]
    largest = max(1.0, *(abs(change) for _, change in heads))  # of less than a nat, a bar is not to look like much
    return {
        "step": position,
        "label": say("The word {word}", word=name),
        "word": name,
        "fact": f"{percent(math.exp(step.log_prob))} · {_rank(step.rank)}",
        "others": [
            {"id": one.token_id, "text": readable(one.token), "value": percent(share), "share": share}
            for one, share in ((one, math.exp(one.log_prob)) for one in others)
        ],
        "sources": [
            {"text": readable(one.text), "value": percent(one.share), "share": one.share}
            for one in facts.source_shares(position)[:ROWS]
        ],
        "heads": [_head(head, change, largest) for head, change in heads[:ROWS]],
        "headsNote": say("change of log-prob. when off"),
        "decided": decided_text(step, facts),
    }


def decided_text(step: DecodingStep, facts: WordFacts) -> str:
    """From which layer on the token written is the one that the model would write."""
    name, place = quoted(step.token), facts.decided(step.position)
    if place is None:
        return say("After the last layer another token than {token} is the most probable.", token=name)
    if place == facts.lens.places[0]:
        return say("{token} is the most probable token from the embedding on, before any layer.", token=name)
    return say(
        "{token} is the most probable token from {place} of {layers} on.",
        token=name,
        place=place_name(place),
        layers=len(facts.lens.places) - 1,
    )


def _rank(rank: int) -> str:
    return say("the most probable token") if rank == 1 else say("rank {rank:,}", rank=rank)


def _head(head: Head, change: float, largest: float) -> dict[str, Any]:
    name = head_name(head)
    value = signed(change, plus=True)
    return {
        "place": list(head),
        "text": name,
        "value": value,
        "share": abs(change) / largest,
        "label": say("Show {head}: {change} nats without it", head=name, change=value),
    }
