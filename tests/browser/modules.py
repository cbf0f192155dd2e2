"""Modules of the project's scripts in a bare page, as they stand in the sources."""

from __future__ import annotations

import json

from playwright.sync_api import Page, Route

from tests.browser.firefox import VIZ, FirefoxPage

ADDRESS = "http://scripts.test/"
"""Where a page finds `viz/`; no request for it leaves the browser."""
IMPORT = """async ([address, names]) => {
  const module = await import(address);
  for (const name of names) {
    if (!(name in module)) throw new Error(`${address} exports no ${name}`);
    window[name] = module[name];
  }
}"""
ENGLISH = {"language": "en", "said": {}}
"""What `build_messages_statement` (viz/web/component_scripts.py) puts before a script for English readers."""


def import_names(page: Page | FirefoxPage, path: str, *names: str) -> None:
    """Make what `viz/PATH` exports under these `names` known to the page's window."""
    address = page.scripts if isinstance(page, FirefoxPage) else ADDRESS
    if not isinstance(page, FirefoxPage):
        page.route(f"{ADDRESS}**", _send_script)
    page.evaluate(f"() => {{ globalThis.MESSAGES ??= {json.dumps(ENGLISH)}; }}")
    page.evaluate(IMPORT, [address + path, list(names)])


def _send_script(route: Route) -> None:
    path = VIZ / route.request.url.removeprefix(ADDRESS)
    route.fulfill(path=path, content_type="text/javascript", headers={"Access-Control-Allow-Origin": "*"})
