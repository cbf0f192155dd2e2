"""The texts around the pictures: captions, hints, the badge, the glossary and marked word changes."""

from __future__ import annotations

import functools
import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import streamlit as st

from attenscope.decoding.greedy_and_sampling import ObserverCheck
from attenscope.devices import has_switched_to_cpu
from attenscope.evaluation.in_domain_detection import FALSE_ALARMS, mean_log_prob
from attenscope.language import (
    current_language,
    format_number,
    join_items,
    join_sentences,
    load_translated_toml,
    say,
    to_say,
)
from attenscope.runnable_model import RunnableModel, Translation
from attenscope.text.words import LANGUAGE_NAMES, compare_texts_by_word, detect_foreign_language
from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import format_signed, quote_token
from attenscope.viz.ui import cache
from attenscope.viz.ui.addresses.shared import MODEL
from attenscope.viz.web.text_components import SURE_FROM, is_low_probability_token

# Captions of one line, hints, and the badge in the header.


MARKDOWN_SIGNS = frozenset(r"\`*_{}[]()#+-.!|<>~:$^=&")
COMMAND = re.compile("`([^`\n]+)`")
"""A command in a message."""
DEVICE_NAMES = {"cpu": "CPU", "cuda": "GPU"}


def escape_markdown(text: str) -> str:
    """Escape every Markdown sign in a token or a sentence, for places where Streamlit reads Markdown."""
    return "".join(f"\\{sign}" if sign in MARKDOWN_SIGNS else sign for sign in text)


def escape_message(text: str) -> str:
    """Escape a message as :func:`escape_markdown` does, but for commands in it, which stand between backticks: code."""
    parts = COMMAND.split(text)
    return "".join(f"`{part}`" if at % 2 else escape_markdown(part) for at, part in enumerate(parts))


def draw_caption(text: str) -> None:
    """Draw a line of plain text in which the terms of the glossary show their meaning."""
    st.caption(mark_glossary_terms(escape_markdown(text)), unsafe_allow_html=True)


def draw_model_run_badge(model: RunnableModel, result: Translation, check: ObserverCheck) -> None:
    """Draw in the header which model ran, where, how fast, and whether observing it changed the result."""
    device, proof = DEVICE_NAMES.get(model.device.type, model.device.type), html.escape(check.sentence)
    title = html.escape(f"{model.name}: {check.sentence}. {check.explanation}")
    parts = [
        f'<span class="more">{html.escape(model.name)} · </span>{html.escape(device)}',
        f'<span class="time"> · {_duration_text(result.seconds)}</span><span class="more"> · {proof}</span>',
        " ✓" if check.difference == 0 else "",
    ]
    with st.container(key="badge"):  # Where there is little room, what has a class is left out.
        st.html(f'<span title="{title}">{"".join(parts)}</span>')


def _duration_text(seconds: float) -> str:
    """A duration in about the same number of letters for any value: a narrow badge has no room for more."""
    return f"{seconds * 1000:.0f} ms" if seconds < 0.9995 else f"{format_number(seconds, '.1f')} s"


def draw_translation_warnings(model: RunnableModel, result: Translation, own: Translation) -> None:
    """Draw what a reader should know about this sentence before trusting the picture.

    `result` is what the page shows. `own` is what the unchanged model writes by itself: how sure the model is of `own`
    depends on the sentence alone; how sure it is of another translation, also on what was changed or given.
    """
    language = model.card.get("source_language", "")
    other = detect_foreign_language(result.source, language) if language else None
    if other:
        reads = LANGUAGE_NAMES.get(language, language)
        draw_caption(
            say(
                "This looks like {other}. The model reads {own}, so its translation may make no sense.",
                other=say(LANGUAGE_NAMES[other]),
                own=say(reads),
            )
        )
        _draw_matching_model_button(other)
    if has_switched_to_cpu():
        draw_caption(
            say("The GPU has no memory left, so the CPU computes now, with the same numbers but for rounding.")
        )
    if result.unknown:
        pieces = join_items(map(quote_token, dict.fromkeys(result.unknown)))
        if any(one.startswith("<0x") for one in result.source_tokens):
            draw_caption(say("The vocabulary has no pieces for {pieces}: the model reads bytes there.", pieces=pieces))
        else:
            draw_caption(
                say("The vocabulary has no pieces for {pieces}: the model reads an unknown token there.", pieces=pieces)
            )
    if result.stop_reason == "length":
        count = len(result.steps)
        draw_caption(
            say("Cut off at the limit of {count} pieces: the model had not ended the sentence.", count=count)
            if model.can("translate")
            else say("Cut off at the limit of {count} pieces: the model had not ended the text.", count=count)
        )
    for note in model.notes:
        draw_caption(note)
    if model.can("translate") and (doubt := _describe_model_doubt(model, own)):  # What follows a prompt is open.
        draw_caption(doubt)


