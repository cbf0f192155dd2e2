"""The words that a person reads on a page, and which of them nobody has translated."""

from __future__ import annotations

import re

from playwright.sync_api import Page

from tests.english import is_english

READ = """(data) => {
  const read = new Set();
  const look = (root) => root.querySelectorAll("*").forEach((one) => {
    if (one.closest(data)) return;
    if (one.shadowRoot) look(one.shadowRoot);
    for (const name of ["title", "aria-label", "placeholder", "alt"]) read.add(one.getAttribute(name) ?? "");
    for (const node of one.childNodes) if (node.nodeType === Node.TEXT_NODE) read.add(node.data);
  });
  look(document.body);
  return [...read].map((text) => text.replace(/\\s+/g, " ").trim()).filter(Boolean);
}"""
DATA = ", ".join(
    (
        "code, pre, textarea, script, style, noscript, .katex",
        "[data-testid=stIconMaterial], [data-testid=stHeaderActionElements]",  # Names of icons; "Link to heading".
        ".st-key-chips button, .st-key-earlier button",  # Sentences to try.
        ".st-key-card",  # A model's card is an English document.
    )
)
"""Where no words of this project stand."""
STREAMLIT = re.compile("Skip to main content|Choose an option|Open|Link to heading|Running...|Main menu")
"""Words of Streamlit, which speaks English."""
RUN = re.compile(r"(?:[A-Za-z][a-z'’-]+[ ,]+){2,}[A-Za-z][a-z'’-]+")


def read(page: Page, given: tuple[str, ...] = ()) -> list[str]:
    """The texts of a page, those in the page's attributes included, without data and without the sentences `given`."""
    texts = [one for one in page.evaluate(READ, DATA) if not STREAMLIT.fullmatch(one)]
    for sentence in given:
        texts = [one.replace(sentence, "") for one in texts]
    return texts


def without_accents(page: Page, given: tuple[str, ...] = ()) -> list[str]:
    """The texts of a page in the pseudo-language in which three words in a row have no accents."""
    return [one for one in read(page, given) if RUN.search(one)]


def english(page: Page, language: str, given: tuple[str, ...] = ()) -> list[str]:
    """The texts of a page in `language` that are English in part."""
    return [one for one in read(page, given) if is_english(one, language)]
