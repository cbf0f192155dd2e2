"""Hugging Face folders in a real browser: a translation model, a decoder alone, an encoder, each where it can run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import folders
from tests.browser.conftest import SCREEN, serving, visit
from tests.browser.steps import (
    LOADING,
    boxes_at_rest,
    choose_view,
    click,
    close_menu,
    expect_head,
    open_menu,
    open_page,
    settle,
    tile,
    try_something,
)

pytest.importorskip("transformers")
pytestmark = [pytest.mark.sweep, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("models")
    for name in ("marian", "gpt2", "chat", "bert", "whisper", "vit"):
        folders.FOLDERS[name](base / name)
    folders.llama(base / "llama", max_position_embeddings=8192)
    return base


@pytest.fixture(scope="module")
def models(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an app that was started with a directory of folders."""
    with serving(tmp_path_factory.mktemp("server"), "--models", str(directory)) as url:
        yield url


@pytest.fixture
def page(models: str, chromium: Browser) -> Iterator[Page]:
    with visit(chromium, models, base_url=models, viewport=SCREEN, reduced_motion="reduce") as visitor:
        yield visitor


def address(path: str, model: str, **more: str) -> str:
    return f"{path}?{urlencode({'model': model, 'sentence': folders.SENTENCE, 'layer': '1', **more})}"


def shows(page: Page, text: str) -> None:
    expect(page.get_by_text(text).first).to_be_visible(timeout=LOADING)


@pytest.mark.slow
def test_a_translation_model_is_explored_changed_and_decoded(page: Page) -> None:
    open_page(page, address("/", "marian"))
    shows(page, "outputs unchanged by looking")
    for view in ("Links", "Layers"):
        choose_view(page, view.lower())
    open_page(page, address("/", "marian", changes="cross.1.2:off"))
    shows(page, "Undo all changes")
    beside = {"view": "compare", "with": "model", "kind": "cross"}
    open_page(page, address("/", "everyday-en-de", **beside, **{"with-model": "marian"}))
    shows(page, "marian: L1 h1")
    open_page(page, address("/", "everyday-en-de", **beside, **{"with-model": "gpt2"}))
    shows(page, "A decoder alone has no source to attend to.")
    open_page(page, address("/decode", "marian", method="beam"))
    shows(page, "Beam tree")
    shows(page, "cross-attention:")
    for path, said in (
        (address("/why", "marian", attribution="attention-x-gradient"), "agrees best with leave-one-out"),
        (address("/positions", "marian", plot="sentence"), "the first layer reads the third"),
        (address("/positions", "marian", plot="experiments"), "the model gave each piece"),
        (address("/masks", "marian", part="try on the model"), "attention moved"),
    ):
        open_page(page, path)
        shows(page, said)


def test_a_long_text_is_read_in_pooled_maps(page: Page) -> None:
    text = " ".join(folders.TEXT * 9)
    open_page(page, f"/?{urlencode({'model': 'llama', 'sentence': text})}")
    shows(page, "too many for whole maps")
    query = page.get_by_label("Query, by its position")
    last = query.input_value()
    click(tile(page, 2, 3))
    expect_head(page, 2, 3)
    row = page.locator(".st-key-row [role=img]")
    expect(row).to_have_attribute("aria-label", re.compile(f"layer 2, head 3: what token {int(last):,},"))
    query.fill("300")
    query.press("Enter")
    expect(row).to_have_attribute("aria-label", re.compile("layer 2, head 3: what token 300"))
    rows = page.locator(".table tbody tr")
    expect(rows).to_have_count(5)
    before = rows.all_inner_texts()
    open_page(page, page.url)
    expect(query).to_have_value("300", timeout=LOADING)
    expect_head(page, 2, 3)
    assert rows.all_inner_texts() == before
    click(page.get_by_role("link", name="Decode"))
    shows(page, "Explore shows texts of up to 8,192 tokens in pooled maps.")
    page.go_back()
    shows(page, "too many for whole maps")
    expect(query).to_have_value("300", timeout=LOADING)


def test_another_sentence_ends_the_reading_of_a_long_one(page: Page) -> None:
    page.goto(f"/?{urlencode({'model': 'llama', 'sentence': ' '.join(folders.TEXT * 60)})}")
    shows(page, "Reading a long text")
    box = page.get_by_role("textbox", name="Sentence")
    box.fill(folders.SENTENCE)
    box.press("Enter")
    shows(page, "rows and columns are the prompt")


def test_a_decoder_alone_goes_on_from_a_prompt(page: Page) -> None:
    open_page(page, address("/", "gpt2"))
    shows(page, "The first 12 rows and columns are the prompt")
    try_something(page, lambda menu: expect(menu.get_by_text("Given continuation")).to_be_visible())
    open_page(page, address("/decode", "gpt2"))
    shows(page, "attention to the prompt:")
    shows(page, "The first line is the prompt")