def _describe_model_doubt(model: RunnableModel, own: Translation) -> str:
    """Say that the model doubts its own translation; compares with its measured in-domain score, where there is one."""
    known = cache.load_in_domain_score(model.name)
    closer = say("Try a sentence that is closer to its training text.")
    if known and not any(step.forced for step in own.steps):
        if not known.is_translation_unfamiliar(own.steps):
            return ""
        said = say(
            "The model is less sure of its own translation of this sentence than of its translations of {share:.0%} of "
            "{sentences} sentences of {set}: the mean log-probability is {mean} a piece.",
            share=1 - FALSE_ALARMS,
            sentences=known.sentences,
            set=known.set,
            mean=format_signed(mean_log_prob(own.steps)),
        )
        return join_sentences(said, closer)
    unsure = sum(map(is_low_probability_token, own.steps))
    if 2 * unsure <= len(own.steps):
        return ""
    said = say(
        "The model was unsure of most pieces of its own translation: it gave {unsure} of {count} a probability below "
        "{sure:.0%}.",
        unsure=unsure,
        count=len(own.steps),
        sure=SURE_FROM,
    )
    return join_sentences(said, closer)


def _draw_matching_model_button(language: str) -> None:
    """Draw a button that goes on with a model that reads the language, where there is one."""
    reading = [name for name, reads in cache.load_source_languages().items() if reads == language]
    if reading:
        draw_model_button(say("Use {model}", model=reading[0]), reading[0], key="use-other-model")


def draw_model_button(label: str, name: str, *, key: str) -> None:
    """Draw a button that goes on with another model."""
    if st.button(escape_markdown(label), key=key, on_click=choose_model, args=(name,)):
        st.rerun()  # In a fragment the click has run nothing else, and the model is chosen outside of it.


def choose_model(name: str) -> None:
    """Go on with another model; for callbacks."""
    st.session_state[MODEL.key] = name


# The glossary: what a term means, shown where the term stands and as a list in the menu of every page.


GLOSSARY_FILE = Path(__file__).parent / "glossary.toml"
WORD_ENDINGS = {"de": "(?:e[mns]?|n|s)?"}
"""A pattern of the endings of each word of a term, by language; in other languages the file lists every form."""
LONGER_WORD_SIGNS = {"de": r"\w"}
"""Signs that make a longer word of a term, by language. Elsewhere a hyphen does too; in German it joins whole nouns."""
LETTER_FLAGS = {"zh": re.ASCII}
"""Regular expression flags, by language: in Chinese only ASCII letters make a word longer, as words have no borders."""


@dataclass(frozen=True)
class GlossaryEntry:
    """A term, and what it means in two sentences."""

    term: str
    text: str
    formula: str = ""
    also: tuple[str, ...] = ()
    """Other forms of the term, such as its plural."""
    quiet: bool = False
    """Whether it is in the list alone, as it stands in nearly every text."""
    reading: str = ""
    """The sort key of a term whose own signs have no order: pinyin for Chinese."""

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.term, *self.also)

    @property
    def meaning(self) -> str:
        """The two sentences, and the formula in a line of its own."""
        return f"{self.text}\n{self.formula}" if self.formula else self.text


def load_glossary_entries() -> tuple[GlossaryEntry, ...]:
    """Return the entries in the current language, in alphabetical order."""
    return _load_entries_in(current_language())


@functools.cache
def _load_entries_in(language: str) -> tuple[GlossaryEntry, ...]:
    found = (
        GlossaryEntry(**one | {"also": tuple(one.get("also", ()))})
        for one in load_translated_toml(GLOSSARY_FILE, language)["entry"]
    )
    return tuple(sorted(found, key=lambda entry: (entry.reading or entry.term).lower()))


