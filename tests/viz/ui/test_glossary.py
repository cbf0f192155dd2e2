"""The glossary: every term in two sentences, marked where it stands first, never inside what somebody typed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viz.page_texts import as_read
from viz.ui.captions import plain
from viz.ui.glossary import Entry, entries, with_meanings

FORMS = [form for one in entries() for form in one.forms]
SENTENCE_END = re.compile(r"[.](?=\s|$)")


def marked(markdown: str) -> list[str]:
    return re.findall(r'<span class="term"[^>]*>([^<]*)</span>', with_meanings(markdown))


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.term)
def test_an_entry_is_two_sentences_and_marks_its_forms(entry: Entry) -> None:
    assert len(SENTENCE_END.findall(entry.text)) == 2, entry.text
    for form in entry.forms:
        assert marked(plain(f"Here {form} stands.")) == [plain(form)]
        assert plain(entry.text)[:20] in plain(re.findall('data-meaning="([^"]*)"', with_meanings(form))[0])


def test_no_form_has_two_meanings() -> None:
    lowered = [form.lower() for form in FORMS]
    assert len(lowered) == len(set(lowered))


def test_the_words_of_the_field_are_there() -> None:
    asked = "piece query key head mask trace cross-attention teacher forcing log-probability perplexity"
    terms = {one.term for one in entries()}
    assert {"teacher forcing"} | set(asked.replace("teacher forcing", "").split()) <= terms


def test_a_term_is_marked_once_and_never_in_a_quotation_or_another_word() -> None:
    assert marked("A head, two heads, “head”, headless, self-attention and attention heads.") == [
        "head",
        "self-attention",
    ]
    assert marked("The strongest link is “key” → “value”.") == []
    assert marked(plain("Press the arrow keys; key_keep and query_keep fall below the value.")) == []


@given(st.text(max_size=60), st.sampled_from(FORMS))
def test_what_a_person_reads_stays_and_nothing_becomes_markup(text: str, form: str) -> None:
    line = plain(f"{text} {form} {text}")
    marks = with_meanings(line)
    assert as_read([marks]) == as_read([line])
    without = re.sub(r'<span class="term" tabindex="0" data-meaning="[^"<>]*">|</span>', "", marks)
    assert without.replace("</span>", "") == line.replace("</span>", "")
