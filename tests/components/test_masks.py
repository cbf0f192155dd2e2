"""Masks side by side: what their cells look like and say, and the turning over of a cell."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import expect

from attenscope.viz.figures.figure_style import DARK, LIGHT
from attenscope.viz.figures.masks import mask_colours
from attenscope.viz.web.mask_editor import CellMark, CellState, LegendSign, MaskPanel, encode_mask_editor
from tests.components.bare_page import BarePage, rgb

STATES = np.array(
    [
        [CellState.ALLOWED, CellState.BLOCKED, CellState.LEAK],
        [CellState.OVER, CellState.NAN, CellState.DIM],
        [CellState.BLOCKED, CellState.ALLOWED, CellState.BLOCKED],
    ]
)
MARKS = np.array(
    [
        [CellMark.ADDED, CellMark.INFINITE, CellMark.NONE],
        [CellMark.NONE, CellMark.NONE, CellMark.NONE],
        [CellMark.FINITE, CellMark.UNIFORM, CellMark.NONE],
    ]
)
VALUES = np.array([[1.0, -np.inf, 0.00002], [-1e9, np.nan, 0.25], [0.0, 0.5, 1.0]])
TOKENS = (["a", " b", ""], [" x", "y", "z"])
CELL = 38  # Pixels of a cell, and of what stands left of and above the cells, as the script has them.
LEFT, TOP = 30, 22


def panels(editable: bool = True) -> list[MaskPanel]:
    sums = {"row_sums": [1.0, 0.5, np.inf], "column_sums": [1.0, 1.0, np.nan]}
    first = MaskPanel("yours", "Yours", "As you gave it", STATES, MARKS, VALUES, editable, **sums)
    second = MaskPanel("meant", "Meant", "As it was meant", np.tri(3, dtype=int))
    return [first, second, MaskPanel("none", "Weights", "There are no scores")]


def encode(shown: list[MaskPanel], **more: object) -> bytes:
    marked = more.pop("marked", ((), ()))
    colours = mask_colours(LIGHT)
    return encode_mask_editor(shown, colours, marked, **more)  # type: ignore[arg-type]


def test_a_cell_is_read_in_all_masks_and_turned_over(bare: BarePage) -> None:
    legend = [LegendSign("+", "leak", mask_colours(LIGHT).leak, "#ffffff")]
    view = bare.mount("mask_editor", encode(panels(), tokens=TOKENS, legend=legend))
    plots, readout = view.locator(".plot"), view.locator(".readout")
    expect(plots).to_have_count(2)
    expect(view.locator("h4")).to_have_text(["Yours", "Meant", "Weights"])
    expect(view.locator("section > p")).to_have_text(
        ["As you gave it. Click a cell to turn it over", "As it was meant", "There are no scores"]
    )
    expect(view.locator(".legend")).to_have_text("+leak")
    places = {
        (0, 0): "query 1 “a” → key 1 “x” · Yours: allowed 1 added to the score 1 · Meant: allowed",
        (0, 1): "Yours: blocked by -inf −∞ · Meant: blocked",
        (0, 2): "Yours: leak: should be blocked 2.0e−5 · Meant: blocked",
        (1, 0): "Yours: blocked, should be allowed −1000000000 · Meant: allowed",
        (1, 1): "query 2 “b” → key 2 “y” · Yours: NaN · Meant: allowed",
        (2, 1): "query 3 → key 2 “y” · Yours: allowed uniform row 0.5 · Meant: allowed",
    }
    for (row, column), said in places.items():
        plots.nth(0).hover(position={"x": LEFT + (column + 0.5) * CELL, "y": TOP + (row + 0.5) * CELL})
        expect(readout).to_contain_text(said)
    plots.nth(0).click(position={"x": LEFT + 1.5 * CELL, "y": TOP + 0.5 * CELL})
    assert bare.pop_sent_values() == [["cell", {"panel": "yours", "row": 0, "column": 1}]]
    plots.nth(0).hover(position={"x": LEFT + 1.5 * CELL, "y": TOP + 0.6 * CELL})
    expect(readout).to_contain_text("Yours: allowed −∞")
    plots.nth(1).click(position={"x": LEFT + 5, "y": TOP + 5})
    assert bare.pop_sent_values() == [], "only one of them is edited"
    plots.nth(0).hover(position={"x": 4, "y": 4})
    expect(readout).to_contain_text("Point at a cell")


def test_cells_are_gone_through_by_keys(bare: BarePage) -> None:
    view = bare.mount("mask_editor", encode(panels(), words=["off", "on", "", "", "", ""]))
    plot = view.locator(".plot").nth(0)
    plot.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", " ", "ArrowUp", "Enter", "x"):
        plot.press(key)
    assert bare.pop_sent_values() == [["cell", {"panel": "yours", "row": row, "column": 1}] for row in (2, 1)]
    expect(view.locator(".readout")).to_contain_text("query 2 → key 2")
    plot.evaluate("(one) => one.blur()")
    expect(view.locator(".readout")).to_contain_text("Point at a cell")
    expect(plot).to_have_attribute("role", "application")
    expect(plot).to_have_attribute(
        "aria-label", "Yours: 3 queries by 3 keys. Arrow keys move, Enter or Space turns a cell over."
    )


def test_cells_have_the_colours_of_their_states_and_signs_that_tell_them_apart(bare: BarePage) -> None:
    bare.set_scheme("dark")
    colours = mask_colours(DARK)
    view = bare.mount("mask_editor", encode_mask_editor(panels(False), colours, ([0, 1], [1, 2])))
    canvas = view.locator("canvas").nth(0)
    width, height = canvas.evaluate("(one) => [one.width, one.height]")

    def cell(row: int, column: int, x: float, y: float) -> tuple[float, float]:
        return (LEFT + (column + x) * CELL) / width, (TOP + (row + y) * CELL) / height

    spots = [cell(row, column, 0.1, 0.15) for row in range(3) for column in range(3)]
    fills = [colours.blocked, colours.allowed, colours.leak, colours.over, colours.nan, colours.dim]
    found = [tuple(one[:3]) for one in bare.pixels(canvas, spots)]
    assert found == [rgb(fills[state]) for state in STATES.flat]
    signs = bare.pixels(canvas, [cell(0, 2, 0.49, 0.49), cell(1, 0, 0.49, 0.49), cell(1, 1, 0.49, 0.49)])
    assert [tuple(one[:3]) for one in signs] == [rgb(colours.sign), rgb(colours.sign), rgb(colours.ink)]
    dot = bare.pixel(canvas, *cell(2, 0, 0.49, 0.49))
    assert tuple(dot[:3]) == rgb(colours.soft), "a finite fill is a dot"
    framed = bare.pixel(canvas, *cell(0, 1, 0.0, 0.4))
    assert tuple(framed[:3]) == rgb(colours.accent)


def test_a_large_mask_has_small_cells_and_few_numbers(bare: BarePage) -> None:
    bare.page.set_viewport_size({"width": 360, "height": 800})
    large = MaskPanel("all", "All", "", np.tri(200, dtype=int), row_sums=[1.0] * 200, column_sums=[1.0] * 200)
    view = bare.mount("mask_editor", encode([large]))
    expect(view).to_have_attribute("data-painted", "200×200")
    small = view.locator("canvas").bounding_box()
    assert small
    assert small["width"] < 700
    colours = mask_colours(LIGHT)
    found = bare.pixels(view.locator("canvas"), [(0.15, 0.9), (0.85, 0.1)])
    assert [tuple(one[:3]) for one in found] == [rgb(colours.allowed), rgb(colours.blocked)]
    view.locator(".plot").hover(position={"x": LEFT + 4, "y": TOP + 310})
    expect(view.locator(".readout")).to_contain_text("query 10")
