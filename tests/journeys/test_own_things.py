"""What people bring and change: a broken mask, a model folder, a head switched off, a film, a trace."""

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
    choose_page_view,
    click,
    close_menu,
    download,
    expect_head,
    settle,
    tile,
)
from tests.browser.test_opened_trace import bring, recorded
from tests.journeys.stops import OWN, TRANSLATED, WELCOME, arrive, check_stop, go, same
from tests.journeys.wanderer import letters

pytestmark = [pytest.mark.journey, pytest.mark.timeout(400)]
PASTED = """weights = [[1.0, 0.0, 0.0, 0.0], [0.4, 0.4, 0.2, 0.0], [0.3, 0.3, 0.4, 0.0], [0.25, 0.25, 0.25, 0.25]]
meant = [[True, False, False, False], [True, True, False, False], [True, True, True, False],
 [True, True, True, True]]"""
"""Attention whose second query looks at the third key, which is still to be written."""
QUERY = OWN.replace(" ", "+")


def test_a_broken_mask_is_pasted_understood_and_mended(traveller: Page) -> None:
    page = traveller
    page.goto("/masks")
    check_stop(page, "masks", sentence="")
    box = page.get_by_label("Printed tensor")
    box.fill(PASTED)
    box.press("Control+Enter")
    verdict, pictures = page.locator(".st-key-verdict-line"), page.locator(".st-key-mask-pictures")
    leaks = pictures.locator("section", has=page.locator('.plot[data-panel="effect"]')).locator("p").first
    expect(verdict).to_contain_text("Faulty: 1 error")
    broken = check_stop(page, "masks")
    expect(page.locator(".st-key-read-as")).to_contain_text("4 queries × 4 keys")
    expect(page.locator(".st-key-finding-0-error")).to_contain_text("meant: causal; up to 0.2 in one cell")
    expect(leaks).to_contain_text("1 leak")
    expect(page.get_by_role("button", name="Show query 2, key 3")).to_be_visible()
    page.locator('.plot[data-panel="effect"]').focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(pictures.locator(".readout")).to_contain_text("query 2 → key 3")
    expect(pictures.locator(".readout")).to_contain_text("leak")
    click(page.get_by_role("button", name="Apply this fix"))
    expect(verdict).to_contain_text("Sound, once mended")
    check_stop(page, "masks")
    expect(page.locator("[class*=st-key-finding-]")).to_have_count(0)
    expect(leaks).not_to_contain_text("leak")
    expect(box).to_have_value(PASTED)
    click(page.get_by_role("button", name="Undo the last fix"))
    expect(verdict).to_contain_text("Faulty: 1 error")
    assert (
        check_stop(page, "masks")["fingerprint"]["texts"]["verdict-line"]
        == broken["fingerprint"]["texts"]["verdict-line"]
    )
    click(page.get_by_role("button", name="Apply this fix"))
    expect(verdict).to_contain_text("Sound, once mended")
    go(page, "explore", sentence=WELCOME)
    page.go_back()
    check_stop(page, "masks", sentence="")


@pytest.fixture
def own_folder(tmp_path: Path, chromium: Browser) -> Iterator[Page]:
    """A visitor of an app that serves a Hugging Face folder of the visitor's own."""
    pytest.importorskip("transformers")
    folders.FOLDERS["marian"](tmp_path / "mine")
    with (
        serving(tmp_path, "--models", str(tmp_path)) as url,
        visit(chromium, url, base_url=url, viewport=SCREEN, reduced_motion="reduce") as page,
    ):
        yield arrive(page)


def test_a_model_folder_of_ones_own_is_read_by_every_page(own_folder: Page) -> None:
    page, sentence = own_folder, folders.SENTENCE
    page.goto(f"/?{urlencode({'model': 'mine', 'sentence': sentence, 'layer': '1'})}")
    mine = {"sentence": sentence}
    model = page.locator(".st-key-model input")
    expect(page.locator(".st-key-badge")).to_contain_text("outputs unchanged by looking", timeout=LOADING)
    assert letters(sentence) == check_stop(page, "explore", **mine)["tokens"]["axes"]["column"]
    click(tile(page, 2, 3))
    expect_head(page, 2, 3)
    written = check_stop(page, "explore", **mine)["tokens"]["axes"]["row"]
    page.keyboard.press("x")
    expect(page.locator(".st-key-again")).to_contain_text("cross layer 2 head 3 off")
    click(page.get_by_role("button", name="Undo all changes"))
    check_stop(page, "explore", **mine, changes=None)
    go(page, "decode", **mine)
    expect(page.locator(".decode-player .target .piece").nth(1)).to_be_visible()
    decoded = page.locator(".decode-player .target .piece").all_text_contents()[1:]
    assert letters("".join(decoded)).startswith(written)
    said = {
        "why": (".st-key-answer", "the probability of"),
        "heads": (".st-key-model", "Model"),
        "positions": (".st-key-compared", "Cross-attention · layer 2, head 3"),
        "training": ("[data-testid=stMain]", "A folder says nothing of its training"),
    }
    for name, (part, text) in said.items():
        go(page, name)
        expect(model).to_have_value("mine")
        expect(page.locator(part)).to_contain_text(text, timeout=LOADING)
    go(page, "masks")
    choose_page_view(page, "try on the model")
    check_stop(page, "masks", **mine)
    expect(model).to_have_value("mine")
    expect(page.locator(".st-key-tried-pair .gtitle")).to_contain_text("ross-attention")
    go(page, "explore", **mine, layer="2", head="3")


