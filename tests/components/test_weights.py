"""Components of attention weights: what a cell, a tile, a line and a shaded word show, and what is told of a choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Locator, expect

from attenscope.trace import AttentionMap
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look, head_colour
from attenscope.viz.figures.heatmap import make_head_grid
from attenscope.viz.notebook.static_html import colour_weights
from attenscope.viz.web import maps, text_components
from tests.components.bare_page import BarePage, rgb
from tests.viz.fakes import HEADS, LAYERS, FakeTranslator, attention

RESULT = FakeTranslator().translate("one two three")
assert RESULT.trace.decoder is not None
assert RESULT.trace.cross is not None
OWN, CROSS = RESULT.trace.decoder, RESULT.trace.cross
CHOSEN = """([key, at]) => {
  const options = document.querySelectorAll(`.st-key-${key} label`);
  options.forEach((one, i) => one.toggleAttribute("data-selected", i === at));
}"""
CONTROLS = """() => document.body.insertAdjacentHTML("afterbegin", `
  <div class="st-key-scale"><label data-selected><input type="hidden" value="0"></label>
    <label><input type="hidden" value="1"></label></div>
  <div class="st-key-hide"><label></label></div>`)"""


def choose(bare: BarePage, key: str, at: int) -> None:
    """Choose the option `at` of a control as Streamlit marks it; -1 for none."""
    bare.page.evaluate(CHOSEN, [key, at])


def point_at_cell(plot: Locator, row: int, column: int, shape: tuple[int, int]) -> None:
    box = plot.bounding_box()
    assert box
    x, y = box["x"] + (column + 0.5) * box["width"] / shape[1], box["y"] + (row + 0.5) * box["height"] / shape[0]
    plot.page.mouse.move(x, y)


def weight(one: AttentionMap, layer: int, head: int, row: int, column: int) -> float:
    return float(one.weights[layer, head, row, column])


def encode_head(one: AttentionMap, layer: int, head: int, look: Look | None = None, **more: object) -> bytes:
    grid = make_head_grid(one, layer, head, "predicted")
    return maps.encode_heatmap(grid, look or Look(), "What it shows", model="toy", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_a_cell_of_a_heatmap_has_the_colour_of_its_weight_and_is_read(bare: BarePage, palette: object) -> None:
    look = Look(palette)  # type: ignore[arg-type]
    bare.set_scheme("dark" if palette is DARK else "light")
    view = bare.mount("heatmap", encode_head(OWN, 1, 2, look, numbers=True, pins=True))
    plot, shape = view.locator(".plot"), OWN.weights.shape[-2:]
    colours = colour_weights(OWN.weights[1, 2], OWN.mask, look)
    for row, column in ((0, 0), (2, 1), (3, 3)):
        place = ((column + 0.5) / shape[1], (row + 0.5) / shape[0])
        found = bare.pixel(view.locator("canvas"), *place)
        np.testing.assert_allclose(found[:3], colours[row, column], atol=4)
        point_at_cell(plot, row, column, shape)
        expect(view.locator(".tip b")).to_have_text(f"{weight(OWN, 1, 2, row, column):.3f}")
    point_at_cell(plot, 0, 2, shape)
    expect(view.locator(".tip")).to_have_text("ONE → TWOmasked: may not attend")
    numbers = view.locator(".number").all_text_contents()
    assert numbers == [f"{value:.2f}" for value in OWN.weights[1, 2][OWN.mask]]
    expect(view.locator(".title")).to_contain_text("layer 2, head 3")
    expect(plot).to_have_attribute("aria-label", "What it shows")


def test_a_cell_of_a_heatmap_is_pinned_by_click_and_by_keys(bare: BarePage) -> None:
    view = bare.mount("heatmap", encode_head(CROSS, 0, 0, pins=True))
    plot, shape = view.locator(".plot"), CROSS.weights.shape[-2:]
    point_at_cell(plot, 1, 2, shape)
    bare.page.mouse.down()
    bare.page.mouse.up()
    assert bare.pop_sent_values() == [["cell", {"row": 1, "column": 2}]]
    expect(view.locator(".pin")).to_have_count(2)
    bare.page.mouse.move(0, 0)
    expect(view.locator(".tip")).to_be_hidden()
    plot.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft"):
        plot.press(key)  # The first one reads the cell that is pinned.
    expect(view.locator(".tip")).to_contain_text(f"{weight(CROSS, 0, 0, 2, 1):.3f}")
    plot.press("Enter")
    assert bare.pop_sent_values() == [["cell", {"row": 2, "column": 1}]]
    plot.press("Enter")  # The same again: it is no longer pinned.
    expect(view.locator(".pin")).to_have_count(0)
    plot.press("Escape")
    expect(view.locator(".tip")).to_be_hidden()


def test_a_heatmap_hides_special_tokens_and_takes_another_scale_before_python_answers(bare: BarePage) -> None:
    bare.page.evaluate(CONTROLS)
    special = ([3], [3])
    view = bare.mount("heatmap", encode_head(CROSS, 0, 1, special=special, pinned=(1, None), pins=True))
    names = view.locator("text.column")
    expect(names).to_have_count(4)
    before = bare.pixel(view.locator("canvas"), 0.9, 0.1)
    choose(bare, "scale", 1)
    colours = colour_weights(CROSS.weights[0, 1], CROSS.mask, Look(scale="linear"))
    expect(view.locator("text").filter(has_text="0.75")).to_have_count(1)  # A mark of the linear ramp alone.
    np.testing.assert_allclose(bare.pixel(view.locator("canvas"), 0.9, 0.1)[:3], colours[0, 3], atol=4)
    assert (bare.pixel(view.locator("canvas"), 0.9, 0.1) != before).any()
    choose(bare, "hide", 0)
    expect(names).to_have_count(3)
    expect(view.locator(".pin")).to_have_count(1)
    point_at_cell(view.locator(".plot"), 0, 1, (3, 3))
    expect(view.locator(".tip b")).to_have_text(f"{weight(CROSS, 0, 1, 0, 1):.3f}")
    view.locator(".plot").click()
    assert bare.pop_sent_values() == [], "until Python has answered it knows other cells"


def test_a_heatmap_of_a_chat_on_a_phone_says_whose_texts_its_bands_are(bare: BarePage) -> None:
    bare.page.set_viewport_size({"width": 390, "height": 800})
    roles = (("user", "user", "assistant", ""), ("system", "user", "user", ""))
    view = bare.mount("heatmap", encode_head(CROSS, 0, 0, roles=roles))
    expect(view.locator(".role")).to_have_text(["system", "user", "assistant"])
    expect(view.locator(".band")).to_have_count(4 + 3)
    canvas = view.locator("canvas").bounding_box()
    assert canvas
    ramp = view.locator("rect[fill='url(#ramp)']").bounding_box()
    assert ramp
    assert ramp["y"] > canvas["y"] + canvas["height"], "the ramp lies under the cells"
    bare.page.set_viewport_size({"width": 700, "height": 800})
    expect(view.locator(".title")).to_contain_text("toy")
    grown = view.locator("canvas").bounding_box()
    assert grown
    assert grown["width"] > canvas["width"]


def test_long_maps_name_every_second_token_and_hatch_what_is_masked(bare: BarePage) -> None:
    tokens = tuple(f" w{at}" for at in range(90))
    one = attention("decoder", tokens, tokens)
    grid = replace(make_head_grid(one, 0, 0, "fed"), breaks=(30,))
    view = bare.mount("heatmap", maps.encode_heatmap(grid, Look(), "", model="toy"))
    rows, columns = (view.locator(f"text.{side}").count() for side in ("row", "column"))
    assert 20 < rows < 90
    expect(view.locator("line")).to_have_count(2)
    expect(view.locator("svg")).to_have_attribute("data-unnamed", str(180 - rows - columns))
    seen = bare.pixels(view.locator("canvas"), [(0.9 + at / 900, 0.1) for at in range(30)])
    for colour in (LIGHT.masked, LIGHT.hatch):
        assert np.abs(seen[:, :3] - rgb(colour)).max(1).min() < 9  # A stroke ends softly.


def overview(one: AttentionMap, look: Look | None = None, **more: object) -> bytes:
    return maps.encode_heads_overview(one, 1, 2, look or Look(), **more)  # type: ignore[arg-type]


def test_a_tile_of_the_overview_opens_its_head_in_all_views_at_once(bare: BarePage) -> None:
    tiles = bare.mount("overview", overview(CROSS), "tiles")
    follows = "Cross-attention"
    heat = bare.mount("heatmap", encode_head(CROSS, 1, 2, follows=follows), "heat")
    lines = bare.mount("links", encode_lines(), "lines")
    shaded = bare.mount("text", encode_text(), "shaded")
    tile = tiles.locator(".tile").nth(2 * HEADS + 1)
    expect(tiles.locator(".tile[aria-pressed=true]")).to_have_attribute("title", "Layer 2, head 3")
    tile.click()
    assert bare.pop_sent_values() == [["pick", {"layer": 2, "head": 1}]]
    expect(tile).to_have_attribute("aria-pressed", "true")
    expect(heat.locator(".title")).to_contain_text(f"{follows} · layer 3, head 2")
    point_at_cell(heat.locator(".plot"), 0, 1, CROSS.weights.shape[-2:])
    expect(heat.locator(".tip b")).to_have_text(f"{weight(CROSS, 2, 1, 0, 1):.2f}")
    expect(lines.locator("svg")).to_have_attribute(
        "data-painted", "Cross-attention, layer 3, as lines from queries to keys 1"
    )
    assert "layer 3, head 2" in (shaded.get_attribute("aria-label") or "")
    shaded.locator("[data-side=query]").nth(0).hover()
    expect(shaded.locator("[data-side=key]").nth(1)).to_have_attribute("title", f"{weight(CROSS, 2, 1, 0, 1):.0%}")


def test_tiles_have_the_colours_of_their_heads_and_are_gone_through_by_keys(bare: BarePage) -> None:
    bare.page.evaluate(CONTROLS)
    view = bare.mount("overview", overview(OWN))
    expect(view.locator(".tile")).to_have_count(LAYERS * HEADS)
    expect(view.locator(".layer")).to_have_text(["L1", "L2", "L3"])
    for layer, head in ((0, 0), (2, 3)):
        canvas = view.locator("canvas").nth(layer * HEADS + head)
        colours = colour_weights(OWN.weights[layer, head], OWN.mask, Look())
        np.testing.assert_allclose(bare.pixel(canvas, 0.1, 0.9)[:3], colours[3, 0], atol=4)
        assert tuple(bare.pixel(canvas, 0.9, 0.1)[:3]) == rgb(LIGHT.masked)
    tile = view.locator(".tile").nth(0)
    tile.focus()
    for key in ("ArrowDown", "ArrowRight", "End", "ArrowUp"):
        bare.page.keyboard.press(key)
    assert view.locator(".tile:focus").get_attribute("title") == f"Layer {LAYERS - 1}, head {HEADS}"
    choose(bare, "scale", 1)
    linear = colour_weights(OWN.weights[0, 0], OWN.mask, Look(scale="linear"))[3, 0]
    np.testing.assert_allclose(bare.pixel(view.locator("canvas").nth(0), 0.1, 0.9)[:3], linear, atol=4)


def test_heads_are_switched_off_with_alt_by_key_and_by_the_name_of_a_layer(bare: BarePage) -> None:
    switches = maps.TileSwitches([(0, 1)], lambda off: None)
    view = bare.mount("overview", overview(CROSS, switches=switches, changed=[(0, 1)]))
    tiles = view.locator(".tile")
    expect(view.locator(".tile.changed")).to_have_count(1)
    tiles.nth(2).click(modifiers=["Alt"])
    assert bare.pop_sent_values() == [["off", [[0, 1], [0, 2]]]]
    tiles.nth(1).focus()
    bare.page.keyboard.press("x")
    assert bare.pop_sent_values() == [["off", [[0, 2]]]]
    bare.page.keyboard.press("Shift+X")
    assert sorted(bare.pop_sent_values()[0][1]) == [[0, head] for head in range(HEADS)]
    expect(view.locator(".tile.changed")).to_have_count(HEADS)
    bare.page.keyboard.press("Shift+X")
    assert bare.pop_sent_values() == [["off", []]], "all of them were off"
    pressing = replace(switches, off=(), pressing=True)
    view = bare.mount("overview", overview(CROSS, switches=pressing))
    tiles.nth(0).click()
    view.locator(".layer").nth(2).click()
    assert [len(off) for _, off in bare.pop_sent_values()] == [1, 1 + HEADS]


def test_heads_in_an_order_stand_with_their_values(bare: BarePage) -> None:
    order = [maps.RankedHead(2, 0, "0.91", True), maps.RankedHead(0, 3, "0.52", False)]
    view = bare.mount("overview", overview(CROSS, order=order))
    expect(view.locator(".value")).to_have_text(["3.1 0.91", "1.4 0.52"])
    expect(view.locator(".cell.out")).to_have_text("1.4 0.52")
    view.locator(".tile").nth(1).click()
    assert bare.pop_sent_values() == [["pick", {"layer": 0, "head": 3}]]
    bare.page.set_viewport_size({"width": 320, "height": 700})
    wide = attention("encoder", tuple(map(str, range(300))), tuple(map(str, range(300))))
    view = bare.mount("overview", overview(wide))
    expect(view.locator("canvas.shrunk")).to_have_count(LAYERS * HEADS)


def encode_lines(
    pinned: tuple[int | None, int | None] = (None, None), look: Look | None = None, **more: object
) -> bytes:
    lines = maps.LinkOptions(1, 2, **more)  # type: ignore[arg-type]
    return maps.encode_attention_links(CROSS, lines, look or Look(), "predicted", pinned, "Strongest: one.")


def test_lines_join_each_query_to_its_strongest_key_and_a_token_shows_its_own(bare: BarePage) -> None:
    view = bare.mount("links", encode_lines())
    rows = CROSS.weights[1, 2]
    expect(view.locator("path")).to_have_count(len(rows))
    expect(view.locator(".legend > span")).to_have_text(f"{len(rows)} lines")
    token = view.locator("[data-side=query]").nth(1)
    token.hover()
    expect(view.locator("path.on")).to_have_count(1)
    expect(view.locator(".numbers text")).to_have_text(f"{rows[1].max():.0%}")
    token.click()
    assert bare.pop_sent_values() == [["pin", {"side": "query", "index": 1}]]
    view = bare.mount("links", encode_lines((1, None), threshold=0.0))
    expect(view.locator("path")).to_have_count(rows.size)
    expect(token).to_have_attribute("aria-pressed", "true")
    bare.page.mouse.move(1, 1)
    expect(view.locator(".numbers text")).to_have_count(len(rows[1]))
    token.focus()
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        bare.page.keyboard.press(key)
    assert bare.pop_sent_values() == [["pin", {"side": "key", "index": 2}]]


@pytest.mark.parametrize("horizontal", [False, True])
def test_other_heads_are_drawn_beside_in_colours_of_their_own(bare: BarePage, horizontal: bool) -> None:
    view = bare.mount("links", encode_lines(horizontal=horizontal))
    view.get_by_label("Draw head 1 too").click()
    assert bare.pop_sent_values() == [["beside", {"heads": [0]}]]
    expect(view.locator("path")).to_have_count(2 * len(CROSS.query_tokens))
    strokes = set(view.locator("path").evaluate_all("(all) => all.map((one) => getComputedStyle(one).stroke)"))
    assert strokes == {f"rgb{rgb(head_colour(LIGHT, head))}" for head in (0, 2)}
    view.get_by_label("Draw all heads").click()  # "only one"
    view.get_by_label("Draw all heads").click()
    assert [told["heads"] for _, told in bare.pop_sent_values()] == [[], [0, 1, 3]]
    first, last = (view.locator("[data-side=query]").nth(at).bounding_box() for at in (0, 3))
    assert first
    assert last
    across, down = last["x"] - first["x"], last["y"] - first["y"]
    assert (across > down) is horizontal


def encode_text(
    pinned: tuple[int | None, int | None] = (None, None), one: AttentionMap = CROSS, look: Look | None = None
) -> bytes:
    return text_components.encode_shaded_text(one, 1, 2, look or Look(), "predicted", pinned, "")


def test_a_text_is_shaded_by_means_and_by_the_weights_of_the_word_pointed_at(bare: BarePage) -> None:
    view = bare.mount("text", encode_text())
    keys, queries = (view.locator(f"[data-side={side}]") for side in ("key", "query"))
    means = CROSS.weights[1, 2].mean(0, dtype=np.float64)
    expect(keys.nth(0)).to_have_attribute("title", f"{means[0]:.0%}")
    expect(view.locator("h3 span").nth(1)).to_have_text("shaded by the mean over all queries")
    queries.nth(1).hover()
    row = CROSS.weights[1, 2, 1]
    for at in range(len(row)):
        expect(keys.nth(at)).to_have_attribute("title", f"{row[at]:.0%}")
    found = keys.nth(1).evaluate("(one) => getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number)")
    np.testing.assert_allclose(found, colour_weights(row[None], np.ones((1, 4), bool), Look())[0, 1], atol=4)
    keys.nth(2).hover()
    expect(queries.nth(0)).to_have_attribute("title", f"{CROSS.weights[1, 2, 0, 2]:.0%}")
    keys.nth(2).click()
    assert bare.pop_sent_values() == [["pin", {"side": "key", "index": 2}]]
    view = bare.mount("text", encode_text((None, 2)))
    bare.page.mouse.move(1, 1)
    expect(view.locator("h3 span").nth(0)).to_contain_text("three")
    keys.nth(2).focus()
    bare.page.keyboard.press("ArrowLeft")
    assert view.locator("button:focus").inner_text() == "two"


def test_a_text_that_may_not_see_a_word_says_masked(bare: BarePage) -> None:
    view = bare.mount("text", encode_text(one=OWN))
    view.locator("[data-side=query]").nth(0).hover()
    expect(view.locator("[data-side=key]").nth(1)).to_have_attribute("title", "masked")
    background = view.locator("[data-side=key]").nth(1).evaluate("(one) => getComputedStyle(one).backgroundColor")
    assert background == f"rgb{rgb(LIGHT.masked)}"
