"""How long a picture of the running app takes to change: from a click until what it changes has been painted."""

from __future__ import annotations

from itertools import cycle
from statistics import median
from urllib.parse import urlencode

from playwright.sync_api import Browser, Locator, Page

from model.folder import FOLDER, TOKENIZER, available
from model.tokenizer import Tokenizer

from .positions import SETTLED, STARTS_WITHIN

REPETITIONS = 9
REST = 300  # milliseconds between two clicks
HEADS = (1, 2, 3, 4)
SCALES = ("linearly", "by its square root")
WORDS = ("the old dog sees a tree today and the cat", "reads a book in the garden")
# `seen` differs once a click has been answered; in the frame after the next one that is painted.
CLICKED = """([name, target]) => new Promise((resolve, reject) => {
  const inside = (key, what) => [...document.querySelectorAll(`.st-key-${key} *`)]
    .map((one) => one.shadowRoot?.querySelector(what)).find(Boolean);
  const heatmap = () => {
    const root = inside("heatmap", ".heatmap");
    const canvas = root?.querySelector("canvas");
    if (!canvas?.width) return "";
    const row = canvas.getContext("2d").getImageData(0, Math.floor(canvas.height * 0.37), canvas.width, 1).data;
    return `${root.dataset.painted.replace(" …", "")} ${canvas.height} ${row.join()}`;
  };
  const seen = {
    heatmap,
    links: () => inside("links", "[data-painted]")?.dataset.painted ?? "",
    text: () => document.querySelector('[data-testid="stText"]').textContent,
  }[name];
  const before = seen();
  const start = performance.now();
  const end = () => requestAnimationFrame(() => resolve(performance.now() - start));
  const look = () => requestAnimationFrame(() => {
    const now = seen();
    if (now && now !== before) end();
    else if (performance.now() - start > 20000) reject(`Nothing has changed after a click; looking at ${name}.`);
    else look();
  });
  target.click();
  look();
})"""


def after(page: Page, seen: str, *targets: Locator) -> float:
    """Median milliseconds over clicks on each of `targets` in turn until `seen` (heatmap, links, text) has changed."""
    return median([click(page, seen, targets[turn % len(targets)]) for turn in range(REPETITIONS + 1)][1:])


def click(page: Page, seen: str, target: Locator) -> float:
    found = float(page.evaluate(CLICKED, [seen, target.element_handle()]))
    rest(page)
    return found


def rest(page: Page) -> None:
    page.locator(SETTLED).wait_for()
    page.wait_for_timeout(REST)


def empty(browser: Browser, address: str) -> float:
    """Milliseconds of a click in an app that shows one number."""
    page = browser.new_page()
    page.goto(address)
    button = page.get_by_role("button", name="Add one")
    button.wait_for(timeout=1000 * STARTS_WITHIN)
    rest(page)
    found = after(page, "text", button)
    page.close()
    return found


def of_the_page(browser: Browser, address: str, tokens: int) -> dict[str, float]:
    """Milliseconds of each change on Explore, for the encoder's map of so many tokens."""
    text = sentence(tokens)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}/?{urlencode({'sentence': text, 'kind': 'encoder'})}")
    tiles = [page.get_by_role("button", name=f"Layer 2, head {head}", exact=True) for head in HEADS]
    tiles[0].wait_for(timeout=1000 * STARTS_WITHIN)
    rest(page)
    found = {"head": after(page, "heatmap", *tiles)}
    page.locator(".st-key-display button").first.click()
    rest(page)
    found["scale"] = after(page, "heatmap", *map(page.get_by_text, SCALES))
    found["special tokens"] = after(page, "heatmap", page.get_by_label("Hide special tokens"))
    page.keyboard.press("Escape")
    rest(page)
    links, heatmap = (page.locator(".st-key-view").get_by_role("radio", name=name) for name in ("links", "heatmap"))
    turns = [(click(page, "links", links), click(page, "heatmap", heatmap)) for _ in range(REPETITIONS)]
    page.close()
    there, back = (median(times) for times in zip(*turns, strict=True))
    return found | {"view, to links": there, "view, to the heatmap": back}


def sentence(tokens: int) -> str:
    """Words that the page's first model reads as so many tokens, the end of the sentence included."""
    tokenizer = Tokenizer.load(FOLDER / available()[0] / TOKENIZER)
    found: list[str] = []
    for word in cycle(" ".join(WORDS).split()):
        if len(tokenizer.encode(" ".join([*found, word])).ids) > tokens:
            return " ".join(found)
        found.append(word)
    raise AssertionError("the words never end")
