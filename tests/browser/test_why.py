"""Why, used as a visitor uses it: from the card of a word to its strongest head, and from a cell to its score."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from attenscope.experiments.patching import read_minimal_pairs
from attenscope.viz.why.layers import format_pair
from tests.browser.steps import (
    LOADING,
    block,
    choose,
    choose_page_view,
    click,
    click_at,
    enter,
    expect_title,
    open_file,
    open_page,
    saved,
    settle,
)
from tests.browser.test_word_card import card, open_card

SENTENCE = "Where+did+you+buy+this+red+bicycle%3F"
DRAWN = {
    "Source words": ".st-key-left-out .texts button",
    "Deletion": ".st-key-deletion .js-line",
    "Heads": ".st-key-parts .point",
    "Score": ".st-key-score-parts .hm image",
    "Source or prefix": ".st-key-shares .point",
    "Two sentences": ".st-key-pairs",
    "Layers": ".st-key-lens .hm image",
}
PICTURES = DRAWN | {"Two sentences": ".st-key-patches .hm image"}
SAVED = {
    "Source words": {"The sentence", "Written before", "sleeping", "leave-one-out", "attention-norm"},
    "Deletion": {"What is left of the probability; thick: the order of leave-one-out", "random orders", "0%"},
    "Heads": {"By layer", "The largest parts", "layer 4 cross-attention", "biases", "all others"},
    "Score": {"query part ↓", "key part →", "position", "layer 1 self-attention"},
    "Source or prefix": {"Source or prefix", "attention to </s>", "from the source", "from what was written before"},
    "Two sentences": {"Patched: “The dogs are sleeping.”", "dog/dogs", "embedding", "layer 4"},
    "Layers": {"embedding", "layer 4 feed-forward", "rank of “schläft” (1 is the best)"},
}
"""Words in the picture that is saved of a view."""


def test_the_page_opens_on_the_answer_in_words(page: Page) -> None:
    open_page(page, "/why")
    expect(page.locator(".st-key-answer")).to_have_text(
        re.compile(
            "^Without “\u2068bicycle\u2069” the probability of “\u2068Fahrrad\u2069” falls from 89% to under 0.1%."
        )
    )
    click(page.locator(".st-key-next-step a"))
    expect(page).to_have_url(re.compile(r"/heads\b"))
    expect(page.get_by_role("combobox", name="Model")).to_have_value("everyday-en-de")


def test_two_sentences_open_on_a_pair(page: Page) -> None:
    open_page(page, f"/why?sentence={SENTENCE}&why=two+sentences")
    expect(page.locator(".st-key-patches .hm image")).to_be_visible()
    expect(page.get_by_text("the second run prefers")).to_be_visible()
    enter(page.get_by_label("Second sentence"), "Where did you buy this blue bicycle?")
    expect(page.locator(".st-key-sentence textarea")).to_have_value("Where did you buy this red bicycle?")
    expect(page.locator(".st-key-patches .hm image")).to_be_visible()


def test_two_clicks_lead_from_a_word_to_the_head_that_matters_most(page: Page) -> None:
    open_page(page, f"/?sentence={SENTENCE}")
    open_card(page, "Fahrrad")
    card(page).get_by_role("button", name="Why this word?").click()
    expect(page).to_have_url(re.compile(r"/why\?.*pin=target"))
    settle(page)
    click(page.get_by_text("How other methods answer"))
    link = page.locator(".st-key-strongest-head button")
    layer, kind, head = re.search(r"layer (\d+) (self|cross)-attention head (\d+)", link.inner_text()).groups()  # type: ignore[union-attr]
    click(link)
    expect(page).to_have_url(re.compile(r"/\?.*pin=target"))
    settle(page)
    names = {"self": "Decoder self-attention", "cross": "Cross-attention"}
    expect_title(page, f"{names[kind]} · layer {layer}, head {head}")
    expect(card(page).locator(".word")).to_have_text("Fahrrad")


def test_a_pinned_cell_leads_to_the_parts_of_its_score(page: Page) -> None:
    open_page(page, f"/?sentence={SENTENCE}&kind=encoder&layer=2&head=3&pin=source.4,source_key.2")
    click(page.locator(".st-key-why-here button"))
    expect(page).to_have_url(re.compile(r"/why\?.*cell=encoder\.2\.3\.4\.2"))
    settle(page)
    expect(page.get_by_text("the cells sum to")).to_be_visible()
    expect(block(page, "Encoder self-attention", 2)).to_have_attribute("aria-pressed", "true")
    click(page.locator(".st-key-transformer").get_by_role("button", name="Head 1", exact=True))
    expect(page).to_have_url(re.compile(r"cell=encoder\.2\.1\.4\.2"))


def test_a_word_is_chosen_and_compared(page: Page) -> None:
    open_page(page, f"/why?sentence={SENTENCE}")
    word = page.locator(".st-key-translation").get_by_role("button", name="Fahrrad", exact=True)
    click(word)
    expect(page.get_by_text("Why “\u2068Fahrrad\u2069” rather than")).to_be_visible()
    click(word)  # A word is always chosen.
    expect(word).to_have_attribute("aria-pressed", "true")
    box = page.get_by_role("combobox", name="Rather than")
    click(box)
    box.fill("Auto")
    page.keyboard.press("Enter")
    settle(page)
    expect(page).to_have_url(re.compile(r"against=Auto"))
    compared = page.get_by_text(
        re.compile("“\u2068Fahrrad\u2069” is .* times as probable as “\u2068Auto\u2069”; without")
    )
    expect(compared).to_be_visible()
    page.reload()
    expect(compared).to_be_visible()


def test_a_walk_through_every_view(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/why?sentence={SENTENCE}")
    for view, drawn in DRAWN.items():
        choose_page_view(page, view.lower())
        expect(page.locator(drawn).first).to_be_visible()
        settle(page)
        expect(page.locator('[data-testid="stException"]')).to_have_count(0)
        if view != "Two sentences":
            assert saved(page, "Numbers (CSV)", tmp_path).stat().st_size > 100
            page.keyboard.press("Escape")
    page.reload()
    expect(page.locator(DRAWN["Layers"]).first).to_be_visible()


def test_a_pair_is_chosen_and_patched(page: Page) -> None:
    open_page(page, "/why?why=two+sentences")
    choose(page, "Pair", format_pair(read_minimal_pairs()[3]))
    choose(page, "Pair", re.compile("^grammatical number: The dog is sleeping"))
    expect(page.locator(".st-key-patches .hm image")).to_be_visible()
    expect(page.locator(".st-key-control-map .hm image")).to_be_visible()
    expect(page.get_by_role("textbox", name="Sentence", exact=True)).to_have_value("The dog is sleeping.")
    choose(page, "Patched", "cross heads")
    expect(page.get_by_text("One patch brings back most at")).to_be_visible()
    enter(page.get_by_label("Second sentence"), "The dogs are sleeping here.")
    expect(page.get_by_text("so both need as many")).to_be_visible()


def test_a_bar_opens_its_head_and_a_bar_of_a_word_chooses_it(page: Page) -> None:
    open_page(page, f"/why?sentence={SENTENCE}&why=source+or+prefix")
    click_at(page, page.locator(".st-key-shares .point").first, 0.5, 0.9)
    expect(page).to_have_url(re.compile(r"pin=target\.1\b"))
    open_page(page, f"/why?sentence={SENTENCE}&why=heads")
    node = page.locator(".st-key-parts-frame .nodes button").first
    node.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/\?"))


@pytest.mark.slow
@pytest.mark.parametrize("view", DRAWN)
def test_a_view_is_saved_as_a_picture_and_as_a_page(page: Page, disk: Page, tmp_path: Path, view: str) -> None:
    asked = {"why": view.lower(), "sentence": "The dog is sleeping.", "second": "The dogs are sleeping."}
    open_page(page, f"/why?{urlencode(asked)}")
    expect(page.locator(PICTURES[view]).first).to_be_visible(timeout=LOADING)
    settle(page)
    drawn = ElementTree.parse(saved(page, "Save as SVG", tmp_path)).getroot().iter("{http://www.w3.org/2000/svg}text")
    assert SAVED[view] <= {re.sub("[\u2068\u2069]", "", "".join(one.itertext())).strip() for one in drawn}
    png = saved(page, "Save as PNG", tmp_path).read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") >= 1280
    open_file(disk, saved(page, "Interactive page", tmp_path))
    expect(disk.get_by_text("The dog is sleeping.").first).to_be_visible()


def test_all_pieces_of_the_chosen_word_are_marked(page: Page) -> None:
    open_page(page, "/why?sentence=He+is+wearing+sunglasses.&pin=target.4")
    marked = page.locator(".st-key-translation .of-word")
    expect(marked).to_have_text(["Sonnen", "brille"])
    click(page.locator(".st-key-translation").get_by_role("button", name="eine", exact=True))
    expect(marked).to_have_text(["eine"])
