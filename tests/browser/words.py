"""The words that a person reads on a page, and which of them nobody has translated."""

from __future__ import annotations

import re

from playwright.sync_api import Error, Frame, Page

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
        ".words, .written, .versions, .st-key-from-layers td, .st-key-missed td",  # What a model wrote.
        ".st-key-sentence p",  # The sentence of a scene.
        ".st-key-card, .st-key-terms",  # A model's card and its licence are English.
    )
)
"""Where no words of this project stand."""
STREAMLIT = re.compile(
    "Skip to main content|Choose an option|Open|Link to heading|Copy to clipboard|Running...|Main menu"
)
"""Words of Streamlit, which speaks English."""
QUOTE = re.compile("“[^”]*”|„[^“]*“")
CODES = (
    "weights, scores, masked_scores, mask, key_keep, query_keep, meant, position_ids",
    "causal, padding, window",
    "causal and padding",
    "embedding, attention, feed_forward, sublayer",
    "embedding, attention, sublayer",
    "ManyThings.org (www\u2060.manythings.org/anki and tatoeba.org), ",
    "Tatoeba, selection of",
)
"""Names that are the same in every language: of arrays, of rules, of a setting, of a corpus."""
RUN = re.compile(r"(?:[A-Za-z][a-z'’-]+[ ,]+){2,}[A-Za-z][a-z'’-]+")


def read(page: Page, given: tuple[str, ...]) -> list[str]:
    """The texts of a page, its frames and attributes, without data, codes, quotes and the sentences `given`."""
    texts = [one for frame in page.frames for one in _read_frame(frame) if not STREAMLIT.fullmatch(one)]
    for known in (*given, *CODES):
        texts = [one.replace(known, "") for one in texts]
    return [QUOTE.sub("", one) for one in texts]


def _read_frame(frame: Frame) -> list[str]:
    """The texts of a frame; none of one that the page takes away while it is asked."""
    try:
        texts: list[str] = frame.evaluate(READ, DATA)
    except Error:
        if frame.is_detached():
            return []
        raise
    return texts


def without_accents(page: Page, given: tuple[str, ...]) -> list[str]:
    """The texts of a page in the pseudo-language in which three words in a row have no accents."""
    return [one for one in read(page, given) if RUN.search(one)]


def english(page: Page, language: str, given: tuple[str, ...]) -> list[str]:
    """The texts of a page in `language` that are English in part."""
    return [one for one in read(page, given) if is_english(one, language)]
