"""Every view and every control of Explore, clicked for several of encoder, decoder and cross-attention in turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.steps import (
    caption,
    choose,
    choose_kind,
    choose_view,
    click,
    click_at,
    close_menu,
    enter,
    expect_head,
    expect_title,
    open_menu,
    open_page,
    picture,
    point,
    settle,
    tile,
    try_something,
)

KINDS = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}
SENTENCE = "The dog sees the dog."
PINS = {
    "encoder": ("source.1", "source_key.1"),
    "decoder": ("target.1", "target_key.1"),
    "cross": ("target.1", "source.1"),
}
"""What the address says of the upper left cell: its row and its column."""


def start(page: Page, **view: str) -> None:
    """Every token as it was captured."""
    as_captured = {"words": "false", "hide": "false", "kind": "decoder", "layer": "2", "head": "3"}
    open_page(page, f"/?{urlencode({'sentence': SENTENCE} | as_captured | view)}")


def each_kind(page: Page, *kinds: str) -> Iterator[str]:
    """Choose the maps, or some of them, one after the other, by clicking."""
    for kind in kinds or KINDS:
        name = KINDS[kind]
        choose_kind(page, kind)
        settle(page)
        tiles = page.locator(".st-key-overview")
        if tiles.count():  # A view of all heads has none beside it.
            expect(tiles.get_by_role("group", name=f"{name}: all layers")).to_be_visible()
        yield kind


def expect_pins(page: Page, *pins: str) -> None:
    """The address holds these and no others, in whichever order."""
    some = "|".join(map(re.escape, pins))
    wanted = rf"pin=({some})(%2C({some})){{{len(pins) - 1}}}(&|$)" if pins else r"^((?!pin=).)*$"
    expect(page).to_have_url(re.compile(wanted))


def test_the_heatmap(page: Page) -> None:
    start(page)
    expect_head(page, 2, 3)
    plot = page.locator(".st-key-heatmap .plot")
    for kind in each_kind(page):
        expect_title(page, f"{KINDS[kind]} · layer 2, head 3")
        described = re.compile(r"^Head 3 of layer 2 .* its strongest link is “")
        expect(plot).to_have_attribute("aria-label", described)
        point(page, plot, 0.02, 0.02)
        expect(page.locator(".st-key-heatmap i").first).to_be_visible()  # the crosshair
        expect(page.locator(".st-key-heatmap .tip")).to_contain_text(re.compile(r".+ → .+[01]\.\d{3}"))
        click_at(page, plot, 0.02, 0.02)
        expect(page.locator(".st-key-heatmap .pin")).to_have_count(2)
        expect_pins(page, *PINS[kind])
        expect(caption(page, "Pinned: ")).to_be_visible()
        piece = page.locator(".st-key-translation .target button").first
        expect(piece).to_have_attribute("aria-pressed", "false" if kind == "encoder" else "true")
        click_at(page, plot, 0.02, 0.02)
        expect(page.locator(".st-key-heatmap .pin")).to_have_count(0)
        expect_pins(page)


@pytest.mark.slow
def test_how_the_maps_are_displayed(page: Page) -> None:
    start(page, sentence="The bookkeeper unbuttoned his raincoat.")
    expect_head(page, 2, 3)
    heatmap = page.locator(".st-key-heatmap")
    for kind in each_kind(page):
        expect_title(page, f"{KINDS[kind]} · layer 2, head 3")
        menu = open_menu(page, "settings")
        before, drawn = heatmap.locator(".column").count(), picture(page)
        click(menu.get_by_text("by its logarithm"))
        expect(caption(page, "colour grows with the logarithm")).to_be_visible()
        assert picture(page) != drawn
        click(menu.get_by_text("linearly"))
        expect(caption(page, "colour grows with the weight")).to_be_visible()
        click(menu.get_by_text("Write the weights into the cells"))
        expect(heatmap.locator(".number").first).to_have_text(re.compile(r"^[01]\.\d\d$"))
        click(menu.get_by_text("Hide special tokens"))
        expect(caption(page, "Special tokens are hidden")).to_be_visible()
        expect(heatmap.locator(".column")).to_have_count(before - 1)
        click(menu.get_by_text("Merge pieces into words"))
        expect(caption(page, "weights are summed over a word's keys and averaged")).to_be_visible()
        expect(heatmap.locator(".column").nth(before - 2)).to_have_count(0)
        for toggle in ("Merge pieces into words", "Hide special tokens", "Write the weights into the cells"):
            click(menu.get_by_text(toggle))
        click(menu.get_by_text("by its square root"))
        expect(heatmap.locator(".column")).to_have_count(before)
        expect(heatmap.locator(".number")).to_have_count(0)
        if kind != "encoder":
            row = heatmap.locator(".row").first
            expect(row).not_to_have_text("<s>")
            click(menu.get_by_text("fed in", exact=True))
            expect(row).to_have_text("<s>")
            expect(caption(page, "Rows are named by the token fed in.")).to_be_visible()
            click(menu.get_by_text("predicted", exact=True))
            expect(row).not_to_have_text("<s>")
        close_menu(page)


@pytest.mark.slow
def test_links(page: Page) -> None:
    start(page, view="links")
    links = page.locator(".st-key-links")
    lines = links.locator(".lines path")
    for kind in each_kind(page, "encoder", "cross"):
        drawing = links.get_by_role("group", name=re.compile(rf"^{KINDS[kind]}, layer 2.*Head 3 of layer 2 "))
        expect(drawing).to_be_visible()
        query = links.locator('.token[data-side="query"]').first
        query.hover()
        expect(links.locator(".numbers text").first).to_have_text(re.compile(r"\d+%"))
        assert 0 < links.locator("path.on").count() < lines.count()
        click(query)
        expect(query).to_have_attribute("aria-pressed", "true")
        expect_pins(page, PINS[kind][0])
        click(query)
        expect_pins(page)
        alone = lines.count()
        rows = lines.evaluate_all("lines => lines.map(({ link }) => link.q)")
        assert set(rows) == set(range(links.locator('.token[data-side="query"]').count()))  # The strongest of each.
        click(links.get_by_role("button", name="Draw all heads"))
        expect(lines.nth(alone)).to_be_attached()
        expect(page).to_have_url(re.compile("beside=1%2C2%2C4"))
        click(links.get_by_role("button", name="Draw all heads"))
        expect(lines).to_have_count(alone)
        choose(page, "Lines", "from a weight of 0.01")
        expect(lines.nth(alone)).to_be_attached()
        choose(page, "Lines", "the strongest of each row")
        expect(lines).to_have_count(alone)
        tall = drawing.get_attribute("viewBox")
        click(page.get_by_role("radio", name="horizontal"))
        expect(drawing).not_to_have_attribute("viewBox", tall or "")
        click(page.get_by_role("radio", name="vertical"))
        expect(drawing).to_have_attribute("viewBox", tall or "")


def test_text(page: Page) -> None:
    start(page, view="text")
    texts = page.locator(".st-key-text")
    for kind in each_kind(page, "decoder", "cross"):
        described = re.compile(rf"^{KINDS[kind]}, layer 2, head 3, as shaded text\. Head 3 of layer 2 ")
        expect(texts.get_by_role("group", name=described)).to_be_visible()
        query, key = (texts.locator(f'button[data-side="{side}"]') for side in ("query", "key"))
        query.first.hover()
        expect(texts.locator("h3").nth(1)).to_contain_text("attends to it")
        expect(key.first).to_have_attribute("title", re.compile(r"\d+%"))
        expect(key.nth(1)).to_have_attribute("title", "masked" if kind == "decoder" else re.compile(r"\d+%"))
        key.first.hover()
        expect(texts.locator("h3").first).to_contain_text("how much it attends to")
        click(key.first)
        expect(key.first).to_have_attribute("aria-pressed", "true")
        expect_pins(page, PINS[kind][1])
        click(key.first)
        expect_pins(page)


def test_clicks_that_come_faster_than_answers(page: Page) -> None:
    """Streamlit ended the connection for good when the browser had dropped a message that it had said it kept, and told
    a view to leave that had more data to come."""
    start(page, view="pipeline")
    steps = page.locator(".st-key-pipeline .steps")
    steps.evaluate("""async (steps) => {
      window.drawn = steps.closest(".lead");
      const buttons = steps.querySelectorAll("button");
      for (let i = 0; i < 42; i++) {
        buttons[[0, 1, 2, 3, 2, 1][i % 6]].click();
        await new Promise((resume) => setTimeout(resume, 40 + (37 * i) % 100));
      }
    }""")
    settle(page)
    expect(steps.locator("[aria-current]")).to_have_text("Multiply")
    assert page.evaluate("drawn.isConnected"), "The view was taken down while answers were on their way."
    click(steps.get_by_role("button", name="Softmax"))
    expect(page).to_have_url(re.compile("step=6"))


@pytest.mark.slow
def test_the_pipeline(page: Page) -> None:
    start(page, view="pipeline")
    frame = page.locator(".st-key-pipeline")
    current = frame.locator("[aria-current]")
    for kind in each_kind(page, "decoder", "cross"):
        name = re.compile(rf"^{KINDS[kind]} · layer 2, head 3 · everyday-en-de\. “.*” looks at “")
        expect(frame.get_by_role("group", name=name)).to_be_visible()
        click(frame.get_by_role("button", name="Query, keys"))
        expect(current).to_have_text("Query, keys")
        expect(frame.locator(".bar").first).to_be_hidden()
        for _ in range(3):
            frame.get_by_role("button", name="Next").click()  # Faster than Python answers: no step is taken back.
        expect(current).to_have_text("Scale")
        settle(page)
        expect(current).to_have_text("Scale")
        expect(frame.get_by_role("button", name="Next")).to_be_focused()
        click(frame.get_by_role("button", name="Softmax"))
        settle(page)
        expect(frame.locator(".bar").first).to_be_visible()
        shares = [text.rstrip("%") for text in frame.locator(".bar").all_inner_texts()]
        assert sum(float(share) for share in shares if share != "masked") == pytest.approx(100, abs=0.5)
        assert ("masked" in shares) == (kind == "decoder")
        click(frame.get_by_role("button", name="Next"))
        expect(current).to_have_text("Values")
        expect(page).to_have_url(re.compile("step=7"))
        click(frame.get_by_role("button", name="Back"))
        expect(current).to_have_text("Softmax")
        choose(page, "Query", re.compile("^3 "))
        expect_pins(page, PINS[kind][0].replace("1", "3"))
        expect(caption(page, "Pinned: ")).to_be_visible()
        choose_view(page, "heatmap")
        expect(page.locator(".st-key-heatmap .pin")).to_have_count(1)
        page.locator(".st-key-heatmap .plot").press("Enter")  # The cell at the pin is chosen, then let go.
        expect(page.locator(".st-key-heatmap .pin")).to_have_count(2)
        page.locator(".st-key-heatmap .plot").press("Enter")
        expect_pins(page)
        choose_view(page, "pipeline")


@pytest.mark.slow
def test_joint_flow_and_layers(page: Page) -> None:
    start(page, view="joint")
    for kind in each_kind(page):
        choose_view(page, "joint")
        title = page.locator(".st-key-joint .gtitle").first
        expect(title).to_contain_text("All three attentions · layer 2, mean of all heads")
        click(page.get_by_text("Mean of all heads", exact=True))
        expect(title).to_contain_text("layer 2, head 3")
        settle(page)
        # Its block of the matrix: upper left, lower right, lower left.
        across, down = {"encoder": (0.01, 0.01), "decoder": (0.99, 0.99), "cross": (0.01, 0.99)}[kind]
        shapes = page.locator(".st-key-joint .shapelayer path")
        plain = shapes.count()
        click_at(page, page.locator(".st-key-joint .nsewdrag"), across, down)
        expect(shapes).to_have_count(plain + 2)
        row, column = (pin.split(".")[0] for pin in PINS[kind])
        expect(page).to_have_url(re.compile(rf"pin={row}\.\d+%2C{column}\.\d+"))
        click_at(page, page.locator(".st-key-joint .nsewdrag"), across, down)
        expect_pins(page)
        click(page.get_by_text("Mean of all heads", exact=True))
        choose_view(page, "flow")
        title = page.locator(".st-key-flow-map .gtitle").first
        for flow in ("mean of heads", "mean of layers", "mean of all", "attention flow", "rollout"):
            click(page.get_by_role("radio", name=flow))
            expect(title).to_contain_text(re.compile(rf"{KINDS[kind]}.*{flow}"))
        expect(caption(page, "It knows nothing of the values")).to_be_visible()
        click(page.get_by_text("Times value norms", exact=True))
        expect(title).to_contain_text("times value norms")
        click(page.get_by_text("Times value norms", exact=True))
        expect(title).not_to_contain_text("times value norms")
        choose_view(page, "layers")
        expect(page.locator(".st-key-lens .hm image")).to_be_attached()
        click_at(page, page.locator(".st-key-lens .nsewdrag"), 0.02, 0.02)
        expect(caption(page, re.compile("^Position 1, "))).to_be_visible()
        expect_pins(page, "target.1")
        click_at(page, page.locator(".st-key-lens .nsewdrag"), 0.02, 0.02)
        expect_pins(page)


@pytest.mark.slow
def test_compare(page: Page) -> None:
    start(page, view="compare")
    titles = page.locator(".st-key-compare .annotation")
    for kind in each_kind(page, "encoder", "cross"):
        choose(page, "Compare with", "another head")
        named = kind.capitalize()
        for head in (3, 4):
            expect(titles.filter(has_text=f"{named}, layer 2, head {head}")).to_be_visible()
        expect(caption(page, re.compile("On average .* The greatest change"))).to_be_visible()
        click_at(page, page.locator(".st-key-compare .draglayer .x2y2 .nsewdrag"), 0.02, 0.02)
        expect(page.locator(".st-key-compare .shapelayer path")).to_have_count(6)
        expect_pins(page, *PINS[kind])
        click_at(page, page.locator(".st-key-compare .draglayer .x2y2 .nsewdrag"), 0.02, 0.02)
        expect_pins(page)
        choose(page, "Compare with", "another sentence")
        if kind == "encoder":
            box = page.get_by_placeholder("Type a second sentence")
            enter(box, "The dog sees a cat.")
        expect(titles.filter(has_text="The dog sees a cat")).to_be_visible()
        expect(caption(page, "Both share")).to_be_visible()
        choose(page, "Compare with", "another model")
        choose(page, "Second model", "preset-original")
        expect(titles.filter(has_text="preset-original: L2 h3")).to_be_visible()


@pytest.mark.slow
def test_the_order_of_the_heads(page: Page) -> None:
    start(page)
    expect_head(page, 2, 3)
    measures = {
        "encoder": ("entropy", "distance", "previous", "same", "next", "first", "end"),
        "decoder": ("entropy", "previous"),
        "cross": ("distance", "end", "alignment"),
    }
    values = page.locator(".st-key-overview .value")
    for kind in each_kind(page):
        menu = open_menu(page, "trials")
        for measure in measures[kind]:
            choose(page, "Sort heads", measure)
            expect(caption(page, f"Ordered by {measure}")).to_be_visible()
            shown = [float(text.split()[-1]) for text in values.all_inner_texts()]
            assert shown == sorted(shown, reverse=measure not in ("entropy", "distance"))
        expect(page.locator(".st-key-overview .cell.out")).to_have_count(0)
        menu.get_by_role("slider").first.focus()
        page.keyboard.press("End")
        expect(page.locator(".st-key-overview .cell.out").first).to_be_attached()
        choose(page, "Sort heads", "layer")
        expect(values).to_have_count(0)
        close_menu(page)


def change_head(page: Page, change: str) -> None:
    try_something(page, lambda _: choose(page, "This head", change))


def test_heads_are_switched(page: Page) -> None:
    start(page, layer="1", head="1", model="preset-original")
    expect_head(page, 1, 1)
    again = page.locator(".st-key-again")
    changes = {"encoder": ("off", "uniform"), "decoder": ("as head 2",), "cross": ("uniform", "as head 2")}
    for kind in each_kind(page):
        for change in changes[kind]:
            change_head(page, change)
            expect(again).to_contain_text(re.compile(rf"With {kind} layer 1 head 1 {change}\..*log-probability"))
            expect(page.locator(".st-key-overview .tile.changed")).to_have_count(1)
        expect(page).to_have_url(re.compile(rf"changes={kind}\.1\.1"))
        change_head(page, "unchanged")
        expect(again).to_have_count(0)
    for kind in each_kind(page, "encoder", "cross"):
        settle(page)
        tile(page, 2, 3).click(modifiers=["Alt"])
        expect(again).to_contain_text(f"{kind} layer 2 head 3 off")
    try_something(page, lambda menu: click(menu.get_by_text("Switch heads off by pressing")))
    heads = page.get_by_role("button", name=re.compile("^Layer 1, head ")).count()
    click(page.locator(".st-key-overview .layer").first)
    expect(again).to_contain_text(f"cross layer 1 heads 1 to {heads} off")
    expect(page.locator(".st-key-overview .tile.changed")).to_have_count(1 + heads)
    click(page.get_by_role("button", name="Done"))
    expect(page.get_by_role("button", name="Done")).to_have_count(0)
    click(tile(page, 2, 3))
    expect(caption(page, "This head is off")).to_be_visible()
    click(page.get_by_role("button", name="Undo all changes"))
    expect(again).to_have_count(0)
    expect(page.locator(".st-key-overview .tile.changed")).to_have_count(0)