def test_a_head_that_is_off_is_off_on_every_page_until_it_is_undone(traveller: Page) -> None:
    page, off = traveller, "cross.4.8:off"
    page.goto(f"/?sentence={QUERY}&layer=4&head=8&pin=target.4")
    whole = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, changes=None)
    tile(page, 4, 8).focus()
    page.keyboard.press("x")
    check_stop(page, "explore", sentence=OWN, changes=off)
    changed = page.locator(".st-key-overview .tile.changed")
    expect(changed).to_have_count(1)
    expect(changed).to_have_attribute("aria-label", re.compile("Layer 4, head 8"))
    again = page.locator(".st-key-again")
    expect(again).to_contain_text("With cross layer 4 head 8 off. The translation stays the same.")
    numbers = [float(one.replace("−", "-")) for one in re.findall(r"[−+]?\d+\.\d+", again.inner_text())]
    assert numbers[1] - numbers[0] == pytest.approx(numbers[2], abs=0.011)
    decoded = go(page, "decode", sentence=OWN, changes=off)
    expect(page.get_by_text("Of the changed model: cross.4.8:off.")).to_be_visible()
    why = go(page, "why", sentence=OWN, changes=off)
    expect(page.get_by_text("Of the changed model: cross.4.8:off.")).to_be_visible()
    answer = page.locator(".st-key-answer")
    without = answer.inner_text()
    click(page.get_by_role("button", name="Undo all changes"))
    check_stop(page, "why", sentence=OWN, changes=None)
    expect(answer).not_to_have_text(without)
    page.go_back()
    same(why, check_stop(page, "why", sentence=OWN, changes=off))
    page.go_back()
    same(decoded, check_stop(page, "decode", sentence=OWN, changes=off))
    click(page.get_by_role("button", name="Undo all changes"))
    check_stop(page, "decode", sentence=OWN, changes=None)
    go(page, "explore", sentence=OWN, translation=TRANSLATED, changes=None, layer="4", head="8")
    expect(changed).to_have_count(0)
    expect(again).to_have_count(0)
    same(whole, check_stop(page, "explore"))


def test_a_film_of_training_is_stopped_where_a_head_forms_and_that_head_is_looked_up(traveller: Page) -> None:
    page, english = traveller, "The little girl in the red dress is playing in the garden."
    german = "Das kleine Mädchen im roten Kleid spielt im Garten."
    page.goto(f"/?sentence={english.replace(' ', '+')}")
    check_stop(page, "explore", sentence=english, translation=german)
    go(page, "training", sentence=english)
    film = page.locator(".st-key-snapshots .snapshots")
    written, canvas = film.locator(".written"), film.locator(".frame canvas")
    expect(written).to_have_text(german)
    click(film.get_by_role("button", name="Play from random weights"))
    expect(film).to_have_attribute("data-stop", "random")
    expect(film).to_have_attribute("data-stop", "released")
    step = film.get_by_label("Training step")
    click(tile(page, 2, 3))
    expect(film.locator(".title")).to_have_text("Cross-attention · layer 2, head 3")
    drawn = []
    for key, stop, right in (
        ("Home", "random", False),
        ("End", "released", True),
        ("ArrowLeft", "6,000", True),
        ("ArrowLeft", "2,500", False),
    ):
        settle(page)
        step.press(key)
        expect(film).to_have_attribute("data-stop", stop)
        (expect(written).to_have_text if right else expect(written).not_to_have_text)(german)
        drawn.append(canvas.evaluate("one => one.toDataURL()"))
    assert len(set(drawn)) == len(drawn)
    check_stop(page, "training", sentence=english, at="2500", layer="2", head="3")
    go(page, "heads")
    choose_page_view(page, "head")
    check_stop(page, "heads", heads="head", layer="2", head="3")
    expect(page.get_by_text("Cross-attention, layer 2, head 3:")).to_be_visible()
    choose_page_view(page, "over training")
    check_stop(page, "heads", heads="over training")
    expect(page.locator(".st-key-over-training .plot")).to_be_visible()
    choose_page_view(page, "head")
    click(page.get_by_role("button", name="Open on Explore"))
    check_stop(page, "explore", sentence=english, translation=german, layer="2", head="3")
    expect_head(page, 2, 3)


def test_a_trace_and_a_mask_saved_are_opened_where_they_are_asked_for(traveller: Page, tmp_path: Path) -> None:
    page = traveller
    page.goto(f"/?sentence={QUERY}&layer=2&head=4")
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    bring(page, recorded(tmp_path))
    opened = page.get_by_text("an opened trace of Transformer")
    expect(opened).to_be_visible(timeout=LOADING)
    close_menu(page)
    check_stop(page, "explore", sentence="")
    click(tile(page, 3, 4))
    expect_head(page, 3, 4)
    seen = check_stop(page, "explore", sentence="", layer="3", head="4")
    expect(page.get_by_text("Where did you buy it", exact=True)).to_be_visible()
    assert letters("Where did you buy it") in seen["tokens"]["map"]
    go(page, "masks")
    expect(page.locator(".st-key-verdict-line")).to_contain_text("1 question: was causal meant?", timeout=LOADING)
    expect(page.locator(".st-key-verdict")).to_contain_text("future-visible")
    file = download(page.get_by_role("button", name="Findings (JSON)"), tmp_path)
    assert "future-visible" in file.read_text(encoding="utf-8")
    go(page, "explore", sentence="", layer="3", head="4")
    expect(opened).to_be_visible()
    click(page.get_by_role("button", name="Back to the model"))
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    go(page, "masks")
    expect(page.locator(".st-key-verdict-line")).to_have_count(0)
