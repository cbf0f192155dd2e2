"""Every view of Explore, used by clicking."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from attenscope.analysis.heads import ALIGNMENT_EXPLANATION as ALIGNMENT_EXPLAINED
from attenscope.experiments.ablation import head_effects
from attenscope.trace import AttentionTrace
from attenscope.translate import Translator
from attenscope.viz.explore.comparison import COMPARISON_TEXT
from attenscope.viz.explore.views import VIEWS
from attenscope.viz.figures.figure_style import format_signed
from attenscope.viz.ui.addresses.explore import EXPLORE_SINGLE_VIEWS
from tests.browser.steps import (
    boxes_at_rest,
    choose_view,
    click,
    click_at,
    close_menu,
    compare,
    download,
    expect_head,
    open_menu,
    open_page,
    settle,
    tile,
)

CROSS = "/?layer=3&head=1"


def link_token(page: Page, side: str, index: int) -> Locator:
    return page.locator(f'.st-key-links .token[data-side="{side}"][data-index="{index}"]')


def test_links_by_keyboard_and_laid_out_in_lines(page: Page) -> None:
    open_page(page, "/?layer=3&head=1&view=links&layout=horizontal")
    first = link_token(page, "query", 0)
    first.focus()
    page.keyboard.press("ArrowRight")
    expect(link_token(page, "query", 1)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    pinned = page.locator('.st-key-links .token[data-side="key"][aria-pressed="true"]')
    expect(pinned).to_have_count(1)
    expect(pinned).to_be_focused()
    tops = boxes_at_rest(page, [link_token(page, "query", index) for index in (0, 1)])
    assert tops[0]
    assert tops[1]
    assert tops[0]["y"] == pytest.approx(tops[1]["y"], abs=1)


def test_which_head_aligns(page: Page) -> None:
    open_page(page, "/?kind=encoder&layer=1")
    expect_head(page, 1, 1)
    click(open_menu(page, "trials").get_by_role("button", name="Which head aligns?"))
    settle(page)
    expect(page.get_by_text(re.compile(r"Place 1 of \d+"))).to_be_visible()
    expect(page.get_by_text(ALIGNMENT_EXPLAINED)).to_be_visible()
    values = [float(text.split()[-1]) for text in page.locator(".st-key-overview .value").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    assert page.locator(".st-key-overview .tile").first.get_attribute("aria-pressed") == "true"


def test_which_head_matters_most(page: Page) -> None:
    open_page(page, "/?sentence=He+turned+the+radio+off.")
    settle(page)
    click(open_menu(page, "trials").get_by_role("button", name="Which head matters most?"))
    translator = Translator.load("everyday-en-de")
    result = translator.translate("He turned the radio off.")
    (kind, layer, head), change = head_effects(translator.model, result.source_ids, result.target_ids).strongest()[0]
    says = page.get_by_text(f"Of all heads, {kind} {layer + 1}.{head + 1} matters most", exact=False)
    expect(says).to_contain_text(f"by {format_signed(change, plus=True)} nats")
    expect(page.get_by_text("Sort heads")).to_have_count(0)
    expect_head(page, layer + 1, head + 1)
    values = page.locator(".st-key-overview .value")
    before = values.all_inner_texts()
    page.locator(".st-key-overview .tile[aria-pressed=true]").press("x")
    expect(page.locator(".st-key-again")).to_contain_text(f"{kind} layer {layer + 1} head {head + 1} off")
    settle(page)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)  # It stays closed with what comes next.
    assert values.all_inner_texts() == before  # No tile moves away from under the key that switched it.


def test_the_sentence_speaks_of_the_head_that_is_opened_because_it_matters_most(page: Page) -> None:
    open_page(page, "/?sentence=My+little+brother+lost+his+blue+umbrella+in+the+park+yesterday.")
    for question in ("Which head aligns?", "Which head matters most?"):
        settle(page)
        click(open_menu(page, "trials").get_by_role("button", name=question))
        settle(page)
    place = page.locator(".st-key-overview .tile[aria-pressed=true]").get_attribute("data-place")
    layer, head = json.loads(str(place)).values()
    expect(page.get_by_text("Of all heads, cross ", exact=False)).to_be_visible()  # Else the sentence has another.
    expect(page.locator(".st-key-translation .says")).to_contain_text(f"{layer + 1}.{head + 1}")


def test_clicking_a_tile_changes_every_view(page: Page) -> None:
    open_page(page, "/?view=links&layer=1")
    drawing = page.locator(".st-key-links svg")
    expect(drawing).to_have_attribute("data-painted", re.compile("layer 1, as lines"))
    click(tile(page, 4, 2))
    expect(drawing).to_have_attribute("data-painted", re.compile("layer 4, as lines"))


FORMULA = re.compile(r"\$\$.+?\$\$|\$.+?\$", re.DOTALL)


def shown(markdown: str) -> str:
    """The words of an explanation as a page shows them, up to its first formula or bold word."""
    return re.split(r"[$*\n]", markdown)[0].strip()


@pytest.mark.slow
def test_a_menu_opens_on_a_slow_machine_wherever_its_button_is_clicked(page: Page) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    settle(page)
    speed = page.context.new_cdp_session(page)
    for key in ("page-help", "settings", "share"):
        speed.send("Emulation.setCPUThrottlingRate", {"rate": 20})
        click_at(page, page.locator(f".st-key-{key} [data-testid=stIconMaterial]").first, 0.5, 0.5)
        expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
        speed.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        close_menu(page)


def test_every_view_explains_itself(page: Page) -> None:
    open_page(page, CROSS)
    expect_head(page, 3, 1)
    for view in (one for one in EXPLORE_SINGLE_VIEWS if one != "picture"):  # Of a model that reads pictures.
        choose_view(page, view)
        explains_itself(page, VIEWS[view].text.details)
    compare(page)
    explains_itself(page, VIEWS[view].text.details, COMPARISON_TEXT.details)


def explains_itself(page: Page, *details: str) -> None:
    menu = open_menu(page, "page-help")
    for text in details:
        expect(menu).to_contain_text(shown(text))
    expect(menu.locator(".katex")).to_have_count(sum(len(FORMULA.findall(text)) for text in details))
    close_menu(page)


def test_weights_and_trace_are_saved(page: Page, tmp_path: Path) -> None:
    open_page(page, f"{CROSS}&words=false")
    expect_head(page, 3, 1)
    menu = open_menu(page, "share")
    trace = AttentionTrace.load(download(menu.get_by_role("button", name="The whole trace"), tmp_path))
    table = download(menu.get_by_role("button", name="Numbers (CSV)"), tmp_path)
    lines = table.read_text(encoding="utf-8").splitlines()
    assert trace.cross is not None
    assert len(lines) == 1 + len(trace.cross.query_tokens)
    assert float(lines[1].split(",")[1]) == pytest.approx(float(trace.cross.weights[2, 0, 0, 0]), rel=1e-4)
    assert download(menu.get_by_role("button", name="Save as PNG"), tmp_path).read_bytes().startswith(b"\x89PNG")
