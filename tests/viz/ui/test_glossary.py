"""The glossary: every term in two sentences, marked where it stands first, never inside what somebody typed."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from attenscope.language import LANGUAGES, use_language
from attenscope.translate import Translator
from attenscope.viz.ui.captions import (
    WORD_ENDINGS,
    GlossaryEntry,
    escape_markdown,
    load_glossary_entries,
    mark_glossary_terms,
)
from tests.viz.page_texts import as_read


def said(language: str) -> tuple[GlossaryEntry, ...]:
    with use_language(language):
        return load_glossary_entries()


FORMS = [(language, form) for language in LANGUAGES for one in said(language) for form in one.forms]
SENTENCE_END = re.compile(r"[.](?=\s|$)|。")
ENTRIES = [(language, one) for language in LANGUAGES for one in said(language)]


def marked(markdown: str) -> list[str]:
    return re.findall(r'<span class="term"[^>]*>([^<]*)</span>', mark_glossary_terms(markdown))


def test_the_word_read_in_pieces_is_read_so_by_the_default_model() -> None:
    pieces = Translator.load("everyday-en-de").tokenizer.encode("Sonnenbrille").tokens
    for language in LANGUAGES:
        (text,) = (one.text for one in said(language) if "Sonnenbrille" in one.text)
        quoted = re.findall("[“„]([^”“]+)[”“]", text)
        assert quoted == ["Sonnenbrille", *(piece.strip() for piece in pieces[:-1])]


def test_an_entry_is_two_sentences_and_marks_its_forms() -> None:
    for language, entry in ENTRIES:
        assert len(SENTENCE_END.findall(entry.text)) == 2, entry.text
        with use_language(language):
            for form in () if entry.quiet else entry.forms:
                assert marked(escape_markdown(f"Here {form} stands.")) == [escape_markdown(form)]
                meaning = re.findall('data-meaning="([^"]*)"', mark_glossary_terms(form))[0]
                assert meaning.startswith(html.escape(entry.text)), form


def test_no_form_has_two_meanings() -> None:
    lowered = [(language, form.lower()) for language, form in FORMS]
    assert len(lowered) == len(set(lowered))


def test_a_german_term_is_found_however_it_is_inflected() -> None:
    line = "Den kausalen Masken des Encoders, zwei Heads, den Wortstücken aller Schichten, Queries und Zwischenständen"
    with use_language("de"):
        assert marked(escape_markdown(line)) == [
            *("kausalen Masken", "Encoders", "Heads", "Wortstücken", "Schichten", "Queries", "Zwischenständen")
        ]
        assert marked(escape_markdown("Cross-Attention-Heads und Padding-Maske")) == [
            *(escape_markdown("Cross-Attention"), "Heads", "Padding", "Maske")
        ]
        assert marked(escape_markdown("„Head“, “Key”, ein Header, Keyboards, verschichtet, key_padding_mask")) == []
    assert set(WORD_ENDINGS) < set(LANGUAGES)


def test_a_chinese_term_is_found_without_borders_of_words_and_never_inside_another() -> None:
    with use_language("zh"):
        assert marked(escape_markdown("看第3层第4个头的因果掩码logit，头越多越好")) == ["层", "头", "因果掩码", "logit"]
        assert marked(escape_markdown("按键在开头，箭头键是关键；“键”和“头”；mylogit 与 logit_bias 不算")) == []


def test_chinese_terms_are_in_the_order_of_their_sounds() -> None:
    terms = [one.term for one in said("zh")]
    for one in said("zh"):
        assert bool(one.reading) != one.term[0].isascii()
        assert one.reading.isascii()
    assert terms.index("编码器") < terms.index("残差流") < terms.index("softmax") < terms.index("子词")


def test_the_words_of_the_field_are_there() -> None:
    asked = "piece query key head mask trace cross-attention teacher forcing log-probability perplexity attention token"
    terms = {one.term for one in load_glossary_entries()}
    assert {"teacher forcing"} | set(asked.replace("teacher forcing", "").split()) <= terms


def test_a_term_is_marked_once_and_never_in_a_quotation_or_another_word() -> None:
    assert marked("A head, two heads, “head”, headless, self-attention and attention heads.") == [
        "head",
        "self-attention",
    ]
    assert marked("A token of a text; attention.") == []  # Quiet: in the list alone.
    assert marked("The strongest link is “key” → “value”.") == []
    assert marked(escape_markdown("Press the arrow keys; key_keep and query_keep fall below the value.")) == []


@given(st.text(max_size=60), st.sampled_from(FORMS))
def test_what_a_person_reads_stays_and_nothing_becomes_markup(text: str, of: tuple[str, str]) -> None:
    language, form = of
    line = escape_markdown(f"{text} {form} {text}")
    with use_language(language):
        marks = mark_glossary_terms(line)
    assert as_read([marks]) == as_read([line])
    without = re.sub(r'<span class="term" tabindex="0" data-meaning="[^"<>]*">|</span>', "", marks)
    assert without.replace("</span>", "") == line.replace("</span>", "")
