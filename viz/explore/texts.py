"""The texts of Explore: how a view is explained, captions of the chosen head, changes in words."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import streamlit as st

from attenscope.analysis.heads import (
    ALIGNMENT_EXPLANATION,
    ALIGNMENT_READINGS,
    AlignmentReading,
    HeadAlignment,
    head_name,
    rank_heads_by_alignment,
)
from attenscope.experiments.ablation import Comparison
from attenscope.interventions.changes import HeadChange, ModelChange, parse_changes
from attenscope.language import format_number, join_items, join_sentences, say, to_say
from attenscope.text.words import WordChange
from attenscope.trace import Head, Kind
from attenscope.viz.explore.view_data import RunKey, Scene, TokenDisplay
from attenscope.viz.export.parts import Part, Words
from attenscope.viz.figures.figure_style import quote_token
from attenscope.viz.figures.text_alternatives import describe_pinned_row, describe_strongest_head_link
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.shared import KIND
from attenscope.viz.ui.captions import CHANGE_MARKS, draw_caption, escape_markdown
from attenscope.viz.ui.head_alignment import describe_head_alignment
from attenscope.viz.web.maps import ROLE_NAMES, AxisRoles

# The explanation of a view, in one line and in detail.


class ViewText(NamedTuple):
    """The explanation of a view."""

    line: str
    paragraphs: tuple[str | tuple[str, ...], ...]
    """What stands behind the question mark: each a message in Markdown, or several in a row."""
    equations: Mapping[str, str] = {}
    """The values of the {fields} of the paragraphs."""

    @property
    def details(self) -> str:
        """The paragraphs in the reader's language, in Markdown."""
        rows = ((one,) if isinstance(one, str) else one for one in self.paragraphs)
        values = {"weights": WEIGHTS_EQUATION, **self.equations}
        return "\n\n".join(join_sentences(*(say(message, **values) for message in row)) for row in rows)


WEIGHTS_EQUATION = r"$$A = \mathrm{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}} + M\right), \qquad \sum_k A_{qk} = 1$$"
WEIGHTS_TEXT = (
    "{weights}",
    to_say(
        "$Q$ and $K$ hold a query and a key vector of $d$ numbers for each token; $M$ is $-\\infty$ where a query may "
        "not attend to a key, which makes that weight exactly 0 (Vaswani et al. 2017, equation 1)."
    ),
)


# Captions of the chosen head, and of how its tokens are displayed.


PLACE_TEXTS: dict[AlignmentReading, str] = {
    "predicted": to_say("Place {place} of {count}, read by the token predicted."),
    "fed": to_say("Place {place} of {count}, read by the token fed in."),
}
"""Which of all heads it is, in the order of the tiles."""
OTHER_READING_TEXTS: dict[AlignmentReading, str] = {
    "fed": to_say("Read one row late, at the token just fed in, {head} aligns better: {mass:.0%}."),
    "predicted": to_say("Read at the token that a row predicts, {head} aligns better: {mass:.0%}."),
}


def draw_head_summary(scene: Scene) -> None:
    """Draw above the picture what to see, what the chosen head does, and where its pinned row looks."""
    with st.container(key="headclaim"):  # Of one height for most heads, so that the picture does not move.
        if lesson := scene.source.what_to_see(scene.kind, scene.layer, scene.head):
            st.markdown(escape_markdown(lesson))
        draw_caption(head_alt_text(scene))


def head_alt_text(scene: Scene) -> str:
    """The text alternative of a picture of the chosen head."""
    return join_sentences(scene.summary, _describe_pinned_or_strongest_link(scene))


def _describe_pinned_or_strongest_link(scene: Scene) -> str:
    """Where the pinned row looks, or else the head's strongest link; special tokens count where they are hidden too."""
    place, row = (scene.tokens.whole, scene.layer, scene.head), scene.pinned_row_with_special_tokens
    return (
        describe_strongest_head_link(*place, scene.rows)
        if row is None
        else describe_pinned_row(*place, row, scene.rows)
    )


def draw_head_alignment_captions(scene: Scene) -> None:
    """Draw how well the chosen head aligns as the rows are named, which does better otherwise, and what is measured."""
    ranking = rank_heads_by_alignment(scene.tokens.original, readings=(scene.rows,))
    places = [(one.layer, one.head) for one in ranking]
    place = places.index((scene.layer, scene.head))
    position = say(PLACE_TEXTS[scene.rows], place=place + 1, count=len(ranking))
    measured = _describe_measured_alignment(scene)
    draw_caption(
        join_sentences(
            ranking[place].sentence, position, measured or _describe_alignment_by_other_rows(scene, ranking[0])
        )
    )
    draw_caption(say(ALIGNMENT_EXPLANATION))


def _describe_measured_alignment(scene: Scene) -> str:
    """How well the chosen head aligns against links drawn by hand; "" for a model as it does not run by itself."""
    if scene.source.run is None or scene.source.changes:
        return ""
    head: Head = (scene.kind, scene.layer, scene.head)
    return describe_head_alignment(scene.source.model, scene.trace.model_hash, head, scene.rows)


def _describe_alignment_by_other_rows(scene: Scene, best: HeadAlignment) -> str:
    """Which head aligns better than the `best` where the rows are read by their other token; "" for none."""
    other = rank_heads_by_alignment(scene.tokens.original, [one for one in ALIGNMENT_READINGS if one != scene.rows])[0]
    if other.mass <= best.mass:
        return ""
    return say(OTHER_READING_TEXTS[other.reading], head=head_name(("cross", other.layer, other.head)), mass=other.mass)


