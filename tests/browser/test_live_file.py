"""The file that runs a model, opened from disk with the network cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from attenscope.checkpoint.load import list_checkpoints, load_checkpoint
from attenscope.experiments.ablation import head_effects, read_word_facts
from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.network.config import PAD_ID
from attenscope.runnable_model import InputError
from attenscope.translate import Translator
from attenscope.viz.export.browser_model_file import build_live_model_html, build_live_model_site
from attenscope.viz.tour import TOUR_MODEL, list_live_file_tour_steps
from attenscope.viz.ui.current_sentence import EXAMPLE_SENTENCES
from attenscope.viz.web.text_components import decision_layer_text
from tests.browser.conftest import visit
from tests.browser.steps import LOADING, open_file, open_page, point, saved, tile
from tests.browser.test_accessibility import findings
from tests.browser.test_engine import toy_checkpoint
from tests.samples import slow_after

HOSTILE = "the <img src=x onerror=alert(1)> dog </script> \u202e 狗"
PINNED = "Pinned: “\u2068{}\u2069” looks at “\u2068{}\u2069”"
CALL = """async ([text, options]) => {
  const found = await window.attenscope.translate(text, options);
  const maps = Object.entries(found.maps).map(([kind, { shape, data }]) => [kind, { shape, data: Array.from(data) }]);
  return { ...found, logProbs: Array.from(found.logProbs), maps: Object.fromEntries(maps) };
}"""

CUT = "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(toy_checkpoint())


@pytest.fixture(scope="module")
def page_text(translator: Translator) -> str:
    return build_live_model_html([translator.checkpoint], date(2026, 11, 22))


@pytest.fixture
def live(disk: Page, tmp_path: Path, page_text: str) -> Page:
    file = tmp_path / "live.html"
    file.write_text(page_text, encoding="utf-8")
    disk.emulate_media(reduced_motion="reduce")
    open_file(disk, file)
    expect(disk.locator("body")).to_have_attribute("data-drawn", "1")
    return disk


def say(page: Page, text: str) -> None:
    page.get_by_label("Sentence", exact=True).fill(text)
    page.get_by_label("Sentence", exact=True).press("Enter")


def words(page: Page) -> str:
    return " ".join(page.locator(".tokens .line").inner_text().split())


@pytest.mark.sweep
def test_it_begins_with_the_welcome(live: Page) -> None:
    expect(live.get_by_label("Sentence", exact=True)).to_have_value(EXAMPLE_SENTENCES["en"][0])


@pytest.mark.sweep
@pytest.mark.parametrize("view", ["text", "nothing"])
def test_the_address_says_what_is_shown_first(disk: Page, tmp_path: Path, page_text: str, view: str) -> None:
    file = tmp_path / "live.html"
    file.write_text(page_text, encoding="utf-8")
    disk.goto(f"{file.as_uri()}#{urlencode({'sentence': 'the cat likes a house.', 'view': view, 'theme': 'dark'})}")
    expect(disk.locator("body")).to_have_attribute("data-drawn", "1", timeout=LOADING)
    expect(disk.get_by_label("Sentence", exact=True)).to_have_value("the cat likes a house.")
    shown = disk.locator(".texts" if view == "text" else ".heatmap .plot")
    expect(shown).to_be_visible()
    expect(disk.locator("html")).to_have_css("color-scheme", "dark")


@pytest.mark.sweep
def test_a_new_sentence_and_every_view(live: Page, translator: Translator) -> None:
    text = "the old dog sees a tree today."
    say(live, text)
    expected = translator.translate(text)
    expect(live.locator(".tokens button")).to_have_count(len(expected.steps))
    shown = live.locator(".tokens button").all_inner_texts()
    assert shown == [step.token.strip() or "␣" for step in expected.steps]
    tile(live, 2, 3).click()
    expect(live.get_by_role("img", name="Layer 2, head 3").or_(live.locator(".heatmap .plot"))).to_be_visible()
    point(live, live.locator(".heatmap .plot"), 0.3, 0.3)
    assert expected.trace.cross is not None
    row, column = (int(0.3 * size) for size in expected.trace.cross.mask.shape)
    weight = expected.trace.cross.weights[1, 2, row, column]
    expect(live.locator(".tip b")).to_have_text(f"{weight:.3f}")
    live.get_by_role("button", name="Encoder").click()
    live.get_by_role("button", name="Links").click()
    expect(live.locator("svg .token")).to_have_count(2 * len(expected.source_tokens))
    live.get_by_role("button", name="Text", exact=True).click()
    expect(live.locator(".texts button")).to_have_count(2 * len(expected.source_tokens))
    assert not findings(live)


@pytest.mark.sweep
def test_step_by_step_with_candidates_and_beams(live: Page, translator: Translator) -> None:
    text = "the old dog sees a tree today."
    say(live, text)
    live.get_by_role("group", name="View").get_by_role("button", name="Step by step").click()
    plain = translator.translate(text)
    other = plain.steps[0].candidates[1]
    live.locator(".candidate .name").nth(1).click()
    expect(live.locator(".tokens button").first).to_have_text(other.token.strip() or "␣")
    live.locator(".candidate").first.hover()
    live.locator(".candidate .forbid").first.click()
    live.get_by_label("Decoding", exact=True).select_option("4")
    best = translator.search(text, 4).best
    expect(live.locator(".version .words")).to_have_text([translator.tokenizer.decode(one.token_ids) for one in best])
    nodes = live.get_by_role("group", name="The beam search as a tree").get_by_role("button")
    expect(nodes).to_have_count(len(translator.search(text, 4).nodes))
    nodes.first.focus()
    live.keyboard.press("ArrowRight")
    live.keyboard.press("Enter")
    expect(live.locator(".tokens button")).to_have_count(2)
    expect(nodes).to_have_count(len(translator.search(text, 4).nodes))
    live.locator(".version").nth(2).click()
    expect(live.locator(".tokens button")).to_have_count(len(best[1].token_ids))
    assert not findings(live)


@pytest.mark.sweep
def test_the_card_of_a_word(live: Page, translator: Translator) -> None:
    text = "the old dog sees a tree today."
    say(live, text)
    plain = translator.translate(text)
    expect(live.locator(".tokens button")).to_have_count(len(plain.steps))
    card = live.get_by_role("article", name=re.compile("^The word "))
    if card.count():
        card.get_by_role("button", name="Close this card").click()
    expect(card).to_have_count(0)
    live.locator(".tokens button").nth(2).click()
    expect(card.locator("h4")).to_contain_text(["Instead of it", "It looked at", "Heads that matter"], timeout=LOADING)
    facts = read_word_facts(translator, text, plain.target_ids)
    expect(card.locator(".decided")).to_have_text(decision_layer_text(plain.steps[2], facts))
    for width in (1920, 1280, 390):
        live.set_viewport_size({"width": width, "height": 900})
        assert card.locator(".row .text").evaluate_all(CUT) == [], width
    strongest = head_effects(translator.model, plain.source_ids, plain.target_ids).strongest(2)[0][0]
    card.get_by_role("button", name=re.compile("^Show .* nats without it$")).first.click()
    expect(live.locator(".heatmap[data-painted]")).to_have_attribute(
        "data-painted", re.compile(f"layer {strongest[1] + 1}, head {strongest[2] + 1}")
    )
    card.get_by_role("button", name="Step by step").click()
    expect(live.locator(".decode-player")).to_have_attribute("data-step", "3")
    others = [one for one in plain.steps[2].candidates if one.token_id != plain.target_ids[2]]
    card.locator("section").first.get_by_role("button").nth(1).click()
    expect(live.locator(".tokens button").nth(2)).to_have_text(others[1].token.strip() or "␣")
    expect(card.locator(".word")).to_have_text(others[1].token.strip() or "␣")


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("form", slow_after(1, ["int8", "half"]))
@pytest.mark.skipif(TOUR_MODEL not in list_checkpoints(), reason="the checkpoint is not here")
def test_the_tour_shows_what_it_says(disk: Page, tmp_path: Path, form: Any) -> None:
    file = tmp_path / "live.html"
    file.write_text(build_live_model_html([load_checkpoint(TOUR_MODEL)], date(2026, 11, 22), form), encoding="utf-8")
    open_file(disk, file)
    disk.get_by_role("button", name="Start here").click()
    tour = disk.get_by_label("Tour")
    for at, step in enumerate(list_live_file_tour_steps(TOUR_MODEL), 1):
        expect(tour).to_contain_text(
            f"{at}/{len(list_live_file_tour_steps(TOUR_MODEL))} {step['title']} {step['text']}"
        )
        place = f"layer {step['address']['layer']}, head {step['address']['head']}"
        expect(disk.locator(".heatmap[data-painted]")).to_have_attribute("data-painted", re.compile(place))
        if at == 1:
            expect(disk.locator(".see")).to_contain_text(PINNED.format("Fahrrad", "bicycle"))
        tour.get_by_role("button", name=step["button"]).click()
        if at == 1:
            expect(disk.locator(".see")).to_contain_text(PINNED.format("gekauft", "buy"))
        if at < len(list_live_file_tour_steps(TOUR_MODEL)):
            tour.get_by_role("button", name="Next", exact=True).click()
    expect(disk.locator(".decode-player")).to_have_attribute("data-step", "1")
    tour.get_by_role("button", name="Leave").click()
    expect(tour).to_have_count(0)
    assert not list_live_file_tour_steps("another")


@pytest.mark.sweep
def test_a_head_switched_off(live: Page, translator: Translator) -> None:
    before = words(live)
    live.get_by_text("Heads off").click()
    live.get_by_label("Cross-attention, all heads of layer 1").click()
    changes = ",".join(f"cross.1.{head}:off" for head in range(1, 5))
    text = live.get_by_label("Sentence", exact=True).input_value()
    with apply_changes(translator.model, parse_changes(changes)):
        changed = translator.translate(text)
    expect(live.locator(".tokens button")).to_have_count(len(changed.steps))
    assert words(live) != before
    expect(live.locator(".overview .tile.changed")).to_have_count(4)


@pytest.mark.sweep
def test_scripts_may_ask_and_bad_input_gets_its_sentence(live: Page, translator: Translator) -> None:
    for text, options in ((HOSTILE, {}), ("the cat likes a house.", {"beam": 4})):
        found = live.evaluate(CALL, [text, options])
        ids = translator.search(text, 4).best[0].token_ids if options else None
        assert not ids or PAD_ID not in ids  # which teacher forcing masks
        expected = translator.force(text, ids) if ids else translator.translate(text)
        assert (found["text"], found["tokens"]) == (expected.text, list(expected.target_tokens))
        assert found["sourceTokens"] == list(expected.source_tokens)
        assert found["logProbs"] == pytest.approx([step.log_prob for step in expected.steps], abs=1e-3)
        for kind, one in expected.trace.maps.items():
            own = np.array(found["maps"][kind]["data"]).reshape(found["maps"][kind]["shape"])
            assert np.abs(own - one.weights).max() < 1e-4
    say(live, HOSTILE)
    expect(live.locator("body")).to_have_attribute("data-drawn", "2")
    expect(live.locator(".says")).to_contain_text("The vocabulary has no pieces for")
    for text in ("", " \u200b", "a " * 300, "b" * 5000):
        say(live, text)
        with pytest.raises(InputError) as problem:
            translator.encode(text)
        expect(live.locator(".says")).to_have_text(str(problem.value))
    expect(live.locator("body")).to_have_attribute("data-drawn", "2")


@pytest.mark.sweep
def test_a_file_that_was_cut_off_says_so(disk: Page, tmp_path: Path, page_text: str) -> None:
    at = page_text.index('id="model-0"')
    changed = page_text[: at + 4000] + ("A" if page_text[at + 4000] != "A" else "B") + page_text[at + 4001 :]
    for name, text in (("half", page_text[: (at + len(page_text)) // 2]), ("changed", changed)):
        file = tmp_path / f"{name}.html"
        file.write_text(text, encoding="utf-8")
        disk.goto(file.as_uri())
        expect(disk.locator(".says")).to_have_text(re.compile("^This file is not whole"))
    (tmp_path / "start.html").write_text(page_text[: at // 2], encoding="utf-8")
    disk.goto((tmp_path / "start.html").as_uri())
    expect(disk.get_by_text("download it again")).to_be_visible()


@pytest.mark.sweep
def test_a_browser_that_lacks_something_is_told_what(disk: Page, tmp_path: Path, page_text: str) -> None:
    (tmp_path / "live.html").write_text(page_text, encoding="utf-8")
    disk.add_init_script("delete window.DecompressionStream; WebAssembly.validate = () => false;")
    disk.goto((tmp_path / "live.html").as_uri())
    expect(disk.locator("#starting")).to_contain_text("as it lacks: WebAssembly SIMD, DecompressionStream.")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.mark.sweep
def test_a_folder_on_a_web_host(chromium: Browser, tmp_path: Path, translator: Translator) -> None:
    made = build_live_model_site([translator.checkpoint], date(2026, 11, 22))
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        asked: list[str] = []
        with visit(chromium, url) as page:
            page.on("request", lambda request: asked.append(request.url.removeprefix(url)))
            page.goto(url)
            expect(page.locator("body")).to_have_attribute("data-drawn", "1")
        server.shutdown()
    assert sorted(one for one in asked if not one.startswith("blob:")) == sorted(["", *set(made) - {"index.html"}])


@pytest.fixture
def phone(chromium: Browser) -> Iterator[Page]:
    with visit(chromium, "file:", offline=True, viewport={"width": 390, "height": 844}, color_scheme="dark") as page:
        yield page


@pytest.mark.sweep
def test_two_models_on_a_phone(phone: Page, tmp_path: Path, translator: Translator) -> None:
    file = tmp_path / "two.html"
    other = toy_checkpoint(preset="pad_row")
    text = build_live_model_html([translator.checkpoint, other], date(2026, 11, 22))
    assert len(re.sub(r'id="model-\d">[^<]*', "", text)) < 500_000
    file.write_text(text, encoding="utf-8")
    open_file(phone, file)
    expect(phone.locator("body")).to_have_attribute("data-drawn", "1")
    phone.get_by_label("Model", exact=True).select_option("1")
    expect(phone.locator("body")).to_have_attribute("data-drawn", "2")
    text = phone.get_by_label("Sentence", exact=True).input_value()
    expect(phone.locator(".tokens button")).to_have_count(len(Translator(other).translate(text).steps))
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    background = "getComputedStyle(document.body).backgroundColor"
    before = phone.evaluate(background)
    phone.get_by_role("button", name="Light / dark").click()
    expect(phone.locator("body")).not_to_have_css("background-color", before)
    assert not findings(phone)


@pytest.mark.parametrize("path", slow_after(1, ["/?layer=1", "/decode?step=1"]))
def test_a_run_is_saved_with_its_model(page: Page, disk: Page, tmp_path: Path, path: str) -> None:
    open_page(page, path)
    file = saved(page, "Live file: the model too", tmp_path)
    open_file(disk, file)
    expect(disk.locator("body")).to_have_attribute("data-drawn", "1")
    say(disk, "I do not know.")
    expect(disk.locator("body")).to_have_attribute("data-drawn", "2")
    assert words(disk).startswith("Ich weiß")
