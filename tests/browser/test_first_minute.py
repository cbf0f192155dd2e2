"""What a new visitor meets first: pages that open once, at their beginning, and stand still."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import visit
from tests.browser.steps import (
    LOADING,
    LONG,
    boxes_at_rest,
    choose,
    click,
    expect_head,
    open_page,
    settle,
    tile,
    type_sentence,
)
from tests.samples import slow_after

SENTENCES = ("He reads a book.", "Where did you buy this red bicycle?", "The bank by the river was closed.")

PLAYERS = """
    window.players = [];
    const look = () => {
      const host = document.querySelector(".st-key-decode-player [data-testid='stBidiComponentRegular']")
        ?? document.querySelector(".st-key-decode-player");
      const found = [host, ...(host?.querySelectorAll("*") ?? [])].map((one) => one?.shadowRoot ?? one)
        .map((root) => root?.querySelector?.(".decode-player")).find(Boolean);
      const styled = document.querySelector(".st-key-page")?.clientHeight > 1;
      const state = styled && found?.checkVisibility({ visibilityProperty: true }) ? Number(found.dataset.step) : null;
      if (state !== (window.players.at(-1) ?? null)) window.players.push(state);
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
"""
"""Keeps every change of the step that the player of Decode shows, null where there is no player."""


@pytest.mark.parametrize("sentence", slow_after(1, SENTENCES))
def test_decode_opens_once_at_its_first_step(server: str, chromium: Browser, sentence: str) -> None:
    for _ in range(3):
        with visit(chromium, server, base_url=server) as page:
            page.add_init_script(PLAYERS)
            page.goto(f"/decode?sentence={sentence.replace(' ', '+')}")
            expect(page.get_by_text("The attention weights agree")).to_be_visible(timeout=LOADING)
            page.locator(":root[data-arrived]").wait_for(state="attached")
            settle(page)
            page.wait_for_timeout(500)
            assert page.evaluate("players") == [1]
            assert "step=" not in page.url


@pytest.mark.slow
def test_a_beam_search_followed_while_it_is_made_opens_at_its_end(page: Page) -> None:
    page.add_init_script(PLAYERS)
    sentence = "+".join(["the+old+man+reads+a+book+in+the+garden+and"] * 45)  # As long as the model reads.
    page.goto(f"/decode?method=beam&width=10&penalty=3.0&sentence={sentence}")
    page.locator(".st-key-stop").get_by_role("button").click(timeout=LOADING)
    expect(page.get_by_text(re.compile(r"^Stopped (after|while)"))).to_be_visible(timeout=LOADING)
    settle(page)
    (step,) = page.evaluate("players")
    assert step > 1


def test_given_begins_with_the_translation_of_the_model(page: Page) -> None:
    open_page(page, "/decode?sentence=He+reads+a+book.")
    player, given = page.locator(".decode-player"), page.get_by_label("Given", exact=True)
    written = player.locator(".target .piece")
    expect(written.first).to_be_visible()
    own = written.all_text_contents()
    choose(page, "Strategy", "given")
    expect(given).to_have_value(re.compile("Buch"))
    expect(page.get_by_text(re.compile("^Log-probability"))).to_be_visible()
    expect(written).to_have_text(own)
    given.fill("Er liest kein Buch.")
    given.press("Enter")
    expect(page.get_by_text(re.compile("Surprising: “\u2068kein"))).to_be_visible()
    type_sentence(page, "Where did you buy this red bicycle?")
    expect(given).to_have_value(re.compile("Fahrrad"))
    open_page(page, "/decode?sentence=He+reads+a+book.&method=given")
    expect(given).to_have_value(re.compile("Buch"))
    expect(written).to_have_text(own)


def test_a_comparison_proposes_a_model_that_reads_the_language(page: Page) -> None:
    open_page(page, "/?model=everyday-en-de&view=compare&with=model&sentence=A+man+reads+a+book.")
    second = page.get_by_role("combobox", name="Second model")
    expect(second).to_have_value(re.compile("en-de|^preset-"))


def test_a_small_probability_does_not_read_as_none(page: Page) -> None:
    open_page(page, "/decode?sentence=He+reads+a+book.&step=5")
    shares = page.locator(".decode-player .candidate .share")
    expect(shares.first).to_be_visible()
    texts = shares.all_text_contents()
    assert "<0.1%" in texts
    assert not {"0%", "0.0%"} & set(texts)


def test_an_empty_address_opens_on_a_telling_word_and_says_what_is_seen(page: Page) -> None:
    open_page(page, "/")
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("Where did you buy this red bicycle?")
    pinned = page.locator(".st-key-translation .target button[aria-pressed=true]")
    expect(pinned).to_have_text("gekauft")
    says = page.locator(".st-key-translation .says")
    expect(says).to_contain_text("To write “\u2068gekauft\u2069” the model jumped back from “\u2068bicycle\u2069”")
    expect(page.locator(".st-key-headclaim")).to_contain_text("“\u2068gekauft\u2069” looks at “\u2068buy\u2069”")
    count = page.evaluate("history.length")
    page.reload()
    settle(page)
    expect(pinned).to_have_text("gekauft")
    assert page.evaluate("history.length") == count


def test_words_are_linked_from_either_side(page: Page) -> None:
    open_page(page, "/")
    picture = page.locator(".st-key-translation")
    source, target = (picture.locator(f".{side} button") for side in ("source", "target"))
    expect(source).to_have_text(["Where", "did", "you", "buy", "this", "red", "bicycle", "?"])
    expect(target).to_have_text(["Wo", "hast", "du", "dieses", "rote", "Fahrrad", "gekauft", "?"])
    target.nth(5).hover()
    expect(picture.locator(".says")).to_contain_text("Fahrrad")
    expect(source.nth(6)).to_have_class(re.compile("met"))
    source.nth(3).hover()
    expect(target.nth(6)).to_have_class(re.compile("met"))
    expect(picture.locator(".says")).to_contain_text("was looked at to write “\u2068gekauft")
    page.mouse.move(0, 0)
    expect(picture.locator(".says")).to_contain_text("To write “\u2068gekauft")
    click(target.nth(5))
    expect(target.nth(5)).to_have_attribute("aria-pressed", "true")
    expect(source.nth(6)).to_have_class(re.compile("met strong"))
    page.keyboard.press("ArrowRight")
    expect(target.nth(6)).to_be_focused()
    expect(picture.locator(".says")).to_contain_text("gekauft")


@pytest.mark.parametrize(("view", "word"), [("text", "button"), ("links", "[role=button]")])
def test_a_word_with_the_focus_is_shown_as_one_that_is_pointed_at(page: Page, view: str, word: str) -> None:
    open_page(page, f"/?layer=1&view={view}&sentence=He+reads+a+book.")
    words = page.locator(f".st-key-view-{view} {word}")
    expect(words.first).to_be_visible()
    look = "all => all.map((one) => `${one.className?.baseVal ?? one.className} ${one.getAttribute('style')}`)"
    before = words.evaluate_all(look)
    words.nth(1).focus()
    assert words.evaluate_all(look) != before


def test_a_sentence_of_ones_own_has_a_word_pinned(page: Page) -> None:
    open_page(page, "/")
    type_sentence(page, "My grandmother bakes bread every Sunday.")
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_text("Brot")
    expect(page.locator(".st-key-translation .says")).to_contain_text("jumped back")


def test_a_small_window_has_the_whole_sentence_and_room_for_a_heatmap_of_18_pieces(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    open_page(page, f"/?layer=1&sentence={LONG}&words=false&hide=false")
    expect_head(page, 1, 1)
    rows = page.locator(".st-key-heatmap text.row")
    assert rows.count() >= 18
    parts = [".st-key-translation .says", ".st-key-headclaim", ".st-key-heatmap .plot"]
    says, claim, plot = boxes_at_rest(page, parts)
    assert says["y"] + says["height"] <= 720
    assert claim["y"] + claim["height"] <= plot["y"]
    assert plot["height"] <= 720 - 170
    sizes = rows.evaluate_all("all => all.map((one) => Number(one.getAttribute('font-size')))")
    assert min(sizes) >= 11


def test_a_tile_shows_its_picture_where_it_stands_below(page: Page) -> None:
    page.set_viewport_size({"width": 800, "height": 1000})
    open_page(page)
    expect_head(page, 1, 1)
    click(tile(page, 2, 3))
    expect_head(page, 2, 3)
    (plot,) = boxes_at_rest(page, [".st-key-heatmap .plot"])
    assert plot["y"] >= 60
    assert plot["y"] + plot["height"] <= 1000


def test_an_example_opens_its_sentence_and_says_what_to_see(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    click(page.get_by_role("button", name="Examples"))
    page.get_by_role("button", name=re.compile("^Passive")).click()
    settle(page)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value("The letter was written last week.")
    expect(page.locator(".st-key-headclaim")).to_contain_text("“geschrieben” looks back at “written”")
    expect(page.locator(".st-key-translation .target button[aria-pressed=true]")).to_have_text("geschrieben")


def test_a_long_sentence_is_read_whole_and_enter_submits_it(page: Page) -> None:
    open_page(page, "/?layer=1")
    box = page.get_by_label("Sentence", exact=True)
    low = box.bounding_box()
    box.fill(f"{' '.join(['the old man reads a book in the garden'] * 5)}\nand sleeps.")
    box.press("Enter")
    settle(page)
    tall = box.bounding_box()
    assert low
    assert tall
    assert tall["height"] > 1.5 * low["height"]
    assert box.evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    expect(page).to_have_url(re.compile("and.sleeps"))
    expect(page.locator(".st-key-translation .target button").nth(20)).to_be_visible()