def draw_map_preprocessing_captions(displays: Mapping[str, TokenDisplay]) -> None:
    """Draw what was done to the maps of a view before they were drawn."""
    if special := {
        name: one.hidden_attention_share - one.hidden_first_token_share
        for name, one in displays.items()
        if one.has_hidden_special_keys
    }:
        draw_caption(
            say(
                "Special tokens are hidden: they hold {shares} of the weight of the rows shown, over all layers and "
                "heads.",
                shares=_format_weight_shares_by_map(special),
            )
        )
    if first := {name: one.hidden_first_token_share for name, one in displays.items() if one.hides_first}:
        names = dict.fromkeys(one.whole.key_tokens[0] for one in displays.values() if one.hides_first)
        draw_caption(
            say(
                "The first token, {token}, is left out: it holds {shares} of the weight of the rows shown, over all "
                "layers and heads.",
                token=join_items(map(quote_token, names)),
                shares=_format_weight_shares_by_map(first),
            )
        )
    if any(tokens.joins_pieces for tokens in displays.values()):
        draw_caption(
            say("Pieces are merged into words: weights are summed over a word's keys and averaged over its queries.")
        )


def _format_weight_shares_by_map(shares: Mapping[str, float]) -> str:
    """Shares of weight by the name of their map, which is said where there are several."""
    held = {name: format_number(share, ".0%") for name, share in shares.items()}
    return join_items(
        share if len(held) == 1 else say("{share} ({map})", share=share, map=name) for name, share in held.items()
    )


def describe_chat_role_bands(roles: AxisRoles) -> str:
    """What the bands on the axes of a chat's map mean; "" without any."""
    shown = [say(name) for role, name in ROLE_NAMES.items() if any(role in axis for axis in roles)]
    if not shown:
        return ""
    return say(
        "The bands on the axes say whose text it is ({roles}); the chat template's own tokens have none.",
        roles=join_items(shown),
    )


def describe_attention_sink(scene: Scene) -> str:
    """Which key is a sink of the chosen head, in the rows displayed; "" for none."""
    found = scene.tokens.find_head_sink(scene.layer, scene.head)
    if found is None:
        return ""
    sink, shown = found
    facts = {"token": quote_token(scene.tokens.whole.key_tokens[sink.key]), "share": format_number(sink.share, ".0%")}
    if shown:
        return say("The column {token} is a sink: it holds {share} of the weight of this head's rows.", **facts)
    return say(
        "The column {token}, which is left out, is a sink: it holds {share} of the weight of this head's rows.", **facts
    )


# Changes to the model, and their effect on the translation.


CHANGE_REMARKS = {
    "off": to_say("This head is off: it still computes these weights, but nothing it reads is passed on."),
    "uniform": to_say("This head is made uniform: every key that it may attend to has the same weight."),
    "copy": to_say("This head has the weights of another head; the values it reads are its own."),
}
CHANGE_NAMES = {"off": to_say("off"), "uniform": to_say("uniform")}
CHANGE_PHRASES = {
    "off": to_say("{kind} layer {layer} {heads} off"),
    "uniform": to_say("{kind} layer {layer} {heads} uniform"),
    "copy": to_say("{kind} layer {layer} {heads} as head {source}"),
}
CHANGE_TAGS = {"same": "span", "removed": "del", "added": "ins"}


def describe_head_change_effect(comparison: Comparison) -> str:
    """The changes, and how the translation and its probability change with them."""
    changes = say("With {changes}.", changes=join_items(describe_changes(comparison.changes)))
    return join_sentences(changes, comparison.sentence)


def build_head_change_effect_parts(run: RunKey) -> list[Part]:
    """The effect of a run's changes for a saved file: the new translation with its marks, and the sentence."""
    comparison = cache.compute_intervention_comparison(run.model, run.sentence, run.changes, run.given)
    marked = [(one.text, CHANGE_MARKS[one.change]) for one in comparison.words]
    text = "".join(one.text for one in comparison.words)
    translation: list[Part] = [] if run.given else [Words(text, "translation", marked=marked)]
    return [*translation, Words(describe_head_change_effect(comparison), "translation")]


def describe_changed_head(changes: str, kind: Kind, layer: int, head: int) -> str:
    """A remark on the picture of a head, counted from 0, that the changes change; "" for an unchanged one."""
    for one in parse_changes(changes):
        if isinstance(one, HeadChange) and (one.kind, one.layer, one.head) == (kind, layer, head):
            return say(CHANGE_REMARKS[one.change])
    return ""


def render_word_diff(words: Sequence[WordChange]) -> str:
    """Words as HTML, what is gone struck through and what is new underlined."""
    return "".join(f"<{CHANGE_TAGS[one.change]}>{html.escape(one.text)}</{CHANGE_TAGS[one.change]}>" for one in words)


def name_head_change(change: HeadChange) -> str:
    """A change of one head, as its control names it."""
    return (
        say("as head {head}", head=change.source + 1) if change.source is not None else say(CHANGE_NAMES[change.change])
    )


def describe_changes(changes: Sequence[ModelChange]) -> list[str]:
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
            CHANGE_PHRASES[one.change],
            kind=KIND.label(one.kind),
            layer=one.layer + 1,
            heads=_format_head_numbers(numbers),
            source=(one.source or 0) + 1,
        )
        for one, numbers in heads.items()
    )
    return [*phrases, *others]


def _format_head_numbers(numbers: Sequence[int]) -> str:
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
    return say("heads {heads} and {last}", heads=join_items(several), last=last)
