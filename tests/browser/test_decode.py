"""Decode, used as a visitor uses it: by clicking and by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import (
    LOADING,
    at_step,
    boxes_at_rest,
    click,
    linked,
    open_decode,
    open_page,
    player,
    point,
    settle,
    step_count,
    type_sentence,
    written,
)

SENTENCE = "My sister bought a new car yesterday."


def test_the_whole_way(page: Page) -> None:
    open_page(page)
    click(page.get_by_role("link", name="Decode"))
    settle(page)
    type_sentence(page, SENTENCE)
    expect(page.get_by_text("The attention weights agree")).to_be_visible()
    assert written(page)[0] == "<s>"
    expect(player(page).locator(".source .piece").first).to_have_text("My")
    expect(page.locator(".st-key-badge")).to_contain_text(re.compile(r"\d+ ms|\d\.\d s"))


def test_keys_step_and_a_step_is_a_link(page: Page) -> None:
    open_decode(page)
    last = step_count(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    at_step(page, 3)
    linked(page, "step=3")
    page.keyboard.press("End")
    at_step(page, last)
    page.keyboard.press("ArrowRight")
    at_step(page, last)
    page.keyboard.press("ArrowLeft")
    at_step(page, last - 1)
    page.keyboard.press("Home")
    at_step(page, 1)
    page.keyboard.press("ArrowLeft")
    at_step(page, 1)
    linked(page, "step=1")
    open_decode(page, "&step=4")
    at_step(page, 4)


def test_typing_in_the_sentence_does_not_step(page: Page) -> None:
    open_decode(page, "&step=2")
    page.get_by_label("Sentence", exact=True).focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    at_step(page, 2)


def test_it_plays_to_the_end_and_pauses_by_the_space_bar(page: Page) -> None:
    open_decode(page)
    page.get_by_label("Speed").select_option("10 a second")
    page.locator("body").press("Escape")
    click(page.get_by_role("button", name="Play", exact=True))
    at_step(page, step_count(page))
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    linked(page, f"step={step_count(page)}")
    page.get_by_role("button", name="Play", exact=True).evaluate("button => button.blur()")
    page.get_by_label("Speed").evaluate("select => select.blur()")
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_playing_sends_the_server_nothing(page: Page) -> None:
    sent: list[object] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    open_decode(page)
    page.get_by_label("Speed").select_option("2 a second")
    assert sent
    sent.clear()
    click(page.get_by_role("button", name="Play", exact=True))
    expect(player(page)).to_have_attribute("data-step", re.compile("[4-9]"))
    assert not sent


def test_a_slow_search_is_shown_under_way_and_stopped(page: Page) -> None:
    sentence = "+".join(["the+old+man+reads+a+book+in+the+garden+and"] * 45)  # As long as the model reads: seconds.
    page.goto(f"/decode?method=beam&width=10&penalty=3.0&sentence={sentence}")
    expect(page.get_by_text(re.compile(r"^Decoding … \d+ tokens so far"))).to_be_visible(timeout=LOADING)
    page.locator(".st-key-stop").get_by_role("button").click(timeout=LOADING)
    expect(page.get_by_text(re.compile(r"^Stopped (after|while)"))).to_be_visible(timeout=LOADING)
    at_step(page, step_count(page))


def test_the_step_shows_what_is_fed_in_predicted_and_not_yet_written(page: Page) -> None:
    open_decode(page, "&step=3")
    at_step(page, 3)
    target = player(page).locator(".target .piece")
    states = target.evaluate_all("all => all.map(one => one.dataset.state)")
    assert states[:5] == ["written", "written", "fed", "predicted", "unwritten"]
    legend = player(page).locator(".legend")
    tokens = written(page)
    expect(legend.locator(".fed")).to_have_text(tokens[2])
    expect(legend.locator(".predicted")).to_have_text(tokens[3])
    expect(target.nth(4)).to_have_css("color", "rgba(0, 0, 0, 0)")


def test_the_causal_mask_is_grey_and_rows_to_come_are_empty(page: Page) -> None:
    open_decode(page, "&step=3")
    at_step(page, 3)
    pixel = """(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(
        Math.round(x * canvas.width), Math.round(y * canvas.height), 1, 1).data]"""
    count = step_count(page)
    canvas = player(page).locator("canvas")

    def cell(row: int, column: int) -> list[int]:
        return canvas.evaluate(pixel, [(column + 0.5) / count, (row + 0.5) / count])

    assert cell(0, 0) == [0x38, 0x26, 0x8C, 255]  # <s> can look at itself only
    assert cell(0, 3) == cell(1, 4) == [0xDE, 0xDD, 0xE1, 255]
    assert cell(4, 0)[3] == 0
    point(page, canvas, 0.95, 0.02)
    expect(player(page).locator(".reading")).to_contain_text("not written yet")


def test_cross_attention_of_another_head_without_the_server(page: Page) -> None:
    open_decode(page, "&step=2")
    at_step(page, 2)
    shades = "all => all.map(one => one.style.backgroundColor).join()"
    source = player(page).locator(".source .piece")
    before = source.evaluate_all(shades)
    page.get_by_label("Cross-attention head").select_option("1.2")
    assert source.evaluate_all(shades) != before
    linked(page, "cross=1.2")
    page.get_by_label("Cross-attention head").select_option("2.mean")
    linked(page, "cross=2.mean")
    page.reload()
    settle(page)
    expect(page.get_by_label("Cross-attention head")).to_have_value("2.mean")


@pytest.mark.slow
def test_odd_text_is_decoded_and_named(page: Page) -> None:
    open_decode(page)
    for text in ("😀 🎉", "<script>alert(1)</script> *is* $x^2$", "أين المكتبة؟", "word " * 60):
        type_sentence(page, text)
        expect(player(page).locator(".source .piece").last).to_have_text("</s>")
    type_sentence(page, "  ")
    expect(page.get_by_text("nothing to translate")).to_be_visible()
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


@pytest.mark.slow  # A time, which a busy machine stretches: for a quiet one.
def test_scrubbing_30_steps_of_a_long_source_takes_40_ms_a_step(page: Page) -> None:
    source = "+".join(["the+old+man+reads+a+book+in+the+garden+every+evening+and"] * 11)
    given = "+".join(["Der+alte+Mann+liest+jeden+Abend+ein+Buch"] * 4)
    open_page(page, f"/decode?method=given&given={given}&sentence={source}&step=1")
    at_step(page, 1)
    assert player(page).locator(".source .piece").count() >= 128
    assert step_count(page) >= 30
    median = page.get_by_label("Decoding step").evaluate("""async (slider) => {
        const painted = () => new Promise((done) => requestAnimationFrame(() => {
            const after = new MessageChannel();
            after.port1.onmessage = done;
            after.port2.postMessage(0);
        }));
        const times = [];
        for (let step = 1; step <= 30; step += 1) {
            const started = performance.now();
            slider.value = step;
            slider.dispatchEvent(new Event('input'));
            await painted();
            times.push(performance.now() - started);
        }
        return times.sort((a, b) => a - b)[15];
    }""")
    assert median <= 40


def test_another_step_moves_nothing(page: Page) -> None:
    open_decode(page)
    at_step(page, 1)
    parts = (
        ".decode-player .source",
        ".decode-player .target",
        ".decode-player canvas",
        ".decode-player .player",
        ".decode-player .where",
    )
    before = boxes_at_rest(page, parts)
    page.keyboard.press("End")
    at_step(page, step_count(page))
    assert boxes_at_rest(page, parts) == before
