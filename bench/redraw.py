"""How long a picture of the running app takes to change: from a click until what it changes has been painted."""

from __future__ import annotations

from itertools import cycle
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import Browser, Locator, Page

from attenscope.checkpoint.load import CHECKPOINTS_FOLDER, TOKENIZER_FILE, list_checkpoints
from attenscope.text.tokenizer import Tokenizer
from bench.positions import SETTLED, STARTS_WITHIN

TURNS = range(7)  # The first warms up.
REST = 150  # milliseconds between two clicks
HEADS = (1, 2, 3, 4)
SCALES = ("linearly", "by its square root")
WORDS = ("the old dog sees a tree today and the cat", "reads a book in the garden")
# `seen` differs once the picture has changed; in the frame after the next one that is painted. What is out of sight is
# not seen. Python has answered once the script has run again.
CLICKED = """([name, target]) => new Promise((resolve, reject) => {
  const inside = (key, what) => [...document.querySelectorAll(`.st-key-${key} *`)]
    .map((one) => one.shadowRoot?.querySelector(what)).find((one) => one?.checkVisibility());
  const heatmap = () => {
    const root = inside("heatmap", ".heatmap");
    const canvas = root?.querySelector("canvas");
    if (!canvas?.width) return "";
    // Four rows of pixels: one may lie between two rows of cells.
    const rows = canvas.getContext("2d").getImageData(0, Math.floor(canvas.height * 0.37), canvas.width, 4).data;
    return `${root.dataset.painted.replace(" …", "")} ${canvas.height} ${rows.join()}`;
  };
  const seen = {
    heatmap,
    links: () => inside("links", "[data-painted]")?.dataset.painted ?? "",
    text: () => document.querySelector('[data-testid="stText"]').textContent,
  }[name];
  const app = document.querySelector('[data-testid="stApp"]');
  const before = seen();
  const start = performance.now();
  let painted, answered;
  // So small an app may start and end its run within one update of the page, which then tells of neither.
  const done = () => painted && (answered || name === "text") && resolve([painted, answered ?? painted]);
  const script = new MutationObserver(() => {
    if (app.dataset.testScriptState !== "notRunning") return;
    script.disconnect();
    answered = performance.now() - start;
    done();
  });
  script.observe(app, { attributeFilter: ["data-test-script-state"] });
  const end = () => requestAnimationFrame(() => { painted = performance.now() - start; done(); });
  const look = () => requestAnimationFrame(() => {
    const now = seen();
    if (now && now !== before) end();
    else if (performance.now() - start > 20000) reject(`Nothing has changed after a click; looking at ${name}.`);
    else look();
  });
  target.click();
  look();
})"""


class Redraw(NamedTuple):
    """Milliseconds from a click; medians, where it was made several times."""

    painted: float
    """Until the picture has changed and is painted."""
    answered: float
    """Until Python has run, and all that it says is on the page."""
    floor: float = 0.0
    """Until a click made in turn with it has changed the number in an app that shows nothing else."""


class Clicks:
    """Clicks on a page, each followed by one in an app that shows one number."""

    def __init__(self, page: Page, nothing: Page) -> None:
        self.page, self.nothing = page, nothing
        self.found: dict[str, list[Redraw]] = {}

    def make(self, what: str, seen: str, target: Locator) -> None:
        """Click `target`, which changes `seen` (heatmap, links), and keep how long that took as `what`."""
        own = click(self.page, seen, target)
        floor = click(self.nothing, "text", self.nothing.get_by_role("button", name="Add one"))
        self.found.setdefault(what, []).append(own._replace(floor=floor.painted))

    def medians(self) -> dict[str, Redraw]:
        """Of each kind of click, the first of which warmed up."""
        return {what: Redraw(*map(median, zip(*found[1:], strict=True))) for what, found in self.found.items()}


def click(page: Page, seen: str, target: Locator) -> Redraw:
    found = Redraw(*page.evaluate(CLICKED, [seen, target.element_handle()]))
    rest(page)
    return found


def rest(page: Page) -> None:
    page.locator(SETTLED).wait_for()
    page.wait_for_timeout(REST)


def of_the_page(browser: Browser, address: str, empty: str, tokens: int) -> dict[str, Redraw]:
    """Each change on Explore, for the encoder's map of so many tokens; `empty` is the app that shows one number."""
    nothing = browser.new_page()
    nothing.goto(empty)
    nothing.get_by_role("button", name="Add one").wait_for(timeout=1000 * STARTS_WITHIN)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/?{urlencode({'sentence': sentence(tokens), 'kind': 'encoder'})}")
    tiles = [page.get_by_role("button", name=f"Layer 2, head {head}", exact=True) for head in HEADS]
    tiles[0].wait_for(timeout=1000 * STARTS_WITHIN)
    rest(page)
    rest(nothing)
    clicks = Clicks(page, nothing)
    for turn in TURNS:
        clicks.make("head", "heatmap", tiles[turn % len(tiles)])
    page.locator(".st-key-settings button").first.click()
    rest(page)
    scales = [page.get_by_text(name, exact=True) for name in SCALES]
    for turn in TURNS:
        clicks.make("scale", "heatmap", scales[turn % len(scales)])
    for _ in TURNS:
        clicks.make("special tokens", "heatmap", page.get_by_label("Hide special tokens"))
    page.keyboard.press("Escape")
    rest(page)
    links, heatmap = (page.locator(".st-key-view").get_by_role("radio", name=name) for name in ("links", "heatmap"))
    for _ in TURNS:
        clicks.make("view, to links", "links", links)
        clicks.make("view, to the heatmap", "heatmap", heatmap)
    page.close()
    nothing.close()
    return clicks.medians()


def sentence(tokens: int) -> str:
    """Words that the page's first model reads as so many tokens, the end of the sentence included."""
    tokenizer = Tokenizer.load(CHECKPOINTS_FOLDER / list_checkpoints()[0] / TOKENIZER_FILE)
    found: list[str] = []
    for word in cycle(" ".join(WORDS).split()):
        if len(tokenizer.encode(" ".join([*found, word])).ids) > tokens:
            return " ".join(found)
        found.append(word)
    raise AssertionError("the words never end")
