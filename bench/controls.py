"""How many controls of each page a visitor sees at first: ``python -m bench.controls [ADDRESS]`` of a running app.

A control is a link, button, field or menu in sight at 1440x900, each option of a row of options included. Words of the
sentences, tokens to go on from, tiles of heads, of habits, of exhibits and of scenes, blocks of the drawn Transformer,
and the links to the pages are the picture and the way, and are not counted; nor are the cells of a picture, the parts
of a scene in its picture and the terms of the glossary, which have no button of their own, and what shows only under
the mouse.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType

from playwright.sync_api import Page

from bench.browser import chromium

LIMITS: Mapping[str, int] = MappingProxyType(
    {"": 16, "decode": 12, "why": 12, "heads": 12, "positions": 12, "training": 12, "masks": 12, "talk": 12}
)
"""The most controls of each page, by its path."""
FIND_CONTROLS = """() => {
  const control = 'a[href], button, input, select, textarea, summary, [role="button"], [role="slider"]';
  const picture = '.tile, .words, .tokens, .piece, [data-testid="stTopNavLink"], .st-key-translation, '
    + '.transformer, .candidate .name, .st-key-left-out, [class*="st-key-habit-"], [class*="st-key-broken-"], '
    + '.st-key-scene-choice, .picture > .part';
  const above = (one) => one.parentElement ?? one.getRootNode().host;
  const within = (one, selector) => one && (one.matches(selector) || within(above(one), selector));
  const inSight = (one) => {
    const { left, right, top, bottom, width, height } = one.getBoundingClientRect();
    const there = width > 0 && height > 0 && right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
    return there && one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  };
  // A field of a list has a button, a switch and a choice a hidden input: each is one control.
  const whole = (one) => one.closest('[data-testid="stSelectbox"] [role="group"], label') ?? one;
  const found = new Set();
  const look = (root) => root.querySelectorAll("*").forEach((one) => {
    if (one.shadowRoot) look(one.shadowRoot);
    if (one.matches(control) && !within(one, picture) && inSight(whole(one))) found.add(whole(one));
  });
  look(document);
  const name = (one) => one.getAttribute("aria-label") || one.querySelector("[aria-label]")?.getAttribute("aria-label")
    || one.textContent || one.placeholder || one.tagName;
  return [...found].map((one) => name(one).trim());
}"""


def list_controls(page: Page) -> list[str]:
    """Return the names of the controls in sight."""
    return [str(name) for name in page.evaluate(FIND_CONTROLS)]


def main() -> None:
    """Print a line for each page."""
    parser = argparse.ArgumentParser(description="Count the controls that each page of a running app shows at first.")
    parser.add_argument("address", nargs="?", default="http://127.0.0.1:8501")
    address = parser.parse_args().address
    with chromium() as browser:
        for path, most in LIMITS.items():
            page = browser.new_page(viewport={"width": 1440, "height": 900}, base_url=address)
            page.goto(f"/{path}")
            page.locator(":root[data-arrived]").wait_for(state="attached", timeout=120_000)
            page.wait_for_timeout(1_500)
            found = list_controls(page)
            print(f"{path or 'explore'}: {len(found)} (at most {most}): {', '.join(found)}")
            page.close()


if __name__ == "__main__":
    main()
