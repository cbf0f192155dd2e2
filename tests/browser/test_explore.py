"""Explore, used as a visitor uses it."""

from __future__ import annotations

import re

import pytest
import torch
from playwright.sync_api import Page, expect

from tests.browser.steps import (
    block,
    boxes_at_rest,
    choose_kind,
    click,
    enter,
    expect_head,
    expect_title,
    open_menu,
    open_page,
    picture,
    point,
    settle,
    tile,
    type_sentence,
)
from tests.samples import slow_after

SENTENCE = "My sister bought a new car yesterday."
EXAMPLE = "Where did you buy this red bicycle?"
KEEPS_UNKNOWN = "/?layer=1&model=preset-annotated&words=false&hide=false"
"""A model without bytes: what its vocabulary has no piece for is shown as it was typed."""


def test_the_whole_way(page: Page) -> None:
    open_page(page)
    type_sentence(page, SENTENCE)
    expect_head(page, 1, 1)
    before = picture(page)
    click(tile(page, 2, 3))
    expect_head(page, 2, 3)
    assert picture(page) != before
    assert "layer=2" in page.url
    assert "head=3" in page.url
    page.reload()
    settle(page)
    expect_head(page, 2, 3)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(SENTENCE)


def test_tiles_are_painted_and_reached_by_keyboard(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    colours = (
        tile(page, 1, 1)
        .locator("canvas")
        .evaluate(
            "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
        )
    )
    assert colours > 10
    tile(page, 1, 1).focus()
    for key in ("ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    expect(tile(page, 2, 2)).to_be_focused()
    page.keyboard.press("Enter")
    expect_head(page, 2, 2)
    expect(tile(page, 2, 2)).to_be_focused()


def test_each_kind_and_its_masked_cells(page: Page) -> None:
    open_page(page)
    expect_title(page, "Cross-attention")
    for kind, named in (("encoder", "Encoder self-attention"), ("decoder", "Decoder self-attention")):
        choose_kind(page, kind)
        expect_title(page, named)
        assert f"kind={kind}" in page.url
    expect(page.get_by_text("masked: not yet written")).to_be_visible()
    # Upper right corner of the decoder's square: the first step may not see the last.
    point(page, page.locator(".st-key-heatmap .plot"), 0.97, 0.03)
    expect(page.locator(".st-key-heatmap .tip")).to_contain_text("may not attend")


def test_a_block_of_the_transformer_opens_its_layer(page: Page) -> None:
    open_page(page)
    cross, decoder = block(page, "Cross-attention", 1), block(page, "Decoder self-attention", 3)
    expect(cross).to_have_attribute("aria-pressed", "true")
    click(decoder)
    expect_title(page, "Decoder self-attention · layer 3, head 1")
    assert "kind=decoder" in page.url
    assert "layer=3" in page.url
    expect(decoder).to_have_attribute("aria-pressed", "true")
    expect(cross).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect_title(page, "Decoder self-attention · layer 2, head 1")
    click(tile(page, 4, 5))
    expect(block(page, "Decoder self-attention", 4)).to_have_attribute("aria-pressed", "true")


def test_pinning_a_piece_of_the_translation(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    piece = page.locator(".st-key-translation .target button").nth(2)
    click(piece)
    settle(page)
    expect(piece).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".st-key-heatmap .pin")).to_have_count(1)
    expect(page.locator(".st-key-headclaim")).to_contain_text(" Pinned: ")
    click(piece)
    expect(page.locator(".st-key-heatmap .pin")).to_have_count(0)
    expect(piece).to_have_attribute("aria-pressed", "false")


def test_examples_and_earlier_sentences(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    type_sentence(page, SENTENCE)
    click(page.get_by_role("button", name=EXAMPLE))
    box = page.get_by_label("Sentence", exact=True)
    expect(box).to_have_value(EXAMPLE)
    click(page.get_by_role("button", name="Earlier"))
    click(page.get_by_test_id("stPopoverBody").get_by_role("button", name=SENTENCE))
    expect(box).to_have_value(SENTENCE)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)


def test_the_badge_tells_model_device_and_proof(page: Page) -> None:
    open_page(page)
    device, proof = "CPU", "outputs unchanged by looking ✓"
    if torch.cuda.is_available():
        device, proof = "GPU", r"(outputs unchanged by looking ✓|looking replaced the \w+ kernel: logits moved by \S+)"
    took = r"(\d+ ms|\d+\.\d s)"
    expect(page.locator(".st-key-badge")).to_have_text(re.compile(rf"^everyday-en-de · {device} · {took} · {proof}$"))


def test_what_cannot_be_translated_gets_a_sentence(page: Page) -> None:
    open_page(page)
    for text, says in (
        ("", "nothing to translate"),
        ("word " * 2000, "please shorten"),
        ("   ", "nothing to translate"),
    ):
        type_sentence(page, text)
        expect(page.get_by_text(says)).to_be_visible()
        expect(page.locator(".st-key-heatmap")).to_have_count(0)
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


def test_odd_text_gets_a_picture_and_a_hint(page: Page) -> None:
    odd = (
        ("😀 🎉", "vocabulary"),
        ("أين المكتبة يا صديقي؟", "Arabic"),
        ("我昨天在图书馆读了一本书。", "Chinese"),
        ("Ich habe das Buch nicht gelesen und du auch nicht.", "German"),
    )
    open_page(page)
    for text, says in odd:
        type_sentence(page, text)
        expect_head(page, 1, 1)
        expect(page.locator('[data-testid="stCaptionContainer"]').filter(has_text=says)).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


@pytest.mark.parametrize("width", slow_after(1, [390, 1280]))
def test_a_word_of_two_hundred_letters_stays_within_the_page(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 720})
    open_page(page)
    type_sentence(page, "a" * 200)
    expect_title(page, "Cross-attention")
    settle(page)
    page.locator(".st-key-heatmap .plot").hover()
    expect(page.locator(".st-key-heatmap .tip")).to_contain_text("a" * 200)
    assert page.get_by_test_id("stMain").evaluate("(one) => one.scrollWidth <= one.clientWidth")
    for view in ("/?view=text&", "/positions?"):
        open_page(page, f"{view}sentence={'a' * 200}")
        settle(page)
        assert page.get_by_test_id("stMain").evaluate("(one) => one.scrollWidth <= one.clientWidth"), view
    open_page(page, "/decode?sentence=He+reads+a+book.")
    enter(open_menu(page, "what-if").get_by_label("Never write"), "a" * 80)
    expect(page.locator(".st-key-versions").get_by_text("aaaa")).to_be_visible()
    assert page.get_by_test_id("stMain").evaluate("(one) => one.scrollWidth <= one.clientWidth")
    open_page(page, f"/decode?model=preset-vaswani2017&sentence={'a' * 200}")  # A translation of hundreds of steps.
    expect(page.locator(".decode-player")).to_be_visible()
    settle(page)
    assert page.get_by_test_id("stMain").evaluate("(one) => one.scrollWidth <= one.clientWidth")


