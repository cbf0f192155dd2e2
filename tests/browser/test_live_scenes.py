"""Scenes that take sentences: in a talk's one file by the model in it, on stage by the app."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from attenscope.interventions.apply import apply_changes
from attenscope.interventions.changes import parse_changes
from attenscope.runnable_model import InputError
from attenscope.translate import Translator
from attenscope.viz.engine.pack_checkpoint import PackedModel, encode_palette, pack_model
from attenscope.viz.export.offline_html import build_talk_page
from attenscope.viz.export.parts import Columns, Component, LiveSlide, Slide, View, Words
from attenscope.viz.figures.figure_style import DARK, Look
from attenscope.viz.talk import scenes as talk_scenes
from attenscope.viz.talk.file import format_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.web import maps, text_components
from tests.browser.steps import LOADING, click, download, open_file, open_page, open_talk, point, tile
from tests.browser.test_engine import TOY, toy_checkpoint
from tests.browser.test_live_file import HOSTILE, say
from tests.browser.test_talk import dialog, on_scene, ready

MADE = date(2026, 11, 22)
NEW = "the old dog sees a tree here."
SCENES = (
    Scene("A head", "explore", {"sentence": TOY, "kind": "cross", "layer": "2", "head": "3"}, live=True),
    Scene("Links", "explore", {"sentence": TOY, "view": "links"}, omit=("heads",), live=True),
    Scene("Steps", "decode", {"cross": "2.3", "changes": "cross.1.1:off"}, hide=("next token",), live=True),
    Scene("Beams", "decode", {"sentence": TOY, "method": "beam", "width": "3", "penalty": "0.5"}, live=True),
)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator(toy_checkpoint())


def saved_view(translator: Translator) -> View:
    """What stands in a slide before anybody types: here the same for every scene."""
    result = translator.translate(TOY)
    cross = result.trace.cross
    assert cross is not None
    tiles = Component("overview", maps.encode_heads_overview(cross, 1, 2, Look(DARK)), "heads", follows=True)
    lines = maps.encode_attention_links(cross, maps.LinkOptions(1, 2), Look(DARK), "predicted", (None, None), "Lines.")
    pieces = Component("tokens", text_components.token_line_data(result.steps, None), "translation")
    columns = Columns(([tiles], [Component("links", lines)]), (0.4, 0.6))
    return View("Saved", [Words(TOY, "sentence", "large"), pieces, columns])


def talk_text(translator: Translator, scenes: Sequence[Scene]) -> str:
    view = saved_view(translator)
    slides, models = [], {}
    for scene in scenes:
        found = None
        if scene.live:
            begun = {"sentence": TOY, "palette": encode_palette(talk_scenes.build_live_look(scene, DARK))}
            found = LiveSlide(translator.name, talk_scenes.build_live_scene_state(scene) | begun)
            models[translator.name] = pack_model(translator.checkpoint)
        slides.append(Slide(scene.title, view, "", scene.point, scene.hide, (*scene.omit, "remarks"), live=found))
    return build_talk_page("A talk", slides, DARK, MADE, list[PackedModel](models.values()))


def pieces(page: Page) -> list[str]:
    return page.locator(".live-scene .tokens button").all_inner_texts()


@pytest.mark.sweep
def test_the_file_of_a_talk_takes_sentences(disk: Page, tmp_path: Path, translator: Translator) -> None:
    file = tmp_path / "talk.html"
    text = talk_text(translator, SCENES)
    assert len(re.findall('id="model-', text)) == 1
    file.write_text(text, encoding="utf-8")
    open_file(disk, file)
    box = disk.get_by_label("Sentence", exact=True)
    expect(box).to_have_value(TOY)
    expect(disk.locator("dl")).to_contain_text("half precision")
    say(disk, NEW)
    expected = translator.translate(NEW)
    expect(disk.locator(".live-scene .tokens button")).to_have_count(len(expected.steps))
    expect(disk.locator(".live-scene .tokens button").first).to_be_visible()  # Fitted anew.
    assert pieces(disk) == [step.token.strip() or "␣" for step in expected.steps]
    expect(tile(disk, 2, 3)).to_have_attribute("aria-pressed", "true")
    point(disk, disk.locator(".heatmap .plot"), 0.3, 0.3)
    assert expected.trace.cross is not None
    row, column = (int(0.3 * size) for size in expected.trace.cross.mask.shape)
    expect(disk.locator(".tip b")).to_have_text(f"{expected.trace.cross.weights[1, 2, row, column]:.3f}")
    for wrong in ("", "a " * 300):
        say(disk, wrong)
        with pytest.raises(InputError) as problem:
            translator.encode(wrong)
        expect(disk.locator(".says")).to_have_text(str(problem.value))
    disk.keyboard.press("ArrowRight")  # Enter has left the box.
    say(disk, HOSTILE)
    expect(disk.locator(".says")).to_contain_text("The vocabulary has no pieces for")
    expect(disk.locator(".live-scene svg .token").first).to_be_visible()
    expect(disk.locator(".overview")).to_have_count(0)
    disk.keyboard.press("ArrowLeft")
    expect(box).to_have_value("a " * 300)  # as it was left
    assert pieces(disk) == [step.token.strip() or "␣" for step in expected.steps]


@pytest.mark.sweep
def test_what_a_scene_hides_stays_hidden_and_a_search_is_a_search(
    disk: Page, tmp_path: Path, translator: Translator
) -> None:
    file = tmp_path / "talk.html"
    file.write_text(talk_text(translator, SCENES[2:]), encoding="utf-8")
    open_file(disk, file)
    say(disk, NEW)
    expect(disk.locator(".live-scene .decode-player")).to_be_visible()
    predicted = disk.locator(".decode-player .text [data-state=predicted]").first
    assert predicted.evaluate("one => getComputedStyle(one).color") == "rgba(0, 0, 0, 0)"
    with apply_changes(translator.model, parse_changes("cross.1.1:off")):
        changed = translator.translate(NEW)
    expect(disk.locator(".decode-player .target .piece")).to_have_count(len(changed.steps) + 1)
    expect(disk.get_by_label("cross-attention")).to_have_value("2.3")
    disk.keyboard.press("PageDown")
    assert predicted.evaluate("one => getComputedStyle(one).color") != "rgba(0, 0, 0, 0)"
    disk.keyboard.press("PageDown")
    say(disk, NEW)
    best = translator.search(NEW, 3, 0.5).best
    found = [translator.tokenizer.decode(one.token_ids) for one in best]
    expect(disk.locator(".version .words")).to_have_text(found)


@pytest.mark.sweep
def test_without_a_live_scene_a_talk_has_no_model(translator: Translator) -> None:
    text = talk_text(translator, [Scene("Still", "explore")])
    assert "wasm-unsafe-eval" not in text
    assert len(text) < len(talk_text(translator, SCENES)) - len(pack_model(translator.checkpoint).data)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_on_stage_and_in_the_file_the_same_sentence_is_translated(page: Page, disk: Page, tmp_path: Path) -> None:
    view = {"sentence": "I do not know.", "kind": "cross", "layer": "2", "head": "2"}
    path = tmp_path / "talk.toml"
    talk = Talk("Live", (Scene("Ask", "explore", view, live=True),), "everyday-en-de")
    path.write_text(format_talk(talk), encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, path)
    file = download(page.get_by_role("button", name=re.compile(r"^One file \(about \d+ MB\)")), tmp_path)
    click(page.get_by_role("button", name="Start the talk"))
    on_scene(page, 1)
    ready(page, 1)
    inside = page.frame_locator("dialog.show iframe.seen")
    box = inside.get_by_label("Sentence", exact=True)
    box.fill("He reads a book.")
    box.press("Enter")
    expect(inside.locator(".st-key-translation")).to_contain_text("Er liest ein Buch")
    box.focus()
    page.keyboard.press("Escape")  # leaves the box, not the talk
    expect(dialog(page)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    disk.set_default_timeout(LOADING)
    open_file(disk, file)
    say(disk, "He reads a book.")
    expect(disk.locator(".live-scene .tokens")).to_contain_text("Er liest ein Buch", timeout=LOADING)
