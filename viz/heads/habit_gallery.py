"""The gallery of habits with which Heads begins: what heads do most decidedly, each with three sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attenscope.analysis.heads import AlignmentReading, head_name
from attenscope.atlas.query import Atlas, HeadLabel, HeadRow
from attenscope.atlas.teacher_forced_batches import PLACES, REPETITION_PLACES, Place
from attenscope.language import join_sentences, say, say_many, to_say
from attenscope.runnable_model import RunnableModel
from attenscope.text.parts_of_speech import is_punctuation
from attenscope.text.words import END_TOKENS
from attenscope.trace import Head
from attenscope.translate import Translator
from attenscope.viz.export.parts import Part, Table, Words
from attenscope.viz.export.share_menu import SavedView
from attenscope.viz.figures.figure_style import Palette
from attenscope.viz.heads import cache, texts
from attenscope.viz.heads.measure_scatter import open_one_head_view, tabulate_all_heads
from attenscope.viz.heads.one_head import render_shaded_rows
from attenscope.viz.ui.captions import draw_caption, escape_markdown
from attenscope.viz.ui.head_alignment import describe_head_alignment

EXAMPLES = 3
"""Sentences of a habit."""
HABIT_NAMES: dict[Place, str] = {
    "same": to_say("Looks at itself"),
    "previous": to_say("Looks one back"),
    "next": to_say("Looks one ahead"),
    "first": to_say("Looks at the beginning"),
    "last": to_say("Looks at the last word"),
    "end": to_say("Rests on the end"),
    "punctuation": to_say("Rests on punctuation"),
    "same_word": to_say("Looks for the same word"),
    "later_piece": to_say("Holds a word together"),
    "rare": to_say("Looks at the rare word"),
    "aligned_predicted": to_say("The aligner: looks at the word that it is about to write"),
    "aligned_fed": to_say("The late aligner: looks at the word that it has just written"),
    "induction": to_say("Induction head"),
    "duplicate": to_say("Duplicate-token head"),
}
"""What a person calls a head most of whose weight lies at a place."""
ONE_TEXT_HABIT_NAMES: dict[Place, str] = {
    "previous": to_say("Previous-token head"),
    "first": to_say("Attention sink: rests on the first token"),
}
"""What the field calls such heads of a decoder alone."""


HABIT_READINGS: dict[Place, AlignmentReading] = {"aligned_predicted": "predicted", "aligned_fed": "fed"}
"""Which token of a row a head that aligns is read at."""
ROW_SHOWS: dict[Place, Callable[[HeadRow, int], bool]] = {
    "same": lambda row, key: key == row.query,
    "previous": lambda row, key: key == row.query - 1,
    "next": lambda row, key: key == row.query + 1,
    "first": lambda row, key: key == 0,
    "end": lambda row, key: key > 0 and row.keys[key] in END_TOKENS,
    "punctuation": lambda row, key: is_punctuation(row.keys[key].strip()),
}
"""Whether the heaviest key of a row is at a place, as far as the row itself can tell."""


@dataclass(frozen=True)
class Habit:
    """A place at which the weight of some heads lies, and the head that shows it best."""

    head: Head
    label: HeadLabel
    others: int
    """Other heads with the same label."""
    is_one_text: bool = False
    """Whether the head is of a decoder alone."""


def find_surest_head_per_habit(atlas: Atlas) -> list[Habit]:
    """The habits for which the atlas has enough sentences, the surest first."""
    found = []
    for place in PLACES:
        named = [(head, one) for head, one in zip(atlas.names, atlas.labels, strict=True) if one.place == place]
        if named:
            head, label = max(named, key=lambda one: one[1].agreement)
            found.append(Habit(head, label, len(named) - 1, atlas.is_one_text))
    return sorted(found, key=lambda one: -one.label.agreement)


def draw_habits_view(model: RunnableModel, atlas: Atlas, bar: DeltaGenerator) -> SavedView:
    """Draw a card for each habit, two in a row."""
    habits = find_surest_head_per_habit(atlas)
    lead = describe_habit_head_counts(atlas, habits)
    with st.container(key="habits-lead"):
        draw_caption(lead)
    with st.container(key="habits"):
        for row in range(0, len(habits), 2):
            for column, one in zip(st.columns(2, gap="large"), habits[row : row + 2], strict=False):
                with column:
                    _draw_habit_card(atlas, one, describe_habit_alignment(model, one))
    if habits:
        draw_caption(texts.describe_shaded_rows(atlas, any(one.label.place == "aligned_fed" for one in habits)))
    headings = ["", say("head"), say("label")]
    cells = [[name_habit(one), head_name(one.head), one.label.text] for one in habits]

    def build_parts(_: Palette) -> list[Part]:
        return [Words(lead, "picture", "text"), Table(headings, list(map(list, cells)), say("Habits"))]

    facts = texts.collect_atlas_facts(model, atlas)
    return SavedView("heads-habits", build_parts, lambda: tabulate_all_heads(atlas), say("Habits of heads"), facts)


def find_examples(found: Mapping[str, Sequence[HeadRow]], habit: Habit) -> list[HeadRow]:
    """Rows that show a habit: of those drawn for the head, from its surest tenth on, where most weight lies there.

    What a row alone does not tell is not asked: its surest rows stand as they are.
    """
    every = [row for tenth in found.values() for row in tenth]
    assert habit.label.place is not None
    shows = ROW_SHOWS.get(habit.label.place)
    return [row for row in every if shows is None or shows(row, int(row.weights.argmax()))][:EXAMPLES]


def name_habit(habit: Habit) -> str:
    """What a person calls the head."""
    assert habit.label.place is not None
    own = ONE_TEXT_HABIT_NAMES if habit.is_one_text else {}
    return say(own.get(habit.label.place, HABIT_NAMES[habit.label.place]))


def describe_habit_head_counts(atlas: Atlas, habits: list[Habit]) -> str:
    """How many heads have a habit, and how many have none."""
    named = sum(1 + one.others for one in habits)
    if not named:
        return say("None of the {heads} heads looks at one kind of place in most of its rows.", heads=len(atlas.names))
    if sequences := atlas.manifest.repeats.get("sequences"):
        return say_many(
            "Nobody told a head what to do. Over {sentences:,} texts and {sequences} sequences of random tokens, "
            "{named} of {heads} looks at one kind of place most of the time; of the others that cannot be said.",
            "Nobody told a head what to do. Over {sentences:,} texts and {sequences} sequences of random tokens, "
            "{named} of {heads} look at one kind of place most of the time; of the others that cannot be said.",
            named,
            named=named,
            heads=len(atlas.names),
            sentences=atlas.manifest.sentences,
            sequences=sequences,
        )
    return say_many(
        "Nobody told a head what to do. Over {sentences:,} sentences {named} of {heads} looks at one kind of place "
        "most of the time; of the others that cannot be said.",
        "Nobody told a head what to do. Over {sentences:,} sentences {named} of {heads} look at one kind of place "
        "most of the time; of the others that cannot be said.",
        named,
        named=named,
        heads=len(atlas.names),
        sentences=atlas.manifest.sentences,
    )


def describe_habit(habit: Habit) -> str:
    """How sure the atlas is of a habit, and how many heads share it."""
    label = say("{head}: {label}.", head=head_name(habit.head), label=habit.label.text)
    shared = say_many("{count} more head does the same.", "{count} more heads do the same.", habit.others)
    return join_sentences(label, shared if habit.others else "")


def load_habit_example_rows(atlas: Atlas, habit: Habit) -> list[HeadRow]:
    """Rows of the corpus that show a habit; none where no text shows it."""
    identity, place = cache.make_atlas_identity(atlas), habit.label.place
    if place in REPETITION_PLACES:  # which few rows have, so that those drawn for the head may hold none
        return cache.load_repetition_rows(identity, habit.head, place, EXAMPLES, atlas)
    if place in HABIT_READINGS:  # A row alone does not tell what its token is aligned to.
        return cache.load_aligned_rows(identity, habit.head, HABIT_READINGS[place], EXAMPLES, atlas)
    return find_examples(cache.load_head_example_rows(identity, habit.head, atlas), habit)


def describe_habit_alignment(model: RunnableModel, habit: Habit) -> str:
    """How well a head aligns whose habit that is; empty for other habits, and where it was not measured."""
    reading = HABIT_READINGS.get(habit.label.place) if habit.label.place else None
    if reading is None or not isinstance(model, Translator):
        return ""
    return describe_head_alignment(model.name, model.checkpoint.hash, habit.head, reading)


def _draw_habit_card(atlas: Atlas, habit: Habit, alignment: str) -> None:
    name = name_habit(habit)
    key = "-".join(map(str, habit.head))
    with st.container(key=f"card-of-habit-{key}"):  # Its button covers all of it, as heads.css says.
        st.button(
            f"**{escape_markdown(name)}**",
            key=f"habit-{key}",
            type="tertiary",
            on_click=open_one_head_view,
            args=(habit.head,),
        )
        draw_caption(join_sentences(describe_habit(habit), alignment))
        rows = load_habit_example_rows(atlas, habit)
        if rows:
            st.html(render_shaded_rows(rows, [habit.head[0]] * len(rows), name))
        else:
            draw_caption(say("In none of these texts does it give more than half of a row's weight to one such token."))
