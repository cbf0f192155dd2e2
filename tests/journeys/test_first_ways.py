"""What newcomers, teachers and speakers do: a first visit, a lesson, a talk, the tour."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from attenscope.viz.tour import load_tour_steps
from tests.browser.steps import (
    add_to_talk,
    choose_kind,
    choose_language,
    click,
    download,
    enter,
    expect_head,
    expect_title,
    move_scene,
    open_file,
    open_menu,
    tile,
    type_sentence,
)
from tests.journeys.stops import (
    OWN,
    TRANSLATED,
    WELCOME,
    WELCOMED,
    check_stop,
    go,
    kept_heads,
    on_scene,
    same,
    stage,
    word,
)

pytestmark = [pytest.mark.journey, pytest.mark.timeout(400)]


def test_what_a_first_visitor_finds_is_what_a_stranger_sees_at_the_shared_link(traveller: Page, stranger: Page) -> None:
    page = traveller
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/")
    check_stop(page, "explore", sentence=WELCOME, translation=WELCOMED)
    expect(word(page, "gekauft")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".st-key-headclaim")).to_contain_text("“\u2068gekauft\u2069” looks at “\u2068buy\u2069”")
    type_sentence(page, OWN)
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    click(word(page, "Auto"))
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, pin="target.8")
    expect(page.locator(".st-key-headclaim")).to_contain_text("Pinned: “\u2068Auto\u2069” looks at “\u2068car\u2069”")
    click(tile(page, 2, 4))
    expect_head(page, 2, 4)
    shown = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4")
    click(open_menu(page, "share").get_by_role("button", name="Copy the link"))
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    stranger.goto(page.evaluate("navigator.clipboard.readText()"))
    same(shown, check_stop(stranger, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4"))
    expect_head(stranger, 2, 4)
    expect(word(stranger, "Auto")).to_have_attribute("aria-pressed", "true")
    type_sentence(stranger, "The sun shines.")  # From here on it is the stranger's own way.
    check_stop(stranger, "explore", sentence="The sun shines.")
    go(stranger, "decode", sentence="The sun shines.")
    same(shown, check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, layer="2", head="4"))
    expect_head(page, 2, 4)


def test_a_lesson_shows_the_same_view_in_three_languages(traveller: Page) -> None:
    page = traveller
    page.goto("/?sentence=" + OWN.replace(" ", "+"))
    first = check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    choose_kind(page, "decoder")
    expect_title(page, "Decoder self-attention")
    shown = check_stop(page, "explore", sentence=OWN, kind="decoder", lang=None)
    assert shown["tokens"]["axes"] != first["tokens"]["axes"]
    heads = kept_heads(page)
    assert heads
    number = re.findall(r"\d+", heads[0])
    spoken = {
        "de": ("Erkunden", "Zeile", "Schicht {0}, Head {1}"),
        "zh": ("探索", "行", "第 {0} 层"),
        "en": ("Explore", "row", "Layer {0}, head {1}"),
    }
    for language, (explore, row, head) in spoken.items():
        choose_language(page, language)
        said = check_stop(page, "explore", sentence=OWN, kind="decoder", lang=language)
        assert said["tokens"]["axes"] == shown["tokens"]["axes"]
        assert said["fingerprint"]["sketches"].keys() == shown["fingerprint"]["sketches"].keys()
        expect(page.get_by_role("link", name=explore, exact=True)).to_be_visible()
        assert row in said["fingerprint"]["texts"]["view-heatmap"]
        pressed = page.locator(".st-key-overview [aria-pressed=true]")
        expect(pressed).to_have_attribute("aria-label", re.compile(head.format(*number)))
        decode = go(page, "decode", sentence=OWN, lang=language)
        assert language == "en" or "Strategy" not in decode["fingerprint"]["texts"]["method"]
        page.go_back()
        same(said, check_stop(page, "explore", sentence=OWN, kind="decoder", lang=language))
    same(shown, said)


def test_a_talk_is_built_from_pages_given_and_taken_home(traveller: Page, disk: Page, tmp_path: Path) -> None:
    page = traveller
    page.goto("/?layer=2&head=4&sentence=" + OWN.replace(" ", "+"))
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED)
    add_to_talk(page)
    go(page, "decode", sentence=OWN)
    page.get_by_label("Decoding step").press("End")
    expect(page).to_have_url(re.compile("step=10"))
    add_to_talk(page)
    go(page, "talk")
    title = page.get_by_label("Title", exact=True)
    expect(page.get_by_text("Scene 2 of 2")).to_be_visible()
    enter(title, "Word by word")
    move_scene(page, "earlier")
    click(page.locator(".st-key-scene-choice label").last)
    enter(title, "One head")
    enter(page.get_by_label("Title of the talk"), "A lesson")
    check_stop(page, "talk")
    expect(page.locator(".st-key-scene-choice [role=radiogroup] label")).to_have_text(
        [re.compile("1 Word by word"), re.compile("2 One head")]
    )
    page.reload()
    check_stop(page, "talk")
    expect(page.get_by_label("Title of the talk")).to_have_value("A lesson")
    click(page.get_by_role("button", name="Start the talk"))
    on_scene(page, 1, "Word by word")
    inside = page.frame_locator("dialog.show iframe.seen")
    expect(inside.locator(".decode-player")).to_have_attribute("data-step", "10")
    page.keyboard.press("PageDown")
    on_scene(page, 2, "One head")
    expect(inside.locator(".heatmap")).to_have_attribute("data-painted", "Cross-attention · layer 2, head 4")
    page.keyboard.press("Escape")
    expect(stage(page)).to_have_count(0)
    check_stop(page, "talk", present=None)
    open_file(disk, download(page.get_by_role("button", name="One file"), tmp_path))
    expect(disk.get_by_role("heading", level=1)).to_have_text("Word by word")
    disk.keyboard.press("PageDown")
    expect(disk.get_by_role("heading", level=1)).to_have_text("One head")
    expect(disk.locator(".heatmap")).to_have_attribute("data-painted", "Cross-attention · layer 2, head 4")


def test_the_tour_leads_through_its_steps_also_past_a_sentence_of_ones_own(traveller: Page) -> None:
    page = traveller
    steps = load_tour_steps()
    page.goto("/")
    check_stop(page, "explore", sentence=WELCOME)
    click(page.get_by_role("button", name="Start here"))
    tour = page.locator(".st-key-tour")
    for at, step in enumerate(steps, start=1):
        kind, layer, head = (step.address[name] for name in ("kind", "layer", "head"))
        check_stop(page, "explore", sentence=WELCOME, tour=str(at))
        expect(tour).to_contain_text(f"{at}/{len(steps)} {step.title} {step.text}")
        expect(page.locator(".st-key-view [aria-checked=true]")).to_have_text("heatmap")
        named = "Cross-attention" if kind == "cross" else f"{kind.capitalize()} self-attention"
        expect_title(page, f"{named} · layer {layer}, head {head}")
        expect_head(page, int(layer), int(head))
        if at == 2:
            type_sentence(page, OWN)
            check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, tour="2")
            expect(tour).to_contain_text("This step is about the sentence")
            expect(tour).not_to_contain_text(step.text)
            click(page.get_by_role("button", name="Show it"))
            check_stop(page, "explore", sentence=WELCOME, translation=WELCOMED, tour="2")
            expect(tour).to_contain_text(step.text)
        if step.attempt:
            click(page.get_by_role("button", name=step.button))
            check_stop(page, "explore", sentence=WELCOME, tour=str(at), **step.attempt)
            click(page.get_by_role("button", name="Next", exact=True))
    click(page.get_by_role("button", name=steps[-1].button))
    check_stop(page, "decode", sentence=WELCOME)
    page.go_back()
    check_stop(page, "explore", sentence=WELCOME, tour=str(len(steps)))
    type_sentence(page, OWN)
    click(page.get_by_role("button", name="Leave"))
    check_stop(page, "explore", sentence=OWN, translation=TRANSLATED, tour=None)
    expect(tour).to_have_count(0)