def mark_glossary_terms(markdown: str) -> str:
    """Return Markdown in which the first occurrence of each term shows its meaning on hover, focus and tap.

    Text in quotes is a token or a sentence and stays as it is.
    """
    language = current_language()
    shown: set[GlossaryEntry] = set()

    def mark(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        entry = _find_entry(found[1], language)
        if entry in shown:
            return found[0]
        shown.add(entry)
        meaning = html.escape(entry.meaning).replace("\n", "&#10;")
        return f'<span class="term" tabindex="0" data-meaning="{meaning}">{found[0]}</span>'

    return _term_pattern(language).sub(mark, markdown)


KEY_HELP: tuple[tuple[str, str], ...] = (
    ("p", to_say("the view full screen, and back")),
    ("← → ↑ ↓", to_say("the next tile, cell or step of what has the focus")),
    (to_say("Home, End"), to_say("the first and the last step")),
    (to_say("Space"), to_say("plays a decoding, and pauses it")),
    (to_say("Enter"), to_say("opens the tile, pins the cell")),
    (to_say("Esc"), to_say("closes a menu, leaves full screen")),
)
"""The keys and what each does."""


def draw_keyboard_shortcuts() -> None:
    """Draw all keys, folded away."""
    listed = "".join(f"<dt>{html.escape(say(keys))}</dt><dd>{html.escape(say(what))}</dd>" for keys, what in KEY_HELP)
    st.html(_folded_list_html(say("Keyboard"), listed))


def draw_glossary() -> None:
    """Draw all entries, folded away."""
    listed = "".join(
        f"<dt>{html.escape(one.term)}</dt><dd>{_build_entry_meaning_html(one)}</dd>" for one in load_glossary_entries()
    )
    st.html(_folded_list_html(say("Glossary"), listed))


def _folded_list_html(heading: str, listed: str) -> str:
    return f'<details class="glossary"><summary>{html.escape(heading)}</summary><dl>{listed}</dl></details>'


def _build_entry_meaning_html(entry: GlossaryEntry) -> str:
    return "<br>".join(map(html.escape, entry.meaning.split("\n")))


@functools.cache
def _list_glossary_term_forms(language: str) -> list[tuple[str, GlossaryEntry]]:
    """Every form of a term that is marked with its entry, the longest first."""
    found = [(form, entry) for entry in _load_entries_in(language) if not entry.quiet for form in entry.forms]
    return sorted(found, key=lambda one: len(one[0]), reverse=True)


@functools.cache
def _term_pattern(language: str) -> re.Pattern[str]:
    """A pattern of a form of a term, as its group, or of text to skip: quotations and the file's `passed`."""
    terms = "|".join(
        _build_term_form_pattern(form, WORD_ENDINGS.get(language, ""))
        for form, _ in _list_glossary_term_forms(language)
    )
    passed = "|".join(map(_build_term_form_pattern, load_translated_toml(GLOSSARY_FILE, language)["passed"]))
    longer = LONGER_WORD_SIGNS.get(language, r"[\w-]")
    before, after = rf"(?:(?<!{longer})(?<!\\_)|(?!\w))", rf"(?:(?!\\?{longer})|(?<!\w))"
    whole = rf"„[^“]*“|“[^”]*”|(?:{passed}){after}|{before}({terms}){after}"
    return re.compile(whole, re.IGNORECASE | LETTER_FLAGS.get(language, re.NOFLAG))


@functools.lru_cache(maxsize=1024)
def _find_entry(found: str, language: str) -> GlossaryEntry:
    """The entry of a form as the pattern finds it."""
    ending = WORD_ENDINGS.get(language, "")
    return next(
        one
        for form, one in _list_glossary_term_forms(language)
        if re.fullmatch(_build_term_form_pattern(form, ending), found, re.IGNORECASE)
    )


def _build_term_form_pattern(form: str, ending: str = "") -> str:
    """The pattern of a form as Markdown has it, each of its words with an ending."""
    return " ".join(re.escape(word).replace(r"\-", r"\\?-") + ending for word in form.split(" "))


# Two translations of one sentence: which words differ, and how differently the model attended.


ChangeMark = Literal["same", "new", "gone"]
"""Whether a piece of a text is unchanged, new or gone, compared with an earlier text."""
CHANGE_MARKS: dict[str, ChangeMark] = {"same": "same", "removed": "gone", "added": "new"}
"""The mark of each :class:`attenscope.text.words.WordChange`."""


def mark_word_changes(before: str, after: str) -> tuple[tuple[str, ChangeMark], ...]:
    """Runs of words of both texts in reading order, spaces included, each with its mark."""
    return tuple((run.text, CHANGE_MARKS[run.change]) for run in compare_texts_by_word(before, after))


def compute_attention_difference(first: AttentionMap, second: AttentionMap) -> float:
    """How differently two decodings of one sentence attended to it, 0 (the same) to 1 (nothing in common).

    Total variation distance, half the sum of |a - b| over the keys, averaged over layers, heads and the rows both have.
    """
    rows = min(first.weights.shape[2], second.weights.shape[2])
    return float(np.abs(first.weights[:, :, :rows] - second.weights[:, :, :rows]).sum(-1).mean() / 2)
