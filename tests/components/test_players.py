"""Components that play: one decoding step by step, and a training through its snapshots."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from attenscope.decoding.greedy_and_sampling import Candidate
from attenscope.runnable_model import Translation
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.notebook.static_html import colour_weights
from attenscope.viz.web import players
from tests.components.bare_page import BarePage, rgb
from tests.components.test_weights import CROSS, OWN, RESULT, point_at_cell
from tests.viz.fakes import HEADS, LAYERS, FakeTranslator

START = players.PlayerStart(1, "aligning", "2.3", (1, 2))


BACKGROUNDS = """(all) => all.map((one) => getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number))"""


def decoding(start: players.PlayerStart = START, result: Translation = RESULT, look: Look | None = None) -> bytes:
    return players.encode_decode_player(result, start, look or Look(), "a")


def test_a_step_shows_where_it_looked_and_what_it_considered(bare: BarePage) -> None:
    view = bare.mount("decode_player", decoding())
    expect(view.locator(".piece[data-state=predicted]")).to_have_text("TWO")
    expect(view.locator(".piece[data-state=fed]")).to_have_text("ONE")
    row = CROSS.weights[1, 2, 1]
    found = view.locator(".source .piece").evaluate_all(BACKGROUNDS)
    np.testing.assert_allclose(found, colour_weights(row[None], np.ones((1, 4), bool), Look())[0], atol=4)
    lines = view.locator(".text svg path:not([style*=none])")
    expect(lines).to_have_count(int((row >= 0.04).sum()))
    assert f"{row.max():.2f}" in view.locator(".text svg text").all_text_contents()
    rows = view.locator(".candidate").filter(visible=True)
    expect(rows.locator(".name")).to_have_text(["TWO", "other"])
    expect(rows.locator(".share")).to_have_text(["95%", "5.0%"])
    total = math.log(0.4) + math.log(0.95)
    said = f"log-probability so far −{-total:.2f}, −{-total / 2:.2f} a token"
    expect(view.locator(".where")).to_have_text(f"step 2 of 4 · {said}")
    expect(view.locator(".tower[data-state=now]")).to_have_attribute("title", "TWO 95%")
    rows.nth(1).locator(".name").click()
    rows.nth(1).locator(".forbid").click()
    assert bare.pop_sent_values() == [["pick", {"step": 1, "id": 99}], ["forbid", {"step": 1, "id": 99}]]
    rows.nth(0).locator(".name").focus()
    bare.page.keyboard.press("ArrowDown")
    expect(rows.nth(1).locator(".name")).to_be_focused()


def test_the_own_words_grow_by_a_row_a_step_and_are_read(bare: BarePage) -> None:
    view = bare.mount("decode_player", decoding())
    canvas, shape = view.locator(".matrix canvas"), OWN.weights.shape[-2:]
    colours = colour_weights(OWN.weights[1, 2], OWN.mask, Look())
    seen = bare.pixels(canvas, [(0.125, 0.375), (0.9, 0.375), (0.125, 0.875)])
    np.testing.assert_allclose(seen[0, :3], colours[1, 0], atol=4)
    assert tuple(seen[1][:3]) == rgb(LIGHT.masked)
    assert seen[2, 3] == 0, "that row is still to come"
    reading = view.locator(".reading")
    best = OWN.weights[1, 2, 1].max()
    expect(reading).to_contain_text(f": {best:.2f}")
    readings = {(1, 0): f"{OWN.weights[1, 2, 1, 0]:.2f}", (3, 0): "still to come", (0, 3): "masked"}
    for (row, column), said in readings.items():
        point_at_cell(canvas, row, column, shape)
        expect(reading).to_contain_text(said)
    bare.page.mouse.move(1, 1)
    expect(reading).to_contain_text(f": {best:.2f}")


def test_the_player_is_driven_by_keys_towers_slider_and_words(bare: BarePage) -> None:
    view = bare.mount("decode_player", decoding())
    for key, step in {"ArrowRight": 3, "End": 4, "Home": 1}.items():
        bare.page.keyboard.press(key)
        expect(view).to_have_attribute("data-step", str(step))
    bare.page.wait_for_function("() => window.sent.length && window.sent.at(-1)[1] === 0")  # Where it comes to rest.
    bare.pop_sent_values()
    view.locator(".tower").nth(2).click()
    bare.page.wait_for_function("() => window.sent.length")  # Two moves at once come to rest at one step.
    view.locator("input").fill("3")
    bare.page.wait_for_function("() => window.sent.length > 1")
    assert bare.pop_sent_values() == [["step", 2], ["step", 3]]
    view.locator(".target .piece").nth(2).click()
    assert bare.pop_sent_values() == [["word", 1]]
    bare.mount("decode_player", decoding(replace(START, step=2)))  # An answer to what was told before.
    expect(view).to_have_attribute("data-step", "2")
    bare.mount("decode_player", decoding(replace(START, step=0)))
    expect(view).to_have_attribute("data-step", "1")
    assert bare.page.evaluate("() => document.documentElement.dataset.decodingStep") == "0"
    bare.unmount()
    bare.page.wait_for_function("() => document.documentElement.dataset.decodingStep === undefined")


def test_it_plays_to_the_end_and_other_heads_are_chosen(bare: BarePage) -> None:
    view = bare.mount("decode_player", decoding(replace(START, step=2)))
    view.get_by_label("Speed").select_option("10 a second")
    bare.page.keyboard.press(" ")
    expect(view.locator(".play")).to_contain_text("Pause")
    view.get_by_label("Speed").select_option("5 a second")
    expect(view.locator(".play")).to_contain_text("Play")
    expect(view).to_have_attribute("data-step", "4")
    assert bare.pop_sent_values() == [["step", 3]]
    view.get_by_label("Cross-attention head").select_option("1.mean")
    view.get_by_label("Decoder self-attention head").select_option("3.4")
    assert bare.pop_sent_values() == [
        ["view", {"cross": "1.mean", "own": "2.3"}],
        ["view", {"cross": "1.mean", "own": "3.4"}],
    ]
    mean = CROSS.weights[0].mean(0, dtype=np.float64)[3]
    found = view.locator(".source .piece").evaluate_all(BACKGROUNDS)[3]
    np.testing.assert_allclose(found, colour_weights(mean[None], np.ones((1, 4), bool), Look())[0, 3], atol=4)
    said = view.locator(".reading").inner_text()
    label = f"Decoder self-attention, layer 3, head 4: {said}"
    expect(view.locator(".matrix canvas")).to_have_attribute("aria-label", label)
    view.locator(".play").click()
    expect(view.locator(".play")).to_contain_text("Pause")
    view.locator(".play").click()
    view.get_by_label("Full screen").click()
    bare.page.wait_for_function("() => document.fullscreenElement")
    view.get_by_label("Full screen").click()
    bare.page.wait_for_function("() => !document.fullscreenElement")


def test_an_unlikely_token_that_was_drawn_is_marked_with_its_rank(bare: BarePage) -> None:
    bare.set_scheme("dark")
    bare.page.set_viewport_size({"width": 400, "height": 900})
    others = tuple(Candidate(100 + at, math.log(0.1), f" o{at}", 0.2, at == 1) for at in range(8))
    odd = replace(RESULT.steps[0], log_prob=math.log(0.0002), rank=1200, candidates=others)
    result = replace(RESULT, steps=(odd, *RESULT.steps[1:]))
    view = bare.mount("decode_player", decoding(replace(START, step=0), result=result, look=Look(DARK)))
    rows = view.locator(".candidate")
    expect(rows.nth(7)).to_have_class("candidate chosen")
    expect(rows.nth(7).locator(".share")).to_have_text("<0.1% · rank 1,200")
    expect(view.locator(".candidate.forbidden .name")).to_have_text("o1")
    expect(rows.nth(0).locator(".name")).to_have_attribute("aria-label", "o0, 10%, drawn with 20%: go on from it")
    expect(view.locator(".surprising")).to_have_text("ONE")
    expect(view.locator(".legend .wave")).to_have_text("surprising")
    expect(view.locator(".candidates .title")).to_contain_text("outlined: as it was drawn from")


def test_a_long_decoding_has_towers_without_gaps(bare: BarePage) -> None:
    result = FakeTranslator().translate(" ".join(f"word{at}" for at in range(70)))
    start = replace(START, step=99, cross="1.1", aligning=None)
    view = bare.mount("decode_player", decoding(start, result=result))
    expect(view.locator(".skyline")).to_have_class("skyline crowded")
    expect(view).to_have_attribute("data-step", "71")
    expect(view.locator(".text")).to_have_attribute("data-size", "tiny")


MOMENTS = [
    players.SnapshotText("0", "step 0 of 20", "", 0.00002, ""),
    players.SnapshotText("10", "step 10 of 20", "eins", 0.25, "dev BLEU 12.3"),
    players.SnapshotText("20", "step 20 of 20", "eins zwei", 0.999, ""),
]


def training(stops: int = 3, **more: Any) -> bytes:
    maps = [replace(OWN, weights=OWN.weights ** (at + 1)) for at in range(stops)]
    given: dict[str, Any] = {"start": 1, "place": (1, 2), "look": Look(), "rows": "predicted", "run": "a"}
    return players.encode_snapshot_player(players.SnapshotSequence(MOMENTS[:stops], maps, **(given | more)))


def test_a_stop_of_a_training_shows_all_heads_and_is_read(bare: BarePage) -> None:
    view = bare.mount("snapshots", training())
    belief = "a piece of the final translation is 25% probable"
    expect(view.locator(".where")).to_have_text(f"step 10 of 20 · dev BLEU 12.3 · {belief}")
    expect(view.locator(".written")).to_have_text("eins")
    large = view.locator(".head-large canvas")
    colours = colour_weights(OWN.weights[1, 2] ** 2, OWN.mask, Look())
    np.testing.assert_allclose(bare.pixel(large, 0.125, 0.9)[:3], colours[3, 0], atol=5)
    tile = view.locator(".tile canvas").nth(HEADS + 2)
    np.testing.assert_allclose(bare.pixel(tile, 0.1, 0.9)[:3], colours[3, 0], atol=5)
    point_at_cell(large, 3, 0, OWN.weights.shape[-2:])
    value = OWN.weights[1, 2, 3, 0]
    reading = view.locator(".reading")
    expect(reading).to_contain_text(f"{value**2:.2f} now · {value:.2f} at random · {value**3:.2f} at the end")
    bare.page.keyboard.press("End")
    expect(reading).to_contain_text(f"{value**3:.2f} now")
    expect(view.locator(".where")).to_contain_text("100% probable")
    point_at_cell(large, 0, 2, OWN.weights.shape[-2:])
    expect(reading).to_contain_text("masked, it may not look there")
    bare.page.mouse.move(1, 1)
    expect(reading).to_have_text("")
    view.locator(".tile").nth(0).click()
    view.locator(".tick .name").nth(0).click()
    expect(view.locator(".written")).to_have_text("(nothing)")
    expect(view.locator(".where")).to_contain_text("less than 0.01%")
    bare.page.wait_for_function("() => window.sent.length > 1")
    assert bare.pop_sent_values() == [["pick", {"layer": 0, "head": 0}], ["stop", 0]]
    expect(view.locator(".head-large .title")).to_contain_text("layer 1, head 1")
    view.locator(".tile").nth(0).press("ArrowDown")
    expect(view.locator(".tile").nth(HEADS)).to_be_focused()
    assert view.locator(".tile").count() == LAYERS * HEADS


def test_a_training_plays_and_other_rows_are_named(bare: BarePage) -> None:
    view = bare.mount("snapshots", training())
    play = view.locator(".play")
    expect(play).to_have_text("▶ Play")
    play.click()
    expect(play).to_have_text("❚❚ Pause")
    expect(view).to_have_attribute("data-stop", "20")
    expect(play).to_have_text("▶ Play from random weights")
    assert bare.pop_sent_values() == [["stop", 2]]
    play.click()
    expect(view).to_have_attribute("data-stop", "0")
    play.click()
    view.locator("input").fill("1")
    expect(view).to_have_attribute("data-stop", "10")
    names = view.locator(".head-large .rows span")
    expect(names.nth(0)).to_have_text("ONE")
    bare.mount("snapshots", training(rows="fed"))
    expect(names.nth(0)).to_have_text("<s>")
    bare.pop_sent_values()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_training_begins_to_play_for_whom_moving_pictures_are_welcome(bare: BarePage, motion: object) -> None:
    bare.page.emulate_media(reduced_motion=motion)  # type: ignore[arg-type]
    view = bare.mount("snapshots", training(plays=True))
    expect(view).to_have_attribute("data-stop", "10" if motion == "reduce" else "0")
    expect(view.locator(".play")).to_have_text("▶ Play" if motion == "reduce" else "❚❚ Pause")
