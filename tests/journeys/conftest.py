"""The browser of the tests of pages, for walks over them."""

from tests.browser.conftest import chromium

__all__ = ["chromium"]