def test_markup_is_only_text(page: Page) -> None:
    text = '<b id="planted">Hi</b> *now* $x$ <script>alert(1)</script>'
    open_page(page, KEEPS_UNKNOWN)
    type_sentence(page, text)
    expect_head(page, 1, 1)
    expect(page.get_by_label("Sentence", exact=True)).to_have_value(text)
    expect(page.locator(".st-key-links .token[data-side=key]", has_text="$").first).to_be_attached()
    pieces = page.locator(".st-key-links .token[data-side=key]").all_text_contents()
    assert "".join(pieces).replace("␣", "") == f"{text}</s>".replace(" ", "")
    type_sentence(page, "He reads a book.")
    click(page.get_by_role("button", name="Earlier"))
    expect(page.get_by_test_id("stPopoverBody").get_by_role("button", name=text, exact=True)).to_be_visible()
    for made in ("#planted", "em", ".katex"):
        expect(page.locator(made)).to_have_count(0)


def test_control_characters_are_named(page: Page) -> None:
    open_page(page, KEEPS_UNKNOWN)
    type_sentence(page, "tab\tand \u0007bell\u202e")
    expect_head(page, 1, 1)
    expect(page.locator(".st-key-heatmap .column").filter(has_text="\\u202e")).to_have_count(1)
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


@pytest.mark.parametrize(("view", "picture"), [("heatmap", ".plot"), ("links", "svg"), ("text", ".texts")])
def test_the_head_that_is_shown_stays_whole_when_it_is_chosen_again(page: Page, view: str, picture: str) -> None:
    """Python has nothing new to send then: what the overview knows of a head must not be left standing."""
    open_page(page, f"/?sentence=He+reads+a+book.&layer=2&head=3&view={view}")
    shown = page.locator(f".st-key-{view} {picture}").first
    expect(shown).to_be_visible()
    settle(page)
    label = shown.get_attribute("aria-label")
    assert label
    tile(page, 2, 3).click()
    settle(page)
    expect(shown).to_have_attribute("aria-label", label)
    expect(page.locator("[data-painted$='…']")).to_have_count(0)
    tile(page, 1, 3).click()
    expect(shown).not_to_have_attribute("aria-label", label)
    tile(page, 2, 3).click()
    settle(page)
    expect(shown).to_have_attribute("aria-label", label)


def test_another_head_moves_nothing(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    parts = (".st-key-overview", ".st-key-heatmap", ".st-key-headclaim", ".st-key-translation")
    before = boxes_at_rest(page, parts)
    click(tile(page, 2, 1))
    expect_head(page, 2, 1)
    assert boxes_at_rest(page, parts) == before


def test_switching_the_theme_redraws_the_pictures(page: Page) -> None:
    open_page(page)
    expect_head(page, 1, 1)
    title = page.locator(".st-key-heatmap .title")
    expect(title).to_have_css("fill", "rgb(28, 27, 34)")
    open_menu(page, "settings").get_by_label("Theme").select_option("Dark")
    expect(title).to_have_css("fill", "rgb(236, 234, 243)")
    corner = "c => [...c.getContext('2d').getImageData(c.width - 1, 0, 1, 1).data]"
    assert sum(tile(page, 1, 1).locator("canvas").evaluate(corner)[:3]) < 3 * 160
