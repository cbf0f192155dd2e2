"""The glossary: a term says what it means under the mouse, under the finger and in the focus; a menu lists all."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from attenscope.viz.ui.captions import load_glossary_entries
from tests.browser.steps import click, open_page, settle

MEANING = "term => getComputedStyle(term, '::after').content"
AREA = """term => {
  const { left, width } = term.closest('p').getBoundingClientRect();
  return left + Math.min(width, parseFloat(getComputedStyle(term, '::after').width)) <= innerWidth;
}"""


def meaning(term: Locator) -> str:
    """Return what the browser shows beside a term; "none" while nobody looks at it."""
    return str(term.evaluate(MEANING)).strip('"')


def test_a_term_says_what_it_means(page: Page) -> None:
    open_page(page)
    term = page.locator(".term").filter(has_text="piece").first
    expected = next(one for one in load_glossary_entries() if one.term == "piece").text
    assert meaning(term) == "none"
    term.hover()
    assert meaning(term) == expected
    assert term.evaluate(AREA)
    page.mouse.move(0, 0)
    assert meaning(term) == "none"
    term.focus()
    assert meaning(term) == expected


def test_the_menu_of_a_page_lists_all_terms(page: Page) -> None:
    open_page(page, "/decode")
    settle(page)
    click(page.locator(".st-key-page-help button"))
    page.get_by_text("Glossary", exact=True).click()
    terms = page.get_by_role("group").filter(has_text="Glossary").get_by_role("term")
    expect(terms).to_have_count(len(load_glossary_entries()))
    for at in (0, -1):
        expect(terms.nth(at)).to_have_text(load_glossary_entries()[at].term)
