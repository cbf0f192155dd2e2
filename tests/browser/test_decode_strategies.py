"""Other ways to decode: from another candidate, by chance, by beams, a translation that is given, without a head."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.steps import (
    DECODE,
    LOADING,
    at_step,
    boxes_at_rest,
    choose,
    click,
    close_menu,
    enter,
    linked,
    open_decode,
    open_menu,
    open_page,
    player,
    settle,
    step_count,
    type_sentence,
    written,
)

CONTRASTS = """() => {
  const bright = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((value) => value / 255)
    .map((value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0.05);
  const roots = [...document.querySelectorAll("*")].map((one) => one.shadowRoot).filter(Boolean);
  const player = roots.map((root) => root.querySelector(".decode-player")).find(Boolean);
  return [...player.querySelectorAll(".source .piece")].map((piece) => {
    const { color, backgroundColor } = getComputedStyle(piece);
    const [one, other] = [bright(color), bright(backgroundColor)];
    return Math.max(one / other, other / one);
  });
}"""
"""The contrast of every source token with its background (WCAG 2.2)."""


def candidate(page: Page, number: int) -> Locator:
    return player(page).locator(".candidate .name").nth(number)


def test_what_if_by_mouse_and_back(page: Page) -> None:
    open_decode(page, "&step=3")
    at_step(page, 3)
    first, other = written(page), candidate(page, 1).inner_text()
    click(candidate(page, 1))
    expect(player(page).locator(".target .piece").nth(3)).to_have_text(other)
    at_step(page, 3)
    linked(page, "branch=")
    assert written(page)[:3] == first[:3]
    rows = page.locator(".st-key-versions button.version")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_have_attribute("aria-pressed", "true")
    expect(rows.nth(1).locator(".new").first).to_be_visible()
    page.reload()
    settle(page)
    expect(player(page).locator(".target .piece").nth(3)).to_have_text(other)


def test_what_if_by_keyboard_and_choosing_a_version(page: Page) -> None:
    open_decode(page, "&step=2")
    at_step(page, 2)
    first = written(page)
    candidate(page, 0).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(candidate(page, 2)).to_be_focused()
    page.keyboard.press("Enter")
    rows = page.locator(".st-key-versions button.version")
    expect(rows).to_have_count(2)
    settle(page)
    rows.nth(1).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(rows.nth(0)).to_have_attribute("aria-pressed", "true")
    expect(player(page).locator(".target .piece")).to_have_text(first)


def test_forbidding_a_candidate(page: Page) -> None:
    open_decode(page, "&step=2")
    at_step(page, 2)
    chosen = written(page)[2]
    row = player(page).locator(".candidate.chosen")
    row.hover()
    click(row.get_by_role("button", name=re.compile("Forbid")))
    linked(page, "without=")
    expect(player(page).locator(".candidate.forbidden .name").first).to_have_text(chosen)
    assert chosen not in written(page)


def test_a_beginning_that_is_typed_and_words_never_written(page: Page) -> None:
    open_decode(page)
    click(page.get_by_role("button", name="What if"))
    enter(page.get_by_label("Begin with"), "Gestern")
    expect(player(page).locator(".target .piece").nth(1)).to_have_text("Gestern")
    linked(page, "begin=Gestern")


def test_a_version_takes_the_place_of_what_was_typed_in_a_menu_that_is_closed(page: Page) -> None:
    open_decode(page, "&begin=Gestern")
    enter(open_menu(page, "what-if").get_by_label("Begin with"), "Heute")
    close_menu(page)
    expect(player(page).locator(".target .piece").nth(1)).to_have_text("Heute")
    click(page.locator(".st-key-versions button.version").first)
    expect(player(page).locator(".target .piece").nth(1)).to_have_text("Gestern")
    type_sentence(page, "The sun is shining.")
    linked(page, "sentence=The+sun")
    settle(page)
    expect(player(page).locator(".target .piece").nth(1)).to_have_text("Die")
    expect(open_menu(page, "what-if").get_by_label("Begin with")).to_have_value("")


def test_an_emptied_number_is_the_usual_one(page: Page) -> None:
    open_decode(page, "&method=sample&temperature=0.3&seed=1")
    enter(page.get_by_label("Temperature"), "")
    expect(page.get_by_label("Temperature")).to_have_value("1.00")
    page.wait_for_function("!location.search.includes('temperature=')")


def test_sampling_by_seed(page: Page) -> None:
    open_decode(page, "&method=sample&temperature=1.2&seed=1")
    at_step(page, 1)
    drawn = written(page)
    expect(player(page).locator(".drawn").first).to_be_visible()
    enter(open_menu(page, "more-numbers").get_by_label("Seed"), "2")
    close_menu(page)
    expect(player(page).locator(".target .piece")).not_to_have_text(drawn)
    linked(page, "seed=2")
    second = written(page)
    click(page.get_by_role("button", name="Again"))
    linked(page, "seed=3")
    expect(player(page).locator(".target .piece")).not_to_have_text(second)


def test_what_is_sampled_searched_or_given_shows_its_result_at_once(page: Page) -> None:
    open_page(page, DECODE)
    at_step(page, 1)
    for method in ("sample", "beam", "given"):
        choose(page, "Strategy", method)
        expect(player(page).locator("[data-state=unwritten]")).to_have_count(0)
        at_step(page, step_count(page))
    choose(page, "Strategy", "beam")
    tree, play = boxes_at_rest(page, [".st-key-tree", ".decode-player .play"])
    assert tree["y"] < play["y"]


def test_play_is_in_sight_on_a_low_screen(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    open_page(page, DECODE)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_in_viewport(ratio=1)


def test_the_beam_tree_and_its_best(page: Page) -> None:
    open_decode(page, "&method=beam&width=3")
    at_step(page, 1)
    expect(page.locator(".st-key-tree .node").first).to_be_visible()
    rows = page.locator(".st-key-best button.version")
    expect(rows).to_have_count(3)
    click(rows.nth(1))
    expect(rows.nth(1)).to_have_attribute("aria-pressed", "true")
    linked(page, "way=")
    at_step(page, step_count(page))


def test_a_node_of_the_tree_is_shown_in_the_player(page: Page) -> None:
    open_decode(page, "&method=beam&width=3")
    at_step(page, 1)
    point = page.locator(".st-key-tree .node").nth(4)
    point.scroll_into_view_if_needed()
    point.click()
    linked(page, "way=")


def test_a_given_translation_is_judged(page: Page) -> None:
    open_page(page, DECODE + "&method=given")
    box = page.get_by_label("Given", exact=True)
    expect(box).not_to_have_value("")
    enter(box, "Meine Schwester hat gestern Kartoffeln gekauft.")
    player(page).wait_for()
    expect(page.get_by_text(re.compile("perplexity"))).to_be_visible()
    expect(page.get_by_text(re.compile("its choice no"))).to_be_visible()


def test_heads_off_and_on_again(page: Page) -> None:
    open_decode(page)
    open_menu(page, "what-if")
    switch = page.get_by_role("button", name="Cross-attention, layer 3, head 2", exact=True)
    click(switch)
    expect(switch).to_have_attribute("aria-pressed", "false")
    linked(page, "changes=cross.3.2")
    settle(page)
    expect(page.locator(".st-key-versions button.version")).to_have_count(2)
    switch.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-versions button.version").first).to_have_attribute("aria-pressed", "true")


def test_a_branch_belongs_to_the_model_it_was_made_by(page: Page) -> None:
    open_decode(page, "&step=3")
    click(candidate(page, 1))
    linked(page, "branch=")
    choose(page, "Model", "preset-original")
    expect(player(page)).to_be_visible(timeout=LOADING)
    page.wait_for_function("!location.search.includes('branch=')")


def test_heads_that_another_model_has_not_can_be_turned_on_again(page: Page) -> None:
    open_page(page, f"{DECODE}&model=preset-original&changes=cross.2.7:off")
    expect(page.get_by_text("this attention has the heads 1 to 4")).to_be_visible(timeout=LOADING)
    click(page.get_by_role("button", name="Undo all changes"))
    expect(player(page)).to_be_visible(timeout=LOADING)


def test_every_source_token_is_read_on_its_colour(page: Page) -> None:
    open_decode(page, "&colours=viridis&step=3")  # Its lowest weights are dark on a light page.
    at_step(page, 3)
    assert min(page.evaluate(CONTRASTS)) > 3
