"""Components of charts: numbers in a table, curves, a search tree, the steps of a head, and a plotly figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import plotly as plotly_package
import plotly.graph_objects as go
import pytest
from playwright.sync_api import BrowserContext, expect

from attenscope.analysis.attention_steps import AttentionPipeline
from attenscope.decoding.beam import BeamNode, BeamTree, Hypothesis
from attenscope.viz.figures.curves import Axis, Curves, Mark, Note, linear_axis
from attenscope.viz.figures.figure_style import DARK, LIGHT, Look
from attenscope.viz.web import charts, maps
from tests.browser.conftest import watch
from tests.browser.coverage import counted
from tests.components.bare_page import ADDRESS, PAGE, BarePage, rgb
from tests.components.test_weights import point_at_cell

STOPS = ("#ffffff", "#0000ff")


def table(values: np.ndarray, **more: object) -> maps.MatrixData:
    rows, columns = values.shape
    named = {"title": "Positions", "row_names": range(rows), "column_names": range(columns)}
    titled = {"row_title": "position", "column_title": "dimension", "low": -1.0, "high": 1.0, "stops": STOPS}
    return maps.MatrixData(values, **{**named, **titled, **more})  # type: ignore[arg-type]


def test_a_cell_of_a_matrix_is_coloured_read_and_chosen(bare: BarePage) -> None:
    values = np.linspace(-1, 1, 12).reshape(3, 4)
    view = bare.mount("matrix", maps.encode_matrix(table(values, marks=(0,), square=True), (2, 3)))
    plot = view.locator(".plot")
    colours = bare.pixels(view.locator(".plot canvas"), [(0.1, 0.1), (0.9, 0.9)])
    assert [tuple(one[:3]) for one in colours] == [rgb(STOPS[0]), rgb(STOPS[1])]
    expect(view.locator("u")).to_have_count(1)
    expect(view.locator("b")).to_be_visible()
    point_at_cell(plot, 1, 2, values.shape)
    expect(view.locator(".readout")).to_have_text(f"position 1 · dimension 2 · {values[1, 2]:.2f}")
    plot.click(position={"x": 3, "y": 3})
    assert bare.pop_sent_values() == [["cell", {"row": 0, "column": 0}]]
    for key in ("ArrowDown", "ArrowRight", "Enter", "Tab"):
        bare.page.keyboard.press(key)
    assert bare.pop_sent_values() == [["cell", {"row": 1, "column": 1}]]
    bare.page.mouse.move(1, 1)
    expect(view.locator(".readout")).to_have_text("")
    expect(view.locator(".bar span")).to_have_text(["−1.00", "1.00"])


def test_a_matrix_of_sizes_is_read_with_two_digits_and_an_exact_zero(bare: BarePage) -> None:
    values = np.array([[0.0, 3.24e-7], [0.011, 1.0]])
    shown = table(values, exponent=True, low=-6.0, high=0.0, row_names=["a", "b"], height=150)
    view = bare.mount("matrix", maps.encode_matrix(shown))
    for (row, column), read in {(0, 0): "0", (0, 1): "3.2e−7", (1, 0): "1.1e−2", (1, 1): "1.0e+0"}.items():
        point_at_cell(view.locator(".plot"), row, column, values.shape)
        expect(view.locator(".readout")).to_contain_text(f"· {read}")
    expect(view.locator(".bar span")).to_have_text(["≤ 1.0e−6", "≥ 1.0e+0"])
    large = maps.encode_matrix(table(np.full((600, 300), 0.5), low=-400.0, high=400.0))
    view = bare.mount("matrix", large)
    expect(view.locator(".rows span").nth(1)).to_have_text("32")  # As many names as have room.


def curves(**more: object) -> Curves:
    steps = np.arange(5.0)
    loss = np.stack([steps, [4.0, 3.0, 2.0, 1.5, 1.0]], 1)
    lost = np.stack([steps, [0.5, np.nan, 0.5, 0.6, 0.7]], 1)
    lost[1, 0] = np.nan
    marks = [
        Mark("dots", loss[1:3], LIGHT.full, 4, "{name}: {0:,.1f}", np.array([[1234.5], [2.0]]), ["first", "second"]),
        Mark("line", loss, LIGHT.accent, 2, "step {x}: {0:.2f}, {1:.1e}", np.stack([loss[:, 1], loss[:, 1] / 1e4], 1)),
        Mark("line", lost, LIGHT.soft),
        Mark("area", loss, LIGHT.line),
    ]
    notes = [Note("Loss\nof all", 4.0, 1.0, LIGHT.ink, "start"), Note("Loss", 4.0, 1.0, LIGHT.ink)]
    axes = (linear_axis(0, 4, "step", grid=True), linear_axis(0, 5, "loss", grid=True))
    return Curves("Training", *axes, marks, LIGHT, notes, legend=[("loss", LIGHT.accent)], **more)  # type: ignore[arg-type]


def test_a_point_of_a_curve_is_read_by_mouse_and_keys_and_chosen(bare: BarePage) -> None:
    view = bare.mount("curves", charts.encode_curves(curves()))
    plot, readout = view.locator(".plot"), view.locator(".readout")
    expect(view.locator(".curve")).to_have_count(2)
    assert view.locator(".curve").nth(0).get_attribute("d").count("M") == 2  # type: ignore[union-attr]
    expect(view.locator(".entry")).to_have_text(["loss"])
    notes = view.locator(".note")
    expect(notes).to_have_text(["Loss", "of all"])  # Another one would stand on them.
    box, words = plot.bounding_box(), notes.nth(1).bounding_box()
    assert box
    assert words
    assert words["x"] + words["width"] <= box["x"] + box["width"] + 5, "what would pass the edge is moved inside"
    dot = view.locator("circle").nth(0).bounding_box()
    assert dot
    bare.page.mouse.move(dot["x"] + 3, dot["y"] + 3)
    expect(readout).to_have_text("first: 1,234.5")
    plot.click(position={"x": dot["x"] - box["x"], "y": dot["y"] - box["y"]})
    assert bare.pop_sent_values() == [["point", {"mark": 0, "at": 0}]]
    plot.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        bare.page.keyboard.press(key)
    expect(readout).to_have_text("step 2: 2.00, 2.0e−4")
    bare.page.keyboard.press("Enter")
    assert bare.pop_sent_values() == [["point", {"mark": 1, "at": 2}]]
    bare.page.mouse.move(1, 1)
    expect(readout).to_have_text("")


def test_a_box_is_drawn_in_curves_and_is_no_click(bare: BarePage) -> None:
    bare.page.set_viewport_size({"width": 420, "height": 800})
    shown = curves(square=True, height=300)
    view = bare.mount("curves", charts.encode_curves(shown, brush=True))
    plot = view.locator(".plot")
    low, high = (view.locator("circle").nth(at).bounding_box() for at in (1, 0))
    assert low
    assert high
    mouse = bare.page.mouse
    mouse.move(high["x"] + high["width"] / 2, high["y"] + high["height"] / 2)
    mouse.down()
    mouse.move(low["x"] + low["width"] / 2, low["y"] + low["height"] / 2, steps=4)
    expect(view.locator(".box")).to_be_visible()
    mouse.up()
    ((what, ends),) = bare.pop_sent_values()
    assert what == "box"
    np.testing.assert_allclose(ends, [1, 2, 2, 3], atol=0.1)
    expect(view.locator(".box")).to_have_count(0)
    mouse.down()
    plot.dispatch_event("pointercancel")
    mouse.move(low["x"] + 50, low["y"] + 50, steps=3)
    expect(view.locator(".box")).to_have_count(0)
    mouse.up()
    bare.pop_sent_values()


def test_an_axis_without_numbers_leaves_no_room_for_them(bare: BarePage) -> None:
    quiet = Curves("Bare", Axis(0, 1, "x"), Axis(0, 1), [Mark("line", np.eye(2), LIGHT.ink)], LIGHT, height=120)
    view = bare.mount("curves", charts.encode_curves(quiet))
    expect(view.locator("svg text")).to_have_text(["x"])
    view.locator(".plot").click()
    view.locator(".plot").press("ArrowRight")
    expect(view.locator(".readout")).to_have_text("")
    assert bare.pop_sent_values() == [], "no mark can be read"


def search_tree() -> BeamTree:
    ways = [((1,), None, "alive"), ((2,), None, "pruned"), ((1, 3), 0, "finished"), ((1, 4), 0, "pruned")]
    nodes = tuple(
        BeamNode(len(way) - 1, at % 2, parent, way, -0.5 * len(way), fate, f" w{way[-1]}")  # type: ignore[arg-type]
        for at, (way, parent, fate) in enumerate(ways)
    )
    return BeamTree(nodes, (Hypothesis((1, 3), -0.5),))


def test_a_beam_tree_marks_its_best_way_and_tells_of_a_chosen_node(bare: BarePage) -> None:
    bare.page.set_viewport_size({"width": 500, "height": 700})
    view = bare.mount("beam_tree", charts.beam_tree_data(search_tree(), (1,)))
    nodes = view.locator(".scroll .node")
    expect(view.locator(".edge")).to_have_count(2)
    expect(view.locator(".edge.best")).to_have_count(1)
    expect(view.locator(".scroll .node.best")).to_have_count(2)
    expect(view.locator(".scroll .node text")).to_have_text(["w1", "w3"])  # Those that are pruned have no name.
    expect(view.locator(".legend > span")).to_have_text(["searched on from", "finished", "pruned: given up here"])
    expect(view.locator(".chosen")).to_have_attribute("aria-label", charts.describe_node(search_tree().nodes[0]))
    nodes.nth(3).click()
    nodes.nth(0).focus()
    bare.page.keyboard.press("ArrowRight")
    bare.page.keyboard.press("Enter")
    assert bare.pop_sent_values() == [["node", {"row": 1, "column": 1}], ["node", {"row": 0, "column": 1}]]
    for key in ("ArrowDown", "ArrowLeft", "ArrowUp", "ArrowUp", "Home"):
        bare.page.keyboard.press(key)
    expect(nodes.nth(0)).to_be_focused()
    xs = [box["x"] for box in (one.bounding_box() for one in nodes.all()) if box]
    bare.page.set_viewport_size({"width": 900, "height": 700})
    expect(view.locator(".scroll svg")).to_have_css("width", "251px")
    wider = nodes.nth(2).bounding_box()
    assert wider
    assert wider["x"] > xs[2]


def pipeline(scale: float = 0.5) -> AttentionPipeline:
    q = np.array([1.0, -2.0, 0.5, 0.0])
    k = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, -1.0, 2.0, 0.0], [3.0, 3.0, 3.0, 3.0]])
    product, mask = q * k, np.array([True, True, False])
    dot = product.sum(1)
    scores = dot * scale
    masked = np.where(mask, scores, -np.inf)
    weights = np.exp(masked) / np.exp(masked).sum()
    v = np.array([[1.0, 2.0, 3.0, 4.0], [-1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    passed = weights[:, None] * v
    found = (q, k, product, dot, scale, scores, mask, masked, weights, v, passed, passed.sum(0), 1e-7)
    return AttentionPipeline("decoder", 0, 0, 1, " b", (" a", " b", " c"), *found)


def test_the_steps_of_a_head_are_gone_through_with_the_numbers_of_a_key(bare: BarePage) -> None:
    steps = pipeline()
    view = bare.mount("pipeline", charts.encode_attention_pipeline(steps, " b", Look(), 2, "From q to context"))
    numbers = view.locator(".numbers")
    expect(view).to_have_attribute("aria-label", "From q to context")
    best = int(steps.weights.argmax())
    expect(numbers).to_contain_text(f"The 4 products add up to {steps.dot[best]:.2f}")
    for step, said in enumerate(
        (
            "Each has 4 numbers",
            "Largest part, number 2: −2.00 · −1.00 = 2.00",
            "add up to 3.00",
            "3.00 / √4 = 1.50",
            "1.50 stays",
            f"over the sum of all: {100 * steps.weights[best]:.2f}%",
            f"goes in with {100 * steps.weights[best]:.2f}%",
        )
    ):
        view.locator("ol button").nth(step).click()
        expect(numbers).to_contain_text(said)
        expect(view.locator(".now").first).to_have_attribute("data-step", str(step))
    assert bare.pop_sent_values() == [["step", {"step": step}] for step in range(7)]
    expect(view.get_by_text("Next")).to_be_disabled()
    view.locator(".cell[data-key='2']").first.hover()
    expect(numbers).to_contain_text("with 0.00%")
    bare.page.keyboard.press("ArrowLeft")
    expect(numbers).to_contain_text("Masked: exactly 0")
    view.get_by_text("Back").click()
    expect(numbers).to_contain_text("This key is masked")
    assert bare.pop_sent_values() == [["step", {"step": 5}], ["step", {"step": 4}]]
    expect(view.locator(".cell[data-step='4']")).to_have_text([f"{value:.2f}" for value in steps.scores[:2]] + ["−∞"])
    expect(view.locator("svg.hatch")).to_have_count(1)


def test_strips_have_the_colours_of_sign_and_size_and_an_old_answer_changes_nothing(
    bare: BarePage,
) -> None:
    bare.set_scheme("dark")
    steps, look = pipeline(1.0), Look(DARK)
    view = bare.mount("pipeline", charts.encode_attention_pipeline(steps, " b", look, 3, ""))
    expect(view.locator(".numbers")).to_contain_text("This model does not scale: 3.00")
    colours = bare.pixels(view.locator(".above canvas"), [(0.4, 0.5), (0.9, 0.5)])  # Of q: its largest number, and 0.
    assert tuple(colours[1][:3]) == rgb(DARK.background)
    assert tuple(colours[0][:3]) not in (rgb(DARK.background), rgb(DARK.full))
    view.get_by_text("Next").click()
    view.get_by_text("Next").click()
    view = bare.mount("pipeline", charts.encode_attention_pipeline(steps, " b", look, 4, ""))
    expect(view.locator("[aria-current=step]")).to_have_text("Softmax")
    view = bare.mount("pipeline", charts.encode_attention_pipeline(steps, " b", look, 5, ""))
    view = bare.mount("pipeline", charts.encode_attention_pipeline(steps, " b", look, 0, ""))
    expect(view.locator("[aria-current=step]")).to_have_text("Query, keys")


FIGURE = """([key, figure]) => {
  let frame = document.querySelector(`.st-key-${key}`);
  frame ??= Object.assign(document.body.appendChild(document.createElement("div")), { className: `st-key-${key}` });
  const before = frame.firstElementChild;
  const plot = document.createElement("div");
  frame.replaceChildren(plot);
  return Plotly.newPlot(plot, figure.data, figure.layout).then(() => Boolean(before));
}"""


@pytest.fixture
def plotly(room: BrowserContext, tmp_path: Path) -> Iterator[BarePage]:
    """A bare page from the disk, with plotly, which is too large to be handed over."""
    script = Path(plotly_package.__file__).parent / "package_data" / "plotly.min.js"
    file = tmp_path / "plotly.html"
    file.write_text(f'{PAGE}<script src="{script.as_uri()}"></script>', encoding="utf-8")
    with watch(room, ADDRESS, "file:") as page, counted(page):
        yield BarePage(page, file.as_uri())
    page.close()


def heat(cells: int) -> go.Figure:
    names = [f"a long name of {at}" for at in range(cells)]
    trace = go.Heatmap(
        z=np.arange(cells * cells).reshape(cells, cells),
        x=names,
        y=names,
        texttemplate="%{z}.00",
        textfont={"size": 14},
    )
    figure = go.Figure(
        trace, {"width": 420, "height": 320, "template": "none", "xaxis": {"tickangle": -45, "nticks": 200}}
    )
    return figure.update_layout(margin={"l": 90, "r": 10, "t": 10, "b": 100, "autoexpand": False})


def test_a_chart_is_covered_while_streamlit_mounts_it_anew_and_its_cells_are_chosen(plotly: BarePage) -> None:
    page, frame = plotly.page, "chart-frame"
    page.evaluate(f"(key) => ({FIGURE})([key, {heat(3).to_json()}])", frame)
    nodes = [{"row": 0, "column": 0, "name": "first"}, {"row": 0, "column": 1, "name": "second"}]
    view = plotly.mount("chart", {"frame": frame, "label": "A map", "nodes": nodes})
    first = view.locator(".nodes button").nth(0)
    first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert plotly.pop_sent_values() == [["cell", {"row": 0, "column": 1}]]
    places = [one.bounding_box() for one in view.locator(".nodes button").all()]
    assert places[0]
    assert places[1]
    assert places[1]["x"] > places[0]["x"] + 50
    page.evaluate("() => document.querySelector('.js-plotly-plot').remove()")
    expect(view.locator(".still")).to_be_attached()
    page.evaluate(
        FIGURE, [frame, {"data": [{"type": "scatter", "mode": "markers", "x": [1, 2], "y": [1, 2]}], "layout": {}}]
    )
    expect(view.locator(".still")).to_have_count(0)
    point = page.locator(".point").nth(1).bounding_box()
    assert point
    page.mouse.click(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.wait_for_function("() => window.sent.length")
    assert plotly.pop_sent_values() == [["cell", {"row": 2, "column": 2}]]
    page.evaluate(f"(key) => ({FIGURE})([key, {heat(40).to_json()}])", frame)
    page.wait_for_function("() => document.querySelector('.heatmap-label')?.style.display === 'none'")
    numbers, names = page.evaluate(CROWDED)
    assert set(numbers) == {"none"}, "each would stand on the next"
    assert {"", "none"} == set(names)


CROWDED = """() => [".heatmap-label", ".xtick > text"].map((one) =>
  [...document.querySelectorAll(`.js-plotly-plot ${one}`)].map(({ style }) => style.display))"""
