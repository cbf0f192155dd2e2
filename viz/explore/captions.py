"""What Explore says about the chosen head and about how its tokens are displayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from model.analysis.alignment import EXPLAINED as ALIGNMENT_EXPLAINED
from model.analysis.alignment import rank_alignment
from model.language.say import listed, number, say, sentences
from viz.figures.words import head_in_words, overview_in_words, row_in_words
from viz.ui.captions import caption, plain

from .intervention_texts import head_remark

if TYPE_CHECKING:
    from .choices import HeadOrder
    from .scene import Scene
    from .token_display import TokenDisplay


def head_claim(scene: Scene) -> None:
    """Draw what to see, what the chosen head does, and where its pinned row looks: above its picture."""
    with st.container(key="headclaim"):  # Of one height for most heads, so that the picture does not move.
        if lesson := scene.source.what_to_see(scene.kind, scene.layer, scene.head):
            st.markdown(plain(lesson))
        caption(alt(scene))


def order_captions(scene: Scene, order: HeadOrder) -> None:
    """Draw what the order of the tiles is, and what is known of the chosen head beyond this sentence."""
    caption(order.text or overview_in_words(scene.attention))
    run = scene.source.run
    if run and (remark := head_remark(run, scene.kind, scene.layer, scene.head)):
        caption(remark)
    if order.measure == "alignment":
        _alignment(scene)


def alt(scene: Scene) -> str:
    """The text alternative of a picture of the chosen head."""
    return sentences(scene.summary, _looks(scene))


def _looks(scene: Scene) -> str:
    """Where the pinned row looks, or else the head's strongest link."""
    place = scene.attention, scene.layer, scene.head
    return head_in_words(*place, scene.rows) if scene.query is None else row_in_words(*place, scene.query, scene.rows)


def _alignment(scene: Scene) -> None:
    """Draw how well the chosen head aligns, and how that is measured."""
    ranking = rank_alignment(scene.tokens.original)
    places = [(one.layer, one.head) for one in ranking]
    place = places.index((scene.layer, scene.head))
    caption(sentences(ranking[place].sentence, say("Place {place} of {count}.", place=place + 1, count=len(ranking))))
    caption(say(ALIGNMENT_EXPLAINED))


def token_captions(displays: Mapping[str, TokenDisplay]) -> None:
    """Draw what was done to the maps of a view before they were drawn."""
    shares = [(name, tokens.hidden_mass) for name, tokens in displays.items() if tokens.hidden]
    if shares:
        held = [(number(share, ".0%"), name) for name, share in shares]
        of = [share if len(held) == 1 else say("{share} ({map})", share=share, map=name) for share, name in held]
        caption(
            say(
                "Renormalised: special tokens are hidden and each row is divided by what is left of it. Of the weight "
                "of the rows shown they held {shares}, over all layers and heads.",
                shares=listed(of),
            )
        )
    if any(tokens.merged for tokens in displays.values()):
        caption(
            say("Pieces are merged into words: weights are summed over a word's keys and averaged over its queries.")
        )
