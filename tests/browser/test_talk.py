"""On stage: the talk that ships, walked by keyboard; a page alone on the screen; notes; talks made and mended."""

from __future__ import annotations

import io
import re
import statistics
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Error, Locator, Page, Route, expect

from attenscope.viz.talk.file import format_talk, parse_talk
from attenscope.viz.talk.scenes import Scene, Talk
from attenscope.viz.talk.session import load_shipped_talk
from tests.browser.conftest import serving
from tests.browser.steps import (
    LOADING,
    PATIENCE,
    TRAFFIC,
    add_to_talk,
    click,
    enter,
    move_scene,
    open_file,
    open_page,
    open_talk,
    save_talk,
    settle,
)

pytestmark = pytest.mark.timeout(600)
CHROME = ("stHeader", "stToolbar", "stStatusWidget", "stSpinner", "stSkeleton", "stSidebar", "stAppDeployButton")
"""What Streamlit shows around a page and while it works."""
AT_ONCE = 100
"""Milliseconds within which a scene that is ready is to be seen, in the median."""
FRAME = """() => new Promise((done) => {
    const start = performance.now();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
"""How long this machine takes for a frame: a busy one is slow at everything."""
ANSWERS_WITHIN = 300
"""Milliseconds from a key until the screen says which scene comes."""
WATCH = """() => {
    const shows = (root) => root.querySelector("dialog.show") ??
        [...root.querySelectorAll("*")].map((one) => one.shadowRoot && shows(one.shadowRoot)).find(Boolean);
    const watch = window.watch = { from: Infinity, seen: [] };
    const begins = (event) => Object.assign(watch, { from: event.timeStamp, seen: [] });
    for (const kind of ["keydown", "click"]) addEventListener(kind, begins, true);
    const look = () => {
        const dialog = shows(document);
        const old = dialog?.querySelector("iframe.seen");
        const state = dialog && {
            title: dialog.querySelector(".title").textContent,
            place: dialog.querySelector(".place").textContent,
            busy: dialog.getAttribute("aria-busy") === "true" && getComputedStyle(dialog).opacity === "1",
            shown: old?.title ?? "",
            opacity: old ? Number(getComputedStyle(old).opacity) : 0,
        };
        watch.seen.push({ after: performance.now() - watch.from, ...state });
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
"""Look in every frame at what the stage says and shows, from the last key or click on."""
RESTS = 1400
"""Milliseconds that nobody has pressed a key before a page is begun out of sight, where pictures are there."""
WATCH_PAGES = """() => {
    const watch = window.watch = { keys: [], begun: [] };
    addEventListener("keydown", () => watch.keys.push(performance.now()), true);
    const append = Element.prototype.append;
    Element.prototype.append = function (...nodes) {
        const isPage = (one) => one.tagName === "IFRAME" && one.src.includes("embed=true");
        if (nodes.some(isPage)) watch.begun.push(performance.now());
        return append.apply(this, nodes);
    };
}"""
"""When keys were pressed, and when pages of scenes were begun, in milliseconds."""
SCENES = "**/*embed=true*"
"""The addresses of scenes, each in a frame of its own."""
SHORT = "He reads a book."
BROKEN = """title = "Three scenes"

[[scene]]
title = "Fine"
page = "positions"
notes = "First things first."

[scene.view]
sentence = "He reads a book."

[[scene]]
title = "On no page"
page = "nowhere"

[[scene]]
title = "Of another model"
page = "explore"
[scene.view]
model = "none-such"

[[scene]]
title = "Too many heads"
page = "explore"
[scene.view]
layer = 1
head = 99

[[scene]]
title = "Not TOML
page = "explore"

[[scene]]
title = "Fine too"
page = "positions"
colour = "red"
notes = "Last things last."

[scene.view]
sentence = "He reads a book."
plot = "waves"
"""
MISTAKES = {
    "nowhere": "There is no page 'nowhere'",
    "none-such": "There is no model 'none-such'",
    "head = 99": "There is no layer 1, head 99",
    "Not TOML": "This is not TOML",
    "colour": "There is no key 'colour'",
}
"""A piece of each wrong line, and what is said of it."""


@pytest.fixture(params=[(1280, 720), pytest.param((1920, 1080), marks=pytest.mark.slow)], ids=["720p", "1080p"])
def screen(page: Page, request: pytest.FixtureRequest) -> Page:
    """A projector. The fixture `page` asserts that no request leaves the machine."""
    width, height = request.param
    page.set_viewport_size({"width": width, "height": height})
    return page


def dialog(page: Page) -> Locator:
    return page.locator("dialog.show")


def on_scene(page: Page, number: int) -> None:
    expect(dialog(page)).to_have_attribute("data-scene", str(number), timeout=LOADING)


def ready(page: Page, number: int) -> None:
    """The scenes around this one are built."""
    expect(dialog(page)).to_have_attribute("data-ready", str(number), timeout=LOADING)


def milliseconds(page: Page) -> float:
    """From the key to the scene's being painted."""
    expect(dialog(page)).to_have_attribute("data-took", re.compile(r"\d"), timeout=PATIENCE)
    return float(dialog(page).get_attribute("data-took") or "nan")


def visible_chrome(page: Page) -> list[str]:
    """Of CHROME, what can be seen in the frame on the screen, or over it."""
    found = (
        dialog(page)
        .locator("iframe.seen")
        .evaluate(
            "(frame, names) => names.filter((name) =>"
            " [...frame.contentDocument.querySelectorAll(`[data-testid=${name}]`)]"
            ".some((one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length))",
            list(CHROME),
        )
    )
    return list(found)


def overflow(page: Page) -> float:
    """How many times as tall as its frame the content on the screen is."""
    return float(
        dialog(page)
        .locator("iframe.seen")
        .evaluate(
            "(frame) => { const main = frame.contentDocument.querySelector('[data-testid=stMain]');"
            "return main.scrollHeight / main.clientHeight; }"
        )
    )


@pytest.mark.slow
def test_the_talk_that_ships_is_walked_from_first_to_last(screen: Page) -> None:
    talk, mistakes = load_shipped_talk()
    assert not mistakes
    assert 12 <= len(talk.scenes) <= 22
    screen.goto("/talk?present=1")
    took = []
    for number, scene in enumerate(talk.scenes, 1):
        on_scene(screen, number)
        ready(screen, number)
        expect(dialog(screen).locator(".title")).to_have_text(scene.title)
        inside = screen.frame_locator("dialog.show iframe.seen")
        expect(inside.locator('[data-testid="stException"], [data-testid="stAlert"]')).to_have_count(0)
        assert visible_chrome(screen) == [], scene.title
        assert overflow(screen) < 1.06, scene.title
        if number > 1:
            took.append(milliseconds(screen))
        if scene.hide:
            expect(dialog(screen)).to_have_attribute("data-revealed", "false")
            screen.keyboard.press("PageDown")
            expect(dialog(screen)).to_have_attribute("data-revealed", "true")
        screen.keyboard.press("PageDown")
    on_scene(screen, len(talk.scenes))  # The last one stays.
    print(f"scene to scene: median {statistics.median(took):.0f} ms, largest {max(took):.0f} ms")
    screen.keyboard.press("Escape")
    expect(dialog(screen)).to_have_count(0)
    expect(screen.locator('[data-testid="stHeader"]')).to_be_visible()
    assert "present" not in screen.url


@pytest.fixture
def own_talk(page: Page, tmp_path: Path) -> Page:
    """The page Talk with three quick scenes."""
    scenes = tuple(
        Scene(
            f"Scene {name}", "positions", {"sentence": SHORT, "plot": plot}, f"Notes of {name}.", hide=hide, minutes=2
        )
        for name, plot, hide in (("one", "table", ()), ("two", "waves", ("picture",)), ("three", "similarity", ()))
    )
    path = tmp_path / "talk.toml"
    path.write_text(format_talk(Talk("Three pictures", scenes, "everyday-en-de")), encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, path)
    expect(page.get_by_role("radio", name="1 Scene one")).to_have_count(1)
    return page


def test_keys_notes_and_what_is_hidden(own_talk: Page) -> None:
    page = own_talk
    click(page.get_by_role("button", name="Start the talk"))
    on_scene(page, 1)
    ready(page, 1)
    with page.expect_popup() as opened:
        page.keyboard.press("n")
    notes = opened.value
    expect(notes.locator(".notes")).to_have_text("Notes of one.")
    expect(notes.locator(".next")).to_have_text("Next: Scene two")
    expect(notes.locator(".aim")).to_have_text(re.compile(r"^0:\d\d of 2:00 · 1:\d\d left until the next scene$"))
    page.bring_to_front()
    page.keyboard.press("ArrowRight")
    on_scene(page, 2)
    expect(dialog(page)).to_have_attribute("data-revealed", "false")
    expect(notes.locator(".title")).to_have_text("Scene two")
    notes.keyboard.press("PageDown")  # The clicker works in either window.
    expect(dialog(page)).to_have_attribute("data-revealed", "true")
    expect(notes.locator(".next")).to_have_text("Next: Scene three")
    for key, number in (("End", 3), ("PageUp", 2), ("Home", 1), ("3", None), ("Enter", 3), ("1", 1)):
        page.keyboard.press(key)
        if number:
            on_scene(page, number)
    page.keyboard.press("c")
    expect(dialog(page)).to_have_class("show contrast")
    page.keyboard.press("3")
    on_scene(page, 3)
    page.keyboard.press("p")
    expect(dialog(page)).to_have_count(0)
    assert notes.is_closed()
    expect(page.get_by_text("Scene 3 of 3")).to_be_visible(timeout=PATIENCE)
    click(page.get_by_role("button", name="Start here"))
    on_scene(page, 3)


def test_a_page_alone_on_the_screen_and_back(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    open_page(page, f"/positions?sentence={SHORT.replace(' ', '+')}")
    page.get_by_label("Sentence", exact=True).press("p")
    expect(dialog(page)).to_have_count(0)  # It was typed.
    page.mouse.click(5, 400)
    page.keyboard.press("p")
    on_scene(page, 1)
    assert visible_chrome(page) == []
    inside = page.frame_locator("dialog.show iframe.seen")
    expect(inside.get_by_role("radio")).to_have_count(0)
    ratio = "(frame) => frame.contentWindow.devicePixelRatio / devicePixelRatio"
    grown = dialog(page).locator("iframe.seen").evaluate(ratio)
    assert grown > 1.1
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    expect(page.get_by_role("radio", name="table", exact=True)).to_be_visible()


@pytest.mark.slow
def test_a_broken_file_names_its_lines_and_the_rest_runs(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(BROKEN, encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, path)
    warning = page.locator('[data-testid="stAlert"]')
    lines = BROKEN.splitlines()
    for wrong, says in MISTAKES.items():
        at = next(number for number, line in enumerate(lines, 1) if wrong in line)
        expect(warning).to_contain_text(f"Line {at}: {says}", timeout=PATIENCE)
    click(page.get_by_role("button", name="Start the talk"))
    on_scene(page, 1)
    expect(dialog(page).locator(".place")).to_have_text("1 / 2")
    ready(page, 1)
    page.keyboard.press("End")
    expect(dialog(page).locator(".title")).to_have_text("Fine too", timeout=LOADING)


def test_a_view_is_added_edited_moved_and_saved(page: Page, tmp_path: Path) -> None:
    open_page(page, f"/positions?sentence={SHORT.replace(' ', '+')}&plot=waves")
    for _ in range(3):
        add_to_talk(page)
    click(page.get_by_role("link", name="Talk", exact=True))
    settle(page)
    expect(page.get_by_text("Scene 3 of 3")).to_be_visible(timeout=PATIENCE)
    settle(page)
    expect(page.get_by_label("Title", exact=True)).to_have_count(1, timeout=PATIENCE)
    enter(page.get_by_label("Title", exact=True), "Waves")
    expect(page.get_by_role("radio", name="3 Waves")).to_have_count(1, timeout=PATIENCE)
    move_scene(page, "earlier", places=2)
    expect(page.get_by_text("Scene 1 of 3")).to_be_visible(timeout=PATIENCE)
    saved = save_talk(page, tmp_path)
    talk, mistakes = parse_talk(saved.read_text(encoding="utf-8"))
    assert not mistakes
    assert talk.scenes[0].title == "Waves"
    assert talk.scenes[0].view["sentence"] == SHORT
    assert talk.scenes[0].view["plot"] == "waves"


def test_every_change_is_undone_down_to_the_talk_that_ships(page: Page) -> None:
    """The list of scenes sends back a title, which the talk before the last step need not have."""
    open_page(page, "/")
    for _ in range(3):
        add_to_talk(page)
    click(page.get_by_role("link", name="Talk", exact=True))
    settle(page)
    click(page.locator("[class*=st-key-scene-minutes] button").nth(1))
    settle(page)
    click(page.get_by_role("link", name="Masks", exact=True))
    click(page.locator(".st-key-next-step a"))
    settle(page)
    for scenes in (3, 2, 1, len(load_shipped_talk()[0].scenes)):
        click(page.get_by_role("button", name="Undo", exact=True))
        settle(page)
        expect(page.get_by_test_id("stException")).to_have_count(0)
        expect(page.locator(".st-key-scene-choice").get_by_role("radio")).to_have_count(scenes, timeout=PATIENCE)
    expect(page.get_by_role("button", name="Undo", exact=True)).to_be_disabled()


@pytest.mark.slow
def test_the_sentence_is_the_picture_where_the_others_are_left_out(page: Page, disk: Page, tmp_path: Path) -> None:
    """On the stage and in the file the words stand with the line between them, and a guess does not give it away."""
    view = {"sentence": "Where did you buy this red bicycle?"}
    scenes = (Scene("Words", "explore", view, hide=("translation",), omit=("heads", "picture")),)
    path = tmp_path / "talk.toml"
    path.write_text(format_talk(Talk("Words", scenes, "everyday-en-de")), encoding="utf-8")
    open_page(page, "/talk")
    open_talk(page, path)
    expect(page.get_by_text("the sentence is the picture")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="One file").click()
    download.value.save_as(tmp_path / "talk.html")
    click(page.get_by_role("button", name="Start the talk"))
    ready(page, 1)
    open_file(disk, tmp_path / "talk.html")
    expect(disk.locator("body")).to_have_attribute("data-slide", "1")
    for seen, inside in ((page, page.frame_locator("dialog.show iframe.seen")), (disk, disk)):
        bought, buy = inside.get_by_role("button", name="gekauft", exact=True), inside.get_by_role("button", name="buy")
        expect(bought).to_be_hidden()
        plain = buy.evaluate("(one) => getComputedStyle(one).backgroundColor")
        seen.keyboard.press("PageDown")
        expect(bought).to_be_visible()
        assert buy.evaluate("(one) => getComputedStyle(one).backgroundColor") != plain
        curve = edges(inside.locator(".sentence > svg path").last)  # As wide as its line is thick on either side.
        assert curve == pytest.approx((middle(buy), middle(bought)), abs=10)


def edges(one: Locator) -> tuple[float, float]:
    """The left and the right edge, in the pixels of its own document: that of a scene is zoomed."""
    box = one.evaluate("(one) => one.getBoundingClientRect()")
    return box["left"], box["right"]


def middle(one: Locator) -> float:
    return sum(edges(one)) / 2


@contextmanager
def holding_scenes(page: Page) -> Iterator[None]:
    """Let the server answer no scene that is asked for inside, until the end."""
    held: list[Route] = []
    hold = lambda route: held.append(route)  # noqa: E731
    page.route(SCENES, hold)
    yield
    page.unroute(SCENES, hold)
    for route in held:
        with suppress(Error):  # Its frame may be gone.
            route.continue_()


def answers(page: Page, title: str, place: str) -> None:
    """From the last key on, the stage names this scene at once, over no other one that is not dimmed."""
    page.wait_for_function("(title) => watch.seen.some((one) => one.title === title)", arg=title)
    seen = [one for one in page.evaluate("watch.seen") if one["after"] >= 0]
    first = next(one for one in seen if one.get("title") == title)
    assert first["after"] <= ANSWERS_WITHIN, first
    assert first["place"] == place
    assert first["busy"]
    for one in seen:
        assert one.get("shown", "") in ("", one.get("title")) or one["opacity"] < 0.3, one


@pytest.mark.slow
def test_a_key_is_answered_before_its_scene_is_there(own_talk: Page) -> None:
    page = own_talk
    settle(page)
    page.evaluate(WATCH)
    with holding_scenes(page):
        page.get_by_role("button", name="Start the talk").click()
        answers(page, "Scene one", "1 / 3")
        page.keyboard.press("PageDown")
        answers(page, "Scene two", "2 / 3")
        page.keyboard.press("PageUp")
        answers(page, "Scene one", "1 / 3")
    on_scene(page, 1)
    expect(dialog(page)).to_have_attribute("aria-busy", "false")
    ready(page, 1)
    with holding_scenes(page):
        page.keyboard.press("End")
        answers(page, "Scene three", "3 / 3")
        expect(dialog(page)).to_have_attribute("data-scene", "1")
        page.keyboard.press("Home")  # Back to the scene that is still there.
        expect(dialog(page)).to_have_attribute("aria-busy", "false")
        expect(dialog(page).locator(".title")).to_have_text("Scene one")
        expect(dialog(page).locator("iframe.seen")).to_have_css("opacity", "1")
        page.keyboard.press("3")
        page.keyboard.press("Enter")
        answers(page, "Scene three", "3 / 3")
    on_scene(page, 3)
    expect(dialog(page)).to_have_attribute("aria-busy", "false")
    expect(dialog(page).locator("iframe.seen")).to_have_css("opacity", "1")


@pytest.mark.slow
def test_the_preview_is_of_the_scene_that_is_edited_also_after_another_of_its_page(own_talk: Page) -> None:
    shown = own_talk.locator(".picture.there img")
    seen: list[str] = []
    for name in ("1 Scene one", "2 Scene two", "3 Scene three"):
        choose(own_talk, name)
        for before in seen:
            expect(shown).not_to_have_attribute("src", before, timeout=LOADING)
        seen.append(str(shown.get_attribute("src", timeout=LOADING)))
    for name, address in zip(("1 Scene one", "2 Scene two", "3 Scene three"), seen, strict=True):
        choose(own_talk, name)
        expect(shown).to_have_attribute("src", address, timeout=LOADING)


def choose(page: Page, name: str) -> None:
    click(page.locator(".st-key-scene-choice [data-testid=stRadioOption]").filter(has_text=name.partition(" ")[2]))


def rehearse(page: Page, scenes: int) -> None:
    click(page.get_by_role("button", name="Rehearse"))
    expect(page.locator(".ready")).to_have_text(f"{scenes} of {scenes} ready, works without a network", timeout=LOADING)


def kept_picture(page: Page, number: int, title: str) -> None:
    """This scene is shown as it was kept."""
    on_scene(page, number)
    expect(dialog(page)).to_have_attribute("data-from", "kept")
    expect(dialog(page)).to_have_attribute("aria-busy", "false")
    seen = page.frame_locator("dialog.show iframe.seen")
    expect(dialog(page).locator("iframe.seen")).to_have_attribute("title", title)
    expect(seen.locator(".js-plotly-plot .main-svg, svg, canvas").first).to_be_attached()


def pixels(page: Page) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L"), dtype=np.float32)


@pytest.mark.slow
def test_what_was_rehearsed_is_shown_until_its_page_is_there(own_talk: Page) -> None:
    page = own_talk
    page.set_viewport_size({"width": 1280, "height": 720})
    rehearse(page, 3)
    with holding_scenes(page):
        click(page.get_by_role("button", name="Start the talk"))
        kept_picture(page, 1, "Scene one")
        page.keyboard.press("PageDown")
        kept_picture(page, 2, "Scene two")
        expect(dialog(page)).to_have_attribute("data-revealed", "false")
        covered = page.frame_locator("dialog.show iframe.seen").locator(".st-key-picture")
        expect(covered.locator("*").first).to_be_hidden()
        page.keyboard.press("PageDown")
        expect(covered.locator("*").first).to_be_visible()
        page.keyboard.press("End")
        kept_picture(page, 3, "Scene three")
        kept = pixels(page)
    expect(dialog(page)).to_have_attribute("data-from", "live", timeout=LOADING)
    assert np.abs(pixels(page) - kept).mean() < 0.5  # Of 255.


@pytest.mark.slow
def test_no_page_is_begun_while_somebody_goes_through_pictures(own_talk: Page) -> None:
    page = own_talk
    rehearse(page, 3)
    page.evaluate(WATCH_PAGES)
    click(page.get_by_role("button", name="Start the talk"))
    for number in (1, 2):
        on_scene(page, number)
        page.wait_for_timeout(900)
        page.keyboard.press("PageDown")
    expect(dialog(page)).to_have_attribute("data-revealed", "true")  # The second key at scene 2 uncovers it.
    expect(dialog(page)).to_have_attribute("data-scene", "2")
    ready(page, 2)
    keys, begun = page.evaluate("[watch.keys, watch.begun]")
    assert begun
    assert all(not RESTS > at - key > 0 for at in begun for key in keys), (keys, begun)


@pytest.mark.sweep
def test_a_rehearsed_talk_goes_on_without_its_server(chromium: Browser, tmp_path: Path) -> None:
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    context.add_init_script(TRAFFIC)
    page = context.new_page()
    with serving(tmp_path) as url:
        page.goto(f"{url}/positions?sentence={SHORT.replace(' ', '+')}")
        add_to_talk(page)
        settle(page)
        page.goto(f"{url}/positions?sentence={SHORT.replace(' ', '+')}&plot=waves")
        add_to_talk(page)
        click(page.get_by_role("link", name="Talk", exact=True))
        settle(page)
        rehearse(page, 2)
        click(page.get_by_role("button", name="Start the talk"))
        on_scene(page, 1)
    page.keyboard.press("PageDown")
    on_scene(page, 2)
    expect(dialog(page)).to_have_attribute("aria-busy", "false")
    expect(dialog(page).locator("iframe.seen")).to_have_css("opacity", "1")
    page.keyboard.press("Home")
    on_scene(page, 1)
    assert visible_chrome(page) == []
    context.close()


@pytest.mark.slow
def test_scenes_that_are_ready_appear_at_once(own_talk: Page) -> None:
    page = own_talk
    click(page.get_by_role("button", name="Start the talk"))
    on_scene(page, 1)
    took = []
    for key, number in (("PageDown", 2), ("PageUp", 1)) * 3:
        ready(page, 3 - number)
        page.keyboard.press(key)
        on_scene(page, number)
        took.append(milliseconds(page))
    frame = statistics.median(page.evaluate(FRAME) for _ in range(5))
    assert statistics.median(took) <= max(AT_ONCE, 8 * frame), (took, frame)


def test_a_talk_survives_a_reload_and_a_new_window(page: Page) -> None:
    open_page(page, "/positions?plot=waves")
    add_to_talk(page)
    settle(page)
    open_page(page, "/talk")
    enter(page.get_by_label("Title", exact=True), "Mine, and nobody else's")
    settle(page)  # a button to save looks whether its file is there, and a reload takes the file away
    page.reload()
    expect(page.get_by_label("Title", exact=True)).to_have_value("Mine, and nobody else's")
    settle(page)
    other = page.context.new_page()
    open_page(other, "/talk")
    expect(other.get_by_label("Title", exact=True)).to_have_value("Mine, and nobody else's")
    click(other.get_by_test_id("stPopoverButton").filter(has_text="Open"))
    click(other.get_by_role("button", name="The talk that ships with the app"))
    settle(other)  # until the run ends, the old title stands beside the new one
    expect(other.get_by_label("Title of the talk")).to_have_value(load_shipped_talk()[0].title)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_talk_that_ships_goes_on_from_scene_5_without_its_server(chromium: Browser, tmp_path: Path) -> None:
    scenes = load_shipped_talk()[0].scenes
    context = chromium.new_context(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    context.add_init_script(TRAFFIC)
    page = context.new_page()

    def go_to(number: int) -> None:
        page.keyboard.press("PageDown")
        with suppress(AssertionError):  # Some scenes ask for a second key.
            expect(dialog(page)).to_have_attribute("data-scene", str(number), timeout=2000)
            return
        page.keyboard.press("PageDown")
        on_scene(page, number)

    with serving(tmp_path) as url:
        page.goto(f"{url}/talk")
        click(page.get_by_role("button", name="Rehearse"))
        ready_scenes = re.compile(f"{len(scenes)} of {len(scenes)} ready")
        expect(page.locator(".ready")).to_have_text(ready_scenes, timeout=400_000)
        click(page.get_by_role("button", name="Start the talk"))
        on_scene(page, 1)
        for number in range(2, 6):
            go_to(number)
    for number, scene in enumerate(scenes[5:], 6):
        go_to(number)
        kept_picture(page, number, scene.title)
        expect(dialog(page).locator(".title")).to_have_text(scene.title)
    context.close()