def test_a_chat_has_bands_and_its_template_is_taken_away_and_back(page: Page) -> None:
    open_page(page, address("/", "chat"))
    shows(page, "The text stands in the chat template of this folder")
    bands, names = page.locator(".heatmap .band"), page.locator(".heatmap .role")
    expect(names).to_have_text(["system", "user", "assistant"])
    expect(bands).to_have_count(9)  # three on each axis, and three that say what they mean
    for said, name, left in (("is not applied", "chat?template=none", 0), ("stands in", "chat", 9)):
        click(open_menu(page, "settings").get_by_text("Apply the chat template"))
        shows(page, said)
        expect(page.locator(".st-key-model input")).to_have_value(name)
        expect(bands).to_have_count(left)
        close_menu(page)
    open_page(page, address("/decode", "chat?template=none"))
    shows(page, "is not applied")


def test_scores_by_distance_are_drawn_for_each_head(page: Page) -> None:
    open_page(page, address("/positions", "chat"))
    shows(page, "Rotary positions: pair i of the 8")
    shows(page, "Score by distance · chat, decoder, head 1")
    open_page(page, address("/positions", "chat", head="3"))
    shows(page, "Score by distance · chat, decoder, head 3")


def upload(page: Page, label: str, name: str, data: bytes) -> None:
    page.get_by_role("button", name=label).first.click()
    page.locator("input[type=file]").first.set_input_files({"name": name, "mimeType": "image/png", "buffer": data})


def test_a_sound_is_chosen_in_place_of_a_sentence(page: Page, directory: Path) -> None:
    open_page(page, address("/", "whisper", kind="cross"))
    shows(page, "Cross-attention · layer 1")
    expect(page.get_by_role("combobox", name=re.compile("Sound"))).to_have_value("speech.wav")
    upload(page, "Upload a sound", "mine.wav", (directory / "whisper" / "speech.wav").read_bytes())
    expect(page).to_have_url(re.compile("file=upload-"))
    expect(page.get_by_role("combobox", name=re.compile("Sound"))).to_have_value("mine.wav")
    open_page(page, address("/why", "whisper"))
    shows(page, "whisper reads sound")


def test_a_picture_is_looked_at_patch_by_patch(page: Page, directory: Path) -> None:
    open_page(page, f"/?{urlencode({'model': 'vit', 'sentence': folders.SENTENCE})}")
    expect_picture_title(page, "what [CLS] looks at")
    click_patch(page, 2, 4)
    expect_picture_title(page, "what 3,5 looks at")
    expect(page).to_have_url(re.compile(r"pin=source\.18"))  # the 17th patch, behind [CLS]
    expect(open_menu(page, "page-help")).to_contain_text("Click a patch to make it the query")
    close_menu(page)
    upload(page, "Upload a picture", "no <b>picture</b>.png", b"\x89PNG nothing")
    shows(page, "no <b>picture</b>.png cannot be read as a picture")
    expect_picture_title(page, "what 3,5 looks at")  # what was there stays
    close_menu(page)
    folders.write_picture(directory / "mine.png", 30, 30)
    upload(page, "Upload a picture", "mine.png", (directory / "mine.png").read_bytes())
    expect(page).to_have_url(re.compile("file=upload-"))
    expect_picture_title(page, "what [CLS] looks at")  # a pin belongs to the picture in which it was chosen
    page.go_back()
    expect_picture_title(page, "what 3,5 looks at")
    page.get_by_role("link", name="Why").first.click()
    shows(page, "vit reads pictures")
    page.get_by_role("link", name="Explore").first.click()
    expect_picture_title(page, "looks at")
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="gpt2", exact=True).click()
    expect(page).not_to_have_url(re.compile("view=picture"))
    expect(page.locator(".st-key-heatmap .plot")).to_be_visible(timeout=LOADING)
    # The sentence has waited for a model that reads it.
    expect(page.get_by_role("textbox", name="Sentence").first).to_have_value(folders.SENTENCE, timeout=LOADING)


def expect_picture_title(page: Page, text: str) -> None:
    """Expect one picture with this in its title, once the one that it takes the place of has gone."""
    titles = page.locator(".st-key-over-picture .gtitle")
    expect(titles.filter(has_text=text).first).to_be_visible(timeout=LOADING)
    expect(titles).to_have_count(1)


def click_patch(page: Page, row: int, column: int) -> None:
    """Click the middle of a patch of a picture of 6 x 6, from 0."""
    settle(page)
    expect(page.locator(".st-key-over-picture .hm image")).to_be_visible()
    (box,) = boxes_at_rest(page, [page.locator(".st-key-over-picture .nsewdrag").first])
    page.mouse.click(box["x"] + box["width"] * (column + 0.5) / 6, box["y"] + box["height"] * (row + 0.5) / 6)


def test_a_masked_word_has_a_card(page: Page) -> None:
    open_page(page, address("/", "bert", pin="source.4"))
    card = page.locator(".st-key-wordcard article")
    expect(card).to_contain_text("Words that matter", timeout=LOADING)
    expect(card.locator(".word")).to_have_text("dog")
    before = card.locator(".fact").text_content()
    click(card.locator("button.row").first)
    expect(card.locator(".fact")).to_have_text(before or "")
    open_page(page, address("/", "bert", pin="source.4", changes="encoder.2.3:off"))
    shows(page, "Of the changed model")
    expect(card.locator(".fact")).not_to_have_text(before or "", timeout=LOADING)


def test_an_encoder_reads_and_is_chosen_from_the_list(page: Page) -> None:
    open_page(page, address("/", "bert"))
    shows(page, "observing it changed nothing")
    open_page(page, address("/decode", "bert"))
    shows(page, "bert only reads")
